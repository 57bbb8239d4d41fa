"""Recurrent language models: equivalences, AWD-LSTM against a plain loop, parameter counts, options."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from fairseq_plugins.criterions.activation_regularization import ActivationRegularizedCrossEntropyCriterion
from fairseq_plugins.criterions.output_cross_entropy import OutputCrossEntropyCriterion
from fairseq_plugins.criterions.r_drop import RDropCriterion
from fairseq_plugins.errors import InputError
from fairseq_plugins.models.carried_states import CarriedStates
from fairseq_plugins.models.options import takes_layer_option
from fairseq_plugins.models.recurrent_language_model import RecurrentLanguageModel, RecurrentLanguageModelConfig
from fairseq_plugins.modules import RECURRENT_KINDS
from tests.commands import CHECKOUT
from tests.models.tasks import WORDS, build_architecture, make_task, without_idle

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}
DROPOUTS = {
    name: 0.5
    for name in ("embedding_dropout", "decoder_dropout_in", "dropout", "decoder_dropout_out", "weight_dropout")
}


def make_model(seed: int = 0, task: SimpleNamespace | None = None, **options) -> RecurrentLanguageModel:
    torch.manual_seed(seed)
    sizes = {"decoder_embed_dim": 6, "decoder_hidden_size": 6, "decoder_layers": 2}
    cfg = without_idle(RecurrentLanguageModelConfig(**{**sizes, **options}))
    model = RecurrentLanguageModel.build_model(cfg, task or make_task()).double().eval()
    # Larger weights than at the start of training, so that nothing hides in the tolerance.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


def test_a_dropout_that_has_no_place_is_said(caplog: pytest.LogCaptureFixture) -> None:
    make_model(dropout=0.5)
    assert not caplog.records
    make_model(dropout=0.5, decoder_layers=1)
    assert "--dropout 0.5 has no effect with one layer, since it is between layers" in caplog.text


@st.composite
def models(draw: st.DrawFn) -> RecurrentLanguageModel:
    kind = draw(st.sampled_from(sorted(RECURRENT_KINDS)))
    input_layer = draw(st.sampled_from(["own", "tied", "one_hot"]))
    of_layers = {
        "cell": draw(st.sampled_from(["lstm", "gru"])),
        "connection": draw(st.sampled_from(["state", "gate"])),
        "channels": draw(st.integers(1, 4)),
        "first_dilation": draw(st.integers(1, 3)),
    }
    return make_model(
        seed=draw(st.integers(0, 100)),
        recurrent_layer=kind,
        **{name: value for name, value in of_layers.items() if takes_layer_option([kind], name)},
        share_decoder_input_output_embed=input_layer == "tied",
        one_hot=input_layer == "one_hot",
        decoder_layers=draw(st.integers(1, 3)),
    )


texts = st.integers(1, 12).flatmap(
    lambda length: st.lists(
        st.lists(st.integers(2, WORDS - 1), min_size=length, max_size=length), min_size=1, max_size=3
    )
)


@settings(max_examples=40)
@given(models(), texts, st.data())
def test_windows_and_steps_equal_one_pass(model: RecurrentLanguageModel, text: list[list[int]], data) -> None:
    tokens = torch.tensor(text)
    expected, _ = model(tokens)
    cuts = sorted(data.draw(st.sets(st.integers(1, tokens.size(1)), max_size=3)))
    carried, logits = CarriedStates(), []
    for window in torch.tensor_split(tokens, [cut for cut in cuts if cut < tokens.size(1)], dim=1):
        logits.append(model(window, carried=carried)[0])
        # What a checkpoint keeps in between.
        kept = carried.tensors()
        carried = CarriedStates()
        carried.load(kept)
    torch.testing.assert_close(torch.cat(logits, dim=1), expected, **TOLERANCE)
    incremental_state: dict = {}
    steps = [model.decoder(tokens[:, : t + 1], incremental_state=incremental_state)[0] for t in range(tokens.size(1))]
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, **TOLERANCE)


@pytest.mark.parametrize("kind", sorted(RECURRENT_KINDS))
def test_carried_states_keep_no_window_alive(kind: str) -> None:
    """Nor does a checkpoint, which stores all that a view is of."""
    carried = CarriedStates()
    make_model(recurrent_layer=kind)(torch.randint(2, WORDS, (2, 12)), carried=carried)
    for tensor in itertools.chain.from_iterable(carried.tensors()):
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


@settings(max_examples=15)
@given(models(), st.data())
def test_reordered_hypotheses(model: RecurrentLanguageModel, data) -> None:
    tokens = torch.randint(2, WORDS, (3, 4), generator=torch.Generator().manual_seed(1))
    order = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=5)))
    incremental_state: dict = {}
    for t in range(3):
        model.decoder(tokens[:, : t + 1], incremental_state=incremental_state)
    model.decoder.reorder_incremental_state(incremental_state, order)
    logits, _ = model.decoder(tokens[order], incremental_state=incremental_state)
    torch.testing.assert_close(logits[:, -1], model(tokens[order])[0][:, -1], **TOLERANCE)


def test_what_is_in_no_text_has_no_probability() -> None:
    model = make_model(share_decoder_input_output_embed=True).float()
    logits, _ = model(torch.tensor([[4, 5, 6]]))
    probabilities = logits.softmax(-1)
    assert probabilities[..., [0, 1]].eq(0).all()
    assert probabilities[..., 2:].gt(0).all()
    logits.logsumexp(-1).sum().backward()
    assert model.decoder.output_projection.bias.grad[:2].eq(0).all()


@pytest.mark.parametrize("kind", ["lstm", "mc_rnn"])
def test_dropouts(kind: str) -> None:
    tokens = torch.randint(2, WORDS, (3, 5), generator=torch.Generator().manual_seed(1))
    plain = make_model(recurrent_layer=kind)
    expected, _ = plain(tokens)
    torch.testing.assert_close(plain.train()(tokens)[0], expected, rtol=0, atol=0)
    for name in DROPOUTS:
        dropping = make_model(recurrent_layer=kind, **{name: 0.5})
        torch.testing.assert_close(dropping(tokens)[0], expected, rtol=0, atol=0)
        dropping.train()
        assert not dropping(tokens)[0].equal(dropping(tokens)[0]), name


@pytest.mark.parametrize(("option", "is_fixed"), [({}, True), ({"plain_dropout": True}, False)])
def test_masks_over_time(option: dict[str, bool], is_fixed: bool) -> None:
    model = make_model(decoder_dropout_out=0.5, **option).train()
    _, extra = model(torch.randint(2, WORDS, (3, 8)))
    mask = extra["dropped_output"] / extra["undropped_output"]
    torch.testing.assert_close(mask.unique(), torch.tensor([0.0, 2.0]).double())
    assert mask.isclose(mask[:1]).all() == is_fixed
    assert not mask[0].equal(mask[0, :1].expand_as(mask[0])), "streams have masks of their own"


@pytest.mark.parametrize(("option", "is_fixed"), [({}, True), ({"plain_dropout": True}, False)])
@pytest.mark.parametrize(("dropout", "layer"), [("decoder_dropout_in", 0), ("dropout", 1)])
def test_masks_of_what_layers_read(dropout: str, layer: int, option: dict[str, bool], is_fixed: bool) -> None:
    model = make_model(**{dropout: 0.5, **option}).train()
    read: list[torch.Tensor] = []
    layers = model.decoder.stack.layers
    forward = layers[layer].forward

    def noting(x: torch.Tensor, *more, **keywords):
        read.append(x)
        return forward(x, *more, **keywords)

    layers[layer].forward = noting
    model(torch.randint(2, WORDS, (3, 8)))
    [dropped] = read
    is_zero = dropped.eq(0)
    assert 0 < is_zero.double().mean() < 1
    assert is_zero.eq(is_zero[:1]).all() == is_fixed
    assert not is_zero[0].equal(is_zero[0, :1].expand_as(is_zero[0])), "streams have masks of their own"


def test_awd_lstm_equals_a_plain_loop() -> None:
    """Embedding, ``torch.nn.LSTM``, tied softmax, by hand: losses and updates over ten windows."""
    torch.manual_seed(3)
    types, embed_dim, hidden_size, batch, window = 30, 8, 14, 4, 6
    options = {"decoder_embed_dim": embed_dim, "decoder_hidden_size": hidden_size, "decoder_layers": 3}
    task = make_task(types)
    cfg = RecurrentLanguageModelConfig(**options, share_decoder_input_output_embed=True)
    model = RecurrentLanguageModel.build_model(cfg, task).train()
    embedding = nn.Embedding(types, embed_dim)
    sizes = [embed_dim, hidden_size, hidden_size, embed_dim]
    layers = nn.ModuleList(nn.LSTM(*pair) for pair in zip(sizes[:-1], sizes[1:], strict=True))
    bias = nn.Parameter(torch.zeros(types))
    embedding.weight.data.copy_(model.decoder.embed_tokens.weight)
    for layer, network in zip(layers, model.decoder.stack.layers, strict=True):
        layer.load_state_dict(network.rnn.state_dict())
    parameters = [embedding.weight, *layers.parameters(), bias]

    task.target_dictionary = task.source_dictionary
    criterion = CrossEntropyCriterion(task, sentence_avg=False)
    text = torch.randint(2, types, (batch, 10 * window + 1))
    carried, states = CarriedStates(), [None] * 3
    for start in range(0, 10 * window, window):
        source, target = text[:, start : start + window], text[:, start + 1 : start + window + 1]
        sample = {"net_input": {"src_tokens": source, "carried": carried}, "target": target, "ntokens": target.numel()}
        loss, sample_size, _ = criterion(model, sample | {"target": target.contiguous()})
        loss = loss / sample_size
        x = embedding(source.t())
        for i, layer in enumerate(layers):
            x, states[i] = layer(x, states[i])
            states[i] = tuple(part.detach() for part in states[i])
        logits = F.linear(x, embedding.weight, bias)
        # <s> and <pad> are no words.
        logits[..., :2] = -torch.inf
        expected = F.cross_entropy(logits.flatten(0, 1), target.t().flatten())
        assert abs(loss.item() - expected.item()) < 1e-6
        for value, own in (loss, list(model.parameters())), (expected, parameters):
            for parameter, gradient in zip(own, torch.autograd.grad(value, own), strict=True):
                parameter.data.add_(gradient, alpha=-1.0)


def test_it_starts_as_in_dilated_rnn_s_experiments() -> None:
    def built(**options: object) -> RecurrentLanguageModel:
        torch.manual_seed(0)
        sizes = {"decoder_hidden_size": 50, "decoder_layers": 2, "one_hot": True}
        return RecurrentLanguageModel.build_model(RecurrentLanguageModelConfig(**sizes, **options), make_task())

    glorot = built(initialization="glorot").decoder
    first = glorot.stack.layers[0].rnn
    assert first.bias_ih_l0.view(4, 50).mean(dim=1).tolist() == [0, 1, 0, 0], "TensorFlow's forget gate"
    bound = (6 / (WORDS + 50 + 4 * 50)) ** 0.5
    assert 0.95 * bound < first.weight_hh_l0.abs().max().item() <= bound
    assert glorot.output_projection.weight.std().item() == pytest.approx(1, abs=0.1)
    assert glorot.output_projection.bias.abs().max() > 0.5
    normal = [parameter for parameter in built(initialization="normal").parameters() if parameter.dim() == 2]
    assert len(normal) == 5 and all(weight.std().item() == pytest.approx(1, abs=0.1) for weight in normal)
    own = built().decoder
    assert own.output_projection.weight.abs().max() <= 0.1 and not own.output_projection.bias.any()


def parameter_count(architecture: str, types: int, **options: int) -> int:
    model = build_architecture(architecture, make_task(types), **options)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.system
def test_parameter_counts() -> None:
    assert parameter_count("awd_lstm_ptb", 10_000) == 24_221_600
    assert parameter_count("awd_lstm_ptb", 10_002) == 24_222_402, "with <s> and <pad>, as scripts/prepare_ptb.sh has it"
    assert parameter_count("mc_rnn_lm_ptb", 10_002) == 37_687_602


CHARACTERS = 50 + 3
"""Penn Treebank's characters, with the lines' ends, and fairseq's <s>, <pad> and <unk>."""


@pytest.mark.system
@pytest.mark.parametrize(
    ("architecture", "parameters"),
    [
        ("lstm_lm_ptb_characters", 4_273_053),
        ("gru_lm_ptb_characters", 3_218_053),
        ("stacked_lstm_lm_ptb_characters", 2_437_429),
        ("stacked_gru_lm_ptb_characters", 1_831_477),
        ("dilated_rnn_lm_ptb_characters", 619_577),
        ("dilated_lstm_lm_ptb_characters", 2_437_433),
        ("dilated_gru_lm_ptb_characters", 1_831_481),
    ],
)
def test_parameters_of_character_models(architecture: str, parameters: int) -> None:
    assert parameter_count(architecture, CHARACTERS) == parameters
    page = (CHECKOUT / "docs" / "language_models.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith(f"| `{architecture}` |")]
    assert row.endswith(f" {parameters:,} |")


@pytest.mark.system
@pytest.mark.parametrize(
    ("architecture", "paper"),
    [
        ("lstm_lm_ptb_characters", 4.25),
        ("gru_lm_ptb_characters", 3.19),
        ("dilated_rnn_lm_ptb_characters", 0.6),
        # What the paper says of five layers.
        ("stacked_lstm_lm_ptb_characters with 4 layers", 1.9),
        ("stacked_gru_lm_ptb_characters with 4 layers", 1.42),
    ],
)
def test_parameters_of_character_models_are_about_the_paper_s(architecture: str, paper: float) -> None:
    architecture, _, changed = architecture.partition(" with ")
    options = {"decoder_layers": 4} if changed else {}
    assert parameter_count(architecture, CHARACTERS, **options) / 1e6 == pytest.approx(paper, abs=0.03)


def criterion_of(**weights: float) -> ActivationRegularizedCrossEntropyCriterion:
    task = make_task()
    task.target_dictionary = task.source_dictionary
    return ActivationRegularizedCrossEntropyCriterion(
        task,
        sentence_avg=False,
        activation_regularization=weights.get("alpha", 0.0),
        temporal_activation_regularization=weights.get("beta", 0.0),
    )


def test_activation_regularization() -> None:
    model = make_model(decoder_dropout_out=0.5).train()
    tokens = torch.randint(2, WORDS, (2, 6))
    target = tokens.roll(-1, dims=1)
    target[1, -1] = 1  # padding
    sample = {"net_input": {"src_tokens": tokens}, "target": target, "ntokens": 11}

    def loss_of(**weights: float) -> torch.Tensor:
        torch.manual_seed(5)
        loss, sample_size, logged = criterion_of(**weights)(model, sample)
        assert logged["loss"] == plain
        return loss / sample_size

    torch.manual_seed(5)
    plain = criterion_of()(model, sample)[0]
    torch.manual_seed(5)
    _, extra = model(tokens)
    real = [(time, row) for row in range(2) for time in range(6) if not (row == 1 and time == 5)]
    dropped = torch.stack([extra["dropped_output"][place] for place in real]).float()
    changes = torch.stack(
        [extra["undropped_output"][t, b] - extra["undropped_output"][t - 1, b] for t, b in real if t > 0]
    ).float()
    expected = plain / 11 + 2 * dropped.square().mean() + 3 * changes.square().mean()
    loss = loss_of(alpha=2, beta=3)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad(loss, trained)
    for found, wanted in zip(gradients, torch.autograd.grad(expected, trained), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-7)
    assert loss_of() == plain / 11
    model.eval()
    assert criterion_of(alpha=2, beta=3)(model, sample)[0] == criterion_of()(model, sample)[0]


def test_activation_regularization_of_one_step() -> None:
    model = make_model().train()
    sample = {"net_input": {"src_tokens": torch.tensor([[4]])}, "target": torch.tensor([[5]]), "ntokens": 1}
    assert criterion_of(alpha=2, beta=3)(model, sample)[0].isfinite()


def test_activation_regularization_of_padding_alone() -> None:
    """The last window of a process whose streams have ended; another's has not."""
    model = make_model().train()
    sample = {"net_input": {"src_tokens": torch.full((2, 3), 1)}, "target": torch.full((2, 3), 1), "ntokens": 0}
    loss, *_ = criterion_of(alpha=2, beta=3)(model, sample)
    assert loss == 0
    loss.backward()
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in model.parameters())


def test_activation_regularization_asks_the_device_for_nothing() -> None:
    """A training step on a GPU must not wait until it knows which targets are real; ``meta`` tensors know nothing."""
    outputs = [torch.zeros(3, 2, 6, device="meta", requires_grad=True) for _ in range(2)]
    extra = dict(zip(("dropped_output", "undropped_output"), outputs, strict=True))
    sample = {"target": torch.zeros(2, 3, dtype=torch.long, device="meta"), "ntokens": 5}
    criterion_of(alpha=2, beta=3)._regularization(extra, sample).backward()
    assert all(output.grad.shape == output.shape for output in outputs)


def test_unused_parameters_are_not_looked_for(model_of_all_parameters: torch.nn.Module) -> None:
    sample = {"net_input": {"src_tokens": torch.tensor([[4]])}, "target": torch.tensor([[5]]), "ntokens": 1}
    with pytest.raises(InputError, match="--find-unused-parameters does not go with this criterion: leave it out"):
        criterion_of(alpha=2, beta=3)(model_of_all_parameters, sample)


@pytest.fixture
def model_of_all_parameters() -> torch.nn.Module:
    """As DistributedDataParallel shows a model."""
    model = make_model().train()
    model.find_unused_parameters = True
    return model


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decoder_layers": 0}, "--decoder-layers must be at least 1, not 0"),
        ({"weight_dropout": 1.0}, "--weight-dropout must be at least 0 and below 1, not 1.0"),
        ({"one_hot": True, "share_decoder_input_output_embed": True}, "--one-hot has no embeddings"),
        (
            {"recurrent_layer": "hm_rnn", "decoder_embed_dim": 5, "share_decoder_input_output_embed": True},
            "--recurrent-layer hm_rnn: the levels of an HM-RNN have one width, not 6, 5",
        ),
        (
            {
                "recurrent_layer": "dilated_rnn",
                "first_dilation": 2,
                "fusion": "concat",
                "share_decoder_input_output_embed": True,
            },
            "the layers' output is 12 wide, and the embeddings 6",
        ),
        (
            {"initialization": "glorot", "init_range": 0.1},
            "--initialization and --init-range both say how the parameters start: leave out one of them",
        ),
        ({"reads_streams": True}, "say --task streaming_language_modeling"),
        (
            {"initialization": "glorot", "recurrent_layer": "mc_rnn"},
            "--recurrent-layer mc_rnn: TensorFlow 1 has no such layer to take a start from; give --initialization",
        ),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_model(**options)


def test_a_dictionary_of_fewer_words_to_write() -> None:
    with pytest.raises(InputError, match="--output-dictionary-size: recurrent_lm reads and writes the same words"):
        make_model(task=make_task(target_types=WORDS - 1))


def test_label_smoothing_in_fairseq_s_own_task() -> None:
    sample = {"net_input": {"src_tokens": torch.tensor([[4]])}, "target": torch.tensor([[5]]), "ntokens": 1}
    with pytest.raises(InputError, match="--label-smoothing: recurrent_lm gives <s> and <pad> no probability"):
        OutputCrossEntropyCriterion(make_task(), False, 0.1)(make_model(), sample)
    with pytest.raises(InputError, match="--label-smoothing: recurrent_lm gives <s> and <pad> no probability"):
        RDropCriterion(make_task(), False, 0.1, 1.0)(make_model().train(), sample)


def test_states_of_another_number_of_streams() -> None:
    model, carried = make_model(), CarriedStates()
    model(torch.tensor([[4, 5], [6, 7]]), carried=carried)
    with pytest.raises(InputError, match="the states are of 2 streams, and the text has 1"):
        model(torch.tensor([[4, 5]]), carried=carried)
