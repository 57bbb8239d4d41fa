"""Stands in for Python: has the server of preloaded.py run a command, or leaves it to Python.

python -IS preloaded_client.py PYTHON SOCKET STUB CHECKOUT [ARGUMENTS...]
"""

import json
import os
import signal
import socket
import sys

PYTHON, SOCKET, STUB, CHECKOUT, *ARGUMENTS = sys.argv[1:]
# What matters while Python or a library starts, or to what the server has registered already.
STARTING = ("PYTHON", "LD_", "TRITON_", "MKL_", "KMP_", "TORCH_", "CUDA_", "FAIRSEQ_PLUGINS_EXTENSIONS")
# fairseq leaves it in the environment of who has read data by workers.
BY_FAIRSEQ = "ignore:semaphore_tracker:UserWarning"
HARMLESS = {"PYTHON", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONWARNINGS"}
# scikit-learn leaves these.
HARMLESS |= {"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}


def is_served():
    """Whether the server is ready for these arguments in this environment."""
    is_ours = ARGUMENTS[:2] == ["-m", "fairseq_plugins"]
    is_benchmark = bool(ARGUMENTS) and ARGUMENTS[0].startswith(os.path.join(CHECKOUT, "benchmarks", ""))
    is_of_fairseq = ARGUMENTS[:1] == [os.path.join(CHECKOUT, "fairseq_plugins", "fairseq_program.py")]
    variables = {name for name in os.environ if name.startswith(STARTING)} - HARMLESS
    return (
        (is_ours or is_of_fairseq or is_benchmark)
        and not variables
        and os.environ.get("PYTHONWARNINGS", "ignore") in ("ignore", BY_FAIRSEQ)
        and os.environ.get("PYTHONPATH", "").split(os.pathsep)[0] == CHECKOUT
        and os.environ.get("OMP_NUM_THREADS") == "1"
    )


def open_descriptors():
    """The numbers of the files that a command inherits."""
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number < 3 or os.path.exists(f"/proc/self/fd/{name}") and os.get_inheritable(number):
            yield number


def main():
    """Sends the request, hands on signals, and ends as the command does."""
    numbers = sorted(open_descriptors())
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(SOCKET)
    umask = os.umask(0)
    os.umask(umask)
    request = {"arguments": ARGUMENTS, "environment": dict(os.environ), "folder": os.getcwd(), "umask": umask}
    request |= {"descriptors": numbers, "stub": STUB}
    content = json.dumps(request).encode() + b"\n"
    sent = socket.send_fds(connection, [content], numbers)
    connection.sendall(content[sent:])
    process = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda caught, frame: os.kill(process, caught))
    answer = connection.recv(2, socket.MSG_WAITALL)
    status = int.from_bytes(answer, "big", signed=True) if answer else 1
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if is_served():
    main()
else:
    os.execv(PYTHON, [PYTHON, *ARGUMENTS])
