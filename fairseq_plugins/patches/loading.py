"""Loading checkpoints: the types in them, and the models that are made of them."""

from __future__ import annotations

import argparse
import collections
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import omegaconf
import torch
from fairseq import models
from fairseq.distributed import utils as distributed_utils
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask

from .replacing import replace_once


def allow_checkpoint_types() -> None:
    """Names the types in fairseq's checkpoints to ``torch.load``, which refuses unknown ones since PyTorch 2.6.

    None of them runs code of the file's choosing when it is loaded, so that ``weights_only=True`` keeps its promise.

    For fairseq 0.12 with PyTorch 2.6 or later.
    """
    if distributed_utils._TensorPlaceholder in torch.serialization.get_safe_globals():
        return  # nobody else names that one
    reconstruct, scalar = np.zeros(1).__reduce__()[0], np.float64(0).__reduce__()[0]
    allowed: list[Any] = [
        argparse.Namespace,  # models with add_args, such as fairseq's lstm, keep their options in one
        # The score that --eval-bleu measures is a numpy number.
        np.ndarray,
        np.dtype,
        *(type(np.dtype(name)) for name in ("bool", "int32", "int64", "float16", "float32", "float64")),
        # Resuming in several processes broadcasts the checkpoint with its configuration already made.
        omegaconf.DictConfig,
        omegaconf.ListConfig,
        omegaconf.AnyNode,
        omegaconf.base.ContainerMetadata,
        omegaconf.base.Metadata,
        collections.defaultdict,
        dict,
        list,
        int,
        distributed_utils._TensorPlaceholder,
    ]
    renamed: list[tuple[Any, str]] = [(typing.Any, "typing.Any")]
    for package in "numpy.core.multiarray", "numpy._core.multiarray":  # before numpy 2, and since
        renamed += [(reconstruct, f"{package}._reconstruct"), (scalar, f"{package}.scalar")]
    if torch.__version__ < "2.6":  # which takes no names, and asks what it is given for its own
        allowed += [value if value is typing.Any else _under_name(value, name) for value, name in renamed]
    else:
        allowed += renamed
    torch.serialization.add_safe_globals(allowed)


def _under_name(function: Callable, name: str) -> Callable:
    """A function that does the same and says that it is called ``name``."""

    def renamed(*args: Any) -> Any:
        return function(*args)

    renamed.__module__, _, renamed.__name__ = name.rpartition(".")
    return renamed


def tell_models_of_checkpoints() -> None:
    """Has a task say ``is_from_checkpoint`` while it builds a model, which fairseq tells the task alone.

    A model of a checkpoint needs none of the files that it was made from: its weights are in the checkpoint.

    For fairseq 0.12.
    """

    def build(build_model: Callable) -> Callable:
        def telling(cfg: Any, task: FairseqTask, from_checkpoint: bool = False) -> BaseFairseqModel:
            task.is_from_checkpoint = from_checkpoint
            return build_model(cfg, task, from_checkpoint)

        return telling

    replace_once(models, "build_model", build)
