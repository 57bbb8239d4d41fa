"""Runs a command of the analysis."""

from __future__ import annotations

import logging

from fairseq_plugins.report import analyses


def run(name: str, *arguments: object) -> None:
    """``fairseq-plugins analysis NAME ARGUMENTS...`` in this process."""
    try:
        analyses.main([name, *map(str, arguments)])
    finally:
        logging.disable(logging.NOTSET)
