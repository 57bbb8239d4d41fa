"""``--bf16`` without a TPU."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from fairseq import options, utils

from .replacing import replace_once


def allow_bfloat16_without_tpu() -> None:
    """Lets ``--bf16`` and ``--memory-efficient-bf16`` run on what is there; fairseq takes them for a wish for a TPU.

    For fairseq 0.12.
    """

    def build(parse_args_and_arch: Callable) -> Callable:
        def parse(parser: argparse.ArgumentParser, input_args: list[str] | None = None, *rest: Any, **keywords: Any):
            parsed = parse_args_and_arch(parser, input_args, *rest, **keywords)
            args = parsed[0] if isinstance(parsed, tuple) else parsed
            asked_for_tpu = "--tpu" in (sys.argv if input_args is None else input_args)
            if getattr(args, "bf16", False) and not asked_for_tpu and (utils.xm is None or getattr(args, "cpu", False)):
                args.tpu = False
            return parsed

        return parse

    replace_once(options, "parse_args_and_arch", build)
