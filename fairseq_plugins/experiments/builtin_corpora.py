"""The commands that make corpora which need no download, other than pairs of texts: labelled texts, sequences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ..corpora.builtin.facts import TASKS
from .processes import own_command

Commands = list[list[object]]


def _facts(task: str) -> Callable[[object, object, Sequence[object]], Commands]:
    *texts, label = TASKS[task][: 2 if task == "classification" else 3]

    def commands(text: object, data: object, preparation: Sequence[object]) -> Commands:
        generate = [sys.executable, "-m", "fairseq_plugins.corpora.builtin.labelled", "--task", task]
        files = [part for split in ("train", "valid", "test") for part in (f"--{split}", f"{text}/{split}.tsv")]
        columns = [part for name in texts for part in ("--text", name)] + ["--label", label]
        columns += ["--group", "group"] if task == "ranking" else []
        prepare = [*own_command("prepare", "labelled_texts"), *files, *columns, "--lowercase"]
        return [[*generate, "--output", text], [*prepare, *preparation, "--output", data]]

    return commands


def _copy_memory(text: object, data: object, preparation: Sequence[object]) -> Commands:
    return [[*own_command("prepare", "copy_memory"), *preparation, "--output", data]]


def _digits(text: object, data: object, preparation: Sequence[object]) -> Commands:
    return [[*own_command("prepare", "pixels"), "--small", *preparation, "--output", data]]


COMMANDS: dict[str, Callable[[object, object, Sequence[object]], Commands]] = {
    **{task: _facts(task) for task in TASKS},
    "copy_memory": _copy_memory,
    "digits": _digits,
    "noisy_digits": _digits,
    "permuted_digits": _digits,
}
"""The corpus → the folder of its text, that of the prepared data, options of its preparation → commands."""
