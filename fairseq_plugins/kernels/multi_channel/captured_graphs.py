"""Programs on GPUs that are captured once, as CUDA graphs, and kept for what has the same shape."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

# Those of a training: buckets of batches, forwards and backwards, of whole sequences and of single steps.
GRAPHS_KEPT = 128
BYTES_KEPT = 4 << 30


class Programs:
    """The programs in use, the least recently used ones forgotten.

    ``lock`` is for whoever uses one: its buffers are those of all threads.
    """

    def __init__(self) -> None:
        self.made = 0
        self.lock = threading.RLock()
        self._programs: OrderedDict[tuple[type, Hashable], Any] = OrderedDict()

    def get(self, kind: type, shape: Hashable) -> Any:
        """``kind(shape)``, made when it is first asked for."""
        key = kind, shape
        if key not in self._programs:
            with torch.inference_mode(False), torch.no_grad():
                self._programs[key] = kind(shape)
            self.made += 1
            while len(self._programs) > 1 and self._is_full():
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        return self._programs[key]

    def _is_full(self) -> bool:
        buffers = (value for program in self._programs.values() for value in vars(program).values())
        size = sum(value.nbytes for value in buffers if isinstance(value, Tensor))
        return len(self._programs) > GRAPHS_KEPT or size > BYTES_KEPT


def captured(work: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """``work`` as a CUDA graph; itself on a CPU."""
    if device.type != "cuda":
        return work
    with torch.cuda.device(device):
        # Compiles the kernels and makes the libraries' workspaces, neither of which can be captured.
        warm_up = torch.cuda.Stream()
        warm_up.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm_up):
            work()
        torch.cuda.current_stream().wait_stream(warm_up)
        graph = torch.cuda.CUDAGraph()
        # The backward pass runs in a thread of autograd's, beside others that may use the GPU.
        # A stream of its own: by default all captures of a process are on one of the first capture's GPU.
        with torch.cuda.graph(graph, stream=torch.cuda.Stream(), capture_error_mode="thread_local"):
            work()
    return graph.replay
