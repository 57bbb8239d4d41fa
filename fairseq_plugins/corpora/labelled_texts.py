"""Labelled texts: one text or two with a label, from a user's file or a data set's to fairseq's binary form.

``labelled_tables`` has the command for files of a user's own; data sets have commands of their own. The output folder
holds, line by line the same examples,

    raw/{train,valid,test}.{input0,input1,label,group}    texts, labels and, where candidates are ranked, whose they are
    tokens/{train,valid,test}.{input0,input1,tags0,…}     tokenised, lower-cased: whatever was asked for
    dictionary/{text,label,tags}.txt                      what fairseq numbers
    bin/{input0,input1,tags0,…,label}/                    fairseq-preprocess's output, laid out as fairseq's task
                                                          sentence_prediction has it
    preparation.json                                      every step applied, and what is needed for new text
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairseq_plugins.corpora.codec import Codec
from fairseq_plugins.corpora.dictionary import by_count, count_words, word_entries
from fairseq_plugins.corpora.lines import map_lines, text_writer
from fairseq_plugins.corpora.pipeline import Run, add_run_arguments, checksum
from fairseq_plugins.corpora.preparation import Preparation, result
from fairseq_plugins.corpora.tokenizers import NORMALIZATIONS, TOKENIZERS, Tokenizer
from fairseq_plugins.errors import InputError, nearest
from fairseq_plugins.symbols import SYMBOLS, UNKNOWN, check_symbols, symbols_as_unknown


class Example(NamedTuple):
    """A text or two, and what is known of them."""

    texts: tuple[str, ...]
    label: str
    place: str
    """``FILE, line N``"""
    group: str = ""
    """The question, where texts are questions with candidates for their answers."""
    tags: tuple[str, ...] = ()
    """One tag for each token of each text, where there are some."""


RANKING_LABELS = ("0", "1")
"""What a candidate is to its question: a wrong answer or a right one."""

Reader = Callable[[Sequence[Path]], Iterable[Example]]
"""The files of a split -> its examples."""


@dataclasses.dataclass
class LabelledTextsPreparation(Preparation):
    """What was done to labelled texts."""

    kind = "labelled_texts"
    title = "labelled texts"

    texts: list[str]
    """What the one text or the two are called: ``text``, or ``premise`` and ``hypothesis``."""
    given: str = "raw"
    """``raw`` text, or ``tokens``: then tokenisation was somebody else's, and is only replayed."""
    language: str = "en"
    tokenizer: str = "moses"
    """Where tokens were given, the one that comes nearest to theirs: new text goes through it."""
    escape: bool = False
    """Whether tokens write what the tokenizer calls special in its own way (``-lrb-``)."""
    lowercase: bool = False
    normalization: list[str] = dataclasses.field(default_factory=list)
    """What is done to text before tokenisation (``nfc``)."""
    max_length: int | None = None
    """Texts are cut after so many tokens."""
    dictionary_size: int | None = None
    """The types of the dictionary at most, fairseq's four special symbols among them; None for all."""
    min_count: int = 1
    """Words that the training texts have less often are unknown."""
    vectors: str | None = None
    """A file of word vectors: the words of held-out texts that it has are in the dictionary too."""
    valid_share: float | None = None
    valid_count: int | None = None
    """How much of the training set was taken out for validation: examples, or whole questions in rankings."""
    seed: int = 1
    """Of that."""
    dropped_labels: list[str] = dataclasses.field(default_factory=list)
    """Labels of examples that were left out."""
    is_ranking: bool = False
    """Labels say which candidates, 1 or 0, answer their question. Questions without a right one were left out."""
    drops_all_right: bool = False
    """Held-out questions with right candidates alone were left out too."""
    has_tags: bool = False
    label: str | None = None
    """The column of the label, or which labels where a data set has several; None where there are no others."""
    group: str | None = None
    """The column of the questions' numbers, where there are several columns."""
    tag_columns: list[str] = dataclasses.field(default_factory=list)
    is_quoted: bool = False
    """Fields of the table were quoted, as CSV's are."""
    vectors_checksum: str | None = None
    metric: str = dataclasses.field(default="accuracy", kw_only=True)
    labels: list[str] = result(list)
    """The classes, in the order of their numbers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, choices in ("tokenizer", TOKENIZERS), ("given", ("raw", "tokens")):
            if (value := getattr(self, name)) not in choices:
                raise InputError(f"unknown {name} {value!r}: choose one of {', '.join(choices)}")
        if len(self.texts) not in (1, 2):
            raise InputError(f"{len(self.texts)} texts: an example has one text or two")
        self.check_counts("max_length", "dictionary_size", "min_count", "valid_count")
        if self.valid_share is not None and not 0 < self.valid_share < 1:
            raise InputError(f"valid-share is {self.valid_share}: it must be between 0 and 1")

    @property
    def inputs(self) -> list[str]:
        """The texts as files are named: ``input0``, ``input1``."""
        return [f"input{number}" for number in range(len(self.texts))]

    @property
    def tags(self) -> list[str]:
        """The files of tags; none where there are no tags."""
        return [f"tags{number}" for number in range(len(self.texts))] if self.has_tags else []

    def fairseq_arguments(self, folder: str | os.PathLike[str]) -> list[str]:
        task = "sequence_ranking" if self.is_ranking else "sequence_classification"
        return [*super().fairseq_arguments(folder), "--task", task]

    def dictionaries(self) -> list[str]:
        return [f"bin/{name}/dict.txt" for name in (*self.inputs, *self.tags, "label")]

    @functools.cached_property
    def codec(self) -> Codec:
        """Text ↔ what fairseq reads."""
        # As the record has it: those of earlier versions gave Moses names as they were.
        language = self.language.split("_")[0]
        return Codec(
            Tokenizer(
                language, self.tokenizer, self.escape, self.lowercase, self.normalization, moses_language=language
            )
        )

    def encode(self, text: str) -> str:
        """New text → tokens, as those of the corpus."""
        return symbols_as_unknown(self._cut(self.codec.encode(text)))

    def encode_given(self, text: str) -> str:
        """The corpus's own text → tokens."""
        if self.given == "raw":
            return self._cut(self.codec.encode(text))
        for name in self.normalization:
            text = NORMALIZATIONS[name](text)
        return self._cut(text.lower() if self.lowercase else text)

    def _cut(self, tokens: str) -> str:
        return tokens if self.max_length is None else " ".join(tokens.split()[: self.max_length])


class LabelledTextsRun(Run[LabelledTextsPreparation]):
    """One run of a preparation of labelled texts."""

    folders = ("raw", "tokens", "dictionary", "bin")

    def __init__(
        self,
        preparation: LabelledTextsPreparation,
        inputs: Mapping[str, Sequence[Path]],
        output: str | os.PathLike[str],
        read: Reader,
        workers: int = 1,
        vectors: Path | None = None,
    ) -> None:
        super().__init__(preparation, inputs, output, workers)
        self._read = read
        self._vectors = vectors

    def write(self, folder: Path) -> dict[str, Any]:
        counts, labels = self._write_texts(folder)
        sizes = self._write_dictionary(folder, list(counts), labels)
        return {
            "splits": {name: {**self.facts.get(name, {}), **count} for name, count in counts.items()},
            "labels": labels,
            "dictionary_sizes": sizes,
            "commands": self._write_bin(folder, list(counts)),
        }

    def _write_texts(self, folder: Path) -> tuple[dict[str, dict[str, int]], list[str]]:
        """``raw/`` and ``tokens/``; returns what was read and kept of each split, and the labels."""
        steps = self.preparation
        kept, counts = self._sets()
        learned = [examples for name, examples in kept.items() if name == "train" or "held_out" in counts[name]]
        labels = sorted({example.label for examples in learned for example in examples})
        if steps.is_ranking:
            labels = list(RANKING_LABELS)
        for name, examples in kept.items():
            check_labels(examples, labels)
            if name != "train":
                counts[name]["in_training"] = self._warn_of_shared_texts(name, examples, kept["train"])
        if len(labels) < 2:
            raise InputError(f"every training text has the label {labels[0]!r}: two classes are the fewest")
        raw, tokens = folder / "raw", folder / "tokens"
        raw.mkdir()
        tokens.mkdir()
        for name, examples in kept.items():
            self._write_split(name, examples, raw, tokens)
            counts[name]["kept"] = len(examples)
        return counts, labels

    def _warn_of_shared_texts(self, name: str, examples: Sequence[Example], train: Sequence[Example]) -> int:
        """How many examples of a held-out set have texts that are in the training set too; some are worth a warning."""

        def texts_of(example: Example) -> tuple[str, ...]:
            texts = (" ".join(text.split()) for text in example.texts)
            return tuple(text.lower() if self.preparation.lowercase else text for text in texts)

        labels: dict[tuple[str, ...], set[str]] = {}
        for example in train:
            labels.setdefault(texts_of(example), set()).add(example.label)
        shared = [example for example in examples if texts_of(example) in labels]
        if shared:
            same = sum(example.label in labels[texts_of(example)] for example in shared)
            print(
                f"warning: {len(shared):,} of the {len(examples):,} texts of {name} are in the training set too, word "
                f"for word, {same:,} of them with the same label: scores are higher for it"
            )
        return len(shared)

    def _sets(self) -> tuple[dict[str, list[Example]], dict[str, dict[str, int]]]:
        """The examples of each split that are kept, and how many there were."""
        steps = self.preparation
        read = {name: list(self._read(paths)) for name, paths in self.inputs.items()}
        counts = {name: {"read": len(examples)} for name, examples in read.items()}
        kept = {name: self._kept(name, examples) for name, examples in read.items()}
        if "valid" not in kept and (steps.valid_share or steps.valid_count):
            kept["train"], valid = self._held_out(kept["train"])
            counts["valid"] = {"held_out": len(valid)}
            kept["valid"] = self._kept("valid", valid)
        return kept, counts

    def _write_split(self, name: str, examples: Sequence[Example], raw: Path, tokens: Path) -> None:
        steps = self.preparation
        for side, column in enumerate(steps.inputs):
            with text_writer(raw / f"{name}.{column}") as as_given, text_writer(tokens / f"{name}.{column}") as encoded:
                texts = [(example, " ".join(example.texts[side].split())) for example in examples]
                lines = map_lines(_Encoding(steps), (text for _, text in texts), self.workers, f"{name} {column}")
                for (example, text), (_, line) in zip(texts, lines, strict=True):
                    if not line:
                        raise InputError(f"{example.place}: the {steps.texts[side]} is empty; write it or leave it out")
                    check_symbols(example.place, line.split())
                    as_given.write(text + "\n")
                    encoded.write(line + "\n")
                    if steps.has_tags:
                        _check_tags(example, side, text)
            if steps.has_tags:
                with text_writer(tokens / f"{name}.{steps.tags[side]}") as stream:
                    stream.writelines(steps._cut(example.tags[side]) + "\n" for example in examples)
        for column, values in ("label", [e.label for e in examples]), ("group", [e.group for e in examples]):
            if column == "label" or steps.is_ranking:
                with text_writer(raw / f"{name}.{column}") as stream:
                    stream.writelines(value + "\n" for value in values)

    def _kept(self, name: str, examples: list[Example]) -> list[Example]:
        """Without the labels that are left out and, of questions, those that nothing can be learned or measured by."""
        steps = self.preparation
        kept = [example for example in examples if example.label not in steps.dropped_labels]
        if steps.is_ranking:
            labels: dict[str, set[str]] = {}
            for example in kept:
                if not example.group:
                    raise InputError(f"{example.place}: the question has no number; write it or leave the line out")
                if example.label not in RANKING_LABELS:
                    raise InputError(
                        f"{example.place}: the label {example.label!r} is neither 1, of a candidate that answers its "
                        f"question, nor 0, of others"
                    )
                labels.setdefault(example.group, set()).add(example.label)
            needed = {"0", "1"} if steps.drops_all_right and name != "train" else {"1"}
            kept = [example for example in kept if needed <= labels[example.group]]
        if not kept:
            files = ", ".join(str(path) for path in self.inputs.get(name, self.inputs["train"]))
            why = "no example is left"
            if steps.is_ranking and examples:
                why = "no question has a candidate of label 1, which answers it"
                if "0" in needed:
                    why += ", and one of label 0"
            raise InputError(f"{files}: nothing to take as {name}: {why}")
        return kept

    def _held_out(self, examples: list[Example]) -> tuple[list[Example], list[Example]]:
        """Training and validation, both in the order of the file. Questions stay whole."""
        steps = self.preparation
        units = [example.group if steps.is_ranking else number for number, example in enumerate(examples)]
        distinct = list(dict.fromkeys(units))
        count = steps.valid_count or max(1, round(len(distinct) * (steps.valid_share or 0)))
        what = "questions" if steps.is_ranking else "examples"
        chosen = {distinct[index] for index in drawn(count, len(distinct), steps.seed, what)}
        parts: tuple[list[Example], list[Example]] = [], []
        for unit, example in zip(units, examples, strict=True):
            parts[unit in chosen].append(example)
        return parts

    def _write_dictionary(self, folder: Path, splits: Sequence[str], labels: Sequence[str]) -> dict[str, int]:
        """``dictionary/``; returns the number of lines of each."""
        steps, tokens = self.preparation, folder / "tokens"
        held_out = [tokens / f"{name}.{column}" for name in splits if name != "train" for column in steps.inputs]
        files = {
            "text": word_entries(
                [tokens / f"train.{column}" for column in steps.inputs],
                held_out,
                steps.min_count,
                steps.dictionary_size,
                self._vectors,
            )
        }
        label_counts = count_words([folder / "raw" / "train.label"])
        files["label"] = [(label, label_counts[label]) for label in labels]
        if steps.has_tags:
            files["tags"] = sorted(
                count_words(tokens / f"train.{column}" for column in steps.tags).items(), key=by_count
            )
        (folder / "dictionary").mkdir()
        for name, entries in files.items():
            with text_writer(folder / "dictionary" / f"{name}.txt") as stream:
                stream.writelines(f"{word} {count}\n" for word, count in entries)
        return {name: len(entries) for name, entries in files.items()}

    def _write_bin(self, folder: Path, splits: Sequence[str]) -> list[str]:
        """``bin/``; returns the commands."""
        steps, commands = self.preparation, []
        columns = {
            **{column: ("text", "tokens") for column in steps.inputs},
            **{column: ("tags", "tokens") for column in steps.tags},
            "label": ("label", "raw"),
        }
        for column, (dictionary, part) in columns.items():
            arguments = ["--only-source", "--srcdict", f"dictionary/{dictionary}.txt"]
            for option, names in split_prefixes(splits).items():
                arguments += [option, ",".join(f"{part}/{name}.{column}" for name in names)]
            # A dictionary that is filled up would have labels that nobody gave.
            arguments += ["--padding-factor", "1"]
            commands.append(self.fairseq_preprocess(arguments, folder, f"bin/{column}"))
        if steps.is_ranking:
            (folder / "bin" / "group").mkdir()
            for name in splits:
                groups = (folder / "raw" / f"{name}.group").read_text(encoding="utf-8")
                (folder / "bin" / "group" / f"{name}.txt").write_text(groups, encoding="utf-8", newline="\n")
        return commands


def drawn(count: int, total: int, seed: int, what: str) -> list[int]:
    """The places of ``count`` of ``total`` training units, which messages call ``what``, that are held out.

    Raises:
        InputError: none would be left for training.
    """
    if count >= total:
        raise InputError(f"{count:,} of {total:,} {what} for validation leave none for training")
    return random.Random(seed).sample(range(total), count)


def split_prefixes(splits: Sequence[str]) -> dict[str, list[str]]:
    """fairseq-preprocess's options of prefixes, with the splits that each takes."""
    tests = sorted(name for name in splits if name.startswith("test"))
    options = {"--trainpref": ["train"], "--validpref": ["valid"], "--testpref": tests}
    return {option: names for option, names in options.items() if names and names[0] in splits}


@dataclasses.dataclass(frozen=True)
class _Encoding:
    """What is done to each line; worker processes receive it."""

    steps: LabelledTextsPreparation

    def __call__(self, text: str) -> str:
        return self.steps.encode_given(text)


def _check_tags(example: Example, side: int, text: str) -> None:
    tags, tokens = example.tags[side].split(), text.split()
    if len(tags) != len(tokens):
        raise InputError(f"{example.place}: {len(tags)} tags for {len(tokens)} tokens; every token has one tag")
    check_symbols(example.place, tags)


def check_labels(examples: Iterable[Example], labels: Sequence[str]) -> None:
    """Raises InputError for a label that is empty, holds a space, is fairseq's own, or does not occur in training."""
    for example in examples:
        if not example.label or len(example.label.split()) != 1:
            raise InputError(f"{example.place}: the label {example.label!r} is no word; write it without spaces")
        if example.label in (*SYMBOLS, UNKNOWN):
            raise InputError(f"{example.place}: the label {example.label!r} is a symbol of fairseq's own: rename it")
        if example.label not in labels:
            hint = nearest(example.label, labels)
            raise InputError(
                f"{example.place}: nothing in the training set has the label {example.label!r}{hint}; "
                f"there are {', '.join(labels)}"
            )


def prepare(
    preparation: LabelledTextsPreparation,
    inputs: Mapping[str, Sequence[Path]],
    output: str | os.PathLike[str],
    read: Reader,
    workers: int = 1,
    vectors: Path | None = None,
) -> LabelledTextsPreparation:
    """Prepares labelled texts and says what there is; see :meth:`.Run.prepare`.

    Args:
        preparation: what to do.
        inputs: split → its files.
        output: the folder to write.
        read: what makes examples of the files of a split.
        workers: processes.
        vectors: the file that ``preparation.vectors`` names.
    """
    run = LabelledTextsRun(preparation, inputs, output, read, workers, vectors)
    prepared = run.prepare()
    counts = ", ".join(f"{facts['kept']:,} {name}" for name, facts in prepared.splits.items())
    print(f"{output}: {counts}; {len(prepared.labels)} labels; {prepared.dictionary_sizes['text']:,} words")
    return prepared


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that prepares labelled texts."""
    parser.add_argument("--max-length", type=int, metavar="N", help="cut texts after N tokens")
    parser.add_argument("--words", type=int, metavar="N", help="types of the dictionary, 4 special symbols among them")
    parser.add_argument(
        "--min-count",
        type=int,
        metavar="N",
        help="words that the training texts have less often are unknown, so that a vector for unknown words is "
        "learned; default: 2, with --vectors 1",
    )
    parser.add_argument(
        "--vectors",
        type=Path,
        metavar="FILE",
        help="word vectors: words of held-out texts that it has are in the dictionary too (give it to training again)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the examples held out for validation; default: 1")
    add_run_arguments(parser)


def common_choices(arguments: argparse.Namespace) -> dict[str, Any]:
    """What :func:`add_text_arguments` says, as fields of a preparation."""
    min_count = arguments.min_count
    if min_count is None:
        min_count = 2 if arguments.vectors is None else 1
    return {
        "max_length": arguments.max_length,
        "dictionary_size": arguments.words,
        "min_count": min_count,
        "vectors": None if arguments.vectors is None else arguments.vectors.name,
        "vectors_checksum": None if arguments.vectors is None else checksum(arguments.vectors),
        "seed": arguments.seed,
    }
