"""Checkpoints of a Python that leaves ``assert`` statements out."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

import pytest
from fairseq import checkpoint_utils

from fairseq_plugins.patches.asserted_copies import copy_checkpoints_without_assertions
from tests.commands import USER_DIR, run_command
from tests.conftest import TranslationData

from .unpatched import needless, original_of


@pytest.mark.slow
def test_checkpoints_are_copied_without_assertions(tiny_translation_data: TranslationData, tmp_path: Path) -> None:
    """In a command of fairseq's own, to which nobody but us can say so."""
    options = ["--arch", "recurrent_seq2seq", "--optimizer", "sgd", "--lr", "0.1", "--max-update", "1"]
    places = ["--user-dir", USER_DIR, "--save-dir", tmp_path / "checkpoints"]
    finished = run_command(
        ["fairseq-train", tiny_translation_data.joined, *places, *options, "--batch-size", "8", "--cpu"],
        PYTHONOPTIMIZE="1",
    )
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"checkpoint_best.pt", "checkpoint_last.pt"}
    lines = finished.stdout.splitlines()
    (kernels,) = [number for number, line in enumerate(lines) if "kernels: C++ (MC-RNN, attention, scan)" in line]
    assert kernels < next(number for number, line in enumerate(lines) if "fairseq_cli.train" in line)


def test_fairseq_copies_inside_an_assertion() -> None:
    source = textwrap.dedent(inspect.getsource(original_of(checkpoint_utils, "save_checkpoint")))
    asserted = "".join(ast.unparse(node.test) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert))
    assert ".copy(" in asserted, needless(copy_checkpoints_without_assertions)
