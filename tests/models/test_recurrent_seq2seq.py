"""RNNSearch with any recurrent layer: equivalences, parameter counts, options."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq.models import ARCH_MODEL_NAME_REGISTRY
from fairseq.sequence_generator import SequenceGenerator
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_plugins.errors import InputError
from fairseq_plugins.models.options import takes_layer_option
from fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqConfig, RecurrentSeq2SeqModel
from fairseq_plugins.modules import RECURRENT_KINDS
from fairseq_plugins.package_files import ROOT
from tests.models.tasks import (
    WORDS,
    build_architecture,
    check_beam_reordering,
    check_padding_alone,
    make_task,
    pad,
    sentences,
)

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


def make_model(task: SimpleNamespace | None = None, seed: int = 0, **options) -> RecurrentSeq2SeqModel:
    sizes = dict.fromkeys(["encoder_embed_dim", "encoder_hidden_size", "decoder_embed_dim", "decoder_hidden_size"], 6)
    torch.manual_seed(seed)
    # Equal connections would hide it if one were taken for another.
    layers = options.get("encoder_recurrent_layer"), options.get("decoder_recurrent_layer")
    if "mc_rnn" in layers and options.get("connection") != "gate":
        options = {"connection_init": "orthogonal", **options}
    cfg = RecurrentSeq2SeqConfig(**{**sizes, **options})
    model = RecurrentSeq2SeqModel.build_model(cfg, task or make_task()).double().eval()
    # Larger weights than at the start of training, so that nothing hides in the tolerance.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


@st.composite
def models(draw: st.DrawFn) -> RecurrentSeq2SeqModel:
    kinds = {
        f"{side}_recurrent_layer": draw(st.sampled_from(sorted(RECURRENT_KINDS))) for side in ("encoder", "decoder")
    }
    of_layers = {
        "first_dilation": draw(st.integers(1, 2)),
        "fusion": draw(st.sampled_from(["convolution", "concat"])),
        "rcrn_output_gate": draw(st.sampled_from(["sigmoid", "linear"])),
        "cell": draw(st.sampled_from(["lstm", "gru"] if "rcrn" in kinds.values() else ["lstm", "gru", "rnn"])),
        "connection": draw(st.sampled_from(["state", "gate"])),
        "channels": draw(st.integers(1, 4)),
    }
    if of_layers["first_dilation"] == 1:
        del of_layers["fusion"]
    return make_model(
        seed=draw(st.integers(0, 100)),
        **kinds,
        **{name: value for name, value in of_layers.items() if takes_layer_option(kinds.values(), name)},
        decoder_attention=draw(st.sampled_from(["input-feed", "output"])),
        encoder_layers=draw(st.integers(1, 2)),
        decoder_layers=draw(st.integers(1, 3)),
    )


@pytest.mark.system
@settings(max_examples=20)
@given(models(), st.booleans())
def test_a_sentence_of_nothing_but_padding_changes_no_gradient(model: RecurrentSeq2SeqModel, is_training: bool) -> None:
    check_padding_alone(model.train(is_training))


@settings(max_examples=30)
@given(models(), sentences, st.sampled_from(["left", "right"]), st.integers(0, 2), st.data())
def test_batch_mates_and_padding_side_never_matter(
    model: RecurrentSeq2SeqModel, batch: list[list[int]], side: str, more_padding: int, data: st.DataObject
) -> None:
    width = max(map(len, batch)) + more_padding
    source = pad(batch, side, model.encoder.padding_idx, width)
    target = torch.tensor(data.draw(st.lists(st.integers(2, WORDS - 1), min_size=3, max_size=3))).expand(len(batch), 3)
    encoded = model.encoder(source)
    logits, extra = model.decoder(target, encoded)
    for i, sentence in enumerate(batch):
        alone = model.encoder(torch.tensor([sentence]))
        for name in ("encoder_out", "summaries"):
            for together, single in zip(encoded[name], alone[name], strict=True):
                kept = together[i, : len(sentence)] if name == "encoder_out" else together[i]
                torch.testing.assert_close(kept, single[0], **TOLERANCE)
        expected, expected_extra = model.decoder(target[:1], alone)
        torch.testing.assert_close(logits[i], expected[0], **TOLERANCE)
        # Attention comes in the order of the source as it was given, padding included (fairseq issue 3625).
        attention = extra["attn"][0][i]
        first = width - len(sentence) if side == "left" else 0
        torch.testing.assert_close(
            attention[:, first : first + len(sentence)], expected_extra["attn"][0][0], **TOLERANCE
        )
        assert torch.allclose(attention.sum(-1), attention.new_ones(3))


@settings(max_examples=30)
@given(models(), sentences, st.integers(1, 6))
def test_incremental_decoding_equals_teacher_forcing(
    model: RecurrentSeq2SeqModel, batch: list[list[int]], steps: int
) -> None:
    source = pad(batch, "left", model.encoder.padding_idx, max(map(len, batch)))
    target = torch.randint(2, WORDS, (len(batch), steps))
    encoded = model.encoder(source)
    expected, expected_extra = model.decoder(target, encoded)
    incremental_state: dict = {}
    for t in range(steps):
        logits, extra = model.decoder(target[:, : t + 1], encoded, incremental_state)
        assert logits.size(1) == 1
        torch.testing.assert_close(logits[:, 0], expected[:, t], **TOLERANCE)
        torch.testing.assert_close(extra["attn"][0][:, 0], expected_extra["attn"][0][:, t], **TOLERANCE)


@pytest.mark.system
@settings(max_examples=40)
@given(models(), sentences, st.integers(1, 3), st.booleans(), st.data())
def test_beam_reordering(
    model: RecurrentSeq2SeqModel, batch: list[list[int]], beam: int, like_a_beam: bool, data: st.DataObject
) -> None:
    check_beam_reordering(model, batch, beam, like_a_beam, data)


@pytest.mark.system
@settings(max_examples=15)
@given(models(), sentences, st.sampled_from(["left", "right"]))
def test_translations_never_depend_on_batch_mates(
    model: RecurrentSeq2SeqModel, batch: list[list[int]], side: str
) -> None:
    def translate(source: Tensor) -> list[list[list[int]]]:
        generator = SequenceGenerator([model], make_task().target_dictionary, beam_size=3, max_len_b=8)
        sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(1).sum(1)}}
        return [[hypothesis["tokens"].tolist() for hypothesis in row] for row in generator.generate([model], sample)]

    together = translate(pad(batch, side, model.encoder.padding_idx, max(map(len, batch))))
    for sentence, hypotheses in zip(batch, together, strict=True):
        assert translate(torch.tensor([sentence]))[0] == hypotheses


@pytest.mark.parametrize("decoder_attention", ["input-feed", "output"])
def test_later_target_tokens_have_no_influence(decoder_attention: str) -> None:
    model = make_model(decoder_attention=decoder_attention, decoder_recurrent_layer="mc_rnn")
    encoded = model.encoder(torch.tensor([[5, 6, 7, 2]]))
    target = torch.tensor([[2, 5, 6, 7, 8]])
    changed = torch.tensor([[2, 5, 6, 9, 4]])
    assert model.decoder(target, encoded)[0][:, :3].equal(model.decoder(changed, encoded)[0][:, :3])
    assert not model.decoder(target, encoded)[0][:, 3:].equal(model.decoder(changed, encoded)[0][:, 3:])


def test_every_parameter_gets_a_gradient() -> None:
    for options in ({}, {"encoder_recurrent_layer": "mc_rnn", "decoder_recurrent_layer": "mc_rnn"}):
        model = make_model(**options).train()
        model(torch.tensor([[5, 6, 7, 2]]), None, torch.tensor([[2, 8, 9]]))[0].sin().sum().backward()
        assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]


def test_dropout_acts_in_training_only() -> None:
    model = make_model(dropout=0.5)
    source, target = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[2, 8, 9]])
    assert model(source, None, target)[0].equal(model(source, None, target)[0])
    model.train()
    assert not model(source, None, target)[0].equal(model(source, None, target)[0])
    model.decoder.eval()
    model.encoder.eval()
    assert model(source, None, target)[1]["attn"][0] is not None


def test_attention_is_left_out_when_nobody_needs_it() -> None:
    model = make_model()
    model.make_generation_fast_(need_attn=False)
    assert model(torch.tensor([[5, 2]]), None, torch.tensor([[2, 8]]))[1]["attn"] == [None]


# Translation: a joined dictionary of 25,000 types, three untied tables. Summarisation: 30,000 types on each side.
PARAMETERS = {
    "rnnsearch_iwslt_de_en": 24_416_424,
    "rnnsearch_large_iwslt_de_en": 25_557_624,
    "rnnsearch_larger_iwslt_de_en": 26_638_392,
    "rnnsearch_deep_iwslt_de_en": 26_782_376,
    "rnnsearch_gigaword": 32_993_328,
    "ho_rnn_gigaword": 35_352_624,
    "ho_rnn_iwslt_de_en": 25_596_072,
    "hm_rnn_gigaword": 33_785_657,
    "hm_rnn_iwslt_de_en": 24_808_875,
    "rcrn_iwslt_de_en": 26_257_064,
    "dilated_rnn_iwslt_de_en": 24_416_424,
    "mc_rnn_iwslt_de_en": 26_646_184,
    "mc_rnn_2_iwslt_de_en": 26_252_968,
    "mc_rnn_4_iwslt_de_en": 27_039_400,
    "mc_rnn_gigaword": 37_452_848,
    "mc_rnn_2_gigaword": 36_666_416,
    "mc_rnn_4_gigaword": 38_239_280,
}


def test_every_architecture_of_ours_is_counted() -> None:
    ours = {name for name, model in ARCH_MODEL_NAME_REGISTRY.items() if model == "recurrent_seq2seq"}
    assert ours - {"recurrent_seq2seq"} == set(PARAMETERS)


@pytest.mark.system
@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_counts(name: str) -> None:
    types = 30_000 if "gigaword" in name else 25_000
    model = build_architecture(name, make_task(types, types))
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS[name]


@pytest.mark.slow
def test_the_page_has_every_reading_of_the_sizes() -> None:
    """MC-RNN's columns of parameters: matrices of states or of gates, three tables of embeddings or one."""
    section = (ROOT / "docs" / "architectures.md").read_text(encoding="utf-8").partition("## Both readings")[2]
    rows = re.findall(r"^\| `(\w+)`(?:, `--order (\d)`)? \| (\d+) \|([^\n]*)\|$", section, re.MULTILINE)
    assert len(rows) > 15
    tasks = {types: make_task(types, types) for types in (30_000, 25_000)}
    for name, order, _, cells in rows:
        task = tasks[30_000 if "gigaword" in name else 25_000]
        for cell, (connection, is_shared) in zip(
            cells.split("|"), itertools.product(("state", "gate"), (False, True)), strict=True
        ):
            options = {"connection": connection} if name.startswith(("mc_rnn", "ho_rnn")) else {}
            options |= {"order": int(order)} if order else {}
            with torch.device("meta"):
                model = build_architecture(name, task, share_all_embeddings=is_shared, **options)
            assert f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}" == cell.strip(), (name, order, cell)


def test_sharing_of_embeddings() -> None:
    task = make_task()
    untied = make_model(task)
    assert untied.decoder.output_projection.weight is not untied.decoder.embed_tokens.weight
    tied = make_model(task, share_decoder_input_output_embed=True)
    assert tied.decoder.output_projection.weight is tied.decoder.embed_tokens.weight
    assert tied.encoder.embed_tokens is not tied.decoder.embed_tokens
    shared = make_model(task, share_all_embeddings=True)
    assert shared.encoder.embed_tokens is shared.decoder.embed_tokens
    assert shared.decoder.output_projection.weight is shared.encoder.embed_tokens.weight


def test_pretrained_embeddings(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("2 6\nw3 1 2 3 4 5 6\nunheard-of 6 5 4 3 2 1\n")
    task = make_task()
    cfg = RecurrentSeq2SeqConfig(encoder_embed_dim=6, encoder_embed_path=str(path), encoder_freeze_embed=True)
    model = RecurrentSeq2SeqModel.build_model(cfg, task)
    assert model.encoder.embed_tokens.weight[task.source_dictionary.index("w3")].tolist() == [1, 2, 3, 4, 5, 6]
    assert not model.encoder.embed_tokens.weight.requires_grad
    assert model.decoder.embed_tokens.weight.requires_grad


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_pretrained_embeddings_without_a_heading_line(side: str, tmp_path: Path) -> None:
    """As GloVe's: the first word has a vector too."""
    path, task = tmp_path / "vectors.txt", make_task()
    path.write_text("w3 1 2 3 4 5 6\nw4 6 5 4 3 2 1\n<pad> 1 1 1 1 1 1\n")
    cfg = RecurrentSeq2SeqConfig(**{f"{side}_embed_dim": 6, f"{side}_embed_path": str(path)})
    model = RecurrentSeq2SeqModel.build_model(cfg, task)
    weight = getattr(model, side).embed_tokens.weight
    assert weight[task.source_dictionary.index("w3")].tolist() == [1, 2, 3, 4, 5, 6]
    assert weight[task.source_dictionary.index("w4")].tolist() == [6, 5, 4, 3, 2, 1]
    assert not weight[task.source_dictionary.pad()].any()


@pytest.mark.parametrize(
    "options, task, message",
    [
        ({"encoder_layers": 0}, make_task(), "--encoder-layers must be at least 1, not 0"),
        ({"channels": 0, "decoder_recurrent_layer": "mc_rnn"}, make_task(), "--channels must be at least 1, not 0"),
        ({"channels": 3}, make_task(), "--channels is an option of mc_rnn layers, not of lstm: leave it out, or"),
        (
            {"cell": "gru", "decoder_recurrent_layer": "hm_rnn"},
            make_task(),
            "--cell is an option of dilated_rnn, ho_rnn, mc_rnn, rcrn layers, not of hm_rnn or lstm",
        ),
        ({"share_all_embeddings": True}, make_task(9, 10), "needs a joined dictionary"),
        ({"share_all_embeddings": True, "decoder_embed_dim": 8}, make_task(), "needs equal sizes"),
        ({"share_all_embeddings": True, "decoder_embed_path": "x"}, make_task(), "leave out --decoder-embed-path"),
        ({"share_all_embeddings": True, "decoder_freeze_embed": True}, make_task(), "is frozen by --encoder-freeze"),
        ({"encoder_embed_path": "absent.txt"}, make_task(), "absent.txt: no such file"),
        ({"encoder_recurrent_layer": "rcrn", "cell": "rnn"}, make_task(), "--cell rnn: rcrn layers take lstm, gru"),
        (
            {"decoder_recurrent_layer": "hm_rnn", "decoder_cell": "gru"},
            make_task(),
            "--decoder-cell is no option of hm_rnn layers; leave it out",
        ),
        (
            {"encoder_recurrent_layer": "dilated_rnn", "first_dilation": 0},
            make_task(),
            "--first-dilation must be at least 1, not 0",
        ),
        ({}, make_task(left_pad_target=True), "--left-pad-target is not supported"),
        # As fairseq's older tasks have it.
        (
            {},
            SimpleNamespace(**{**vars(make_task()), "cfg": None, "args": SimpleNamespace(left_pad_target="True")}),
            "--left-pad-target is not supported",
        ),
        ({"dropout": 1.5}, make_task(), "--dropout must be at least 0 and below 1, not 1.5"),
    ],
)
def test_options_that_contradict_each_other(options: dict, task: SimpleNamespace, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_model(task, **options)


def test_embeddings_of_another_size(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("1 2\nw3 1 2\n")
    with pytest.raises(InputError, match="line 2: a vector of 2 numbers, but --encoder-embed-dim is 6"):
        make_model(encoder_embed_path=str(path))


@pytest.mark.parametrize("kind", ["lstm", "mc_rnn"])
def test_words_are_told_apart_at_the_start(kind: str) -> None:
    """What the decoder's attention looks for: memories of different words differ, in every sentence."""
    task = make_task(500)
    source = torch.randint(4, 500, (3, 20), generator=torch.Generator().manual_seed(0))

    def mean_cosine(std: float | None) -> float:
        torch.manual_seed(0)
        cfg = RecurrentSeq2SeqConfig(encoder_recurrent_layer=kind, decoder_recurrent_layer=kind, embed_init_std=std)
        model = RecurrentSeq2SeqModel.build_model(cfg, task).eval()
        memory = torch.nn.functional.normalize(model.encoder(source)["encoder_out"][0], dim=-1)
        cosines = memory @ memory.transpose(1, 2)
        return (cosines.sum() - cosines.diagonal(dim1=1, dim2=2).sum()).item() / (3 * 20 * 19)

    assert mean_cosine(1.0) < 0.7 < mean_cosine(None) < 0.95 < mean_cosine(0.1 / 3**0.5)


@pytest.mark.parametrize(
    "options, source_std, target_std",
    [
        ({}, 0.2, 0.2),
        ({"share_decoder_input_output_embed": True}, 0.2, 0.125),
        ({"share_all_embeddings": True}, 0.125, 0.125),
        ({"share_all_embeddings": True, "embed_init_std": 0.3}, 0.3, 0.3),
    ],
    ids=str,
)
def test_starting_scale_of_the_embeddings(options: dict[str, float], source_std: float, target_std: float) -> None:
    torch.manual_seed(0)
    cfg = RecurrentSeq2SeqConfig(encoder_embed_dim=64, decoder_embed_dim=64, **options)
    model = RecurrentSeq2SeqModel.build_model(cfg, make_task(500))
    for side, std in (model.encoder, source_std), (model.decoder, target_std):
        assert side.embed_tokens.weight[4:].std().item() == pytest.approx(std, rel=0.05)
        assert (side.embed_tokens.weight[1] == 0).all(), "padding"


def test_a_negative_scale_is_refused() -> None:
    with pytest.raises(InputError, match="--embed-init-std"):
        make_model(embed_init_std=-1.0)
