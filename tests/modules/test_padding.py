"""NaN and infinities at padding change no result at real tokens and no gradient, in layers that are not recurrent."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from fairseq_plugins.kernels import BACKEND_VARIABLE
from fairseq_plugins.modules import (
    AdditiveAttention,
    AttentivePooling,
    ConvolutionalDecoderPath,
    ConvolutionalEncoderPath,
    DecomposableAttention,
    Fusion,
    GatedConvolution,
    Memory,
    RecurrentDecoderPath,
    RecurrentEncoderPath,
    SelfAttentionDecoderPath,
    SelfAttentionEncoderPath,
    SelfAttentionOptions,
    pool,
)

SIZE = 8
REAL = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
LENGTHS = REAL.sum(1)
OPTIONS = SelfAttentionOptions(SIZE, 2, 2, 16)
Run = Callable[[nn.Module, Tensor], Tensor]


def memories(x: Tensor) -> dict[str, Memory]:
    return {name: Memory.of(x, REAL) for name in ("cnn", "san")}


QUERY = torch.randn(2, 3, SIZE)
LAYERS: dict[str, tuple[nn.Module, Run]] = {
    "convolution": (GatedConvolution(SIZE, 3), lambda m, x: m(x, REAL)[0][REAL]),
    "CNN encoder": (ConvolutionalEncoderPath(SIZE, 2, 3, 0.0), lambda m, x: m(x, REAL).output[REAL]),
    "SAN encoder": (SelfAttentionEncoderPath(OPTIONS), lambda m, x: m(x, REAL).output[REAL]),
    "RNN encoder": (
        RecurrentEncoderPath(SIZE, 2, 0.0, ("lstm", None)),
        lambda m, x: torch.cat([m(x, REAL).output[REAL], *m(x, REAL).summaries]),
    ),
    "CNN decoder": (ConvolutionalDecoderPath(SIZE, 2, 3, 0.0), lambda m, x: m(x, memories(x), REAL).output[REAL]),
    "SAN decoder": (SelfAttentionDecoderPath(OPTIONS), lambda m, x: m(x, memories(x), REAL).output[REAL]),
    "RNN decoder": (
        RecurrentDecoderPath(SIZE, 2, 0.0, ("lstm", None)),
        lambda m, x: m(x, memories(x), REAL).output[REAL],
    ),
    "RNN decoder's memory": (
        RecurrentDecoderPath(SIZE, 2, 0.0, ("lstm", None)),
        lambda m, x: m(QUERY, memories(x), need_attention=True).output,
    ),
    "CNN decoder's memory": (ConvolutionalDecoderPath(SIZE, 2, 3, 0.0), lambda m, x: m(QUERY, memories(x)).output),
    "SAN decoder's memory": (
        SelfAttentionDecoderPath(OPTIONS, Fusion(matches_memory=True)),
        lambda m, x: m(QUERY, memories(x), need_attention=True).output,
    ),
    "additive attention": (
        AdditiveAttention(SIZE, SIZE, 4),
        lambda m, x: m(QUERY, m.project_keys(x, ~REAL), x, ~REAL)[0],
    ),
    "keys of additive attention": (
        AdditiveAttention(SIZE, 4, 4),
        lambda m, x: m(QUERY, x[..., :4], x[..., 4:], ~REAL)[0],
    ),
    "attentive pooling": (
        AttentivePooling(SIZE),
        lambda m, x: torch.stack(m(x.transpose(0, 1), LENGTHS, x.transpose(0, 1), LENGTHS)),
    ),
    "decomposable attention": (
        DecomposableAttention(SIZE, 4),
        lambda m, x: torch.stack(m(x.transpose(0, 1), LENGTHS, x.transpose(0, 1), LENGTHS))[:, REAL.t()],
    ),
    "pooling": (nn.Identity(), lambda m, x: pool(m(x).transpose(0, 1), LENGTHS, ["max", "mean", "min", "last"]).output),
}


@pytest.mark.parametrize("nothing", [math.nan, math.inf])
@pytest.mark.parametrize("backend", ["", "eager"])
@pytest.mark.parametrize("name", LAYERS)
def test_what_is_at_padding_changes_nothing(
    name: str, backend: str, nothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    layer, run = LAYERS[name]
    x = torch.randn(*REAL.shape, SIZE)

    def results(filler: float) -> list[Tensor]:
        padded = x.masked_fill(~REAL.unsqueeze(-1), filler).requires_grad_()
        output = run(layer, padded)
        of_x, *gradients = torch.autograd.grad(output.square().sum(), [padded, *layer.parameters()], allow_unused=True)
        assert not of_x[~REAL].any()
        return [output, of_x, *(gradient for gradient in gradients if gradient is not None)]

    torch.testing.assert_close(results(nothing), results(0.0), rtol=0, atol=0)


def test_poolings_need_a_token() -> None:
    x, message = torch.randn(5, 2, SIZE), "lengths must be from 1 to the 5 steps of x, not from 0 to 5"
    with pytest.raises(ValueError, match=message):
        pool(x, torch.tensor([5, 0]), ["mean"])
    with pytest.raises(ValueError, match=message):
        AttentivePooling(SIZE)(x, LENGTHS, x, torch.tensor([5, 0]))
