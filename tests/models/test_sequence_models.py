"""Models of labelled texts: what is beside a text in a batch never matters; sizes, files of vectors, bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_plugins.errors import InputError
from fairseq_plugins.models.sequence_classifier import SequenceClassifier, SequenceClassifierConfig
from fairseq_plugins.models.sequence_pair_classifier import SequencePairClassifier, SequencePairClassifierConfig
from fairseq_plugins.models.sequence_ranker import SequenceRanker, SequenceRankerConfig
from fairseq_plugins.modules import RECURRENT_KINDS
from tests.models.labelled import LABELS, batch, labelled_task, texts

KINDS = [kind for kind in sorted(RECURRENT_KINDS) if kind != "toy_recurrent"]
SMALL: dict[str, Any] = {"embed_dim": 6, "hidden_size": 5}


def classifier(**options: Any) -> SequenceClassifier:
    torch.manual_seed(0)
    cfg = SequenceClassifierConfig(**{**SMALL, "output_hidden_size": 7, **options})
    return SequenceClassifier.build_model(cfg, labelled_task()).eval()


@settings(max_examples=25)
@given(st.sampled_from(KINDS), texts, st.integers(0, 3), st.sampled_from(["max,mean,min", "last"]), st.booleans())
def test_padding_and_batch_mates_change_no_logit(
    kind: str, rows: list[list[int]], more_padding: int, pooling: str, unidirectional: bool
) -> None:
    cell = {} if kind == "rcrn" else {"cell": "gru"} if kind in ("mc_rnn", "dilated_rnn") else {}
    model = classifier(
        recurrent_layer=kind,
        layers=2,
        pooling=pooling,
        unidirectional=unidirectional,
        character_hidden_size=3,
        character_embed_dim=2,
        **cell,
    )
    together = model(*batch(rows, more_padding))
    alone = torch.cat([model(*batch([row])) for row in rows])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)
    assert together.shape == (len(rows), len(LABELS))


@settings(max_examples=15)
@given(st.booleans(), st.sampled_from(["lstm", "rcrn"]), texts, texts, st.integers(0, 3))
def test_pairs_do_not_depend_on_their_batch(
    attentive: bool, kind: str, first: list[list[int]], second: list[list[int]], more_padding: int
) -> None:
    torch.manual_seed(0)
    cfg = SequencePairClassifierConfig(
        **SMALL, recurrent_layer=kind, projection_size=6, tag_embed_dim=2, cross_sentence_attention=attentive
    )
    model = SequencePairClassifier.build_model(cfg, labelled_task(2, tags=True)).eval()
    count = min(len(first), len(second))
    first, second = first[:count], second[:count]

    def logits(a: list[list[int]], b: list[list[int]], padding: int) -> torch.Tensor:
        (src, src_lengths), (other, other_lengths) = batch(a, padding), batch(b, padding)
        tags = [tokens.clamp(max=5) for tokens in (src, other)]
        return model(src, src_lengths, other, other_lengths, *tags)

    together = logits(first, second, more_padding)
    alone = torch.cat([logits([a], [b], 0) for a, b in zip(first, second, strict=True)])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


@settings(max_examples=15)
@given(st.booleans(), st.sampled_from(["lstm", "rcrn"]), texts, texts, st.integers(0, 3), st.data())
def test_scores_of_candidates_do_not_depend_on_their_batch(
    attentive: bool,
    kind: str,
    questions: list[list[int]],
    candidates: list[list[int]],
    more_padding: int,
    data: st.DataObject,
) -> None:
    torch.manual_seed(0)
    cfg = SequenceRankerConfig(**SMALL, recurrent_layer=kind, attentive_pooling=attentive)
    model = SequenceRanker.build_model(cfg, labelled_task(2, has_candidates=True)).eval()
    owners = [data.draw(st.integers(0, len(questions) - 1)) for _ in candidates]
    together = model(*batch(questions, more_padding), *batch(candidates, more_padding), torch.tensor(owners))
    alone = torch.cat(
        [
            model(*batch([questions[owner]]), *batch([candidate]), torch.tensor([0]))
            for owner, candidate in zip(owners, candidates, strict=True)
        ]
    )
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)
    assert (together.abs() <= 1 + 1e-6).all()


def test_pairs_see_both_texts_and_their_order() -> None:
    torch.manual_seed(0)
    cfg = SequencePairClassifierConfig(**SMALL, projection_size=6)
    model = SequencePairClassifier.build_model(cfg, labelled_task(2)).eval()
    first, second = batch([[4, 5, 6]]), batch([[7, 8]])
    logits = model(*first, *second)
    assert not torch.allclose(logits, model(*second, *first))
    assert not torch.allclose(logits, model(*first, *batch([[7, 9]])))


def test_the_paper_s_sizes() -> None:
    """RCRN, Section 4.2: 200 each way, [max; mean; min], a dense layer of 200."""
    model = SequenceClassifier.build_model(SequenceClassifierConfig(recurrent_layer="rcrn"), labelled_task())
    assert [tuple(layer.weight.shape) for layer in model.output if hasattr(layer, "weight")] == [(200, 1200), (3, 200)]
    pair = SequencePairClassifier.build_model(SequencePairClassifierConfig(), labelled_task(2))
    assert pair.output[1].weight.shape == (300, 4 * 2 * 400)
    assert pair.encoder.stack.layers[0].input_size == 300
    attentive = SequencePairClassifierConfig(cross_sentence_attention=True)
    pair = SequencePairClassifier.build_model(attentive, labelled_task(2))
    assert pair.attention.attend[1].weight.shape == (300, 400) and pair.attention.compare[1].weight.shape == (300, 800)
    assert pair.output[1].weight.shape == (300, 4 * 2 * 300)


def write_vectors(path: Path, *lines: str) -> str:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_given_vectors_are_not_trained(tmp_path: Path) -> None:
    path = write_vectors(tmp_path / "vectors.txt", "w0 1 2 3", "nowhere 9 9 9", "w2 -1 0 .5")
    model = classifier(embed_dim=3, embed_path=path)
    embedding = model.encoder.words.embedding
    assert not embedding.weight.requires_grad
    assert embedding.weight[4].tolist() == [1, 2, 3] and embedding.weight[6].tolist() == [-1, 0, 0.5]
    assert embedding.weight[1].tolist() == [0, 0, 0], "padding has none"
    assert classifier(embed_dim=3, embed_path=path, train_embed=True).encoder.words.embedding.weight.requires_grad
    task = labelled_task()
    task.is_from_checkpoint = True
    cfg = SequenceClassifierConfig(**{**SMALL, "embed_dim": 3, "embed_path": str(tmp_path / "moved away")})
    SequenceClassifier.build_model(cfg, task)
    headed = write_vectors(tmp_path / "headed.txt", "2 3", "w0 1 2 3")
    assert classifier(embed_dim=3, embed_path=headed).encoder.words.embedding.weight[4].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["w0 1 2"], "vectors.txt, line 1: a vector of 2 numbers, but --embed-dim is 3"),
        (["w0 1 2 3 4"], "vectors.txt, line 1: a vector of 4 numbers, but --embed-dim is 3"),
        (["w0 1 2 x"], "vectors.txt, line 1: could not convert string to float: 'x'; numbers between spaces"),
        (["9 2", "w0 1 2"], "vectors.txt, line 2: a vector of 2 numbers, but --embed-dim is 3"),
        (["9 5", "w0 1 2 3 4 5"], "vectors.txt, line 2: a vector of 5 numbers, but --embed-dim is 3"),
        (["w0 1 2 3", "w2 1 nan 3"], "vectors.txt, line 2: the vector of 'w2' is not of finite numbers"),
        (["other 1 2 3"], "vectors.txt: none of its words is in the dictionary; is it of the same language"),
    ],
)
def test_vectors_that_cannot_be_used(tmp_path: Path, lines: list[str], message: str) -> None:
    path = write_vectors(tmp_path / "vectors.txt", *lines)
    with pytest.raises(InputError) as raised:
        classifier(embed_dim=3, embed_path=path)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_a_context_encoder_in_cove_s_layout(tmp_path: Path) -> None:
    published = torch.nn.LSTM(6, 4, num_layers=2, bidirectional=True)
    path = tmp_path / "context.pth"
    torch.save(published.state_dict(), path)
    model = classifier(context_encoder=str(path))
    words = model.encoder.words
    assert words.output_size == 6 + 8
    tokens, lengths = batch([[4, 5, 6]])
    expected, _ = published(words.embedding(tokens.t()))
    torch.testing.assert_close(words(tokens, lengths)[..., 6:], expected)
    assert not any(parameter.requires_grad for parameter in words.context.parameters())
    with pytest.raises(InputError, match="it reads word vectors of 6, but --embed-dim is 5"):
        classifier(embed_dim=5, context_encoder=str(path))
    path.rename(tmp_path / "moved away")
    cfg = SequenceClassifierConfig(**{**SMALL, "context_encoder": str(path)})
    cfg.context_hidden_size = 4
    task = labelled_task()
    task.is_from_checkpoint = True
    SequenceClassifier.build_model(cfg, task).encoder.load_state_dict(model.encoder.state_dict())
    torch.save({"weight": torch.zeros(2)}, path)
    with pytest.raises(InputError, match="cannot be read as a context encoder's weights: no weight_ih_l0"):
        classifier(context_encoder=str(path))
    with pytest.raises(InputError, match="no such file"):
        classifier(context_encoder=str(tmp_path / "nowhere"))


@pytest.mark.parametrize("content", ["word 1 2 3\n", [1, 2], {"weight_ih_l0": 1, "weight_hh_l0": 2}], ids=str)
def test_a_file_that_has_no_context_encoder(content: object, tmp_path: Path) -> None:
    path = tmp_path / "context.pth"
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        torch.save(content, path)
    with pytest.raises(InputError) as raised:
        classifier(context_encoder=str(path))
    assert str(raised.value) == (
        f"{path}: not a file of tensors by name that torch.save wrote; "
        "--context-encoder names weights laid out as CoVe's"
    )


def test_options_that_contradict_each_other() -> None:
    with pytest.raises(InputError, match="--pooling max,maen: there is no 'maen'; did you mean 'mean'?"):
        classifier(pooling="max,maen")
    sentence = "reads 1 text an example; the data has 2; take --arch rcrn_entailment, as configs/own_labels/rcrn_pairs"
    with pytest.raises(InputError, match=sentence):
        SequenceClassifier.build_model(SequenceClassifierConfig(**SMALL), labelled_task(2))
    with pytest.raises(
        InputError, match="ranker reads 2 texts an example; the data has 1; take --arch rcrn_classifier"
    ):
        SequenceRanker.build_model(SequenceRankerConfig(**SMALL), labelled_task())
    with pytest.raises(
        InputError, match="reads questions with candidates, and the data has none; take --arch rcrn_entailment"
    ):
        SequenceRanker.build_model(SequenceRankerConfig(**SMALL), labelled_task(2))
    with pytest.raises(
        InputError, match="reads pairs of texts with classes, and the data has none; take --arch rcrn_ranking"
    ):
        cfg = SequencePairClassifierConfig(**SMALL)
        SequencePairClassifier.build_model(cfg, labelled_task(2, has_candidates=True))
    for options, message in (
        ({"hidden_size": 0}, "--hidden-size must be at least 1, not 0"),
        ({"projection_size": -5}, "--projection-size must be at least 1, not -5"),
        ({"projection_size": 5, "highway_layers": 0}, "--highway-layers must be at least 1, not 0"),
        ({"character_hidden_size": -5}, "--character-hidden-size must be at least 1, not -5"),
        ({"dropout": 1.5}, "--dropout must be at least 0 and below 1, not 1.5"),
        ({"pooling": "max,max"}, "--pooling max,max: a pooling is there twice"),
        ({"embed_init_std": -1.0}, "--embed-init-std must be at least 0, not -1.0"),
    ):
        with pytest.raises(InputError, match=message):
            classifier(**options)
