"""``fairseq-plugins perplexity`` and ``generate-text``."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..checkpoints import checkpoint_of, require_checkpoint
from ..command_parser import CommandParser
from ..symbols import END
from .command_line import add_cache_arguments, begin_decoding, standard_input, started

if TYPE_CHECKING:
    from ..decoding.language_model import LanguageModel


def main(arguments: Sequence[str]) -> None:
    """The command line: see ``--help``."""
    name, *remaining = arguments
    options = parsers()[name].parse_args(remaining)
    require_checkpoint(options.checkpoint)
    started(options.checkpoint, sys.stderr)
    # Not at the head of the file: what is wrong in the arguments is said before PyTorch is there.
    begin_decoding([options.checkpoint])
    from ..decoding.language_model import LanguageModel
    from .fairseq_commands import device_of

    options.run(LanguageModel.load([options.checkpoint], options.data, device_of(options.gpus)), options)


def _perplexity(model: LanguageModel, options: argparse.Namespace) -> None:
    """The perplexity of the standard input, or its bits per character; with ``--words``, each token's surprise."""
    from ..decoding.cache import chosen_settings, log_probabilities
    from ..decoding.language_model import by_line

    lines = model.encoded(standard_input("sentences"), "the standard input")
    tokens, settings = model.numbers(lines), chosen_settings(model, options)
    if settings is not None:
        print(settings.note(len(tokens)))
    values = log_probabilities(model, tokens, settings)
    if options.words:
        for line, surprises in zip(lines, by_line(values, lines), strict=True):
            for token, value in zip([*line.split(), END], surprises, strict=True):
                print(f"{token}\t{-value / math.log(2):.3f}")
    unknown = len(model.unknown(lines))
    mean = -values.double().mean().item()
    note = f", {unknown:,} of them unknown words" if unknown else ""
    if model.preparation.has_characters:
        print(f"bits per character {mean / math.log(2):.4f} ({len(values):,} tokens with the lines' ends{note})")
    else:
        print(f"perplexity {math.exp(mean):.2f} ({len(values):,} tokens with the lines' ends{note})")


def _generate(model: LanguageModel, options: argparse.Namespace) -> None:
    from ..decoding.sampling import sample

    prompt, temperature = options.prompt, options.temperature
    for line in sample(model, options.tokens, options.seed, prompt, temperature, options.top_k):
        print(line)


def parsers() -> dict[str, CommandParser]:
    """The command lines of both."""
    commands = {
        "perplexity": CommandParser(
            "perplexity",
            "Prints the perplexity of the standard input to a trained language model, or its bits per character.",
            ("work/quickstart_language_model/mc_rnn_3 < text",),
            "The text is prepared as that of the training was. Each line's end counts as a token.",
        ),
        "generate-text": CommandParser(
            "generate-text",
            "Draws text from a trained language model. The same seed draws the same text.",
            ('work/quickstart_language_model/mc_rnn_3 --prompt "my brother" --tokens 40',),
        ),
    }
    for name, run in ("perplexity", _perplexity), ("generate-text", _generate):
        command = commands[name]
        command.set_defaults(run=run)
        command.add_argument(
            "checkpoint", type=checkpoint_of, metavar="CHECKPOINT", help="a file, or a work folder for its best"
        )
        command.add_argument(
            "--data", type=Path, metavar="DIR", help="the prepared data (default: what the checkpoint was trained on)"
        )
        command.add_argument(
            "--gpus", type=int, choices=(0, 1), help="0 for the CPU, 1 for a GPU (default: a GPU where there is one)"
        )
    add_cache_arguments(commands["perplexity"])
    commands["perplexity"].add_argument(
        "--words", action="store_true", help="each token with its surprise in bits, too"
    )
    generate = commands["generate-text"]
    generate.add_argument(
        "--tokens",
        type=int,
        default=200,
        metavar="N",
        help="words or characters, the lines' ends among them (default: %(default)s)",
    )
    generate.add_argument("--prompt", default="", metavar="TEXT", help="how the first line begins")
    generate.add_argument("--temperature", type=float, default=1.0, metavar="X", help="default: %(default)s")
    generate.add_argument("--top-k", type=int, metavar="N", help="draw from the N most probable tokens alone")
    generate.add_argument("--seed", type=int, default=1, metavar="N", help="default: %(default)s")
    return commands
