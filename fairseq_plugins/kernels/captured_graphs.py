"""Programs on GPUs that are captured once, as CUDA graphs, and kept for what has the same shape."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
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
        self._memories: dict[int, Memory] = {}

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
        if stream not in self._memories:
            self._memories[stream] = Memory(torch.cuda.graph_pool_handle(), torch.cuda.Stream())
        return self._memories[stream]

    def _is_full(self) -> bool:
        buffers = tree_leaves([vars(program) for program in self._programs.values()])
        size = sum(value.nbytes for value in buffers if isinstance(value, Tensor))
        return len(self._programs) > GRAPHS_KEPT or size > BYTES_KEPT


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
        with capturing():
            work()

    if device.type != "cuda":
        return marked
    with torch.cuda.device(device):
        # Compiles the kernels and makes the libraries' workspaces, neither of which can be captured.
        warm_up = torch.cuda.Stream()
        warm_up.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm_up):
            marked()
        torch.cuda.current_stream().wait_stream(warm_up)
        graph = torch.cuda.CUDAGraph()
        # The backward pass runs in a thread of autograd's, beside others that may use the GPU.
        # A stream of its own: by default all captures of a process are on one of the first capture's GPU.
        pool, stream = memory or Memory(None, torch.cuda.Stream())
        with torch.cuda.graph(graph, pool, stream, capture_error_mode="thread_local"):
            marked()
    return graph.replay


def bucket(rows: int, smallest: int = 8) -> int:
    """The number of rows, rounded up, of a graph that takes so many: by less than a quarter above ``smallest``."""
    step = max(smallest, 1 << max(rows - 1, 1).bit_length() >> 3)
    return -(-rows // step) * step


def precision() -> str:
    """How products of float32 round on GPUs, which is decided when they are captured."""
    # PyTorch's older question raises once the newer setting has been used.
    newer: str | None = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    return torch.get_float32_matmul_precision() if newer is None else newer
