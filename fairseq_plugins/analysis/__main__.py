"""``python -m fairseq_plugins.analysis COMMAND``: one command for each analysis; ``--help`` lists them."""

from __future__ import annotations

import argparse
import importlib
import logging
from collections.abc import Sequence

from ..errors import report_input_errors

COMMANDS = {
    "channel-attention": "which channels of an MC-RNN encoder are attended to at each step (MC-RNN, Figure 3)",
    "alignments": "where a decoder looks in the source (DPN-S2S, Figure 2)",
    "entropy": "how focused that is, over a whole set (DPN-S2S, Table 5)",
    "length": "BLEU by source length, for several systems (MC-RNN, Figure 4)",
    "compare": "two systems: significance, and the sentences where they differ most (DPN-S2S, Table 6)",
    "speed": "training and decoding speeds, from results.json",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one of :data:`COMMANDS`."""
    parser = argparse.ArgumentParser(prog="python -m fairseq_plugins.analysis", allow_abbrev=False)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {}
    for name, text in COMMANDS.items():
        modules[name] = importlib.import_module(f"{__package__}.{name.replace('-', '_')}")
        subparser = subparsers.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        modules[name].add_arguments(subparser)
    parsed = parser.parse_args(arguments)
    # fairseq reports at INFO that it loads a checkpoint and that optional packages are missing.
    logging.disable(logging.INFO)
    modules[parsed.command].run(parsed)


if __name__ == "__main__":
    report_input_errors(main)
