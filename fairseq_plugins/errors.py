"""Errors that are one sentence, and how commands end with them. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import NoReturn

TRACEBACK = "FAIRSEQ_PLUGINS_TRACEBACK"
"""The variable that has errors show where in the code they come from."""

INTERRUPTED = 130
"""The exit status of a command that Ctrl-C, SIGTERM or a hang-up ended."""
BROKEN_PIPE = 141
"""The exit status of a command whose output nobody reads any more (``| head``)."""

_ENDINGS = (signal.SIGTERM, signal.SIGHUP)
# The last line of a traceback, or what a parser or a command of ours says.
_ERROR = re.compile(
    r"(?:[\w.-]+: )?(?:error: (\S.*)|((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)\b(?=:|$).*))"
)
_INPUT_ERROR = re.compile(r"(?:\w+\.)*(?:InputError|CommandError): (.*)")
_REMEDIES = {
    errno.ENOSPC: "free some space and start again, what is finished is kept",
    errno.EDQUOT: "free some space and start again, what is finished is kept",
    errno.EROFS: "name another folder",
    errno.EACCES: "name another folder, or ask who owns it",
    errno.EMFILE: "raise the limit with ulimit -n",
}


class InputError(Exception):
    """Something that the user gave cannot be used. The message is one sentence: what, where (file, line), remedy."""


class CommandError(InputError):
    """A command that we started has failed, for whatever reason. What was finished before it is still good."""


def nearest(name: str, choices: Iterable[str], most: int = 1) -> str:
    """``; did you mean 'x'?`` for the known name that is spelt most alike, or nothing when none comes close.

    Args:
        name: that nobody knows
        choices: the names that there are
        most: how many names are said
    """
    import difflib  # not at the head of the file: every command begins with it

    matches = difflib.get_close_matches(name, list(choices), n=most, cutoff=0.5)
    *others, last = [f"'{match}'" for match in matches] or [""]
    return f"; did you mean {', '.join(others)}{' or ' if others else ''}{last}?" if last else ""


def nearest_or_all(name: str, choices: Iterable[str], most: int = 1) -> str:
    """As :func:`nearest`; where none comes close, all that there are, which should not be many."""
    names = list(choices)
    return nearest(name, names, most) or (f"; there are {', '.join(names)}" if names else "")


def last_words(output: Iterable[str]) -> str:
    """Why a command failed, out of its output: its last error, without the places in the code; else its last line."""
    error, last, is_open = "", "it said nothing", False
    for line in output:
        text = line.strip()
        if match := _ERROR.match(line):
            error, is_open = match[1] or match[2], True
        elif is_open and error.endswith(":") and text:
            # "Error(s) in loading state_dict for X:", and what they are in the next line.
            error = f"{error} {text}"
        elif text:
            last, is_open = text, False
    if sentence := _INPUT_ERROR.match(error):
        return sentence[1]
    return error or last


def system_error(error: OSError) -> str:
    """What the operating system refuses, as a sentence: the file, why, and what can be done."""
    what = error.strerror or str(error)
    if error.filename is not None:
        what = f"{os.fsdecode(error.filename)}: {what}" if isinstance(error.filename, (str, bytes)) else what
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{what}; {remedy}" if remedy else what


def report_input_errors(main: Callable[[], None]) -> None:
    """Runs a command. Whatever it ends with is one sentence on standard error, and an exit status.

    An :class:`InputError`, or what the operating system refuses (a full disk): ``error: <message>`` and 1. Ctrl-C,
    SIGTERM and SIGHUP (a closed terminal, a lost connection): 130. Where nobody reads our output any more: nothing, and
    141. With the variable FAIRSEQ_PLUGINS_TRACEBACK errors show where in the code they come from.
    """
    for ending in _ENDINGS:
        _handle(ending, _interrupt)
    # Workers are ended by them, and have nothing to say then.
    os.register_at_fork(after_in_child=_end_as_usual)
    try:
        try:
            main()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        # A terminal that has hung up takes no word of it.
        with contextlib.suppress(OSError):
            print("interrupted", file=sys.stderr)
        _exit(INTERRUPTED)
    except BrokenPipeError:
        _exit(BROKEN_PIPE)
    except (InputError, OSError) as error:
        if os.environ.get(TRACEBACK):
            raise
        print(f"error: {system_error(error) if isinstance(error, OSError) else error}", file=sys.stderr)
        _exit(1)


def _end_as_usual() -> None:
    for ending in _ENDINGS:
        _handle(ending, signal.SIG_DFL)


def _handle(ending: signal.Signals, handler: Callable | signal.Handlers) -> None:
    # Ignored, as under nohup, it stays so.
    if signal.getsignal(ending) is not signal.SIG_IGN:
        signal.signal(ending, handler)


def show_input_errors() -> None:
    """Has whatever command this process runs end with a sentence, and no traceback, after an :class:`InputError`, and
    where it is not installed.

    For commands that are not ours (fairseq-train), and while ours are still being imported, where Ctrl-C is such an end
    too. Further calls change nothing.
    """
    if sys.excepthook is not _show and not os.environ.get(TRACEBACK):
        _SHOWN_BEFORE.append(sys.excepthook)
        sys.excepthook = _show


def unblock_interrupts() -> None:
    """Lets Ctrl-C through, which the scripts have kept waiting while Python itself was starting."""
    if hasattr(signal, "pthread_sigmask"):  # not on Windows, where no script runs
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


_SHOWN_BEFORE: list[Callable] = []


def _show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, InputError):
        print(f"error: {error}", file=sys.stderr)
    elif kind.__name__ == "ProcessRaisedException" and (match := _INPUT_ERROR.search(str(error))):
        # Of several processes that train, one has raised it: what is left of it is text.
        print(f"error: {match[1]}", file=sys.stderr)
    elif issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    elif issubclass(kind, ModuleNotFoundError) and importlib.util.find_spec("fairseq") is None:
        print(
            f"error: fairseq is not installed for {sys.executable}: run scripts/install.sh, and "
            f"'source .venv/bin/activate' before commands that begin with python or fairseq-",
            file=sys.stderr,
        )
    else:
        _SHOWN_BEFORE[-1](kind, error, traceback)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _exit(status: int) -> NoReturn:
    # What is left to write cannot be written where the pipe is closed or the disk full; Python would try, and complain.
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
