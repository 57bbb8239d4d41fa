"""Whether PyTorch writes operations down, or transforms them, in the place of computing them."""

from __future__ import annotations

import torch

_FAKE = torch._C._TorchDispatchModeKey.FAKE


def is_traced() -> bool:
    """Whether what is computed now is for ``torch.export``, ``torch.func`` or ``torch.vmap``, or has no memory.

    Only PyTorch's own operations and gradients can then be used, and no number can be read. ``torch.compile`` is none
    of these: it leaves kernels out of its graphs, and runs them.
    """
    is_fake = torch._C._get_dispatch_mode(_FAKE) is not None
    return is_fake or torch._C._functorch.peek_interpreter_stack() is not None
