"""The stacks of double path networks against the reference that reads like the paper, and their properties."""

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
    Memory,
    MultiHeadAttention,
    ScalarGate,
    SelfAttentionDecoderPath,
    SelfAttentionEncoderPath,
    SelfAttentionOptions,
)
from fairseq_plugins.modules.attention import dot_product_attention
from fairseq_plugins.modules.double_path import reference

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}
SIZE = 6
ENCODER_PATHS = [("cnn",), ("san",), ("cnn", "san")]
SELF_ATTENTION = SelfAttentionOptions(SIZE, 2, 2, 9, dropout=0.1, activation_dropout=0.1, input_scale=3.0)


def randomised(module: nn.Module) -> nn.Module:
    """In float64, with parameters that hide nothing: gates and biases do not stay at zero, gains not at one value."""
    module = module.double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return module


def encoder_path(kind: str) -> nn.Module:
    if kind == "cnn":
        return randomised(ConvolutionalEncoderPath(SIZE, layers=3, kernel_width=3, dropout=0.1))
    return randomised(SelfAttentionEncoderPath(SELF_ATTENTION))


def decoder_path(kind: str, encoder_paths: tuple[str, ...] = ("cnn", "san"), matches_memory: bool = True) -> nn.Module:
    options = {"encoder_paths": encoder_paths, "matches_memory": matches_memory}
    if kind == "cnn":
        return randomised(ConvolutionalDecoderPath(SIZE, 3, 3, 0.1, **options))
    return randomised(SelfAttentionDecoderPath(SELF_ATTENTION, **options))


REFERENCE: dict[str, dict[str, Callable]] = {
    "encoder": {"cnn": reference.convolutional_encoder, "san": reference.self_attention_encoder},
    "decoder": {"cnn": reference.convolutional_decoder, "san": reference.self_attention_decoder},
}


def gradients(output: Tensor, module: nn.Module, *inputs: Tensor) -> list[Tensor]:
    torch.manual_seed(7)
    loss = (output * torch.randn_like(output)).sum()
    return torch.autograd.grad(loss, [*module.parameters(), *inputs])


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("kind", ["cnn", "san"])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_encoder_paths_equal_the_reference(kind: str, size: int) -> None:
    path, x = encoder_path(kind), random(size, SIZE)
    expected = REFERENCE["encoder"][kind](path, x)
    output = path(x[None], torch.ones(1, size, dtype=torch.bool))[0]
    torch.testing.assert_close(output, expected, **TOLERANCE)
    torch.testing.assert_close(gradients(output, path, x), gradients(expected, path, x), **TOLERANCE)


@pytest.mark.system
@pytest.mark.parametrize("need_attention", [False, True])
@pytest.mark.parametrize("matches_memory", [False, True])
@pytest.mark.parametrize("encoder_paths", ENCODER_PATHS, ids=",".join)
@pytest.mark.parametrize("kind", ["cnn", "san"])
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
    if need_attention and len(encoder_paths) == 2:
        torch.testing.assert_close(result.gates[0], gates, **TOLERANCE)
        assert (result.gates.std(dim=1) > 1e-3).all(), "the gates should differ between positions"
    else:
        assert result.gates is None


def test_output_gate_equals_equation_10() -> None:
    gate = randomised(ScalarGate(SIZE))
    z_c, z_a = random(3, SIZE), random(3, SIZE)
    fused, g = gate(z_c[None], z_a[None])
    for i in range(3):
        expected, expected_g = reference.gate(gate, z_c[i], z_a[i])
        torch.testing.assert_close(fused[0, i], expected, **TOLERANCE)
        torch.testing.assert_close(g[0, i, 0], expected_g, **TOLERANCE)


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


@pytest.mark.parametrize("kind", ["cnn", "san"])
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


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["cnn", "san"]), st.sampled_from(ENCODER_PATHS), st.integers(2, 7), st.data())
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
@pytest.mark.parametrize("kind", ["cnn", "san"])
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
    for kind in ("cnn", "san"):
        path, x = encoder_path(kind), random(1, 4, SIZE)
        assert path(x, real).equal(path(x, real))
        path.train()
        assert not path(x, real).equal(path(x, real))


def test_heads_must_divide_the_size() -> None:
    with pytest.raises(ValueError, match="4 heads do not divide 6 features"):
        MultiHeadAttention(6, 4)
