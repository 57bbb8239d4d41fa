"""``fairseq-plugins translate``: text in, translated text out, with every step of the corpus's preparation replayed."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from ..checkpoints import checked_checkpoint, checkpoint_of, trained_on
from ..command_parser import CommandParser
from ..corpora.codec import list_of_texts
from ..errors import InputError
from . import fairseq_commands, processes, results
from .command_line import standard_input, started
from .decoding import hypotheses
from .prepared_data import PreparedData

# Of the length of the output: a times that of the source, plus b. fairseq's own are 0 and 200, so that a model that
# repeats words without end does so for 200 tokens.
MAX_LEN_A, MAX_LEN_B = 1.5, 10
_OUTPUT_LIMITS = ("--max-len-a", str(MAX_LEN_A), "--max-len-b", str(MAX_LEN_B))


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
        passes_on_to="fairseq-interactive",
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
    results.load_extensions_of(paths.split(":"))
    checkpoints = [checked_checkpoint(path) for path in paths.split(":")]
    data = PreparedData.load(options.data or trained_on(checkpoints[0], paths))
    data.verify("")
    for path, checkpoint in zip(paths.split(":"), checkpoints, strict=True):
        data.check_trained_on(checkpoint, path)
    lines = standard_input("sentences")
    extra = ["--beam", str(options.beam), *extra]
    longest = min(fairseq_commands.longest_sentence(checkpoint, "source") for checkpoint in checkpoints)
    for line in translate(lines, paths, data, options.gpus, extra, longest):
        print(line)


def translate(
    lines: Sequence[str],
    checkpoint: str,
    data: PreparedData,
    gpus: int | None = None,
    extra: Sequence[str] = (),
    longest: int = fairseq_commands.LONGEST,
) -> list[str]:
    """Translates lines of text with fairseq-interactive.

    Args:
        lines: source text; what is empty stays empty
        checkpoint: the model, or several for an ensemble, ``a.pt:b.pt``
        data: what the model was trained on; its preparation is applied, and undone in the translation
        gpus: 0 for the CPU, 1 for a GPU, None for a GPU where there is one
        extra: further options of fairseq-interactive
        longest: the tokens that the model takes, the end of the sentence among them. A longer line stays empty, and a
            warning says so; so does one where a translation has reached its own limit

    Raises:
        TypeError: ``lines`` is one text, or one of them is no text.
        InputError: fairseq-interactive refuses an option, fails, or leaves a line untranslated.
    """
    preparation = data.pairs
    extra = [*_OUTPUT_LIMITS, *extra]
    longest = fairseq_commands.whole_number(extra, "--max-source-positions") or longest
    lines = list_of_texts("translate", lines)
    encoded = [preparation.encode_source(line) for line in lines]
    for number, sentence in enumerate(encoded):
        if (length := len(sentence.split()) + 1) > longest:
            warn(f"line {number + 1} has {length:,} tokens, but the model takes {longest:,}: its translation is empty")
            encoded[number] = ""
    numbers = [number for number, sentence in enumerate(encoded, 1) if sentence]
    sentences = [sentence for sentence in encoded if sentence]
    if not sentences:
        return [""] * len(lines)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.txt"
        source.write_text("".join(sentence + "\n" for sentence in sentences), encoding="utf-8")
        # fairseq's own limit is lower than that of many models.
        limit = ["--max-source-positions", str(longest)]
        tokens = max(len(sentence.split()) + 1 for sentence in sentences)
        command = fairseq_commands.interactive_command(data, checkpoint, source, tokens, gpus, [*limit, *extra])
        output: list[str] = []
        with tqdm(total=len(sentences), unit=" sentences", disable=None, leave=False) as bar:

            def collect(line: str) -> None:
                output.append(line)
                bar.update(line.startswith("S-"))

            status = processes.run_here(command, collect)
    if status != 0:
        raise processes.failure(command, status, output)
    found = list(hypotheses(output, len(sentences), "fairseq-interactive"))
    for number, sentence, hypothesis in zip(numbers, sentences, found, strict=True):
        most = longest_output(extra, len(sentence.split()) + 1)
        if len(hypothesis.log_probabilities) > most:
            warn(f"the translation of line {number} ends at {most:,} tokens, its limit; raise --max-len-b")
    text = (preparation.detokenize_target(preparation.decode_target(hypothesis.pieces)) for hypothesis in found)
    return [next(text) if sentence else "" for sentence in encoded]


def longest_output(extra: Sequence[str], length: int) -> int:
    """How many tokens, without the end of the sentence, are generated at most for a source of so many.

    Args:
        extra: the options of fairseq-interactive, ``--max-len-a`` and ``--max-len-b`` among them
        length: of the source, with the end of the sentence
    """
    extra = [*_OUTPUT_LIMITS, *extra]
    slope, constant = (float(fairseq_commands.option(extra, name) or 0) for name in ("--max-len-a", "--max-len-b"))
    return int(slope * length + constant)


def warn(what: str) -> None:
    """Says it beside the translations."""
    print(f"warning: {what}", file=sys.stderr)
