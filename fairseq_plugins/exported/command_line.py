"""What ``fairseq-plugins translate`` does with an exported model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..command_parser import CommandParser
from ..corpora.sentences import LinesInSentences
from ..errors import InputError
from .beam_search import SearchOptions
from .translation import ExportedTranslationModel

_HELP = "as fairseq-generate has it"


def parser() -> CommandParser:
    """The options of fairseq-generate that the runtime has too."""
    default = SearchOptions()
    options = CommandParser("translate", "Translates text with an exported model: raw text in, raw text out.")
    options.add_argument("--lenpen", type=float, default=default.length_penalty, help=_HELP)
    options.add_argument("--no-repeat-ngram-size", type=int, default=default.no_repeat_ngram_size, help=_HELP)
    options.add_argument("--max-len-a", type=float, default=default.max_len_a, help=_HELP)
    options.add_argument("--max-len-b", type=int, default=default.max_len_b, help=_HELP)
    options.add_argument("--min-len", type=int, default=default.min_len, help=_HELP)
    options.add_argument("--unkpen", type=float, default=default.unknown_penalty, help=_HELP)
    options.add_argument("--replace-unk", action="store_true", help="unknown words are copied from the source")
    return options


def search_options(beam: int, extra: Sequence[str]) -> tuple[SearchOptions, bool]:
    """How beam search is done, and whether unknown words are replaced.

    Args:
        beam: its width.
        extra: the arguments that are fairseq-generate's.

    Raises:
        InputError: there is one that the runtime has not.
    """
    options, unknown = parser().parse_known_args(extra)
    if unknown:
        names = ", ".join(
            flag
            for action in parser()._actions
            for flag in action.option_strings[:1]
            if flag not in ("-h", "--version")
        )
        raise InputError(f"{unknown[0]}: an exported model has no such option; there are {names}, and --beam")
    chosen = SearchOptions(
        beam,
        options.lenpen,
        options.no_repeat_ngram_size,
        options.max_len_a,
        options.max_len_b,
        options.min_len,
        options.unkpen,
    )
    return chosen, options.replace_unk


def translate(folder: Path, lines: Sequence[str], beam: int, extra: Sequence[str], are_paragraphs: bool) -> None:
    """Prints a translation for each line, which may have several sentences, and warnings beside them.

    The other arguments are those of :func:`search_options`.
    """
    options, replaces_unknown = search_options(beam, extra)
    model = ExportedTranslationModel.load(folder)
    text = LinesInSentences.of(lines, model.preparation.source_lang if are_paragraphs else None)
    results = model.translations(text.sentences, options, replaces_unknown=replaces_unknown)
    for number, result in enumerate(results):
        if result.is_too_long:
            warn(
                f"{text.place(number)} has {result.length:,} tokens, but the model takes {model.longest_source:,}: "
                "its translation is empty"
            )
        elif result.is_cut:
            warn(
                f"the translation of {text.place(number)} ends at {result.limit:,} tokens, its limit; raise --max-len-b"
            )
    for line in text.join([result.text for result in results]):
        print(line)


def warn(what: str) -> None:
    """Says it beside the translations."""
    print(f"warning: {what}", file=sys.stderr)
