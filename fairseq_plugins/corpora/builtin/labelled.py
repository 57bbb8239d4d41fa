"""Writes the built-in labelled texts.

    python -m fairseq_plugins.corpora.builtin.labelled --task ranking --output DIR

Each of ``train.tsv``, ``valid.tsv`` and ``test.tsv`` has a first line with the names of its columns.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_plugins.corpora.builtin.facts import SIZES, TASKS, generate
from fairseq_plugins.corpora.builtin.output import corpus_folder
from fairseq_plugins.corpora.lines import text_writer
from fairseq_plugins.errors import report_input_errors
from fairseq_plugins.versions import add_version_argument


def write(task: str, output: Path, seed: int, sizes: dict[str, int]) -> None:
    """Writes the three tables, and says what they hold."""
    corpus = generate(task, seed, sizes)
    with corpus_folder(output, {f"{name}.tsv" for name in corpus}) as folder:
        for name, rows in corpus.items():
            with text_writer(folder / f"{name}.tsv") as stream:
                stream.writelines("\t".join(row) + "\n" for row in [TASKS[task], *rows])
    print(f"{output}: " + ", ".join(f"{len(rows)} {name}" for name, rows in corpus.items()))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_plugins.corpora.builtin.labelled",
        description="Writes built-in labelled texts, in which word order decides, as tables.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--task", choices=tuple(TASKS), default="classification", help="which texts to write")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; an earlier corpus is replaced")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another corpus")
    for name, size in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=size, help=f"number of {name} examples, or of questions")
    add_version_argument(parser)
    arguments = parser.parse_args()
    sizes = {name: getattr(arguments, name) for name in SIZES}
    report_input_errors(lambda: write(arguments.task, arguments.output, arguments.seed, sizes))


if __name__ == "__main__":
    main()
