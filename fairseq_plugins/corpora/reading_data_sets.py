"""The data sets of passages with questions, and those of a user's own: rows of :data:`.data_sets.DATA_SETS`.

    fairseq-plugins prepare narrativeqa --input narrativeqa --output work/narrativeqa/data
    fairseq-plugins prepare questions --train train.jsonl --test test.jsonl --output work/mine/data

Every reader yields the passages of each split; ``reading_comprehension`` does the rest.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fairseq_plugins.corpora.archives import unpack
from fairseq_plugins.corpora.data_set import DataSet, named_fields, path_option
from fairseq_plugins.corpora.generated_passages import passages as generated_passages
from fairseq_plugins.corpora.labelled_tables import json_member, json_text, read_table
from fairseq_plugins.corpora.labelled_texts import add_text_arguments, common_choices
from fairseq_plugins.corpora.lines import read_sentences
from fairseq_plugins.corpora.reading_comprehension import (
    TOKENIZERS,
    Passage,
    Question,
    ReadingPreparation,
    ReadingRun,
    oracle_line,
    write_passages,
)
from fairseq_plugins.errors import InputError

Passages = Mapping[str, Iterable[Passage]]
"""Split → its passages."""

FETCH_AGAIN = "fetch the file again"
_GIGABYTES = 1.0


class ReadingSet(DataSet[Passages]):
    """A data set of passages with questions."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--max-answer", type=int, default=30, metavar="N", help="words of the longest answer; default: 30"
        )
        add_text_arguments(parser)

    def prepare(self, name: str, options: argparse.Namespace, folder: Path) -> None:
        choices = {**self.choices, **named_fields(ReadingPreparation, options), **common_choices(options)}
        if getattr(options, "valid", None) is not None:
            choices["valid_share"] = None
        metric = "answers" if choices.get("has_free_answers") else "squad"
        preparation = ReadingPreparation(data_set=name, metric=metric, **choices)
        inputs = {}
        for split, passages in self.source(options, folder / "unpacked").items():
            inputs[split] = [folder / f"{split}.jsonl"]
            write_passages(folder / f"{split}.jsonl", passages)
        prepared = ReadingRun(preparation, inputs, options.output, options.workers, options.vectors).prepare()
        counts = ", ".join(
            f"{facts['kept']:,} {split} ({facts['passages']:,} passages)" for split, facts in prepared.splits.items()
        )
        print(f"{options.output}: questions: {counts}; {prepared.dictionary_sizes['text']:,} words")
        dropped = prepared.splits["train"]["read"] - prepared.splits["train"]["kept"]
        if dropped:
            print(f"note: {dropped:,} training questions are left out: what is read of their passages has no answer")
        for split, facts in prepared.splits.items():
            if split != "train":
                print(f"{split}, if every place is found: {oracle_line(facts['oracle'])}")


# NarrativeQA, summaries

_MOST_MISSING = 0.01
"""The share of documents that may have no summary, or no question."""
_NARRATIVE_FILES = ("documents.csv", "qaps.csv", "third_party/wikipedia/summaries.csv")


def _narrativeqa(options: argparse.Namespace, _: Path) -> Passages:
    """The authors' three files: each document's set, its summary, and questions with two answers each."""
    documents, questions, summaries = paths = [options.input / name for name in _NARRATIVE_FILES]
    for path in paths:
        if path.is_file() and not path.read_bytes().endswith(b"\n"):
            raise InputError(f"{path}: the file ends within a line; {FETCH_AGAIN}")
    sets: dict[str, str] = {}
    for place, (document, split) in _rows(documents, ("document_id", "set")):
        if split not in ("train", "valid", "test"):
            raise InputError(f"{place}: the set is {split!r}, not train, valid or test; {FETCH_AGAIN}")
        sets[document] = split
    texts = {document: text for _, (document, text) in _rows(summaries, ("document_id", "summary"))}
    asked: dict[str, list[Question]] = {document: [] for document in sets}
    for place, (document, question, *answers) in _rows(questions, ("document_id", "question", "answer1", "answer2")):
        if document not in sets:
            raise InputError(f"{place}: there is no document {document!r} in {documents}; {FETCH_AGAIN}")
        asked[document].append(Question(question, tuple(filter(str.strip, answers)), place))
    for file, kept in (summaries, texts), (questions, {document for document in sets if asked[document]}):
        missing = [document for document in sets if document not in kept]
        # A file that was cut short lacks many.
        if len(missing) > _MOST_MISSING * len(sets):
            raise InputError(
                f"{file}: nothing of {len(missing):,} of the {len(sets):,} documents of {documents}, such as "
                f"{missing[0]}; {FETCH_AGAIN}"
            )
    return {
        split: [
            Passage(texts[document], tuple(asked[document]))
            for document, one in sets.items()
            if one == split and document in texts and asked[document]
        ]
        for split in ("train", "valid", "test")
    }


# FairytaleQA

_FAIRYTALE_SPLITS = {"train": "train", "valid": "val", "test": "test"}
_FAIRYTALE_ANSWERS = tuple(f"answer{number}" for number in range(1, 7))


def _fairytale_qa(options: argparse.Namespace, folder: Path) -> Passages:
    """Questions on sections of stories, in files of a story each; the folder, or its archive."""
    root = options.input
    if root.is_file():
        unpack(root, folder, _GIGABYTES)
        root = folder
    if not (root / "questions" / "train").is_dir():
        root = next((path.parent for path in sorted(root.glob("*/questions")) if (path / "train").is_dir()), root)
    if not (root / "questions" / "train").is_dir():
        raise InputError(f"{options.input}: no folder questions/train there; give data-by-train-split, or its archive")
    return {split: list(_stories(root, name)) for split, name in _FAIRYTALE_SPLITS.items()}


def _stories(root: Path, split: str) -> Iterator[Passage]:
    files = sorted((root / "questions" / split).glob("*-questions.csv"))
    if not files:
        raise InputError(f"{root / 'questions' / split}: no file NAME-questions.csv there; {FETCH_AGAIN}")
    for file in files:
        story = root / "section-stories" / split / file.name.replace("-questions.csv", "-story.csv")
        sections = {section.strip(): text for _, (section, text) in _rows(story, ("section", "text"))}
        by_sections: dict[tuple[str, ...], list[Question]] = {}
        for place, (names, question, *answers) in _rows(file, ("cor_section", "question", *_FAIRYTALE_ANSWERS)):
            of_question = tuple(name.strip() for name in names.split(","))
            missing = [name for name in of_question if name not in sections]
            if missing:
                raise InputError(f"{place}: {story} has no section '{missing[0]}'; {FETCH_AGAIN}")
            distinct_answers = tuple(dict.fromkeys(answer.strip() for answer in answers if answer.strip()))
            by_sections.setdefault(of_question, []).append(Question(question, distinct_answers, place))
        for of_passage, asked in by_sections.items():
            yield Passage("\n\n".join(sections[name] for name in of_passage), tuple(asked))


# SQuAD 1.1


def _squad(options: argparse.Namespace, _: Path) -> Passages:
    """Its published JSON; the development set, whose answers are published, is the test set."""
    return {split: list(_read_squad(getattr(options, split))) for split in ("train", "test")}


def _read_squad(path: Path) -> Iterator[Passage]:
    try:
        articles = json.loads("\n".join(read_sentences(path)))["data"]
        for article in articles:
            for paragraph in article["paragraphs"]:
                questions = []
                for one in paragraph["qas"]:
                    place = f"{path}, question {one['id']}"
                    answers = tuple(json_text(place, "text", answer["text"]) for answer in one["answers"])
                    text = json_text(place, "question", one["question"])
                    questions.append(Question(text, answers, place, one["answers"][0]["answer_start"]))
                if questions:
                    yield Passage(json_text(questions[0].place, "context", paragraph["context"]), tuple(questions))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); {FETCH_AGAIN}") from None
    except (KeyError, TypeError, IndexError) as error:
        raise InputError(
            f"{path}: not laid out as SQuAD 1.1 is ({type(error).__name__}: {error}); give train-v1.1.json and "
            f"dev-v1.1.json, whose questions all have answers"
        ) from None


# A user's own


def _questions(options: argparse.Namespace, _: Path) -> Passages:
    """JSON lines with question, answers (a text or a list of texts) and passage."""
    splits = [split for split in ("train", "valid", "test") if getattr(options, split) is not None]
    return {split: list(_read_questions(getattr(options, split))) for split in splits}


def _read_questions(path: Path) -> Iterator[Passage]:
    by_passage: dict[str, list[Question]] = {}
    for number, line in enumerate(read_sentences(path), 1):
        place = f"{path}, line {number}"
        question, passage = (json_text(place, name, json_member(place, line, name)) for name in ("question", "passage"))
        answers = json_member(place, line, "answers")
        texts = tuple(json_text(place, "answers", one) for one in (answers if isinstance(answers, list) else [answers]))
        by_passage.setdefault(passage, []).append(Question(question, texts, place))
    if not by_passage:
        raise InputError(f"{path} is empty")
    for passage, questions in by_passage.items():
        yield Passage(passage, tuple(questions))


# A generated set


def _generated(options: argparse.Namespace, _: Path) -> Passages:
    if options.passages < 10:
        raise InputError(f"--passages {options.passages}: it must be at least 10")
    counts = {"train": options.passages, "valid": options.passages // 10, "test": options.passages // 10}
    return {
        split: list(generated_passages(count, (options.seed, number)))
        for number, (split, count) in enumerate(counts.items())
    }


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The values of some columns of a CSV file, with their places.

    Raises:
        InputError: the file is missing, or not whole.
    """
    return read_table([path], columns, ",", is_quoted=True, remedy=FETCH_AGAIN)


READING_SETS = {
    "narrativeqa": ReadingSet(
        "NarrativeQA's summaries",
        _narrativeqa,
        {"--input": path_option("DIR", "with documents.csv, qaps.csv and third_party/wikipedia/summaries.csv")},
        {"has_free_answers": True},
        "Prepares NarrativeQA (Kočiský et al. 2018), questions on the summaries of stories. The place of an answer is "
        "the one with the best ROUGE-L against either answer.",
        ("--input narrativeqa --output work/narrativeqa/data",),
    ),
    "fairytale_qa": ReadingSet(
        "FairytaleQA",
        _fairytale_qa,
        {"--input": path_option("PATH", "data-by-train-split, or its archive")},
        {"has_free_answers": True},
        "Prepares FairytaleQA (Xu et al. 2022), questions on sections of fairytales. The place of an answer is the one "
        "with the best ROUGE-L against any of its answers.",
        ("--input FairytaleQAData/data-by-train-split --output work/fairytale_qa/data",),
    ),
    "squad": ReadingSet(
        "SQuAD 1.1",
        _squad,
        {"--train": path_option("FILE", "train-v1.1.json"), "--test": path_option("FILE", "dev-v1.1.json")},
        {"valid_share": 0.05},
        "Prepares SQuAD 1.1 (Rajpurkar et al. 2016). A twentieth of the training passages is held out for validation; "
        "the development set is the test set.",
        ("--train train-v1.1.json --test dev-v1.1.json --output work/squad/data",),
    ),
    "questions": ReadingSet(
        "passages with questions of your own",
        _questions,
        {
            "--train": path_option("FILE", "JSON lines with question, answers and passage"),
            "--valid": path_option("FILE", "else a tenth of the training passages is held out", required=False),
            "--test": path_option("FILE", "", required=False),
            "--free-answers": {
                "dest": "has_free_answers",
                "action": "store_true",
                "help": "answers may be in words that are not in the passage: the nearest place is taken",
            },
            "--tokenizer": {"choices": TOKENIZERS, "default": "treebank", "help": "default: treebank, for English"},
            "--language": {"default": "en", "help": "of the tokenizer; default: en"},
        },
        {"valid_share": 0.1},
        "Prepares passages with questions of your own: JSON lines such as "
        '{"question": "Who slept?", "answers": ["the dog"], "passage": "In the hut the dog slept."}.',
        ("--train train.jsonl --test test.jsonl --output work/mine/data",),
    ),
    "generated_passages": ReadingSet(
        "passages with questions, generated",
        _generated,
        {"--passages": {"type": int, "default": 2_000, "metavar": "N", "help": "for training; default: 2000"}},
        {},
        "Writes passages about people by rules, with four questions each, and prepares them: for a first try.",
        ("--output work/generated_passages/data",),
    ),
}
