"""Where scripts/install.sh installs: into .venv unless somebody names a Python or has an environment active."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands import CHECKOUT

# Knows `-m venv FOLDER` and which version it is, and writes down where pip was called: then everything is installed.
PYTHON = """#!/bin/bash
version=VERSION
case "$1 $2" in
  "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m pip") echo "$0" >> "$CALLED"; echo "$CFLAGS" > "$CALLED.flags"; echo "${@:3}" >> "$CALLED.arguments"
    [[ $* != *torch===* || $BUILD == cpu ]] || touch "$CALLED.cuda" ;;
  "--version "*) echo "Python $version" ;;
  "-c "*version_info*) [[ $version =~ ^3[.]1[012][.] ]] ;;
  "-c "*torch.version.cuda*) [[ -e $CALLED.cuda ]] ;;
  "-c "*metadata*) [[ -e $CALLED ]] ;;
esac
"""
UNSET = ("PYTHON", "VIRTUAL_ENV", "CONDA_DEFAULT_ENV")


def make_python(path: Path, version: str) -> None:
    """A Python that installs nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PYTHON.replace("VERSION", version))
    path.chmod(0o755)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout's scripts, and in ``bin/`` Pythons that install nothing."""
    shutil.copytree(CHECKOUT / "scripts", tmp_path / "scripts")
    make_python(tmp_path / "bin" / "python3", "3.11.7")
    make_python(tmp_path / "bin" / "python3.12", "3.12.1")
    return tmp_path


def run(project: Path, script: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script, with the Pythons of ``bin/`` first on the PATH."""
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    path = f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**kept, "PATH": path, "CALLED": str(project / "called"), **variables}
    command = [project / "scripts" / script, *options]
    return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=60)


def installed_into(project: Path, **variables: str) -> set[str]:
    """The interpreters that pip ran with, below the project."""
    called = project / "called"
    called.unlink(missing_ok=True)
    finished = run(project, "install.sh", **variables)
    assert finished.returncode == 0, finished.stderr
    return {str(Path(line).relative_to(project)) for line in called.read_text().splitlines()}


def test_into_an_environment_of_its_own(project: Path) -> None:
    assert installed_into(project) == {".venv/bin/python"}
    assert installed_into(project, VIRTUAL_ENV="/elsewhere") == {".venv/bin/python"}, "it is there already"


def test_the_base_of_conda_is_left_alone(project: Path) -> None:
    assert installed_into(project, CONDA_DEFAULT_ENV="base") == {".venv/bin/python"}


def test_fairseq_is_compiled_without_debugging_symbols(project: Path) -> None:
    installed_into(project, CFLAGS="-O1")
    assert (project / "called.flags").read_text() == "-O1 -g0\n"


def test_pytorch_for_gpus(project: Path) -> None:
    """It takes the place of a build for CPUs; one that is there is kept, and one for CPUs alone is a sentence."""
    arguments = project / "called.arguments"

    def installed(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        arguments.unlink(missing_ok=True)
        return run(project, "install.sh", *options, **variables)

    assert installed("--gpu", BUILD="cpu").stderr.startswith(
        "error: the PyTorch that was installed is built for CPUs: "
    )
    assert len(arguments.read_text().splitlines()) == 1, "fairseq is not compiled for it"
    assert installed("--gpu", "--extras", "dev").returncode == 0
    first, second = arguments.read_text().splitlines()
    assert first.startswith("install torch===2.13.0 ") and second.endswith(".[train,report,dev]")
    assert installed("--gpu").returncode == 0
    assert arguments.read_text().startswith("install torch numpy")


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_DEFAULT_ENV"])
def test_into_the_active_environment(project: Path, variable: str) -> None:
    assert installed_into(project, **{variable: "mine"}) == {"bin/python3"}
    assert not (project / ".venv").exists()


@pytest.mark.parametrize("name", ["python3", "python3.12"])
def test_into_the_environment_of_the_named_python(project: Path, name: str) -> None:
    assert installed_into(project, PYTHON=name) == {f"bin/{name}"}
    assert not (project / ".venv").exists()


@pytest.mark.parametrize("script", ["install.sh", "quickstart.sh"])
@pytest.mark.parametrize("version", ["3.9.18", "3.13.0"])
def test_another_python_is_taken_where_python3_is_not_supported(project: Path, script: str, version: str) -> None:
    """The newest; one that is there and does not run, as pyenv has them, is passed over."""
    make_python(project / "bin" / "python3", version)
    (project / "bin" / "python3.12").write_text(
        "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n"
    )
    make_python(project / "bin" / "python3.11", "3.11.9")
    make_python(project / "bin" / "python3.10", "3.10.13")
    finished = run(project, script)
    assert finished.returncode == 0, finished.stderr
    assert f"making {project}/.venv with Python 3.11.9" in finished.stdout
    assert "version=3.11.9" in (project / ".venv" / "bin" / "python").read_text()


@pytest.mark.parametrize("script", ["install.sh", "quickstart.sh"])
def test_no_environment_is_made_of_a_python_that_is_not_supported(project: Path, script: str) -> None:
    for name in ("python3", "python3.12", "python3.11", "python3.10"):
        make_python(project / "bin" / name, "3.13.0")
    needed = "3.10, 3.11 or 3.12 is needed"
    finished = run(project, script)
    assert finished.returncode == 1
    assert finished.stderr == (
        f"error: python3 is Python 3.13.0, and {needed}: install one of these, or name it with PYTHON=...\n"
    )
    finished = run(project, script, PYTHON="python3.12")
    assert finished.returncode == 1
    assert finished.stderr == f"error: python3.12 is Python 3.13.0, and {needed}: name another with PYTHON=...\n"
    assert not (project / ".venv").exists() and not (project / "called").exists()


def test_an_active_environment_of_a_python_that_is_not_supported(project: Path) -> None:
    """Nothing is installed elsewhere than where it was asked for."""
    make_python(project / "bin" / "python3", "3.13.0")
    finished = run(project, "install.sh", VIRTUAL_ENV="mine")
    assert finished.returncode == 1
    assert finished.stderr.startswith("error: the active environment's Python is Python 3.13.0, and 3.10, ")
    assert not (project / "called").exists()


@pytest.mark.parametrize("script", ["install.sh", "quickstart.sh", "check.sh", "prepare_text.sh", "test.sh"])
def test_an_environment_of_a_python_that_is_not_supported_says_what_to_do(project: Path, script: str) -> None:
    """And that leads out."""
    make_python(project / ".venv" / "bin" / "python", "3.13.0")
    finished = run(project, script)
    assert finished.returncode == 1
    assert finished.stderr == (
        f"error: the Python of {project}/.venv is Python 3.13.0, and 3.10, 3.11 or 3.12 is needed: delete that folder "
        f"(rm -r '{project}/.venv') and run scripts/quickstart.sh or scripts/install.sh again\n"
    )
    shutil.rmtree(project / ".venv")
    assert run(project, "install.sh").returncode == 0
    assert run(project, script).returncode == 0


def test_naming_a_python_says_the_same_of_an_environment_that_is_there(project: Path) -> None:
    make_python(project / ".venv" / "bin" / "python", "3.13.0")
    finished = run(project, "quickstart.sh", PYTHON="python3.12")
    assert finished.returncode == 1
    assert f"delete that folder (rm -r '{project}/.venv')" in finished.stderr


@pytest.mark.parametrize("script", ["install.sh", "quickstart.sh", "prepare_text.sh"])
def test_an_environment_whose_python_has_gone(project: Path, script: str) -> None:
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").symlink_to(project / "gone")
    finished = run(project, script)
    assert finished.returncode == 1
    assert f"the Python of {project}/.venv is no Python that runs" in finished.stderr


def test_scripts_run_python_with_its_assert_statements(project: Path) -> None:
    """fairseq copies checkpoints in one."""
    path = project / "bin" / "python3"
    path.write_text('#!/bin/sh\n[ "$1" != -m ] || echo "optimize: ${PYTHONOPTIMIZE-unset}"\n')
    assert run(project, "prepare_text.sh", PYTHONOPTIMIZE="1").stdout == "optimize: unset\n"
