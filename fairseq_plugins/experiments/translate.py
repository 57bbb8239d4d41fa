"""``fairseq-plugins translate``: text in, translated text out, with every step of the corpus's preparation replayed."""

from __future__ import annotations

import argparse
import html
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from ..checkpoints import checked_checkpoint, checkpoint_of, require_checkpoint, trained_on
from ..command_parser import CommandParser
from ..corpora.sentences import LinesInSentences
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..exported.folder import is_exported
from ..files import read_lines
from .command_line import begin_decoding, standard_input, started

_NOTES = """\
A line that is longer than the model takes (1,024 tokens or more, by architecture) becomes an empty line, and a warning
names it; so does one where a translation reaches the limit of its length, 1.5 times that of the source and 10 tokens
more unless --max-len-a and --max-len-b say otherwise.
Where translations go to a terminal, it is said below them which words the training text does not have: a model can
only guess what they mean.
Tokenisation, lower-casing and BPE are those of preparation.json in the prepared data."""


_SAMPLE = 1000
"""Lines of the training text that show whether it is written with spaces."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "translate",
        "Translates text with a trained model: raw text in, raw text out, one line for each line.",
        (
            "work/quickstart/mc_rnn_3 < text",
            "a/checkpoint_best.pt:b/checkpoint_best.pt --beam 10 < text",
            "work/exported < text",
        ),
        _NOTES,
        passes_on_to="fairseq-generate",
    )
    options.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help="a file, or a work folder for its best; FILE:FILE is an ensemble; or a folder that was exported",
    )
    options.add_argument(
        "--data", type=Path, metavar="DIR", help="the prepared data (default: what the checkpoint was trained on)"
    )
    options.add_argument("--beam", type=int, default=5, metavar="N", help="beam size (default: %(default)s)")
    options.add_argument(
        "--gpus", type=int, choices=(0, 1), help="0 for the CPU, 1 for a GPU (default: a GPU where there is one)"
    )
    options.add_argument(
        "--paragraphs", action="store_true", help="lines may have several sentences, which are translated one by one"
    )
    options.add_argument(
        "--quiet", action="store_true", help="say nothing beside the translations but what went wrong with them"
    )
    return options


def main(arguments: Sequence[str]) -> None:
    """Translates the standard input line by line."""
    options, extra = parser().parse_and_pass_on(arguments)
    if is_exported(options.checkpoint):
        _translate_exported(options, extra)
        return
    paths = ":".join(str(checkpoint_of(path)) for path in options.checkpoint.split(":"))
    for path in paths.split(":"):
        require_checkpoint(Path(path))
    if not options.quiet:
        started(paths, sys.stderr)
    begin_decoding(paths.split(":"))
    from tqdm import tqdm

    from ..decoding.translation import MAX_LEN_A, MAX_LEN_B, GenerationOptions, TranslationModel
    from ..patches.unknown_words import unknown_words_left
    from .fairseq_commands import decoding_options, device_of

    data = PreparedData.load(options.data or trained_on(checked_checkpoint(paths.split(":")[0]), paths))
    limits = ["--max-len-a", str(MAX_LEN_A), "--max-len-b", str(MAX_LEN_B)]
    further = ["--beam", str(options.beam), *limits, *extra]
    generation = GenerationOptions.of(*decoding_options("generate", data, {}, further))
    model = TranslationModel.load(paths.split(":"), data.folder, device_of(options.gpus), generation.overrides)
    lines = LinesInSentences.of(standard_input("sentences"), data.pairs.source_lang if options.paragraphs else None)
    sentences = lines.sentences
    disable = True if options.quiet else None
    with tqdm(total=sum(map(bool, sentences)), unit=" sentences", disable=disable, leave=False) as bar:
        translations = model.translations(sentences, generation, bar.update)
    longest = model.longest_source(generation.task)
    for place, length in translations.too_long.items():
        warn(f"{lines.place(place)} has {length:,} tokens, but the model takes {longest:,}: its translation is empty")
    for place, most in translations.cut.items():
        warn(f"the translation of {lines.place(place)} ends at {most:,} tokens, its limit; raise --max-len-b")
    if translations.unknown:
        warn(f"--replace-unk: {unknown_words_left(translations.unknown)}")
    for line in lines.join(translations.texts):
        print(line)
    if sys.stdout.isatty() and not options.quiet and (words := words_not_in_training(data, sentences)):
        sys.stdout.flush()
        print(f"not in the training text: {', '.join(words)}", file=sys.stderr)


def words_not_in_training(data: PreparedData, lines: Sequence[str]) -> list[str]:
    """The words of source text that the training text does not have, whether with a capital or without.

    Where the tokens of the training text have hardly a space between them, characters are what can be unknown.

    Args:
        data: whose training text it is; where that is not there any more, no word is named
        lines: source text, a sentence each

    Returns:
        Each word once, as it was typed, in their order.
    """
    path = data.folder / "tokens" / f"train.{data.pairs.source_lang}"
    if not path.is_file():
        return []
    # Not at the head of the file: an exported model does without.
    from ..scoring.bleu import has_hardly_spaces
    from ..scoring.rouge_tokens import unicode_tokens

    has_spaces = not has_hardly_spaces(itertools.islice(read_lines(path), _SAMPLE))
    cut = str.split if has_spaces else lambda line: unicode_tokens(html.unescape(line))
    tokens = [token for line in lines for token in cut(data.pairs.source.tokenize(line))]
    words = {token.lower(): html.unescape(token) for token in reversed(tokens) if any(map(str.isalpha, token))}
    missing = set(words)
    for line in read_lines(path):
        missing.difference_update(cut(line.lower()))
        if not missing:
            break
    return [words[token] for token in dict.fromkeys(map(str.lower, tokens)) if token in missing]


def _translate_exported(options: argparse.Namespace, extra: Sequence[str]) -> None:
    if options.data is not None or options.gpus:
        raise InputError(f"{options.checkpoint}: an exported model has its own data, and runs on CPUs")
    from ..exported.command_line import search_options, translate

    search_options(options.beam, extra)  # before it waits for text
    lines = standard_input("sentences")
    translate(Path(options.checkpoint), lines, options.beam, extra, are_paragraphs=options.paragraphs)


def warn(what: str) -> None:
    """Says it beside the translations."""
    print(f"warning: {what}", file=sys.stderr)
