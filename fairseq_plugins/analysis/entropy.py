"""How focused a decoder's attention is: the entropy of its alignments over a whole set (DPN-S2S, Table 5)."""

from __future__ import annotations

import argparse

from ..decoding.attention import focus
from ..decoding.flows import FLOWS, gate_label
from ..decoding.translation import TranslationModel
from .result import Analysis, Panel
from .sentences import add_model_arguments, read_pairs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_model_arguments(parser)


def run(arguments: argparse.Namespace) -> Analysis:
    """The entropy of each flow, the gates, and warnings of what found nothing or is shut."""
    trained = TranslationModel.load([arguments.checkpoint], arguments.data)
    pairs = read_pairs(trained, arguments)
    result = focus(trained, pairs)
    lines = [f"{FLOWS.get(name, name)}: {value:.3f} nats" for name, value in result.entropy.items()]
    lines.append(f"uniform weights: {result.uniform:.3f} nats")
    lines += [
        f"{gate_label(name)}: {', '.join(f'{share:.3f}' for share in layers)}" for name, layers in result.gates.items()
    ]
    lines += [f"warning: {warning}" for warning in result.warnings()]
    numbers = {
        "checkpoint": str(arguments.checkpoint),
        "architecture": trained.architecture,
        "sentences": len(pairs),
        **result.numbers,
    }
    return Analysis(numbers, [Panel(result)], "\n".join(lines))
