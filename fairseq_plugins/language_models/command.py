"""``fairseq-plugins perplexity`` and ``generate-text``, and ``score``, by which ``evaluate`` reads a set."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import time
from pathlib import Path

from fairseq_plugins.checkpoints import checkpoint_of
from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.command_line import standard_input, started


def main(arguments: list[str]) -> None:
    """The command line: see ``--help``."""
    name, *remaining = arguments
    options = parsers()[name].parse_args(remaining)
    if not options.checkpoint.is_file():
        raise InputError(f"{options.checkpoint}: no such checkpoint")
    started(options.checkpoint, sys.stderr)
    # Not at the head of the file: what is wrong in the arguments is said before PyTorch is there.
    from fairseq_plugins import register
    from fairseq_plugins.experiments import results

    register()
    results.load_extensions_of([options.checkpoint])
    from fairseq_plugins.language_models.evaluation import LanguageModel

    model = LanguageModel.load(options.checkpoint, options.data, _device(options.gpus))
    options.run(model, options)


def _score(model, options: argparse.Namespace) -> None:
    """``P-<line> TAB <log probabilities>`` for each line of a set."""
    from fairseq_plugins.language_models.evaluation import by_line

    lines = model.lines_of(options.subset)
    values, seconds = _read(model, lines, options)
    for number, line in enumerate(by_line(values, lines)):
        print(f"P-{number}\t{' '.join(f'{value:.6f}' for value in line)}")
    print(f"Read {len(lines)} lines in {seconds:.1f}s ({len(lines) / seconds:.2f} lines/s)")


def _perplexity(model, options: argparse.Namespace) -> None:
    """The perplexity of the standard input, or its bits per character; with ``--words``, each token's surprise."""
    from fairseq_plugins.language_models.evaluation import by_line

    lines = model.encoded(standard_input("sentences"), "the standard input")
    values, _ = _read(model, lines, options)
    if options.words:
        for line, surprises in zip(lines, by_line(values, lines), strict=True):
            for token, value in zip([*line.split(), "</s>"], surprises, strict=True):
                print(f"{token}\t{-value / math.log(2):.3f}")
    unknown = len(model.unknown(lines))
    mean = -values.double().mean().item()
    note = f", {unknown:,} of them unknown words" if unknown else ""
    if model.preparation.has_characters:
        print(f"bits per character {mean / math.log(2):.4f} ({len(values):,} tokens with the lines' ends{note})")
    else:
        print(f"perplexity {math.exp(mean):.2f} ({len(values):,} tokens with the lines' ends{note})")


def _generate(model, options: argparse.Namespace) -> None:
    from fairseq_plugins.language_models.sampling import sample

    prompt, temperature = options.prompt, options.temperature
    for line in sample(model, options.tokens, options.seed, prompt, temperature, options.top_k):
        print(line)


def _read(model, lines: list[str], options: argparse.Namespace):
    """The logarithm of each token's probability, and the seconds without those of a search for the cache's settings."""
    settings = _cache_settings(model, options)
    tokens = model.numbers(lines)
    if settings is not None:
        note = "" if len(tokens) > settings.window + 1 else f"; it changes nothing in a text of {len(tokens):,} tokens"
        print(f"continuous cache: window {settings.window}, theta {settings.theta}, weight {settings.weight}{note}")
    started = time.monotonic()
    reading = model.read(tokens, keeps_outputs=settings is not None)
    values = reading.log_probabilities if settings is None else settings.of(reading)
    return values, max(time.monotonic() - started, 1e-9)


def _cache_settings(model, options: argparse.Namespace):
    """What the options say of the cache; the rest a search chooses (``--cache``), or is as it is without options."""
    from fairseq_plugins.language_models.cache import CacheSettings, searched_settings

    names = [field.name for field in dataclasses.fields(CacheSettings)]
    given = {name: getattr(options, f"cache_{name}") for name in names}
    given = {name: value for name, value in given.items() if value is not None}
    if options.cache and len(given) < len(names):
        return searched_settings(model, **given)
    return CacheSettings(**given) if given else None


def _device(gpus: int | None) -> str:
    import torch

    if gpus and not torch.cuda.is_available():
        raise InputError("--gpus 1: PyTorch sees no GPU here; 0 is the CPU")
    return "cuda" if gpus != 0 and torch.cuda.is_available() else "cpu"


def parsers() -> dict[str, CommandParser]:
    """The command lines of the three."""
    known = {
        "score": CommandParser("score", "Prints how probable each token of a prepared set is to a language model."),
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
    for name, run in ("score", _score), ("perplexity", _perplexity), ("generate-text", _generate):
        command = known[name]
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
    for name in ("score", "perplexity"):
        cache = known[name].add_argument_group("continuous cache")
        cache.add_argument(
            "--cache",
            action="store_true",
            help="with what a search on the validation set chooses, but for what is given below",
        )
        cache.add_argument("--cache-window", type=int, metavar="N", help="words that it holds; its own choice: 500")
        cache.add_argument("--cache-theta", type=float, metavar="X", help="how much likeness counts: 1.0")
        cache.add_argument("--cache-weight", type=float, metavar="X", help="lambda, its share: 0.1")
    known["score"].add_argument("--subset", default="test", metavar="NAME", help="default: %(default)s")
    known["perplexity"].add_argument("--words", action="store_true", help="each token with its surprise in bits, too")
    generate = known["generate-text"]
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
    return known
