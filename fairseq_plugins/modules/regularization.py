"""Dropout for recurrent networks: locked in time, of whole words, and of recurrent weights (Merity, Keskar and Socher
2018, "Regularizing and Optimizing LSTM Language Models", Section 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..kernels.dropout import dropout

Result = TypeVar("Result")


class LockedDropout(nn.Module):
    """Dropout with one mask for all time steps ("variational", Gal and Ghahramani 2016): x (T, B, D) -> (T, B, D).

    Args:
        p: the probability of dropping an element, at least 0 and below 1.

    Raises:
        ValueError: another probability.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = _probability(p)

    def forward(self, x: Tensor) -> Tensor:
        return x * self._mask(x[:1]) if self.training and self.p else x

    def for_steps(self) -> Callable[[Tensor], Tensor]:
        """The same for the steps (B, D) of one sequence, whose mask the first step draws."""
        masks: list[Tensor] = []

        def drop(x: Tensor) -> Tensor:
            if not (self.training and self.p):
                return x
            if not masks:
                masks.append(self._mask(x))
            return x * masks[0]

        return drop

    def _mask(self, like: Tensor) -> Tensor:
        return dropout(torch.ones_like(like), self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def embedding_dropout(embedding: nn.Embedding, tokens: Tensor, p: float) -> Tensor:
    """Looks words up, tokens (...) -> (..., D), of which each is dropped in training with probability ``p``, in all
    places alike (Gal and Ghahramani 2016)."""
    embedded: Tensor = embedding(tokens)
    if not (embedding.training and p):
        return embedded
    kept = dropout(embedded.new_ones(embedding.num_embeddings, 1), p)
    return embedded * kept[tokens]


def dropped_parameters(module: nn.Module, names: Iterable[str], p: float) -> dict[str, Tensor]:
    """DropConnect (Wan et al. 2013): the module's parameters of these names, each element dropped with probability
    ``p``, as tensors that lead gradients to them. Nothing outside training."""
    if not (module.training and p):
        return {}
    return {name: dropout(module.get_parameter(name), p) for name in names}


def with_parameters(
    module: nn.Module, parameters: Mapping[str, Tensor], function: Callable[..., Result], *arguments: Any
) -> Result:
    """``function(*arguments)`` while the module has these tensors in the place of its parameters."""
    if not parameters:
        return function(*arguments)
    replaced = {f"module.{name}": tensor for name, tensor in parameters.items()}
    result: Result = torch.func.functional_call(_Call(module), replaced, (function, *arguments))
    return result


class _Call(nn.Module):
    """Has ``functional_call`` exchange the parameters of a module for any function, not for its forward alone."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, function: Callable[..., Result], *arguments: Any) -> Result:
        return function(*arguments)


def _probability(p: float) -> float:
    if not 0 <= p < 1:
        raise ValueError(f"a probability of dropout must be at least 0 and below 1, not {p}")
    return p
