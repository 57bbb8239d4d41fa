"""``--matmul-precision``: how exactly matrices in float32 are multiplied."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import torch
from fairseq import options

from .replacing import replace_once

_CHOSEN = "FAIRSEQ_PLUGINS_MATMUL_PRECISION"
"""Tells the processes of a training on several GPUs, which parse nothing, what was chosen."""


def add_matmul_precision() -> None:
    """Gives fairseq's commands ``--matmul-precision``, which is PyTorch's ``set_float32_matmul_precision``.

    Parameters, sums and the optimizer stay in float32. ``medium`` multiplies in bfloat16 on the CPUs that have
    instructions for it, ``high`` in TensorFloat-32 on GPUs; fairseq has neither.

    For fairseq 0.12.
    """
    if chosen := os.environ.get(_CHOSEN):
        torch.set_float32_matmul_precision(chosen)
    replace_once(options, "parse_args_and_arch", _with_the_option)


def _with_the_option(parse_args_and_arch: Callable) -> Callable:
    def parse(parser: argparse.ArgumentParser, *arguments: Any, **keywords: Any) -> Any:
        # Not where the parser is made: fairseq imports the plugin there.
        if "--matmul-precision" not in parser._option_string_actions:
            parser.add_argument(
                "--matmul-precision",
                choices=("highest", "high", "medium"),
                help="how exactly matrices in float32 are multiplied: medium is in bfloat16 on the CPUs that have "
                "instructions for it, high in TensorFloat-32 on GPUs (default: as PyTorch does, highest)",
            )
        parsed = parse_args_and_arch(parser, *arguments, **keywords)
        args = parsed[0] if isinstance(parsed, tuple) else parsed
        if chosen := getattr(args, "matmul_precision", None):
            os.environ[_CHOSEN] = chosen
            torch.set_float32_matmul_precision(chosen)
        elif os.environ.pop(_CHOSEN, None):
            # A command before this one, in the same process, had chosen another.
            torch.set_float32_matmul_precision("highest")
        return parsed

    return parse
