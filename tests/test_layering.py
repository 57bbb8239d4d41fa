"""Arrows between the rooms of the house run downward only: the contracts of import-linter in pyproject.toml."""

from __future__ import annotations

import pytest

from tests.commands import CHECKOUT, run_command

PACKAGE = CHECKOUT / "fairseq_plugins"


def test_the_contracts_are_kept() -> None:
    pytest.importorskip("importlinter", reason="needs scripts/install.sh --extras dev")
    assert "0 broken" in run_command(["lint-imports", "--no-cache"], cwd=CHECKOUT).stdout


def test_sources_are_short() -> None:
    sources = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".cpp", ".h", ".jinja")]
    assert len(sources) > 100
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in sources}
    assert not {str(path): length for path, length in lengths.items() if length > 500}


@pytest.mark.system
@pytest.mark.parametrize(
    ("room", "missing"),
    [
        ("kernels", ("fairseq",)),
        ("modules", ("fairseq",)),
        ("corpora", ("fairseq", "torch")),
        ("exported", ("fairseq", "torch")),
        ("serving", ("fairseq", "torch")),
        ("experiments", ("fairseq", "torch")),
    ],
)
def test_rooms_work_without(room: str, missing: tuple[str, ...]) -> None:
    """Every file of the room is imported in a process where fairseq (and PyTorch) cannot be."""
    program = f"""
import importlib, pkgutil, sys
sys.modules |= dict.fromkeys({missing!r})  # as if they were not installed
room = importlib.import_module("fairseq_plugins.{room}")
for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] != "triton":  # only GPUs need it
            raise
    print(module.name)
"""
    finished = run_command(["python", "-c", program])
    assert f"fairseq_plugins.{room}." in finished.stdout
