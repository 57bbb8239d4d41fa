"""The dictionaries that a model was trained with, as its checkpoints name them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.trainer import Trainer

from ..errors import InputError
from ..files import checksum_of_lines
from .replacing import replace_once

_CHECKSUM = "_checksum"
_SIDES = ("source_dictionary", "target_dictionary")
# The files that an ensemble is loaded from, and the checksums that each has.
_loaded: ContextVar[list[tuple[str, dict[str, str]]] | None] = ContextVar("loaded", default=None)


def keep_dictionary_checksums() -> None:
    """Has checkpoints keep ``dictionaries``: the checksums of the symbols of the source's and the target's. What loads
    a model for data with others, as fairseq-generate does, ends in a sentence, and so does a training that starts from
    it (``--finetune-from-model``, ``--restore-file``) or goes on.

    With another dictionary of the same size a model would translate into nonsense, and nothing would tell.

    For fairseq 0.12.
    """
    replace_once(Dictionary, "add_from_file", _with_checksum)
    replace_once(Trainer, "state_dict", _with_dictionaries)
    replace_once(Trainer, "load_checkpoint", _starting_with_the_same)
    replace_once(checkpoint_utils, "load_checkpoint_to_cpu", _noting_checksums)
    replace_once(checkpoint_utils, "load_model_ensemble_and_task", _comparing_checksums)


def _with_checksum(add_from_file: Callable) -> Callable:
    def add(self: Dictionary, f: Any) -> None:
        before = len(self.symbols)
        add_from_file(self, f)
        # What a task adds to its dictionary afterwards is in no file.
        setattr(self, _CHECKSUM, checksum_of_lines(self.symbols[before:]))

    return add


def _with_dictionaries(state_dict: Callable) -> Callable:
    def state(self: Trainer) -> dict[str, Any]:
        state, checksums = state_dict(self), _checksums_of(self.task)
        return {**state, "dictionaries": checksums} if checksums else state

    return state


def _noting_checksums(load_checkpoint_to_cpu: Callable) -> Callable:
    def load(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        state = load_checkpoint_to_cpu(path, *args, **kwargs)
        files = _loaded.get()
        if files is not None:
            files.append((path, state.get("dictionaries") or {}))
        return state

    return load


def _comparing_checksums(load_model_ensemble_and_task: Callable) -> Callable:
    def load(filenames: Sequence[str], arg_overrides: Any = None, task: Any = None, *args: Any, **kwargs: Any) -> Any:
        with _loading():
            try:
                loaded = load_model_ensemble_and_task(filenames, arg_overrides, task, *args, **kwargs)
            except RuntimeError:
                # Its embeddings are of another size, as a dictionary may be.
                _refuse_others(task)
                raise
            _refuse_others(loaded[2])
        return loaded

    return load


def _starting_with_the_same(load_checkpoint: Callable) -> Callable:
    def load(self: Trainer, filename: str, *args: Any, **kwargs: Any) -> Any:
        with _loading():
            try:
                return load_checkpoint(self, filename, *args, **kwargs)
            finally:
                # Before whatever fairseq says where its embeddings are of another size.
                _refuse_others(self.task)

    return load


@contextlib.contextmanager
def _loading() -> Iterator[None]:
    """Notes what is loaded meanwhile."""
    token = _loaded.set([])
    try:
        yield
    finally:
        _loaded.reset(token)


def _refuse_others(task: Any) -> None:
    """Raises InputError where the task's dictionaries are not those of the models that were loaded last."""
    checksums = _checksums_of(task)
    for path, checksums_of_path in _loaded.get() or ():
        for side in checksums_of_path.keys() & checksums.keys():
            if checksums_of_path[side] != checksums[side]:
                raise InputError(
                    f"{path} was trained with another dictionary of the {side} side: give the data of its training, or "
                    f"new text prepared with its dictionaries (fairseq-preprocess --srcdict FILE --tgtdict FILE)"
                )


def _checksums_of(task: Any) -> dict[str, str]:
    checksums = {}
    for side in _SIDES:
        try:
            checksum = getattr(getattr(task, side), _CHECKSUM, None)
        except (AttributeError, NotImplementedError):  # a task without
            continue
        if checksum is not None:
            checksums[side.removesuffix("_dictionary")] = checksum
    return checksums
