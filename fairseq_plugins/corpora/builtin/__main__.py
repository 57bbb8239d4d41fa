"""Writes the built-in corpus: ``python -m fairseq_plugins.corpora.builtin --task translation --output DIR``."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_plugins.corpora.builtin import (
    SIZES,
    SUFFIXES,
    TEXT,
    generate_summarization,
    generate_text,
    generate_translation,
    tokens,
    word_for_word,
)
from fairseq_plugins.corpora.builtin.output import corpus_folder
from fairseq_plugins.errors import report_input_errors
from fairseq_plugins.versions import add_version_argument

_GLOSSED = "test.word_for_word.en"


def write(task: str, output: Path, seed: int, sizes: dict[str, int]) -> None:
    """Writes ``train``, ``valid`` and ``test`` with both suffixes of ``task``, and says what they hold."""
    generate = generate_translation if task == "translation" else generate_summarization
    corpus = generate(seed, sizes)
    suffixes = {suffix for both in SUFFIXES.values() for suffix in both}
    written = {f"{name}.{suffix}" for name in corpus for suffix in suffixes} | {_GLOSSED}
    with corpus_folder(output, written) as folder:
        for name, pairs in corpus.items():
            for side, suffix in enumerate(SUFFIXES[task]):
                lines = [pair[side] for pair in pairs]
                (folder / f"{name}.{suffix}").write_text(
                    "".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n"
                )
        if task == "translation":
            glossed = [word_for_word(source) for source, _ in corpus["test"]]
            text = "".join(f"{line}\n" for line in glossed)
            (folder / _GLOSSED).write_text(text, encoding="utf-8", newline="\n")
    print(f"{output}: " + ", ".join(f"{len(pairs)} {name}" for name, pairs in corpus.items()))
    for side, suffix in enumerate(SUFFIXES[task]):
        sentences = [tokens(pair[side]) for pairs in corpus.values() for pair in pairs]
        count = sum(map(len, sentences))
        types = len({word for sentence in sentences for word in sentence})
        print(f"{suffix}: {types} types, {count / max(1, len(sentences)):.1f} tokens a line")
    if task == "translation" and corpus["test"]:
        import sacrebleu  # not at the head of the file: --help need not wait for it

        score = sacrebleu.corpus_bleu(glossed, [[target for _, target in corpus["test"]]])
        print(f"word for word with the lexicon: {score.score:.1f} BLEU on test")


def write_text(output: Path, seed: int, sizes: dict[str, int]) -> None:
    """Writes ``train.txt``, ``valid.txt`` and ``test.txt``, and says what they hold."""
    corpus = generate_text(seed, sizes)
    with corpus_folder(output, {f"{name}.txt" for name in corpus}) as folder:
        for name, lines in corpus.items():
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{name}.txt").write_text(text, encoding="utf-8", newline="\n")
    words = {name: sum(len(line.split()) for line in lines) for name, lines in corpus.items()}
    print(f"{output}: " + ", ".join(f"{len(corpus[name])} {name} lines of {words[name]} words" for name in corpus))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_plugins.corpora.builtin",
        description="Writes the built-in corpus as plain text, one sentence a line.",
        epilog="example: python -m fairseq_plugins.corpora.builtin --task translation --output work/builtin/raw",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--task", choices=(*SUFFIXES, TEXT), default="translation", help="what to write")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; an earlier corpus is replaced")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another corpus")
    for name, size in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=size, help=f"number of {name} pairs or lines")
    add_version_argument(parser)
    arguments = parser.parse_args()
    sizes = {name: getattr(arguments, name) for name in SIZES}
    if arguments.task == TEXT:
        report_input_errors(lambda: write_text(arguments.output, arguments.seed, sizes))
    else:
        report_input_errors(lambda: write(arguments.task, arguments.output, arguments.seed, sizes))


if __name__ == "__main__":
    main()
