"""``scripts/translate.sh``: text in, translated text out, with every step of the corpus's preparation replayed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from ..checkpoints import checked_checkpoint, trained_on
from ..errors import InputError
from ..files import read_lines
from . import fairseq_commands, processes, results
from .command_line import ScriptParser, main_of
from .decoding import hypotheses
from .prepared_data import PreparedData


def main(arguments: Sequence[str]) -> None:
    """Translates the standard input line by line."""
    parser = ScriptParser("translate")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--gpus", type=int, choices=(0, 1))
    paths, options, extra = parser.parse_after("CHECKPOINT", arguments)
    results.load_extensions_of(paths.split(":"))
    checkpoints = [checked_checkpoint(path) for path in paths.split(":")]
    data = PreparedData.load(options.data or trained_on(checkpoints[0], paths))
    if sys.stdin.isatty():
        print("Type sentences, one a line, and end with Ctrl-D.", file=sys.stderr)
    lines = list(read_lines("/dev/stdin"))
    extra = ["--beam", str(options.beam), *extra]
    for line in translate(lines, paths, data, options.gpus, extra):
        print(line)


def translate(
    lines: Sequence[str],
    checkpoint: str,
    data: PreparedData,
    gpus: int | None = None,
    extra: Sequence[str] = (),
) -> list[str]:
    """Translates lines of text with fairseq-interactive.

    Args:
        lines: source text; what is empty stays empty
        checkpoint: the model, or several for an ensemble, ``a.pt:b.pt``
        data: what the model was trained on; its preparation is applied, and undone in the translation
        gpus: 0 for the CPU, 1 for a GPU, None for a GPU where there is one
        extra: further options of fairseq-interactive

    Raises:
        InputError: fairseq-interactive refuses an option, fails, or leaves a line untranslated.
    """
    preparation = data.pairs
    encoded = [preparation.encode_source(line) for line in lines]
    sentences = [sentence for sentence in encoded if sentence]
    if not sentences:
        return [""] * len(lines)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.txt"
        source.write_text("".join(sentence + "\n" for sentence in sentences), encoding="utf-8")
        command = fairseq_commands.interactive_command(data, checkpoint, source, gpus, extra)
        output: list[str] = []
        with tqdm(total=len(sentences), unit=" sentences", disable=None, leave=False) as bar:

            def collect(line: str) -> None:
                output.append(line)
                bar.update(line.startswith("S-"))

            status = processes.run(command, collect, stderr=subprocess.STDOUT)
    if status != 0:
        sys.stderr.writelines(output[-20:])
        raise InputError(f"fairseq-interactive ended with exit status {status}; its last lines stand above")
    found = (hypothesis.pieces for hypothesis in hypotheses(output, len(sentences), "fairseq-interactive"))
    text = (preparation.detokenize_target(preparation.decode_target(pieces)) for pieces in found)
    return [next(text) if sentence else "" for sentence in encoded]


if __name__ == "__main__":
    main_of(main)
