"""Tables and JSON lines of a user's own, prepared as labelled texts.

    fairseq-plugins prepare labelled_texts --train train.tsv --test test.tsv --text sentence --label class \\
        --output data/prepared
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.labelled_texts import (
    Example,
    LabelledTextsPreparation,
    add_text_arguments,
    common_choices,
    prepare,
)
from fairseq_plugins.corpora.lines import read_sentences
from fairseq_plugins.corpora.tokenizers import TOKENIZERS, note_moses_rules
from fairseq_plugins.errors import InputError, nearest
from fairseq_plugins.languages import moses_language

VALID_SHARE = 0.1
"""Of the training set, where no validation set is given."""


def read_table(paths: Sequence[Path], columns: Sequence[str], separator: str | None) -> Iterator[tuple[str, list[str]]]:
    """The values of some columns, with their places, of tables or files of JSON lines.

    Args:
        paths: the files.
        columns: names, which the first line of a table has, or all numbers, from 1: then there is no such line.
        separator: between columns; None for JSON lines.

    Raises:
        InputError: a column is missing or there twice, a line has more columns than the first one, a line is no JSON,
            or a value in it no string and no number; the message names file and line.
    """
    by_number = separator is not None and all(map(str.isdecimal, columns))
    if by_number and not all(map(int, columns)):
        raise InputError(f"the columns {', '.join(columns)}: the first column is 1, not 0")
    for path in paths:
        places: list[int] | None = [int(name) - 1 for name in columns] if by_number else None
        for number, line in enumerate(read_sentences(path), 1):
            place = f"{path}, line {number}"
            if separator is None:
                yield place, [_json_value(place, line, name) for name in columns]
                continue
            cells = line.split(separator)
            if number == 1:
                width = len(cells)
            elif len(cells) > width:
                raise InputError(
                    f"{place}: the line has {len(cells)} columns, and the first line {width}; a text must have no tab"
                )
            if places is None:
                for name in columns:
                    if name not in cells:
                        hint = nearest(name, cells)
                        raise InputError(
                            f"{place}: there is no column '{name}'{hint}; the first line names the columns, or give "
                            f"their numbers"
                        )
                    if (count := cells.count(name)) > 1:
                        raise InputError(f"{place}: {count} columns are called '{name}'; give the columns' numbers")
                places = [cells.index(name) for name in columns]
                continue
            for name, index in zip(columns, places, strict=True):
                if index >= len(cells):
                    raise InputError(
                        f"{place}: the column '{name}' is missing: the line has {len(cells)} columns, not "
                        f"{index + 1} or more"
                    )
            yield place, [cells[index] for index in places]


def _json_value(place: str, line: str, name: str) -> str:
    try:
        values = json.loads(line)
    except ValueError as error:
        raise InputError(f"{place}: not JSON ({error})") from None
    if not isinstance(values, dict) or name not in values:
        hint = nearest(name, values) if isinstance(values, dict) else ""
        raise InputError(f"{place}: there is no '{name}'{hint}")
    value = values[name]
    if isinstance(value, bool):
        # As the file has it, not as Python does.
        return json.dumps(value)
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        kind = {type(None): "null", list: "a list", dict: "an object", float: "no number"}[type(value)]
        raise InputError(f"{place}: '{name}' is {kind}: write a string or a number, or leave the line out")
    text = str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        escape = f"\\u{ord(text[error.start]):04x}"
        raise InputError(
            f"{place}: '{name}' has half a character, {escape}, without its other half; remove it"
        ) from None
    return text


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare labelled_texts",
        "Prepares labelled texts of your own for fairseq: a table or JSON lines.",
        (
            "--train train.tsv --test test.tsv --text sentence --label class --output work/mine/data",
            "--train a.jsonl --format jsonl --text premise --text hypothesis --label gold --output work/pairs/data",
        ),
    )
    options.add_argument("--train", type=Path, required=True, metavar="FILE", help="training texts")
    options.add_argument("--valid", type=Path, metavar="FILE", help="else a share of the training texts is held out")
    options.add_argument("--test", type=Path, metavar="FILE")
    options.add_argument("--format", choices=("tsv", "jsonl"), default="tsv", help="default: tsv")
    options.add_argument(
        "--text",
        action="append",
        required=True,
        metavar="COLUMN",
        help="the column of the text, by its name in the first line or by its number; twice for pairs of texts",
    )
    options.add_argument("--label", required=True, metavar="COLUMN", help="the column of the label")
    options.add_argument(
        "--group", metavar="COLUMN", help="rank candidates: the question's number; --text QUESTION --text CANDIDATE"
    )
    options.add_argument("--tags", action="append", metavar="COLUMN", help="one tag for each token of each text")
    options.add_argument("--given", choices=("raw", "tokens"), default="raw", help="whether the text is tokenised")
    options.add_argument("--tokenizer", choices=TOKENIZERS, default="moses", help="default: moses")
    options.add_argument("--language", default="en", help="of the tokenizer; default: en")
    options.add_argument("--lowercase", action="store_true")
    options.add_argument("--valid-share", type=float, default=VALID_SHARE, help="default: %(default)s")
    add_text_arguments(options)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    separator = "\t" if options.format == "tsv" else None
    tags = options.tags or []
    if tags and len(tags) != len(options.text):
        raise InputError(f"{len(tags)} columns of tags for {len(options.text)} of texts; give one for each")
    if options.group and tags:
        raise InputError("--group with --tags: what ranks candidates reads no tags; leave one of them out")
    if options.group and len(options.text) != 2:
        raise InputError("--group ranks candidates: give --text twice, the question's column and the candidate's")
    columns = [*options.text, options.label, *tags, *([options.group] if options.group else [])]
    count = len(options.text)

    def read(paths: Sequence[Path]) -> Iterator[Example]:
        for place, values in read_table(paths, columns, separator):
            label, of_tags = values[count].strip(), tuple(values[count + 1 : count + 1 + len(tags)])
            # A question may be its own number.
            group = " ".join(values[-1].split()) if options.group else ""
            yield Example(tuple(values[:count]), label, place, group, of_tags)

    if options.tokenizer == "moses":
        note_moses_rules([options.language], "--language")
    inputs = {name: [path] for name in ("train", "valid", "test") if (path := getattr(options, name)) is not None}
    preparation = LabelledTextsPreparation(
        texts=options.text,
        given="tokens" if tags else options.given,
        tokenizer=options.tokenizer,
        language=moses_language(options.language),
        lowercase=options.lowercase,
        valid_share=None if options.valid else options.valid_share,
        is_ranking=options.group is not None,
        has_tags=bool(tags),
        label=options.label,
        group=options.group,
        tag_columns=tags,
        metric="ranking" if options.group else "accuracy",
        **common_choices(options),
    )
    prepare(preparation, inputs, options.output, read, options.workers, options.vectors)
