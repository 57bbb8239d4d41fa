"""Passages with questions and answers, from a data set's form to fairseq's binary form.

``reading_data_sets`` reads the forms. An answer becomes a place in its passage, its first word and its last: what an
extractive model learns. Where an answer is in free words, that is the place with the best ROUGE-L against any of the
answers (the papers leave it open). The output folder holds

    raw/{train,valid,test}.passage     the passages, one a line
    raw/{train,valid,test}.question    the questions, one a line, as the next two
    raw/{train,valid,test}.answers     a JSON list of all answers
    tokens/{train,valid,test}.{passage,question}    tokenised, lower-cased: whatever was asked for
    dictionary/text.txt                what fairseq numbers
    bin/{passage,question}/            fairseq-preprocess's output
    bin/span/{train,valid,test}.txt    of each question its passage and the answer's first and last word, from 0; -1 for
                                       none
    preparation.json                   every step applied, and the scores of these places: no model reaches more
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairseq_plugins.corpora.dictionary import word_entries
from fairseq_plugins.corpora.labelled_texts import drawn, split_prefixes
from fairseq_plugins.corpora.lines import map_lines, text_writer
from fairseq_plugins.corpora.pipeline import Run
from fairseq_plugins.corpora.preparation import Preparation
from fairseq_plugins.corpora.tokenizers import Tokenizer
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines
from fairseq_plugins.scoring.metrics import Outputs, References, metric_named
from fairseq_plugins.scoring.rouge_l import f_measure

TOKENIZERS = ("treebank", "moses")
METRICS = ("answers", "squad")
"""What the places of answers are scored by at the end."""
_PLACES = ".places"


class Question(NamedTuple):
    """A question on a passage."""

    text: str
    answers: tuple[str, ...]
    place: str
    """``FILE, line N``"""
    start: int | None = None
    """The first character of the first answer in the passage; None where nobody says."""


class Passage(NamedTuple):
    """A text with questions."""

    text: str
    questions: tuple[Question, ...]


class Word(NamedTuple):
    """A word of a text: as the model reads it, and from which character of the text to which."""

    text: str
    start: int
    stop: int


class Span(NamedTuple):
    """The first and the last word of an answer, and how near it comes: ROUGE-L between 0 and 1."""

    first: int
    last: int
    score: float

    @property
    def is_there(self) -> bool:
        """Whether the answer has a place at all."""
        return self.first >= 0


NO_SPAN = Span(-1, -1, 0.0)
_UNSEEN = r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f]*"
"""Characters that a tokenizer may take out."""


@dataclasses.dataclass
class ReadingPreparation(Preparation):
    """What was done to passages, questions and answers."""

    kind = "reading_comprehension"
    title = "passages with questions"
    examples = "questions"

    data_set: str
    """What it was read as: a name of ``fairseq-plugins prepare``."""
    has_free_answers: bool = False
    """Whether answers may be in words that are not in the passage: the nearest place is taken."""
    language: str = "en"
    tokenizer: str = "treebank"
    lowercase: bool = True
    max_length: int | None = None
    """Passages are cut after so many words."""
    max_answer: int = 30
    """Words of the longest place that is taken for an answer, and that a model may answer with."""
    dictionary_size: int | None = None
    min_count: int = 1
    vectors: str | None = None
    vectors_checksum: str | None = None
    valid_share: float | None = None
    """How much of the training passages was taken out for validation."""
    seed: int = 1
    """Of that."""
    metric: str = dataclasses.field(default="answers", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tokenizer not in TOKENIZERS:
            raise InputError(f"unknown tokenizer {self.tokenizer!r}: choose one of {', '.join(TOKENIZERS)}")
        self.check_counts("max_length", "max_answer", "dictionary_size", "min_count")
        if self.valid_share is not None and not 0 < self.valid_share < 1:
            raise InputError(f"valid-share is {self.valid_share}: it must be between 0 and 1")

    def fairseq_arguments(self, folder: str | os.PathLike[str]) -> list[str]:
        return [*super().fairseq_arguments(folder), "--task", self.kind, "--max-answer", str(self.max_answer)]

    def dictionaries(self) -> list[str]:
        return ["bin/passage/dict.txt", "bin/question/dict.txt"]

    @functools.cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self.language, self.tokenizer, escape=False)

    def words(self, text: str) -> list[Word]:
        """The words of a text (:func:`normalized`), uncut, with their places in it."""
        words, position = [], 0
        for token in self._tokenizer(text).split():
            # The Treebank has two marks for one.
            forms = (token, '"', "''") if token in ("``", "''") else (token,)
            places = [(start, start + len(form)) for form in forms if (start := text.find(form, position)) >= 0]
            if not places:
                # Moses takes out control characters, and spaces beside joiners.
                spaced = re.compile(_UNSEEN.join(map(re.escape, token))).search(text, position)
                if spaced is None:
                    raise InputError(f"the word {token!r} is not found again in {text[position : position + 40]!r}")
                places.append(spaced.span())
            start, position = min(places)
            words.append(Word(token.lower() if self.lowercase else token, start, position))
        return words

    def passage_words(self, text: str) -> list[Word]:
        """Those of a passage that the model reads."""
        return self.words(text)[: self.max_length]


def normalized(text: str) -> str:
    """A text in one line: each run of white space is one space, and letters with their accents are one character."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def nearest_span(
    passage: Sequence[str], answers: Sequence[Sequence[str]], longest: int, uncounted: Collection[str] = ()
) -> Span:
    """The place of at most ``longest`` words with the best ROUGE-L against one of the answers; the first of equal ones.

    It begins and ends with words of the answer: without others at its ends it is never further away.

    Args:
        passage, answers: words
        longest: words of a place
        uncounted: words that the score does not see

    Returns:
        :data:`NO_SPAN` where no answer has a word of the passage.
    """
    best = NO_SPAN
    counted = [0, *itertools.accumulate(word not in uncounted for word in passage)]
    for answer in ([word for word in one if word not in uncounted] for one in answers):
        masks: dict[str, int] = {}
        for index, word in enumerate(answer):
            masks[word] = masks.get(word, 0) | 1 << index
        ones = (1 << len(answer)) - 1
        places = [(place, masks[word]) for place, word in enumerate(passage) if word in masks]
        for number, (first, _) in enumerate(places):
            row = ones
            for last, mask in places[number:]:
                if last - first >= longest:
                    break
                length = counted[last + 1] - counted[first]
                # As in rouge_l.longest_common_subsequence, a word at a time.
                common = row & mask
                row = (row + common) | (row - common)
                matching = len(answer) - (row & ones).bit_count()
                score = f_measure(matching / length, matching / len(answer))
                if score > best.score:
                    best = Span(first, last, score)
    return best


class EncodedPassage(NamedTuple):
    """A passage as it is written, with the questions that are kept."""

    text: str
    words: list[str]
    questions: list[tuple[Question, list[str], Span, str]]
    """The question, its words, the answer's place, and the text there."""


@dataclasses.dataclass(frozen=True)
class _Encoding:
    """What is done to each passage; worker processes receive it."""

    steps: ReadingPreparation

    def __call__(self, passage: Passage) -> EncodedPassage:
        text, place = normalized(passage.text), passage.questions[0].place
        whole = self._words(place, text)
        words = whole[: self.steps.max_length]
        if not words:
            raise InputError(f"{place}: the passage is empty; write it or leave the question out")
        tokens = [word.text for word in words]
        questions = []
        for question in passage.questions:
            of_question = [word.text for word in self._words(question.place, normalized(question.text))]
            if not of_question:
                raise InputError(f"{question.place}: the question is empty; write it or leave it out")
            if question.start is None:
                span = self._span(text, words, whole, question)
            else:
                span = self._published_span(passage.text, words, question)
            answer = text[words[span.first].start : words[span.last].stop] if span.is_there else ""
            questions.append((question, of_question, span, answer))
        return EncodedPassage(text, tokens, questions)

    def _words(self, place: str, text: str) -> list[Word]:
        try:
            return self.steps.words(text)
        except InputError as error:
            raise InputError(f"{place}: {error}; leave it out") from None

    def _span(self, text: str, words: Sequence[Word], whole: Sequence[Word], question: Question) -> Span:
        shown = [normalized(answer) for answer in question.answers]
        answers = [[word.text for word in self._words(question.place, answer)] for answer in shown]
        if not any(answers):
            raise InputError(f"{question.place}: the question has no answer; write one or leave it out")
        # Not at the head of the file: what translates with an exported model has no sacrebleu.
        from fairseq_plugins.scoring.answers import PUNCTUATION

        uncounted = PUNCTUATION if self.steps.has_free_answers else ()
        span = nearest_span([word.text for word in words], answers, self.steps.max_answer, uncounted)
        if span.score < 1:
            # "Wall St." alone ends a sentence, and its stop is a word; in a sentence it is none.
            literal = self._literal_span(text, words, shown, self.steps.max_answer)
            span = literal if literal.is_there else span
        if span.score == 1 or self.steps.has_free_answers:
            return span
        # It may be behind what is read of the passage, or too long for a place.
        nearest = nearest_span([word.text for word in whole], answers, len(whole))
        if nearest.score < 1 and not self._literal_span(text, whole, shown, len(whole)).is_there:
            raise InputError(
                f"{question.place}: the passage does not hold the answer {question.answers[0]!r}; write it as the "
                f"passage does, or give --free-answers, by which the nearest place is taken"
            )
        return NO_SPAN

    def _literal_span(self, text: str, words: Sequence[Word], answers: Sequence[str], longest: int) -> Span:
        """The first place that has an answer character by character, from the beginning of a word to the end of one."""
        starts = {word.start: number for number, word in enumerate(words)}
        stops = {word.stop: number for number, word in enumerate(words)}
        for answer in filter(None, answers):
            for match in re.finditer(re.escape(answer), text, re.IGNORECASE if self.steps.lowercase else 0):
                first, last = starts.get(match.start()), stops.get(match.end())
                if first is not None and last is not None and last - first < longest:
                    return Span(first, last, 1.0)
        return NO_SPAN

    def _published_span(self, published: str, words: Sequence[Word], question: Question) -> Span:
        """The words that hold the characters that the data set names."""
        assert question.start is not None
        answer, start = question.answers[0], question.start
        if published[start : start + len(answer)] != answer or not answer.strip():
            raise InputError(
                f"{question.place}: the passage has {published[start : start + len(answer)]!r} at character {start}, "
                f"not the answer {answer!r}; fetch the file again"
            )
        stop = start + len(answer.rstrip())
        start += len(answer) - len(answer.lstrip())
        # Where they are in the passage as it is read; a letter in the place of the first one keeps the space before it.
        first_character, behind = len(normalized(published[:start] + "x")) - 1, len(normalized(published[:stop]))
        covered = [number for number, word in enumerate(words) if word.start < behind and word.stop > first_character]
        if not covered or words[covered[-1]].stop < behind:
            return NO_SPAN  # behind what is read of the passage
        return Span(covered[0], covered[-1], 1.0)


class ReadingRun(Run[ReadingPreparation]):
    """One run of a preparation of passages with questions, which come as :func:`write_passages` writes them."""

    folders = ("raw", "tokens", "dictionary", "bin")

    def __init__(
        self,
        preparation: ReadingPreparation,
        inputs: Mapping[str, Sequence[Path]],
        output: str | os.PathLike[str],
        workers: int = 1,
        vectors: Path | None = None,
    ) -> None:
        super().__init__(preparation, inputs, output, workers)
        self._vectors = vectors

    def write(self, folder: Path) -> dict[str, Any]:
        passages = {name: list(read_passages(path)) for name, [path] in self.inputs.items()}
        if "valid" not in passages and self.preparation.valid_share is not None:
            passages["train"], passages["valid"] = self._held_out(passages["train"])
        for name in "raw", "tokens", "dictionary", "bin", "bin/span":
            (folder / name).mkdir()
        splits = {
            name: {**self.facts.get(name, {}), **self._write_split(name, passages[name], folder)}
            for name in ("train", "valid", "test")
            if name in passages
        }
        size = self._write_dictionary(folder, list(splits))
        return {
            "splits": splits,
            "dictionary_sizes": {"text": size},
            "commands": [self._binarize(folder, column, list(splits)) for column in ("passage", "question")],
        }

    def _held_out(self, passages: list[Passage]) -> tuple[list[Passage], list[Passage]]:
        """Training and validation, both in the order of the file."""
        count = max(1, round(len(passages) * (self.preparation.valid_share or 0)))
        chosen = {*drawn(count, len(passages), self.preparation.seed, "passages")}
        parts: tuple[list[Passage], list[Passage]] = [], []
        for number, passage in enumerate(passages):
            parts[number in chosen].append(passage)
        return parts

    def _write_split(self, name: str, passages: Sequence[Passage], folder: Path) -> dict[str, Any]:
        """The lines of a split; returns what is known of it."""
        counts = {"read": sum(len(passage.questions) for passage in passages), "kept": 0, "passages": 0}
        answers: list[tuple[str, ...]] = []
        spans: list[str] = []
        lines: dict[str, list[str]] = {"passage": [], "question": [], "answers": []}
        tokens: dict[str, list[str]] = {"passage": [], "question": []}
        places = []
        encoded = map_lines(_Encoding(self.preparation), passages, self.workers, name, "passages")
        for _, passage in encoded:
            # Nothing can be learned of an answer that has no place; a held-out question is asked all the same.
            kept = [one for one in passage.questions if name != "train" or one[2].is_there]
            if not kept:
                continue
            for question, words, span, text in kept:
                lines["question"].append(normalized(question.text))
                lines["answers"].append(json.dumps(question.answers, ensure_ascii=False))
                tokens["question"].append(" ".join(words))
                places.append(f"{counts['passages']} {span.first} {span.last}")
                answers.append(question.answers)
                spans.append(text)
            lines["passage"].append(passage.text)
            tokens["passage"].append(" ".join(passage.words))
            counts["passages"] += 1
        counts["kept"] = len(answers)
        if not answers:
            raise InputError(f"{self._named(name)}: nothing to take as {name}: no answer has a place in its passage")
        for part, columns in ("raw", lines), ("tokens", tokens):
            for column, of_column in columns.items():
                _write(folder / part / f"{name}.{column}", of_column)
        _write(folder / "bin" / "span" / f"{name}.txt", places)
        return {**counts, "oracle": oracle_scores(spans, answers)}

    def _named(self, name: str) -> str:
        return ", ".join(str(path) for path in self.inputs.get(name, self.inputs["train"]))

    def _write_dictionary(self, folder: Path, splits: Sequence[str]) -> int:
        files = {
            name: [folder / "tokens" / f"{name}.{column}" for column in ("passage", "question")] for name in splits
        }
        held_out = [path for name in splits if name != "train" for path in files[name]]
        steps = self.preparation
        entries = word_entries(files["train"], held_out, steps.min_count, steps.dictionary_size, self._vectors)
        _write(folder / "dictionary" / "text.txt", (f"{word} {count}" for word, count in entries))
        return len(entries)

    def _binarize(self, folder: Path, column: str, splits: Sequence[str]) -> str:
        """``bin/COLUMN``; returns the command."""
        arguments = ["--only-source", "--srcdict", "dictionary/text.txt"]
        for option, names in split_prefixes(splits).items():
            arguments += [option, ",".join(f"tokens/{name}.{column}" for name in names)]
        return self.fairseq_preprocess([*arguments, "--padding-factor", "1"], folder, f"bin/{column}")


def references_of(answers: Sequence[Sequence[str]]) -> References:
    """All answers of each question as a metric wants them: where one has fewer than others, its first one again."""
    most = max(map(len, answers), default=1)
    lists = [[one[number] if number < len(one) else one[0] for one in answers] for number in range(most)]
    return References(lists, lists, language="en")


def oracle_scores(spans: Sequence[str], answers: Sequence[Sequence[str]]) -> dict[str, float]:
    """What a model would have that finds every place: the best that a place in the passage can reach."""
    outputs, references = Outputs(spans, spans), references_of(answers)
    scores: dict[str, float] = {}
    for metric in map(metric_named, METRICS):
        values = metric.scores(outputs, references)
        scores |= {column.key: values[column.key] for column in metric.columns}
    return scores


def oracle_line(scores: Mapping[str, float]) -> str:
    """These scores in a line."""
    columns = [column for metric in map(metric_named, METRICS) for column in metric.columns]
    return ", ".join(f"{column.label} {scores[column.key]:{column.form}}" for column in columns)


def write_passages(path: Path, passages: Iterable[Passage]) -> int:
    """Writes a JSON object for each passage; returns how many there are.

    Places go into a file of their own beside it: the same text is the same file, wherever it was read.
    """
    count = 0
    with text_writer(path) as stream, text_writer(path.with_suffix(_PLACES)) as place_stream:
        for passage in passages:
            questions = [{**question._asdict(), "place": None} for question in passage.questions]
            stream.write(json.dumps({"text": passage.text, "questions": questions}) + "\n")
            place_stream.write(json.dumps([question.place for question in passage.questions]) + "\n")
            count += 1
    return count


def read_passages(path: Path) -> Iterator[Passage]:
    """What :func:`write_passages` wrote."""
    for line, place_line in zip(read_lines(path), read_lines(path.with_suffix(_PLACES)), strict=True):
        content, places = json.loads(line), json.loads(place_line)
        questions = [
            Question(**{**one, "answers": tuple(one["answers"]), "place": place})
            for one, place in zip(content["questions"], places, strict=True)
        ]
        yield Passage(content["text"], tuple(questions))


def read_owners(data: Path, subset: str) -> list[int]:
    """Of each question of a prepared set the number of its passage."""
    return [int(line.split()[0]) for line in read_lines(data / "bin" / "span" / f"{subset}.txt")]


def read_references(path: Path) -> list[list[str]]:
    """``raw/SPLIT.answers``: all answers of each question."""
    return [json.loads(line) for line in read_lines(path)]


def _write(path: Path, lines: Iterable[str]) -> None:
    with text_writer(path) as stream:
        stream.writelines(line + "\n" for line in lines)
