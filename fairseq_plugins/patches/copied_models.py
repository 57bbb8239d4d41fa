"""Trained models that are copied, or sent to another process."""

from __future__ import annotations

import copyreg
import sys
from collections.abc import Callable
from typing import Any

from fairseq.dataclass.constants import ChoiceEnum, StrEnumMeta
from fairseq.models import BaseFairseqModel
from fairseq.tasks.fairseq_task import StatefulContainer

from .replacing import replace_once


def copy_models_and_tasks() -> None:
    """Has ``copy.deepcopy`` and ``pickle`` take a task, and a model that has translated.

    A task's state looks for its own attributes among its attributes, without end, where a copy has none yet. A model
    that was prepared for inference has a function of its own in the place of ``train``, and options that are one of
    several choices have types without a name: no pickle holds either.

    For fairseq 0.12.
    """
    replace_once(StatefulContainer, "__getattr__", _within_what_is_there)
    replace_once(BaseFairseqModel, "make_generation_fast_", _with_a_function_that_has_a_name)
    copyreg.pickle(StrEnumMeta, _by_name_or_choices)


def _within_what_is_there(getattr_: Callable) -> Callable:
    def get(self: StatefulContainer, name: str) -> Any:
        if not {"_state", "_factories"} <= vars(self).keys():
            raise AttributeError(name)
        return getattr_(self, name)

    return get


def _with_a_function_that_has_a_name(make_generation_fast: Callable) -> Callable:
    def make(self: BaseFairseqModel, **keywords: Any) -> None:
        make_generation_fast(self, **keywords)
        if "train" in vars(self):
            self.train = refuse_training

    return make


def _by_name_or_choices(enumeration: Any) -> Any:
    name = enumeration.__qualname__
    if getattr(sys.modules.get(enumeration.__module__), name, None) is enumeration:
        return name  # found by it
    return ChoiceEnum, ([choice.value for choice in enumeration],)


def refuse_training(mode: bool = True) -> None:
    """What ``model.train`` is of a model that was prepared for inference.

    Raises:
        RuntimeError: it is to be trained.
    """
    if mode:
        raise RuntimeError("cannot train after make_generation_fast")
