"""What every path of an encoder and of a decoder is to a network of several paths, so that the network is written once.

Symbols: B rows, N sentences, S source tokens, T target tokens, d features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ...kernels.checks import check_mask, check_tensor
from ..attention import Memory

EMBEDDING_SCALE = 0.1
"""The embeddings' standard deviation at the start; the states of a path without a final layer norm stay about there."""


class EncoderOutput(NamedTuple):
    """What a path of the encoder returns.

    Attributes:
        output: (B, S, d), which decoders attend to; whatever is at padding does not count.
        summaries: of each level (B, size), what a recurrent decoder starts from; empty where a path has none.
    """

    output: Tensor
    summaries: tuple[Tensor, ...] = ()


class EncoderPath(nn.Module, ABC):
    """A stack of layers that reads the source.

    Attributes:
        summary_sizes: the widths of :attr:`EncoderOutput.summaries`.
        checkpoints_activations: see :func:`run_layer`.
    """

    summary_sizes: Sequence[int] = ()
    checkpoints_activations: bool = False

    @abstractmethod
    def forward(self, x: Tensor, real: Tensor) -> EncoderOutput:
        """Reads x (B, S, d); real (B, S) is False at padding, which may be on the left or on the right.

        Raises:
            ValueError: they do not fit the path or each other.
        """


class LayerState(Protocol):
    """What a layer of a decoder path carries from one call to the next."""

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> LayerState:
        """Takes these rows, and these of the encoder's sentences; None where they stay as they are."""


class PathOutput(NamedTuple):
    """What a path of the decoder returns.

    Attributes:
        output: (B, T, d).
        states: of each layer; a path may leave them out in training with ``real``, where nobody goes on from them.
        attention: for each encoder path the mean of the layers' weights (B, T, S); empty unless asked for.
        gates: for each encoder path but the first of :func:`.gate.order` its share in each layer's gate
            (B, T, layers); empty with one encoder path or unless asked for.
    """

    output: Tensor
    states: tuple[LayerState, ...]
    attention: dict[str, Tensor]
    gates: dict[str, Tensor]


@dataclass(frozen=True)
class Fusion:
    """What a decoder path reads, and how its gates fuse it.

    Attributes:
        encoder_paths: their names.
        matches_memory: read the memory of an encoder path of another scale at this path's own scale.
        gate_gradient_scale: of the gates (:class:`.ScalarGate`).
        path_dropout: of the gates.
        summary_sizes: :attr:`EncoderPath.summary_sizes` of the encoder paths that have summaries.
    """

    encoder_paths: Sequence[str] = ("cnn", "san")
    matches_memory: bool = False
    gate_gradient_scale: float = 1.0
    path_dropout: float = 0.0
    summary_sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)


State = TypeVar("State", bound=LayerState)
Result = TypeVar("Result")


class DecoderPath(nn.Module, ABC, Generic[State]):
    """A stack of causal layers, which attend to every path of the encoder and fuse what they get by a gate.

    For a type checker it is generic in the state of its layers.

    Attributes:
        checkpoints_activations: see :func:`run_layer`.
    """

    checkpoints_activations: bool = False

    @abstractmethod
    def forward(
        self,
        embedded: Tensor,
        memories: Mapping[str, Memory],
        real: Tensor | None = None,
        states: Sequence[State] | None = None,
        need_attention: bool = False,
    ) -> PathOutput:
        """Decodes T positions of each sentence, the first ones or those after ``states``.

        Args:
            embedded: E, (B, T, d).
            memories: of each encoder path, for B sentences or, B a multiple of it, fewer (:class:`Memory`).
            real: (B, T), False at padding, which may be on the left or on the right; None if there is none.
            states: as an earlier call returned them.
            need_attention: return the attention weights and gates.

        Raises:
            ValueError: one of them does not fit the path or the others.
        """

    def with_steps(self, states: Sequence[State], memories: Mapping[str, Memory], rows: int) -> Sequence[State]:
        """States with which a call for one position without gradients is fast: what such calls have in common is
        prepared once, for about so many rows. Neither parameters nor memories may change while they are in use.

        A path that has nothing to prepare returns them as they are.
        """
        return states


def without_padding(path: nn.Module, x: Tensor, real: Tensor | None) -> Tensor:
    """What a path begins with: x (B, T, d), zero where real (B, T) is False. NaN would go on from there through weights
    of 0.

    Raises:
        ValueError: x and real do not fit the path or each other.
    """
    check_tensor("x", x, ("B", "T", "d"), next(path.parameters(), x))
    if real is None:
        return x
    check_mask("real", real, x)
    return x.masked_fill(~real.unsqueeze(-1), 0)


def run_layer(path: EncoderPath | DecoderPath[Any], layer: Callable[..., Result], *args: Any) -> Result:
    """What a layer of a path returns.

    In training, where the path ``checkpoints_activations``, nothing that the layer computes is kept for the backward
    pass, which computes it again, with the same random numbers: a third more arithmetic for less memory.
    """
    if not (path.checkpoints_activations and path.training and torch.is_grad_enabled()):
        return layer(*args)
    result: Result = checkpoint(layer, *args, use_reentrant=False)
    return result


def takes_step(embedded: Tensor, step: object, need_attention: bool) -> bool:
    """Whether a call of a decoder path is a step that :meth:`DecoderPath.with_steps` has prepared."""
    return step is not None and embedded.size(1) == 1 and not need_attention and not torch.is_grad_enabled()


LayerResult = tuple[LayerState, Mapping[str, Tensor | None], Mapping[str, Tensor]]
"""What a layer of a decoder path returns beside its output: its state, and for each encoder path the attention weights
(B, T, S) and its share in the gate (B, T, 1)."""


def path_output(x: Tensor, results: Iterable[LayerResult], need_attention: bool) -> PathOutput:
    """Collects what the layers of a decoder path returned beside x."""
    states, attention, shares = zip(*results, strict=True)
    if not need_attention:
        return PathOutput(x, states, {}, {})
    means = {path: torch.stack([weights[path] for weights in attention]).mean(0) for path in attention[0]}
    gates = {path: torch.cat([of_layer[path] for of_layer in shares], dim=-1) for path in shares[0]}
    return PathOutput(x, states, means, gates)
