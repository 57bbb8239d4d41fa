"""Errors are one sentence, whatever they come from."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_plugins.errors import INTERRUPTED, InputError, last_words, report_input_errors, system_error
from fairseq_plugins.missing import EXTRAS
from tests.commands import CHECKOUT, run_command


def test_report_input_errors(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        raise InputError("text: no such file")

    with pytest.raises(SystemExit) as exit_:
        report_input_errors(main)
    assert exit_.value.code == 1
    assert capsys.readouterr().err == "error: text: no such file\n"


def test_report_input_errors_hides_no_other_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        report_input_errors(lambda: print(1 / 0))
    monkeypatch.setenv("FAIRSEQ_PLUGINS_TRACEBACK", "1")
    with pytest.raises(FileNotFoundError):
        report_input_errors(lambda: open("/nowhere/at/all").close())


def reported(program: str, **options: object) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, which calls a function ``main``."""
    program += "\nfrom fairseq_plugins.errors import report_input_errors\nreport_input_errors(main)"
    return run_command(["python", "-c", program], status=None, **options)


@pytest.mark.parametrize(
    ("statement", "status", "message"),
    [
        ("open('/nowhere/at/all')", 1, "error: /nowhere/at/all: No such file or directory\n"),
        ("raise OSError(28, 'No space left on device', 'a')", 1, "error: a: No space left on device; free some space"),
        (
            "raise OSError(30, 'Read-only file system', 'a')",
            1,
            "error: a: Read-only file system; name another folder\n",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 130, "interrupted\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGHUP)", 130, "interrupted\n"),
        # A shell may have us ignore it.
        ("import signal; signal.signal(2, signal.default_int_handler); signal.raise_signal(2)", 130, "interrupted\n"),
        ("raise SystemExit(7)", 7, ""),
    ],
)
@pytest.mark.usefixtures("hang_ups")
def test_what_a_command_ends_with(statement: str, status: int, message: str) -> None:
    finished = reported(f"def main():\n    {statement}")
    assert finished.returncode == status
    assert finished.stderr.startswith(message) and finished.stderr.count("\n") == bool(message)


def test_a_command_that_was_started_to_outlive_its_terminal(tmp_path: Path) -> None:
    program = "def main():\n    import os, signal; os.kill(os.getpid(), signal.SIGHUP); print('still here')"
    program += "\nfrom fairseq_plugins.errors import report_input_errors\nreport_input_errors(main)"
    finished = run_command(["nohup", sys.executable, "-c", program])
    assert finished.stdout == "still here\n"


@pytest.mark.usefixtures("hang_ups")
def test_a_hang_up_ends_what_was_started(tmp_path: Path) -> None:
    """As ``train`` has started fairseq-train."""
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    program = f"""
import os, signal, sys
from fairseq_plugins.errors import report_input_errors
from fairseq_plugins.experiments import processes

def on_line(line):
    sys.stderr.write(line)
    os.kill(os.getpid(), signal.SIGHUP)

report_input_errors(lambda: processes.run([sys.executable, "-c", {child!r}], on_line))
"""
    finished = run_command(["python", "-c", program], status=INTERRUPTED)
    child_id, said = finished.stderr.splitlines()
    assert said == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(int(child_id), 0)


def test_a_reader_that_has_had_enough() -> None:
    program = "def main():\n    for number in range(100000): print(number)"
    program += "\nfrom fairseq_plugins.errors import report_input_errors\nreport_input_errors(main)"
    command = f"{sys.executable} -c '{program}' | head -1; echo ${{PIPESTATUS[0]}}"
    finished = run_command(["bash", "-c", command])
    assert finished.stdout == "0\n141\n" and finished.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which is always full")
def test_output_on_a_full_disk() -> None:
    program = (
        "def main():\n    print(1)\nfrom fairseq_plugins.errors import report_input_errors\nreport_input_errors(main)"
    )
    finished = run_command(["bash", "-c", f"{sys.executable} -c '{program}' > /dev/full"], status=1)
    assert (
        finished.stderr == "error: No space left on device; free some space and start again, what is finished is kept\n"
    )


def test_ctrl_c_while_a_command_is_imported(tmp_path: Path) -> None:
    (tmp_path / "tqdm.py").write_text(
        "import signal\nsignal.signal(2, signal.default_int_handler)\nsignal.raise_signal(2)\n", encoding="utf-8"
    )
    (tmp_path / "model.pt").touch()
    path = os.pathsep.join([str(CHECKOUT), str(tmp_path)])
    command = [sys.executable, "-m", "fairseq_plugins", "translate", str(tmp_path / "model.pt")]
    finished = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=60
    )
    starting, *after = finished.stderr.splitlines()
    assert "starting PyTorch" in starting and after == ["interrupted"]
    assert finished.returncode == INTERRUPTED


@pytest.mark.skipif(
    subprocess.run(["env", "--block-signal=INT", "true"], capture_output=True).returncode != 0,
    reason="needs an env that can block signals (coreutils 8.31)",
)
def test_ctrl_c_while_python_starts(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" != -m ] || kill -INT $$\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    finished = subprocess.run(
        [CHECKOUT / "scripts" / "translate.sh", "nowhere.pt"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHON": str(python)},
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert finished.stderr == "interrupted\n"
    assert finished.returncode == -signal.SIGINT


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a b"), "a b: No such file or directory"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device; free some space and start again"),
        (OSError("odd"), "odd"),
    ],
)
def test_what_the_system_refuses(error: OSError, words: str) -> None:
    assert system_error(error).startswith(words)


TRACE = ["Traceback (most recent call last):", '  File "x.py", line 1, in <module>', "    main()"]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ([], "it said nothing"),
        (["2026-11-22 | INFO | x | begin", "the end", ""], "the end"),
        ([*TRACE, "KeyError: 'x'", "sys:1: UserWarning: leaked objects"], "KeyError: 'x'"),
        ([*TRACE, "fairseq_plugins.errors.InputError: a.pt: no such checkpoint"], "a.pt: no such checkpoint"),
        (
            [*TRACE, "torch.cuda.OutOfMemoryError: CUDA out of memory."],
            "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        ),
        (
            ["RuntimeError: Error(s) in loading:", "\tsize mismatch for x"],
            "RuntimeError: Error(s) in loading: size mismatch",
        ),
        (["usage: fairseq-train", "fairseq-train: error: unrecognized arguments: --x"], "unrecognized arguments: --x"),
        (["error: --lr x: no number", "done"], "--lr x: no number"),
        (["Exception: Size of sample #1 is invalid"], "Exception: Size of sample #1 is invalid"),
        (["epoch 1 | Error rate 3"], "epoch 1 | Error rate 3"),
    ],
)
def test_last_words(output: list[str], words: str) -> None:
    assert last_words(output).startswith(words)


def test_an_error_of_ours_under_a_command_that_is_not() -> None:
    program = "from fairseq_plugins.errors import INTERRUPTED, InputError, show_input_errors\nshow_input_errors()\n"
    finished = run_command(["python", "-c", program + "raise InputError('no')"], status=1)
    assert finished.stderr == "error: no\n"
    finished = run_command(["python", "-c", program + "1 / 0"], status=1)
    assert "ZeroDivisionError" in finished.stderr and "Traceback" in finished.stderr
    variables = {"FAIRSEQ_PLUGINS_TRACEBACK": "1"}
    finished = run_command(["python", "-c", program + "raise InputError('no')"], status=1, **variables)
    assert "Traceback" in finished.stderr
    raised = "ProcessRaisedException = type('ProcessRaisedException', (Exception,), {})\nraise ProcessRaisedException("
    text = "-- Process 1 terminated with the following error:\\nTraceback:\\nfairseq_plugins.errors.InputError: no\\n"
    finished = run_command(["python", "-c", f"{program}{raised}'{text}')"], status=1)
    assert finished.stderr == "error: no\n"


def test_where_nothing_is_installed(tmp_path: Path) -> None:
    """A Python without fairseq says what to do, whatever module it looks for first."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    for arguments in (["options"], ["analysis", "seeds"]):
        command = [tmp_path / "bin" / "python", "-m", "fairseq_plugins", *arguments]
        finished = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
        assert finished.returncode == 1
        assert re.fullmatch(r"error: fairseq is not installed for .*: run scripts/install.sh.*\n", finished.stderr)


def test_the_smallest_extra_is_named() -> None:
    """What an exported model needs asks for nothing that trains."""
    [runtime] = re.findall(r"(?s)\nruntime = \[(.*?)\]", (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = re.findall(r'"([\w-]+)[^"]*"', runtime)
    assert "sacremoses" in packages
    assert {EXTRAS[package.replace("-", "_")] for package in packages} == {"runtime"}
