"""Where scripts/install.sh installs: into .venv unless somebody names a Python or has an environment active."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands import CHECKOUT

# Knows `-m venv FOLDER`, says yes to `-c`, and writes down where pip was called.
PYTHON = """#!/bin/bash
case "$1 $2" in
  "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m pip") echo "$0" >> "$CALLED"; echo "$CFLAGS" > "$CALLED.flags" ;;
  "--version "*) echo Python 3.11.7 ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout's scripts, and in ``bin/`` a ``python3`` that installs nothing."""
    shutil.copytree(CHECKOUT / "scripts", tmp_path / "scripts")
    (tmp_path / "bin").mkdir()
    for name in ("python3", "python3.12"):
        (tmp_path / "bin" / name).write_text(PYTHON)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def installed_into(project: Path, **variables: str) -> set[str]:
    """The interpreters that pip ran with, below the project."""
    called = project / "called"
    called.unlink(missing_ok=True)
    unset = ("PYTHON", "VIRTUAL_ENV", "CONDA_DEFAULT_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    path = f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**kept, "PATH": path, "CALLED": str(called), **variables}
    subprocess.run([project / "scripts" / "install.sh"], check=True, env=environment, timeout=60)
    return {str(Path(line).relative_to(project)) for line in called.read_text().splitlines()}


def test_into_an_environment_of_its_own(project: Path) -> None:
    assert installed_into(project) == {".venv/bin/python"}
    assert installed_into(project, VIRTUAL_ENV="/elsewhere") == {".venv/bin/python"}, "it is there already"


def test_the_base_of_conda_is_left_alone(project: Path) -> None:
    assert installed_into(project, CONDA_DEFAULT_ENV="base") == {".venv/bin/python"}


def test_fairseq_is_compiled_without_debugging_symbols(project: Path) -> None:
    installed_into(project, CFLAGS="-O1")
    assert (project / "called.flags").read_text() == "-O1 -g0\n"


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_DEFAULT_ENV"])
def test_into_the_active_environment(project: Path, variable: str) -> None:
    assert installed_into(project, **{variable: "mine"}) == {"bin/python3"}
    assert not (project / ".venv").exists()


@pytest.mark.parametrize("name", ["python3", "python3.12"])
def test_into_the_environment_of_the_named_python(project: Path, name: str) -> None:
    assert installed_into(project, PYTHON=name) == {f"bin/{name}"}
    assert not (project / ".venv").exists()
