"""Programs on GPUs that are captured once, as CUDA graphs, and kept for what has the same shape."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import set_detect_anomaly
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_leaves

# Those of a training: buckets of batches, forwards and backwards, of whole sequences and of single steps.
GRAPHS_KEPT = 128
BYTES_KEPT = 4 << 30


class Memory(NamedTuple):
    """Where the intermediate results of graphs are that never run beside each other.

    Attributes:
        pool: of ``torch.cuda.graph_pool_handle()``.
        stream: on which they are captured: what is freed on one is not used again on another.
    """

    pool: Any
    stream: torch.cuda.Stream


class Programs:
    """The programs in use, the least recently used ones forgotten.

    ``lock`` is for whoever uses one: its buffers are those of all threads.
    """

    def __init__(self) -> None:
        self.made = 0
        self.lock = threading.RLock()
        self._programs: OrderedDict[tuple[type, Hashable], Any] = OrderedDict()
        self._memories: dict[Hashable, Memory] = {}
        self._buffers: dict[Hashable, Tensor] = {}

    def get(self, kind: type, shape: Hashable, *arguments: Any) -> Any:
        """``kind(shape, *arguments)``, made when it is first asked for this shape."""
        key = kind, shape
        if key not in self._programs:
            with torch.inference_mode(False), torch.no_grad():
                self._programs[key] = kind(shape, *arguments)
            self.made += 1
            while len(self._programs) > 1 and self._is_full():
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        return self._programs[key]

    def memory(self, stream: int) -> Memory:
        """What all graphs that run on this stream of the current GPU, one after the other, share."""
        key = torch.cuda.current_device(), stream  # GPUs' default streams have the same number
        if key not in self._memories:
            self._memories[key] = Memory(torch.cuda.graph_pool_handle(), torch.cuda.Stream())
        return self._memories[key]

    def buffer(self, name: Hashable, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
        """A tensor that programs share which have no need of what is in it from one run to the next.

        Args:
            name: of what it is for; of one stream.
            shape: its sizes.
            dtype: its type.
            device: where it is.
        """
        key, size = (name, dtype, device), math.prod(shape)
        if key not in self._buffers or self._buffers[key].numel() < size:
            # Programs that were captured with a smaller one keep that.
            self._buffers[key] = torch.zeros(size, dtype=dtype, device=device)
        return self._buffers[key][:size].view(*shape)

    def clear(self) -> None:
        """Forgets all of them, and gives their memory back."""
        self._programs.clear()
        self._memories.clear()
        self._buffers.clear()

    def _is_full(self) -> bool:
        found = tree_leaves([vars(program) for program in self._programs.values()])
        storages = [buffer.untyped_storage() for buffer in found if isinstance(buffer, Tensor)]
        sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
        return len(self._programs) > GRAPHS_KEPT or sum(sizes.values()) > BYTES_KEPT


_here = threading.local()


def is_capturing() -> bool:
    """Whether this thread runs what a graph is made of, which has no other graphs in it."""
    return getattr(_here, "is_capturing", False)


@contextlib.contextmanager
def capturing() -> Iterator[None]:
    """:func:`is_capturing` in a block."""
    before, _here.is_capturing = is_capturing(), True
    try:
        yield
    finally:
        _here.is_capturing = before


def captured(work: Callable[[], None], device: torch.device, memory: Memory | None = None) -> Callable[[], None]:
    """``work`` as a CUDA graph; itself on a CPU.

    Args:
        work: reads and writes tensors that are there before it.
        device: of the graph.
        memory: of its intermediate results; its own if None.
    """

    def marked() -> None:
        # What somebody has autograd do with tensors that it keeps (checkpoints, anomaly detection) is not part of it.
        with capturing(), saved_tensors_hooks(lambda kept: kept, lambda kept: kept), set_detect_anomaly(False):
            work()

    if device.type != "cuda":
        return marked
    with torch.cuda.device(device):
        # A stream of its own: by default all captures of a process are on one of the first capture's GPU.
        pool, stream = memory or Memory(None, torch.cuda.Stream())
        # Compiles the kernels and makes the libraries' workspaces, neither of which can be captured.
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            marked()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # The backward pass runs in a thread of autograd's, beside others that may use the GPU.
        with torch.cuda.graph(graph, pool, stream, capture_error_mode="thread_local"):
            marked()
    return graph.replay


def bucket(rows: int, smallest: int = 8) -> int:
    """The number of rows, rounded up, of a graph that takes so many: by less than a quarter above ``smallest``."""
    step = max(smallest, 1 << max(rows - 1, 1).bit_length() >> 3)
    return -(-rows // step) * step


def stream_of(tensor: Tensor) -> int:
    """The number of the stream that operations on the tensor run on; 0 on a CPU."""
    return torch.cuda.current_stream(tensor.device).cuda_stream if tensor.is_cuda else 0


def precision() -> str:
    """How products of float32 round on GPUs, which is decided when they are captured."""
    # PyTorch's older question raises once the newer setting has been used.
    newer: str | None = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    return torch.get_float32_matmul_precision() if newer is None else newer
