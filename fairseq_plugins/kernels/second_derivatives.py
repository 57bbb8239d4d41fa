"""What fast kernels say where somebody wants a second derivative, which they have not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from .dispatch import BACKEND_VARIABLE

Result = TypeVar("Result")


def differentiable_once(backend: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Has the ``backward`` of an autograd function refuse ``create_graph``, and name the backend that allows it.

    PyTorch's own ``once_differentiable`` says nothing of a remedy.

    Args:
        backend: one of the operation's, in PyTorch's operations alone

    Raises:
        RuntimeError: in ``backward``, where its own operations are to be differentiated.
    """

    def decorate(backward: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(backward)
        def checked(ctx: Any, *gradients: Any) -> Result:
            if torch.is_grad_enabled():
                raise RuntimeError(
                    f"the fast kernels have no second derivatives: set {BACKEND_VARIABLE}={backend} for create_graph"
                )
            return backward(ctx, *gradients)

        return checked

    return decorate
