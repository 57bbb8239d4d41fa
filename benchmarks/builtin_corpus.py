"""Makes the built-in corpora anew, out of grammars and a seed: ``python benchmarks/builtin_corpus.py FOLDER``.

FOLDER gets an archive of each corpus, and a file that says what is in it. The package holds both in
``fairseq_plugins/corpora/builtin_texts``, since recorded results are of these sentences; a test shows that the grammars
still make them. Whoever changes a grammar writes to that folder, and records the quick starts anew.
"""

from __future__ import annotations

import argparse
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import grammar
import sacrebleu
from grammar import facts

from fairseq_plugins.corpora.builtin import COLUMNS, SUFFIXES, TASKS, TEXT, held_out

Lines = dict[str, list[str]]


def corpus(task: str) -> tuple[Lines, list[str]]:
    """File name → lines, and what the files hold, in sentences."""
    if task in SUFFIXES:
        return pairs(task)
    return text() if task == TEXT else table(task)


def pairs(task: str) -> tuple[Lines, list[str]]:
    """Pairs of texts: a file for each side, and of translation the baseline for the test set."""
    if task == "translation":
        splits = grammar.generate_translation(excluded=[pair.source for pair in held_out()])
    else:
        splits = grammar.generate_summarization()
    files: Lines = {}
    description = [_sizes(splits)]
    for side, suffix in enumerate(SUFFIXES[task]):
        files |= {f"{name}.{suffix}": [pair[side] for pair in pairs] for name, pairs in splits.items()}
        sentences = [grammar.tokens(pair[side]) for pairs in splits.values() for pair in pairs]
        types = len({word for sentence in sentences for word in sentence})
        mean = sum(map(len, sentences)) / len(sentences)
        description.append(f"{suffix}: {types} types, {mean:.1f} tokens a line")
    if task == "translation":
        glosses = [grammar.word_for_word(source) for source in files["test.de"]]
        files["test.word_for_word.en"] = glosses
        score = sacrebleu.corpus_bleu(glosses, [files["test.en"]])
        description.append(f"word for word with the lexicon: {score.score:.1f} BLEU on test")
    return files, description


def text() -> tuple[Lines, list[str]]:
    """A text for language models."""
    splits = grammar.generate_text()
    words = {name: sum(len(line.split()) for line in lines) for name, lines in splits.items()}
    description = ", ".join(f"{len(lines)} {name} lines of {words[name]} words" for name, lines in splits.items())
    return {f"{name}.txt": lines for name, lines in splits.items()}, [description]


def table(task: str) -> tuple[Lines, list[str]]:
    """Labelled texts: tables with their columns' names on top."""
    splits = facts.generate(task)
    files = {f"{name}.tsv": ["\t".join(row) for row in [COLUMNS[task], *rows]] for name, rows in splits.items()}
    return files, [_sizes(splits)]


def _sizes(splits: dict[str, list]) -> str:
    return ", ".join(f"{len(rows)} {name}" for name, rows in splits.items())


def contents(lines: Sequence[str]) -> bytes:
    """A file of these lines."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def write(task: str, folder: Path) -> None:
    """Writes a corpus's archive, and what is in it."""
    files, description = corpus(task)
    with tarfile.open(folder / f"{task}.tar.xz", "w:xz") as archive:
        for name, lines in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(contents(lines))
            archive.addfile(member, io.BytesIO(contents(lines)))
    (folder / f"{task}.txt").write_bytes(contents(description))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Makes the archives of the built-in corpora out of grammars.")
    parser.add_argument("folder", type=Path, help="where the archives go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for task in TASKS:
        write(task, folder)


if __name__ == "__main__":
    main()
