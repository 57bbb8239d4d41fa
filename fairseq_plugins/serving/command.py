"""``fairseq-plugins serve``: exported models behind LibreTranslate's HTTP interface, and a page."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from ..command_parser import CommandParser
from ..errors import InputError

_NOTES = """\
The page is at http://127.0.0.1:5000. Programs ask as they would ask LibreTranslate:

  curl http://127.0.0.1:5000/translate -d q="Der Hund schläft." -d source=de -d target=en

Ctrl-C or SIGTERM ends the server when it has answered what has been asked."""
_GRACE = 5
"""Seconds more than a request may take, after which the server ends whatever is left to do."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "serve",
        "Serves exported models: LibreTranslate's HTTP interface, and a page to try them.",
        ("work/exported", "work/de_en work/en_de --port 8000"),
        _NOTES,
    )
    options.add_argument("folders", metavar="DIR", type=Path, nargs="+", help="what 'fairseq-plugins export' wrote")
    options.add_argument("--host", default="127.0.0.1", help="0.0.0.0 for other machines too (default: %(default)s)")
    options.add_argument("--port", type=_port, default=5000, help="0 for any that is free (default: %(default)s)")
    options.add_argument("--threads", type=_positive, help="that compute (default: one a core)")
    options.add_argument("--beam", type=_positive, default=5, help="the width of beam search (default: %(default)s)")
    options.add_argument("--lenpen", type=float, default=1.0, help="the length penalty (default: %(default)s)")
    options.add_argument(
        "--batch", type=_positive, default=32, help="sentences that are decoded together (default: %(default)s)"
    )
    options.add_argument(
        "--queue", type=_positive, default=1000, help="sentences that wait at most (default: %(default)s)"
    )
    options.add_argument(
        "--characters", type=_positive, default=10_000, help="of a request at most (default: %(default)s)"
    )
    options.add_argument("--body", type=_positive, default=1 << 20, help="bytes at most (default: %(default)s)")
    options.add_argument(
        "--timeout", type=_seconds, default=30.0, help="seconds that an answer may take (default: %(default)s)"
    )
    options.add_argument("--per-minute", type=_positive, help="requests of one client at most (default: any number)")
    options.add_argument(
        "--allow-origin", action="append", default=[], help="a page's origin that may ask from a browser; * for all"
    )
    return options


def main(arguments: Sequence[str]) -> None:
    """Serves until it is told to end."""
    options = parser().parse_args(arguments)
    import uvicorn

    from ..exported.beam_search import SearchOptions
    from .application import Application
    from .decoding_queue import DecodingQueue
    from .metrics import Metrics
    from .models import ServedModels
    from .request_bodies import Limits

    models = ServedModels.load(options.folders, options.threads)
    listening = listen(options.host, options.port)
    metrics = Metrics()
    search = SearchOptions(beam=options.beam, length_penalty=options.lenpen)
    queue = DecodingQueue(search, options.queue, options.batch, metrics.batches.observe)
    limits = Limits(
        body=options.body, characters=options.characters, alternatives=options.beam - 1, seconds=options.timeout
    )
    application = Application(models, queue, metrics, limits, options.per_minute, options.allow_origin)
    config = uvicorn.Config(
        application.asgi,
        # Its own would close the handlers of every logger of the process, and some libraries' handlers their streams.
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        # Anyone can name another client in a header.
        proxy_headers=False,
        timeout_graceful_shutdown=int(options.timeout) + _GRACE,
    )
    for model in models.models:
        print(f"{model.name}: {model.source} → {model.target}")
    host, port = listening.getsockname()[:2]
    print(f"http://{f'[{host}]' if ':' in host else host}:{port}", flush=True)
    # uvicorn ends well at SIGTERM, and then raises what it has kept back.
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        print("ended")


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections.

    Raises:
        InputError: there is no such host, or the port is taken.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        # create_server adds where it was, in its own words.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise InputError(
            f"cannot listen at {host}, port {port}: {reason}; name others with --host and --port"
        ) from None


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port: it is a number from 0 to 65535")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 86400:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds, more than 0 and less than a day")
    return value
