"""The package's version and those of others."""

from __future__ import annotations

import argparse
import platform
import sys

import pytest

from fairseq_plugins.versions import VERSION, add_version_argument, versions
from tests.commands import CHECKOUT, run_command


def test_versions_of_what_is_installed() -> None:
    found = versions(["pytest", "no-such-distribution", "torch"])
    assert list(found) == ["python", "pytest", "torch"]
    assert found["python"] == platform.python_version()
    assert found["pytest"] == pytest.__version__


def test_setup_takes_the_version_from_the_package() -> None:
    finished = run_command([sys.executable, "setup.py", "--version"], cwd=CHECKOUT)
    assert finished.stdout.splitlines()[-1] == VERSION


def test_the_version_argument(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_version_argument(parser)
    with pytest.raises(SystemExit) as exit_:
        parser.parse_args(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"fairseq-plugins {VERSION}\n"
