"""Commands: how they are shown, run and stopped, one at a time in a work folder."""

from __future__ import annotations

import contextlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ..command_parser import PROGRAM
from ..errors import CommandError, last_words
from ..fairseq_program import environment, python_command
from ..files import inheritable_lock


def own_command(*words: str) -> list[str]:
    """How a command of this project begins where it can be pasted into a shell."""
    installed = Path(sys.executable).with_name(PROGRAM)
    if installed.is_file():
        return [str(installed), *words]
    return [sys.executable, "-m", __package__.partition(".")[0], *words]


def shown(command: Sequence[str]) -> str:
    """A command as it can be pasted into a shell."""
    return shlex.join(command)


KEPT_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_TOP_PAD_": "300000000",
}
"""glibc's settings, in bytes, with which a process keeps what it frees: else every update asks the system for its
large tensors anew, and gets them page by page, each filled with zeros. What the caller has set wins."""


def run(
    command: Sequence[str],
    on_line: Callable[[str], object],
    stderr: int | None = None,
    pass_fds: Sequence[int] = (),
    variables: Mapping[str, str] | None = None,
) -> int:
    """Runs a command, hands over each line of its standard output, and returns its exit status.

    The command does not outlive us: it is stopped when we are. One of fairseq's starts sooner than from a shell.

    Args:
        command: program and arguments
        on_line: called with each line, its line end included
        stderr: None, our own, so that fairseq sees the terminal and draws its progress bar there; or
            ``subprocess.STDOUT``, which makes its lines part of the output
        pass_fds: file descriptors that the command inherits
        variables: of the environment, beside ours
    """
    is_fairseq = Path(command[0]).name.startswith("fairseq-")
    process = subprocess.Popen(
        python_command(command[0], command[1:]) if is_fairseq else command,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        encoding="utf-8",
        errors="replace",
        pass_fds=pass_fds,
        # Today's libraries write a page of deprecation warnings about fairseq 0.12, in which an error would get lost.
        env={"PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1", **KEPT_MEMORY, **environment(), **(variables or {})},
    )
    try:
        for line in process.stdout or ():
            on_line(line)
        return process.wait()
    except BaseException:
        # Not SIGINT: a shell that starts us in the background has us and the command ignore it.
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise


def failure(command: Sequence[str], status: int, output: Iterable[str], log: Path | None = None) -> CommandError:
    """What to say of a command that failed: its last words.

    Args:
        command: program and arguments
        status: its exit status
        output: the lines of its output
        log: where they are kept
    """
    # Whom the system ended could say nothing of it.
    words = last_words(output) if status > 0 else f"it was ended by {signal.Signals(-status).name}"
    where = "" if log is None else f"; its output is in {log}"
    return CommandError(f"{Path(command[0]).name} ended with exit status {status}: {words}{where}")


def only_one(folder: Path, what: str = "a training") -> contextlib.AbstractContextManager[list[int]]:
    """Keeps a second training out of a work folder; yields file descriptors for the command to inherit.

    Inherited, the lock stays while the command runs, even when only its parent was killed.

    Raises:
        InputError: another process holds the lock.
    """
    refusal = f"{folder}: {what} is at work there; wait for it, or give another --work"
    return inheritable_lock(folder / ".lock", refusal)
