"""The dictionaries that a model was trained with, as its checkpoints name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq.data import Dictionary
from fairseq.trainer import Trainer

from ..compat.replacing import replace_once
from ..files import checksum_of_lines

_CHECKSUM = "_checksum"
_SIDES = ("source_dictionary", "target_dictionary")


def keep_dictionary_checksums() -> None:
    """Has checkpoints keep ``dictionaries``: the checksums of the symbols of the source's and the target's.

    With another dictionary of the same size a model would translate into nonsense, and nothing would tell.
    """
    replace_once(Dictionary, "add_from_file", _with_checksum)
    replace_once(Trainer, "state_dict", _with_dictionaries)


def _with_checksum(add_from_file: Callable) -> Callable:
    def add(self: Dictionary, f: Any) -> None:
        before = len(self.symbols)
        add_from_file(self, f)
        # What a task adds to its dictionary afterwards is in no file.
        setattr(self, _CHECKSUM, checksum_of_lines(self.symbols[before:]))

    return add


def _with_dictionaries(state_dict: Callable) -> Callable:
    def state(self: Trainer) -> dict[str, Any]:
        found = state_dict(self)
        checksums = {}
        for side in _SIDES:
            try:
                checksum = getattr(getattr(self.task, side), _CHECKSUM, None)
            except (AttributeError, NotImplementedError):  # a task without
                continue
            if checksum is not None:
                checksums[side.removesuffix("_dictionary")] = checksum
        return {**found, "dictionaries": checksums} if checksums else found

    return state
