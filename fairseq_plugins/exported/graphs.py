"""ONNX graphs in onnxruntime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from ..cpus import available_cpus, named_threads
from ..errors import InputError

Array = NDArray[Any]
Value = Any
"""onnxruntime's ``OrtValue``: a tensor that goes from one call to the next without a copy."""


class Graph:
    """A graph, ready to run.

    Args:
        path: the file.
        threads: that compute; None for those of ``OMP_NUM_THREADS``, or one a core that the process may use.

    Raises:
        InputError: it cannot be read.
    """

    def __init__(self, path: Path, threads: int | None = None) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or named_threads() or available_cpus()
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that wait for work take time from whoever shares the machine.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's have no common class
            [reason, *_] = str(error).splitlines() or [type(error).__name__]
            raise InputError(f"{path}: onnxruntime cannot read it ({reason}); export the model again") from None
        self.inputs = [part.name for part in self._session.get_inputs()]
        self.shapes = {part.name: list(part.shape) for part in self._session.get_inputs()}
        self.outputs = [part.name for part in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, Value | Array], outputs: Sequence[str] | None = None) -> dict[str, Value]:
        """Computes.

        Args:
            inputs: all of them, by name.
            outputs: the names of those that are wanted; None for all.
        """
        names = list(self.outputs if outputs is None else outputs)
        values = {name: as_value(part) for name, part in inputs.items()}
        return dict(zip(names, self._session.run_with_ort_values(names, values), strict=True))


def as_value(part: Value | Array) -> Value:
    """An array as onnxruntime has it."""
    return onnxruntime.OrtValue.ortvalue_from_numpy(part) if isinstance(part, np.ndarray) else part


def rows_of(value: Value, rows: Array) -> Value:
    """Some of the rows of a tensor."""
    return as_value(np.ascontiguousarray(value.numpy()[rows]))
