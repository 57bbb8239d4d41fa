"""The version of this package, and those of the packages that results depend on. Standard library only."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterable

VERSION = "0.1.0"


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of those of ``packages`` (names of distributions) that are installed."""
    from importlib import metadata  # not at the head of the file: --version need not wait for it

    installed = {"python": platform.python_version()}
    for package in packages:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed


def add_version_argument(parser: argparse.ArgumentParser) -> None:
    """Adds ``--version`` to a command."""
    parser.add_argument("--version", action="version", version=f"fairseq-plugins {VERSION}")
