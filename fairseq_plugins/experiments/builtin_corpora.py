"""The commands that make prepared data without a download: of built-in texts, and of generated sequences."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from ..corpora.builtin import COLUMNS, SUFFIXES, TEXT
from .processes import own_command

GENERATED: Mapping[str, Sequence[str]] = {
    "copy_memory": ("copy_memory",),
    "digits": ("pixels", "--small"),
    "passages": ("generated_passages",),
    "voices": ("generated_voices",),
}
"""Corpora without a text → what ``prepare`` is called with."""


def builtin_corpus(task: str, text: object, data: object, preparation: Sequence[object]) -> list[list[object]]:
    """The commands that make a corpus that needs no download.

    Args:
        task: a task of :mod:`fairseq_plugins.corpora.builtin`, or one of :data:`GENERATED`
        text: the folder of its text
        data: the folder of the prepared data
        preparation: options of its preparation
    """
    if task in GENERATED:
        return [[*own_command("prepare", *GENERATED[task]), *preparation, "--output", data]]
    if task == TEXT:
        prepare, ending = ["text"], ".txt"
    elif task in SUFFIXES:
        source, target = SUFFIXES[task]
        prepare, ending = ["parallel", "--src-lang", source, "--tgt-lang", target], ""
    else:
        prepare, ending = ["labelled_texts", *_options_of_columns(COLUMNS[task]), "--lowercase"], ".tsv"
    files = [part for split in ("train", "valid", "test") for part in (f"--{split}", f"{text}/{split}{ending}")]
    write = [sys.executable, "-m", "fairseq_plugins.corpora.builtin", "--task", task, "--output", text]
    return [write, [*own_command("prepare", *prepare), *files, *preparation, "--output", data]]


def _options_of_columns(columns: Sequence[str]) -> list[str]:
    texts = columns[: columns.index("label")]
    return [
        *(part for name in texts for part in ("--text", name)),
        *("--label", "label"),
        *(("--group", "group") if "group" in columns else ()),
    ]
