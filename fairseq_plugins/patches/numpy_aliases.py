"""Names and arguments of numpy that fairseq's data code uses and today's numpy does not have any more."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable

import numpy as np
from fairseq.data import bucket_pad_length_dataset, data_utils

from .replacing import replace_once


def restore_numpy_aliases() -> None:
    """Gives back the names that fairseq's data code still uses and numpy has dropped.

    Names of numpy itself (1.24 and 2.0 dropped them), and the ``interpolation`` of ``np.percentile`` (2.4), which
    ``--num-batch-buckets`` comes to.

    For fairseq 0.12 with numpy 1.24 or later.
    """
    for name, value in ("int", int), ("float", float), ("compat", types.SimpleNamespace(long=int)):
        if name not in vars(np):
            setattr(np, name, value)

    def build(_get_buckets: Callable) -> Callable:
        def get_buckets(sizes: np.ndarray, num_buckets: int) -> np.ndarray:
            return np.unique(np.percentile(sizes, np.linspace(0, 100, num_buckets + 1), method="lower")[1:])

        return get_buckets

    if "interpolation" not in inspect.signature(np.percentile).parameters:
        for module in data_utils, bucket_pad_length_dataset:  # the second imports it by name
            replace_once(module, "get_buckets", build)
