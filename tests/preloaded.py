"""One process that has imported PyTorch and fairseq, and serves the commands that tests run: each in a fork of it.

    python tests/preloaded.py SOCKET

A command takes some seconds to start, most of them in imports. Here a small client stands in for Python
(:func:`stub_of`): it sends its arguments, environment, folder and open files to the server, which forks, becomes the
command, and says how it ended. What the server is not ready for the client leaves to Python itself.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import gc
import io
import json
import logging
import os
import runpy
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any, NoReturn

CLIENT = Path(__file__).with_name("preloaded_client.py")
PYTHON = sys.executable
"""Python itself, where ``sys.executable`` is what stands in for it."""
FAIRSEQ_PROGRAM = "fairseq_program.py"
READY = b"ready\n"


@functools.cache
def stub_of(checkout: Path) -> Path:
    """What stands in for Python in the commands of a checkout that this process starts. The server starts with the
    first call, and ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="preloaded"))
    place, stub = folder / "socket", folder / "python"
    client = [PYTHON, "-IS", str(CLIENT), PYTHON, str(place), str(stub), str(checkout)]
    stub.write_text(f'#!/bin/sh\nexec {shlex.join(client)} "$@"\n')
    stub.chmod(0o755)
    server = subprocess.Popen(
        [PYTHON, __file__, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"},
    )
    assert server.stdin is not None and server.stdout is not None
    atexit.register(shutil.rmtree, folder)
    atexit.register(server.stdin.close)
    if server.stdout.readline() != READY:
        raise RuntimeError(f"{__file__} did not start")
    return stub


def serve(place: str) -> None:
    """Answers clients until the standard input ends."""
    from fairseq_plugins.patches.deferred_imports import defer_imports

    defer_imports()
    logging.disable(logging.INFO)
    import fairseq_cli.generate
    import fairseq_cli.interactive
    import fairseq_cli.preprocess
    import fairseq_cli.train  # noqa: F401 - what commands import
    import torch

    import fairseq_plugins

    fairseq_plugins.register()
    # Each command sets up its own.
    logging.root.handlers.clear()
    logging.disable(logging.NOTSET)
    # The processes of a training are forks of it, too.
    torch.multiprocessing.spawn = functools.partial(torch.multiprocessing.start_processes, start_method="fork")
    gc.freeze()  # else a fork's collection would copy everything
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen()
    os.write(1, READY)
    while True:
        ready, _, _ = select.select([listener, 0], [], [], 1)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if 0 in ready:
            return
        if listener in ready:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _supervise(connection)
            connection.close()


def _supervise(connection: socket.socket) -> NoReturn:
    """Runs the command of one client, and tells it the process and how it ended."""
    request, descriptors = _received(connection)
    process = os.fork()
    if process == 0:
        connection.close()
        _become(request, descriptors)
    for descriptor in [0, 1, 2, *descriptors]:
        os.close(descriptor)
    connection.sendall(process.to_bytes(4, "big"))
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(status.to_bytes(2, "big", signed=True))
    os._exit(0)


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    content, descriptors = b"", array.array("i")
    while not content.endswith(b"\n"):
        part, passed, _, _ = socket.recv_fds(connection, 1 << 16, 64)
        if not part:
            os._exit(1)  # the client was killed before it had said what it wants
        content += part
        descriptors.extend(passed)
    return json.loads(content), list(descriptors)


def _become(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """What Python does with these arguments, from its start to its exit."""
    # Out of the way of the numbers that they have to get.
    moved = [os.dup2(descriptor, 200 + number) for number, descriptor in enumerate(descriptors)]
    for descriptor in descriptors:
        os.close(descriptor)
    for source, number in zip(moved, request["descriptors"], strict=True):
        os.dup2(source, number, inheritable=True)
        os.close(source)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    os.umask(request["umask"])
    sys.executable = request["stub"]
    is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = open(0, encoding="utf-8")
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, "w") if is_unbuffered else open(number, "wb"), "utf-8", errors, **buffering)
        for number, errors, buffering in (
            (1, "strict", {"write_through": is_unbuffered}),
            (2, "backslashreplace", {"line_buffering": True}),
        )
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    if os.environ.get("PYTHONWARNINGS") == "ignore":
        sys.warnoptions[:] = ["ignore"]
        warnings.simplefilter("ignore")
    status = 0
    try:
        _run(request["arguments"])
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = 120
    os._exit(status & 0xFF)


def _run(arguments: list[str]) -> None:
    """Runs a module of ours or a file, as Python does; what has been imported has set up no logging here."""
    if os.path.basename(arguments[0]) == FAIRSEQ_PROGRAM:
        # As each of fairseq's programs does first of all.
        shape = "%(asctime)s | %(levelname)s | %(name)s | %(message)s"
        logging.basicConfig(format=shape, datefmt="%Y-%m-%d %H:%M:%S", level=logging.INFO, stream=sys.stdout)
    else:
        # As one of fairseq's tasks does where fairseq is imported otherwise.
        logging.basicConfig(level=logging.DEBUG)
    if arguments[0] == "-m":
        sys.argv, sys.path[0] = arguments[1:], os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = arguments, os.path.dirname(arguments[0])
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])
