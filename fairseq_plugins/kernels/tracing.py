"""Whether PyTorch writes operations down, or transforms them, in the place of computing them."""

from __future__ import annotations

import torch

_FAKE = torch._C._TorchDispatchModeKey.FAKE


def is_traced() -> bool:
    """Whether what is computed now is for ``torch.export``, ``torch.func`` or ``torch.vmap``, or has no memory.

    Only PyTorch's own operations and gradients can then be used, and no number can be read.
    """
    return (
        torch.compiler.is_compiling()
        or torch._C._get_dispatch_mode(_FAKE) is not None
        or torch._C._functorch.peek_interpreter_stack() is not None
    )
