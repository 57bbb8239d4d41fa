"""The paths of double path networks and more against the reference that reads like the paper, and their properties."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fairseq_plugins.modules import (
    ConvolutionalDecoderPath,
    ConvolutionalEncoderPath,
    DecoderPath,
    EncoderPath,
    Fusion,
    Memory,
    MultiHeadAttention,
    RecurrentDecoderPath,
    RecurrentEncoderPath,
    ScalarGate,
    SelfAttentionDecoderPath,
    SelfAttentionEncoderPath,
    SelfAttentionOptions,
)
from fairseq_plugins.modules.attention import dot_product_attention
from fairseq_plugins.modules.multi_path import reference

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}
SIZE = 6
ENCODER_PATHS = [("cnn",), ("san",), ("cnn", "san"), ("rnn",), ("cnn", "rnn"), ("cnn", "san", "rnn")]
KINDS = ["cnn", "san", "rnn"]
LSTM = ("lstm", None)
SELF_ATTENTION = SelfAttentionOptions(SIZE, 2, 2, 9, dropout=0.1, activation_dropout=0.1, input_scale=3.0)


def randomised(module: nn.Module) -> nn.Module:
    """In float64, with parameters that hide nothing: gates and biases do not stay at zero, gains not at one value."""
    module = module.double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return module


def encoder_path(kind: str) -> EncoderPath:
    if kind == "cnn":
        return randomised(ConvolutionalEncoderPath(SIZE, layers=3, kernel_width=3, dropout=0.1))
    if kind == "san":
        return randomised(SelfAttentionEncoderPath(SELF_ATTENTION))
    return randomised(RecurrentEncoderPath(SIZE, 2, 0.1, LSTM, input_scale=2.0))


def decoder_path(
    kind: str,
    encoder_paths: tuple[str, ...] = ("cnn", "san"),
    matches_memory: bool = True,
    summary_sizes: dict[str, list[int]] | None = None,
) -> DecoderPath:
    fusion = Fusion(encoder_paths, matches_memory, summary_sizes=summary_sizes or {})
    if kind == "cnn":
        return randomised(ConvolutionalDecoderPath(SIZE, 3, 3, 0.1, fusion))
    if kind == "san":
        return randomised(SelfAttentionDecoderPath(SELF_ATTENTION, fusion))
    return randomised(RecurrentDecoderPath(SIZE, 2, 0.1, LSTM, 2.0, fusion))


REFERENCE: dict[str, dict[str, Callable]] = {
    "encoder": {
        "cnn": reference.convolutional_encoder,
        "san": reference.self_attention_encoder,
        "rnn": lambda path, x: reference.recurrent_encoder(path, x)[0],
    },
    "decoder": {
        "cnn": reference.convolutional_decoder,
        "san": reference.self_attention_decoder,
        "rnn": reference.recurrent_decoder,
    },
}


def gradients(output: Tensor, module: nn.Module, *inputs: Tensor) -> list[Tensor]:
    torch.manual_seed(7)
    loss = (output * torch.randn_like(output)).sum()
    return torch.autograd.grad(loss, [*module.parameters(), *inputs])


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_encoder_paths_equal_the_reference(kind: str, size: int) -> None:
    path, x = encoder_path(kind), random(size, SIZE)
    expected = REFERENCE["encoder"][kind](path, x)
    output = path(x[None], torch.ones(1, size, dtype=torch.bool)).output[0]
    torch.testing.assert_close(output, expected, **TOLERANCE)
    torch.testing.assert_close(gradients(output, path, x), gradients(expected, path, x), **TOLERANCE)


def padded(real: Tensor) -> Tensor:
    """Tokens of which those at padding are no numbers."""
    return torch.randn(*real.shape, SIZE, dtype=torch.float64).masked_fill(~real.unsqueeze(-1), torch.nan)


@pytest.mark.parametrize("is_left_padded", [False, True])
@pytest.mark.parametrize("kind", ["cnn", "san"])
def test_packed_sentences_change_nothing(kind: str, is_left_padded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In training, where they are packed on CPUs: outputs and gradients, without dropout."""
    source, target = (torch.arange(length) < torch.tensor([[3], [length], [1]]) for length in (6, 5))
    if is_left_padded:
        source, target = source.flip(1), target.flip(1)
    encoder, decoder = encoder_path(kind).train(), decoder_path(kind).train()
    for module in [*encoder.modules(), *decoder.modules()]:
        for name in {"dropout", "activation_dropout"} & vars(module).keys():
            setattr(module, name, 0.0)
    x, embedded, other = padded(source), padded(target), padded(source)
    results = []
    for backend in "reference", "cpp":
        monkeypatch.setenv("FAIRSEQ_PLUGINS_BACKEND", f"packed_sentences={backend}")
        encoded = encoder(x, source).output
        memories = {"cnn": Memory.of(encoded, source), "san": Memory.of(other, source)}
        decoded = decoder(embedded, memories, target)
        assert bool(decoded.states) == (backend == "reference"), "packed"
        output = decoded.output.masked_fill(~target.unsqueeze(-1), 0)
        parameters = [*encoder.parameters(), *decoder.parameters()]
        torch.manual_seed(7)
        loss = (output * torch.randn_like(output)).sum() + output.pow(2).sum()
        results.append([output, *torch.autograd.grad(loss, parameters)])
    torch.testing.assert_close(results[1], results[0], **TOLERANCE)


@pytest.mark.system
@pytest.mark.parametrize("need_attention", [False, True])
@pytest.mark.parametrize("matches_memory", [False, True])
@pytest.mark.parametrize("encoder_paths", ENCODER_PATHS, ids=",".join)
@pytest.mark.parametrize("kind", KINDS)
def test_decoder_paths_equal_the_reference(
    kind: str, encoder_paths: tuple[str, ...], matches_memory: bool, need_attention: bool
) -> None:
    """Eq. 4 to 9; with the weights asked for (explicit softmax) and without (the fused product)."""
    path, x = decoder_path(kind, encoder_paths, matches_memory), random(5, SIZE)
    memories = {name: random(4, SIZE) for name in encoder_paths}
    expected, weights, gates = REFERENCE["decoder"][kind](path, x, memories)
    real = torch.ones(1, 4, dtype=torch.bool)
    result = path(
        x[None], {name: Memory.of(m[None], real) for name, m in memories.items()}, need_attention=need_attention
    )
    torch.testing.assert_close(result.output[0], expected, **TOLERANCE)
    inputs = [x, *memories.values()]
    torch.testing.assert_close(
        gradients(result.output[0], path, *inputs), gradients(expected, path, *inputs), **TOLERANCE
    )
    assert set(result.attention) == (set(encoder_paths) if need_attention else set())
    for name in result.attention:
        torch.testing.assert_close(result.attention[name][0], weights[name], **TOLERANCE)
    assert set(result.gates) == (set(gates) if need_attention else set())
    own = kind if kind in encoder_paths else encoder_paths[0]
    assert set(gates) == set(encoder_paths) - {own}
    for name, shares in result.gates.items():
        torch.testing.assert_close(shares[0], gates[name], **TOLERANCE)
        assert (shares.std(dim=1) > 1e-4).all(), "the gates should differ between positions"


def test_output_gate_equals_equation_10() -> None:
    gate = randomised(ScalarGate(SIZE))
    z_c, z_a = random(3, SIZE), random(3, SIZE)
    fused, g = gate(z_c[None], z_a[None])
    for i in range(3):
        expected, expected_g = reference.gate(gate, z_c[i], z_a[i])
        torch.testing.assert_close(fused[0, i], expected, **TOLERANCE)
        torch.testing.assert_close(g[0, i], expected_g, **TOLERANCE)


@pytest.mark.parametrize("paths", [3, 4])
def test_a_gate_of_several_paths_equals_the_reference(paths: int) -> None:
    gate = randomised(ScalarGate(SIZE, paths=paths))
    outputs = [random(3, SIZE) for _ in range(paths)]
    fused, shares = gate(*(output[None] for output in outputs))
    assert shares.shape == (1, 3, paths - 1)
    expected, expected_shares = zip(
        *(reference.gate(gate, *of_position) for of_position in zip(*outputs, strict=True)), strict=True
    )
    torch.testing.assert_close(fused[0], torch.stack(expected), **TOLERANCE)
    torch.testing.assert_close(shares[0], torch.stack(expected_shares), **TOLERANCE)
    torch.testing.assert_close(
        gradients(fused, gate, *outputs), gradients(torch.stack(expected)[None], gate, *outputs), **TOLERANCE
    )


def test_a_softmax_over_two_paths_is_the_sigmoid_of_the_paper() -> None:
    """The same function of the same parameters: 1e-12."""
    gate = randomised(ScalarGate(SIZE))
    own, other = random(3, SIZE), random(3, SIZE)
    fused, g = gate(own[None], other[None])
    scores = torch.cat([own, other], dim=-1) @ gate.linear.weight[0] + gate.linear.bias
    shares = torch.softmax(torch.stack([torch.zeros_like(scores), scores], dim=-1), dim=-1)
    expected = shares[:, :1] * own + shares[:, 1:] * other
    torch.testing.assert_close(g[0], shares[:, 1:], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(fused[0], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("paths", [2, 3])
def test_dropout_of_paths_in_training(paths: int) -> None:
    """A sentence goes without a path in all its positions, never without all, and the others share what it had."""
    torch.manual_seed(5)
    gate = randomised(ScalarGate(SIZE, paths=paths, path_dropout=0.4))
    outputs = torch.randn(paths, 300, 4, SIZE, dtype=torch.float64)
    _, whole_shares = gate(*outputs)
    gate.train()
    _, shares = gate(*outputs)
    shares, whole_shares = (
        torch.cat([1 - others.sum(dim=-1, keepdim=True), others], dim=-1) for others in (shares, whole_shares)
    )
    dropped = shares.abs() < 1e-12
    assert dropped.equal(dropped[:, :1].expand_as(dropped)), "by sentence"
    assert not dropped.all(dim=-1).any()
    rate = dropped[:, 0].double().mean().item()
    assert 0.2 < rate < 0.45
    expected = whole_shares.masked_fill(dropped, 0)
    torch.testing.assert_close(shares, expected / expected.sum(dim=-1, keepdim=True), **TOLERANCE)


def test_a_scale_changes_the_gradients_of_a_gate_alone() -> None:
    gate = randomised(ScalarGate(SIZE))
    own, other, upstream = torch.randn(3, 2, 5, SIZE, dtype=torch.float64)
    found = []
    for scale in 1.0, 0.01:
        gate.gradient_scale = scale
        values = own.clone().requires_grad_(), other.clone().requires_grad_()
        fused, g = gate(*values)
        found.append((fused, *torch.autograd.grad((fused * upstream).sum(), [*values, *gate.parameters()])))
    (fused, own_1, other_1, *parameters_1), (scaled, own_s, other_s, *parameters_s) = found
    torch.testing.assert_close(scaled, fused, **TOLERANCE)
    for one, hundredth in zip(parameters_1, parameters_s, strict=True):
        torch.testing.assert_close(hundredth, 0.01 * one, **TOLERANCE)
    # What reaches the contexts beside the gate stays whole.
    torch.testing.assert_close((own_s - (1 - g) * upstream), 0.01 * (own_1 - (1 - g) * upstream), **TOLERANCE)
    torch.testing.assert_close((other_s - g * upstream), 0.01 * (other_1 - g * upstream), **TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_gate_fuses_paths_of_different_precisions(dtype: torch.dtype) -> None:
    """As under autocast, where some operations are in half precision and others are not."""
    gate = randomised(ScalarGate(SIZE)).float()
    own, other = torch.randn(2, 1, 3, SIZE)
    exact, exact_gate = gate(own, other)
    with torch.autocast("cpu", dtype):
        for given in (own, other), (own.to(dtype), other), (own, other.to(dtype)):
            fused, g = gate(*given)
            assert fused.dtype == torch.float32
            torch.testing.assert_close(fused, exact, rtol=0.05, atol=0.05)
            torch.testing.assert_close(g.float(), exact_gate, rtol=0.05, atol=0.05)


def test_gates_start_half_open() -> None:
    gate = ScalarGate(SIZE)
    fused, g = gate(torch.ones(1, 2, SIZE), torch.zeros(1, 2, SIZE))
    assert (g == 0.5).all() and (fused == 0.5).all()


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_fused_attention_equals_explicit_softmax(scale: float) -> None:
    query, keys, values = random(2, 3, 5, 4), random(2, 3, 7, 4), random(2, 3, 7, 4)
    mask = torch.rand(2, 1, 5, 7) < 0.6
    mask[..., 0] = True
    fused, nothing = dot_product_attention(query, keys, values, mask, scale)
    explicit, weights = dot_product_attention(query, keys, values, mask, scale, need_weights=True)
    assert nothing is None
    torch.testing.assert_close(fused, explicit, **TOLERANCE)
    assert not weights[~mask.expand_as(weights)].any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5, dtype=torch.float64), **TOLERANCE)


@pytest.mark.parametrize("kind", KINDS)
def test_no_later_position_has_any_influence(kind: str) -> None:
    path, x = decoder_path(kind), random(1, 6, SIZE)
    memories = {name: Memory.of(random(1, 4, SIZE), torch.ones(1, 4, dtype=torch.bool)) for name in ("cnn", "san")}
    output = path(x, memories).output
    for t in range(6):
        (influence,) = torch.autograd.grad(output[0, t].sum(), x, retain_graph=True)
        assert not influence[0, t + 1 :].any()
        assert influence[0, t].any()
        if t:
            assert influence[0, t - 1].any()


@settings(max_examples=20)
@given(st.sampled_from(KINDS), st.sampled_from(ENCODER_PATHS), st.integers(2, 7), st.data())
def test_a_target_may_be_split_anywhere(
    kind: str, encoder_paths: tuple[str, ...], size: int, data: st.DataObject
) -> None:
    path, x = decoder_path(kind, encoder_paths), random(3, size, SIZE)
    real = torch.tensor([[True] * 4, [True] * 2 + [False] * 2, [False] * 3 + [True]])
    memories = {name: Memory.of(random(3, 4, SIZE), real) for name in encoder_paths}
    whole = path(x, memories, need_attention=True)
    cuts = sorted(data.draw(st.sets(st.integers(1, size - 1), max_size=size - 1)))
    states, outputs, attentions = None, [], []
    for first, last in itertools.pairwise([0, *cuts, size]):
        part = path(x[:, first:last], memories, None, states, need_attention=True)
        states = part.states
        outputs.append(part.output)
        attentions.append(part.attention[encoder_paths[0]])
    torch.testing.assert_close(torch.cat(outputs, dim=1), whole.output, **TOLERANCE)
    torch.testing.assert_close(torch.cat(attentions, dim=1), whole.attention[encoder_paths[0]], **TOLERANCE)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", KINDS)
def test_padding_of_the_target_changes_nothing(kind: str, side: str) -> None:
    path, x = decoder_path(kind), random(1, 4, SIZE)
    memories = {name: Memory.of(random(1, 3, SIZE), torch.ones(1, 3, dtype=torch.bool)) for name in ("cnn", "san")}
    expected = path(x, memories).output
    noise = random(1, 2, SIZE)
    padded = torch.cat([noise, x] if side == "left" else [x, noise], dim=1)
    kept = slice(2, 6) if side == "left" else slice(0, 4)
    real = torch.zeros(1, 6, dtype=torch.bool)
    real[:, kept] = True
    output = path(padded, memories, real).output
    torch.testing.assert_close(output[:, kept], expected, **TOLERANCE)
    assert output.isfinite().all()


def test_dropout_acts_in_training_only() -> None:
    real = torch.ones(1, 4, dtype=torch.bool)
    for kind in KINDS:
        path, x = encoder_path(kind), random(1, 4, SIZE)
        assert path(x, real).output.equal(path(x, real).output)
        path.train()
        assert not path(x, real).output.equal(path(x, real).output)


def test_heads_must_divide_the_size() -> None:
    with pytest.raises(ValueError, match="4 heads do not divide 6 features"):
        MultiHeadAttention(6, 4)


def test_the_recurrent_decoder_starts_from_the_summaries_of_the_recurrent_encoder() -> None:
    encoder, x, source = encoder_path("rnn"), random(5, SIZE), random(4, SIZE)
    path = decoder_path("rnn", ("rnn", "san"), summary_sizes={"rnn": list(encoder.summary_sizes)})
    real = torch.ones(1, 4, dtype=torch.bool)
    memory, summaries = encoder(source[None], real)
    expected_memory, expected_summaries = reference.recurrent_encoder(encoder, source)
    other = random(4, SIZE)
    memories = {"rnn": Memory.of(memory, real, summaries), "san": Memory.of(other[None], real)}
    expected, _, gates = reference.recurrent_decoder(
        path, x, {"rnn": expected_memory, "san": other}, expected_summaries
    )
    result = path(x[None], memories, need_attention=True)
    torch.testing.assert_close(result.output[0], expected, **TOLERANCE)
    torch.testing.assert_close(result.gates["san"][0], gates["san"], **TOLERANCE)
    without = path(x[None], {**memories, "rnn": Memory.of(memory, real, [0 * each for each in summaries])})
    assert not torch.allclose(without.output, result.output)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", KINDS)
def test_padding_of_the_source_changes_nothing(kind: str, side: str) -> None:
    path, x = encoder_path(kind), random(1, 4, SIZE)
    expected = path(x, torch.ones(1, 4, dtype=torch.bool))
    noise = random(1, 2, SIZE)
    padded = torch.cat([noise, x] if side == "left" else [x, noise], dim=1)
    kept = slice(2, 6) if side == "left" else slice(0, 4)
    real = torch.zeros(1, 6, dtype=torch.bool)
    real[:, kept] = True
    output, summaries = path(padded, real)
    torch.testing.assert_close(output[:, kept], expected.output, **TOLERANCE)
    torch.testing.assert_close(summaries, expected.summaries, **TOLERANCE)
