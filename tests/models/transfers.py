"""What a program reads back from a GPU, seen without one: its tensors are on PyTorch's ``meta`` device, which holds no
numbers."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")
_ATEN = torch.ops.aten
_PACKAGES = ("fairseq", "fairseq_plugins")


class Transfers(TorchDispatchMode):
    """Counts in a block what goes between the ``meta`` device and the CPU, by the function that asks for it.

    A number that is read back (``.item()``, a condition on a tensor) is 1, and a condition true unless it is
    that tensors differ, or that one is a certain number. On a GPU each waits until all is computed that was asked for
    before.

    Raises:
        AssertionError: an operation has tensors on both; single numbers may be on the CPU, as on a GPU.
    """

    def __init__(self) -> None:
        super().__init__()
        self.read_back: Counter[str] = Counter()
        self.copied: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        devices = {tensor.device.type for tensor in tensors}
        if function is _ATEN._local_scalar_dense.default and devices == {"meta"}:
            self.read_back[_place()] += 1
            dtype = tensors[0].dtype
            return not hasattr(tensors[0], "is_false") if dtype == torch.bool else 1.0 if dtype.is_floating_point else 1
        if function is _ATEN.equal.default and devices == {"meta"}:
            self.read_back[_place()] += 1
            return True
        if function in (_ATEN._to_copy.default, _ATEN.copy_.default):
            target = torch.device(kwargs.get("device") or args[0].device)
            source = tensors[-1].device
            if (source.type, target.type) == ("meta", "cpu"):
                self.read_back[_place()] += 1
                return torch.zeros(tensors[-1].shape, dtype=kwargs.get("dtype") or tensors[-1].dtype)
            if (source.type, target.type) == ("cpu", "meta"):
                self.copied[_place()] += 1
            return function(*args, **kwargs)
        mixed = [tensor for tensor in tensors if tensor.device.type == "cpu" and tensor.dim()]
        assert "meta" not in devices or not mixed, f"{function}: {tuple(mixed[0].shape)} is on the CPU, in {_place()}"
        result = function(*args, **kwargs)
        if function in (_ATEN.ne.Tensor, _ATEN.eq.Scalar):
            result.is_false = True
        return result


class OnGPU:
    """Has fairseq and PyTorch take ``meta`` for the GPU of this machine, in a block."""

    def __enter__(self) -> None:
        self._before = torch.cuda.is_available, torch.cuda.current_device
        torch.cuda.is_available = lambda: True
        torch.cuda.current_device = lambda: META  # type: ignore[assignment,return-value]  # a number elsewhere

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        torch.cuda.is_available, torch.cuda.current_device = self._before


def _place() -> str:
    """The innermost function of fairseq or of ours: ``trainer.train_step``."""
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        package = next((part for part in reversed(path.parts[:-1]) if part in _PACKAGES), None)
        if package and "tests" not in path.parts and not frame.f_code.co_name.startswith("<"):
            return f"{path.stem}.{frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]  # None where the stack ends
    return "elsewhere"
