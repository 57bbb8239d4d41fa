"""Runs a command of the analysis."""

from __future__ import annotations

import logging

from fairseq_plugins.analysis import __main__ as command


def run(name: str, *arguments: object) -> None:
    """``python -m fairseq_plugins.analysis NAME ARGUMENTS...`` in this process."""
    try:
        command.main([name, *map(str, arguments)])
    finally:
        logging.disable(logging.NOTSET)
