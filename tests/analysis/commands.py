"""Runs a command of the analysis as its ``__main__`` does."""

from __future__ import annotations

import argparse
from types import ModuleType


def run(module: ModuleType, *arguments: object) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    module.add_arguments(parser)
    module.run(parser.parse_args([str(argument) for argument in arguments]))
