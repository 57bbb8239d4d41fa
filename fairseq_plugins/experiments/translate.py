"""``fairseq-plugins translate``: text in, translated text out, with every step of the corpus's preparation replayed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from ..checkpoints import checked_checkpoint, checkpoint_of, trained_on
from ..command_parser import CommandParser
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from .command_line import begin_decoding, standard_input, started

_NOTES = """\
A line that is longer than the model takes (1,024 tokens or more, by architecture) becomes an empty line, and a warning
names it; so does one where a translation reaches the limit of its length, 1.5 times that of the source and 10 tokens
more unless --max-len-a and --max-len-b say otherwise.
Tokenisation, lower-casing and BPE are those of preparation.json in the prepared data."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "translate",
        "Translates text with a trained model: raw text in, raw text out, one line for each line.",
        ("work/quickstart/mc_rnn_3 < text", "a/checkpoint_best.pt:b/checkpoint_best.pt --beam 10 < text"),
        _NOTES,
        passes_on_to="fairseq-generate",
    )
    options.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="a file, or a work folder for its best; FILE:FILE is an ensemble"
    )
    options.add_argument(
        "--data", type=Path, metavar="DIR", help="the prepared data (default: what the checkpoint was trained on)"
    )
    options.add_argument("--beam", type=int, default=5, metavar="N", help="beam size (default: %(default)s)")
    options.add_argument(
        "--gpus", type=int, choices=(0, 1), help="0 for the CPU, 1 for a GPU (default: a GPU where there is one)"
    )
    return options


def main(arguments: Sequence[str]) -> None:
    """Translates the standard input line by line."""
    options, extra = parser().parse_and_pass_on(arguments)
    paths = ":".join(str(checkpoint_of(path)) for path in options.checkpoint.split(":"))
    for path in paths.split(":"):
        if not Path(path).is_file():
            raise InputError(f"{path}: no such checkpoint")
    started(paths, sys.stderr)
    begin_decoding(paths.split(":"))
    from ..decoding.translation import MAX_LEN_A, MAX_LEN_B, GenerationOptions, TranslationModel
    from ..patches.unknown_words import unknown_words_left
    from .fairseq_commands import decoding_options, device_of

    data = PreparedData.load(options.data or trained_on(checked_checkpoint(paths.split(":")[0]), paths))
    limits = ["--max-len-a", str(MAX_LEN_A), "--max-len-b", str(MAX_LEN_B)]
    further = ["--beam", str(options.beam), *limits, *extra]
    generation = GenerationOptions.of(*decoding_options("generate", data, {}, further))
    model = TranslationModel.load(paths.split(":"), data.folder, device_of(options.gpus), generation.overrides)
    lines = standard_input("sentences")
    with tqdm(total=sum(map(bool, lines)), unit=" sentences", disable=None, leave=False) as bar:
        translations = model.translations(lines, generation, bar.update)
    longest = model.longest_source(generation.task)
    for place, length in translations.too_long.items():
        warn(f"line {place + 1} has {length:,} tokens, but the model takes {longest:,}: its translation is empty")
    for place, most in translations.cut.items():
        warn(f"the translation of line {place + 1} ends at {most:,} tokens, its limit; raise --max-len-b")
    if translations.unknown:
        warn(f"--replace-unk: {unknown_words_left(translations.unknown)}")
    for line in translations.texts:
        print(line)


def warn(what: str) -> None:
    """Says it beside the translations."""
    print(f"warning: {what}", file=sys.stderr)
