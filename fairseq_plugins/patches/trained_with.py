"""What a model was trained with, as its checkpoints say: its dictionaries, and the options of its recurrent layers."""

from __future__ import annotations

import contextlib
import dataclasses
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.trainer import Trainer

from ..command_parser import flag
from ..errors import InputError
from ..files import checksum_of_lines
from ..modules import RECURRENT_KINDS
from .replacing import replace_once

_CHECKSUM = "_checksum"
_SIDES = ("source_dictionary", "target_dictionary")
# Of a model's sides; a language model has none.
_PREFIXES = ("", "encoder_", "decoder_")


class _Origin(NamedTuple):
    """What a file says that its model was trained with.

    Attributes:
        path: the file.
        dictionaries: side → checksum.
        model: the options of the model.
    """

    path: str
    dictionaries: Mapping[str, str]
    model: Mapping[str, Any]


# Of the files that have been loaded within :func:`_loading`.
_loaded: ContextVar[list[_Origin] | None] = ContextVar("loaded", default=None)


def keep_dictionary_checksums() -> None:
    """Has checkpoints keep ``dictionaries``: the checksums of the symbols of the source's and the target's. What loads
    a model for data with others, as fairseq-generate does, ends in a sentence; trainings too, by the next patch.

    With another dictionary of the same size a model would translate into nonsense, and nothing would tell.

    For fairseq 0.12.
    """
    replace_once(Dictionary, "add_from_file", _with_checksum)
    replace_once(Trainer, "state_dict", _with_dictionaries)
    replace_once(checkpoint_utils, "load_checkpoint_to_cpu", _noting_origins)
    replace_once(checkpoint_utils, "load_model_ensemble_and_task", _comparing_checksums)


def refuse_other_starts() -> None:
    """Ends a training in a sentence that starts from a checkpoint (``--finetune-from-model``, ``--restore-file``), or
    goes on, with other dictionaries or recurrent layers.

    With another ``--connection-rate``, ``--rcrn-output-gate`` or first dilation weights have the same sizes, and are
    another network: nothing would tell.

    For fairseq 0.12.
    """
    replace_once(checkpoint_utils, "load_checkpoint_to_cpu", _noting_origins)
    replace_once(Trainer, "load_checkpoint", _starting_with_the_same)


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


def _noting_origins(load_checkpoint_to_cpu: Callable) -> Callable:
    def load(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        state = load_checkpoint_to_cpu(path, *args, **kwargs)
        files = _loaded.get()
        if files is not None:
            model = state["cfg"]["model"] if state.get("cfg") else state.get("args")
            files.append(_Origin(path, state.get("dictionaries") or {}, _options_of(model)))
        return state

    return load


def _comparing_checksums(load_model_ensemble_and_task: Callable) -> Callable:
    def load(filenames: Sequence[str], arg_overrides: Any = None, task: Any = None, *args: Any, **kwargs: Any) -> Any:
        with _loading():
            try:
                loaded = load_model_ensemble_and_task(filenames, arg_overrides, task, *args, **kwargs)
            except RuntimeError:
                # Its embeddings are of another size, as a dictionary may be.
                _refuse_other_dictionaries(task)
                raise
            _refuse_other_dictionaries(loaded[2])
        return loaded

    return load


def _starting_with_the_same(load_checkpoint: Callable) -> Callable:
    def load(self: Trainer, filename: str, *args: Any, **kwargs: Any) -> Any:
        with _loading():
            try:
                return load_checkpoint(self, filename, *args, **kwargs)
            finally:
                # Before whatever fairseq says where weights are of other sizes.
                _refuse_other_dictionaries(self.task)
                _refuse_other_layers(_options_of(self.cfg.model))

    return load


@contextlib.contextmanager
def _loading() -> Iterator[None]:
    """Notes what is loaded meanwhile."""
    token = _loaded.set([])
    try:
        yield
    finally:
        _loaded.reset(token)


def _refuse_other_dictionaries(task: Any) -> None:
    """Raises InputError where the task's dictionaries are not those of the models that were loaded last."""
    checksums = _checksums_of(task)
    for path, dictionaries, _ in _loaded.get() or ():
        for side in dictionaries.keys() & checksums.keys():
            if dictionaries[side] != checksums[side]:
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


def _refuse_other_layers(model: Mapping[str, Any]) -> None:
    """Raises InputError where a model's recurrent layers are not those of the models that were loaded last."""
    for path, _, trained_model in _loaded.get() or ():
        for prefix in _PREFIXES:
            trained, asked = (_layers_of(values, prefix) for values in (trained_model, model))
            for name in trained:
                if name in asked and trained[name] != asked[name]:
                    shown = f"{flag(prefix + name)} {trained[name]}"
                    raise InputError(
                        f"{path} has {shown}, not {asked[name]}: its weights would be another network; give {shown}"
                    )


def _options_of(model: Any) -> Mapping[str, Any]:
    """The options of a model by name; those of the older style are a Namespace."""
    return vars(model) if isinstance(model, Namespace) else dict(model or {})


def _layers_of(values: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """Of a side's recurrent layers what decides what they compute, in the order in which it is to be compared."""
    kind = str(values.get(f"{prefix}recurrent_layer"))
    if kind not in RECURRENT_KINDS:
        return {}
    names = [option.name for option in dataclasses.fields(RECURRENT_KINDS[kind].options)]
    options = {name: str(values[prefix + name]) for name in names if values.get(prefix + name) is not None}
    if "connection_rate" in names:
        options.setdefault("connection_rate", "1.0")  # where it would have no effect
        options.pop("connection_init", None)  # how W_j started is in it
    return {"recurrent_layer": kind, **options}
