"""Tables and JSON lines of a user's own, prepared as labelled texts.

    fairseq-plugins prepare labelled_texts --train train.tsv --test test.tsv --text sentence --label class \\
        --output data/prepared
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

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
from fairseq_plugins.errors import InputError, nearest_or_all
from fairseq_plugins.files import LONGEST_LINE, read_lines
from fairseq_plugins.languages import moses_language

VALID_SHARE = 0.1
"""Of the training set, where no validation set is given."""


_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def read_table(
    paths: Sequence[Path],
    columns: Sequence[str],
    separator: str | None,
    is_quoted: bool = False,
    remedy: str = "leave out --quoted",
) -> Iterator[tuple[str, list[str]]]:
    """The values of some columns, with their places, of tables or files of JSON lines.

    Args:
        paths: the files.
        columns: names, which the first line of a table has, or all numbers, from 1: then there is no such line.
        separator: between columns; None for JSON lines.
        is_quoted: whether a field may be between quotation marks, those inside it doubled, as CSV has it.
        remedy: what to do where such marks are missing, as at the end of a file that was cut short.

    Raises:
        InputError: a column is missing or there twice, a line has more columns than the first one, a line is no JSON,
            or a value in it no string and no number; the message names file and line.
    """
    by_number = separator is not None and all(map(str.isdecimal, columns))
    if by_number and not all(map(int, columns)):
        raise InputError(f"the columns {', '.join(columns)}: the first column is 1, not 0")
    for path in paths:
        places: list[int] | None = [int(name) - 1 for name in columns] if by_number else None
        if separator is None:
            for number, line in enumerate(read_sentences(path), 1):
                place = f"{path}, line {number}"
                yield place, [json_text(place, name, json_member(place, line, name)) for name in columns]
            continue
        width = 0
        for place, cells in _rows(path, separator, is_quoted, remedy):
            if not width:
                width = len(cells)
            elif len(cells) > width:
                hint = "a text must have no tab" if separator == "\t" else remedy
                raise InputError(f"{place}: the line has {len(cells)} columns, and the first line {width}; {hint}")
            if places is None:
                for name in columns:
                    if name not in cells:
                        hint = nearest_or_all(name, cells)
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


def _rows(path: Path, separator: str, is_quoted: bool, remedy: str) -> Iterator[tuple[str, list[str]]]:
    """The fields of each row, with its place."""
    if not is_quoted:
        for number, line in enumerate(read_sentences(path), 1):
            yield f"{path}, line {number}", line.split(separator)
        return
    csv.field_size_limit(LONGEST_LINE)  # 131,072 characters by itself; a passage may be longer
    # Between quotation marks a carriage return is a part of the text.
    rows = csv.reader((line + "\n" for line in read_lines(path)), delimiter=separator, strict=True)
    try:
        for cells in rows:
            if cells:  # a blank line is no row
                yield f"{path}, line {rows.line_num}", cells
    except csv.Error as error:
        raise InputError(f"{path}, line {rows.line_num}: not quoted as CSV is ({error}); {remedy}") from None


def warn_of_quotes(rows: Iterable[tuple[str, list[str]]]) -> Iterator[tuple[str, list[str]]]:
    """The same rows. Where fields look quoted as CSV's are, a warning says so after the last one."""
    count, first = 0, ""
    for place, values in rows:
        quoted = list(filter(None, map(_QUOTED.fullmatch, values)))
        # A text may be a quotation; inside of it nothing is doubled, and the label beside it is none.
        if len(quoted) == len(values) or any('""' in match[1] for match in quoted):
            count += 1
            first = first or place
        yield place, values
    if count:
        print(
            f"warning: {first}: a field between quotation marks, as in CSV ({count:,} rows in all have some), and the "
            f"marks are taken for text; --quoted takes them off"
        )


def json_member(place: str, line: str, name: str) -> Any:
    """What a line of JSON has under a name.

    Raises:
        InputError: the line is no JSON, or there is no such name; the message begins with ``place``.
    """
    try:
        values = json.loads(line)
    except ValueError as error:
        raise InputError(f"{place}: not JSON ({error})") from None
    if not isinstance(values, dict) or name not in values:
        hint = nearest_or_all(name, values) if isinstance(values, dict) else ""
        raise InputError(f"{place}: there is no '{name}'{hint}")
    return values[name]


def json_text(place: str, name: str, value: Any) -> str:
    """A string or a number of JSON, which stands under a name, as text.

    Raises:
        InputError: it is something else, has half a character or a NUL; the message begins with ``place``.
    """
    if isinstance(value, bool):
        # As the file has it, not as Python does.
        return json.dumps(value)
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        kind = {type(None): "null", list: "a list", dict: "an object", float: "no number"}[type(value)]
        raise InputError(f"{place}: '{name}' is {kind}: write a string or a number, or leave the line out")
    text = str(value)
    if "\0" in text:
        raise InputError(f"{place}: '{name}' has a NUL character, which no text has; leave the line out")
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
        "--quoted", action="store_true", help='fields of the table may be quoted as in CSV: "He said ""yes"""'
    )
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
    if options.quoted and separator is None:
        raise InputError("--quoted is for tables, and JSON lines have their own quotation marks; leave it out")
    if tags and len(tags) != len(options.text):
        raise InputError(f"{len(tags)} columns of tags for {len(options.text)} of texts; give one for each")
    if options.group and tags:
        raise InputError("--group with --tags: what ranks candidates reads no tags; leave one of them out")
    if options.group and len(options.text) != 2:
        raise InputError("--group ranks candidates: give --text twice, the question's column and the candidate's")
    columns = [*options.text, options.label, *tags, *([options.group] if options.group else [])]
    count = len(options.text)

    def read(paths: Sequence[Path]) -> Iterator[Example]:
        rows = read_table(paths, columns, separator, options.quoted)
        for place, values in rows if options.quoted or separator is None else warn_of_quotes(rows):
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
        normalization=["nfc"],
        valid_share=None if options.valid else options.valid_share,
        is_ranking=options.group is not None,
        has_tags=bool(tags),
        label=options.label,
        group=options.group,
        tag_columns=tags,
        is_quoted=options.quoted,
        metric="ranking" if options.group else "accuracy",
        **common_choices(options),
    )
    prepare(preparation, inputs, options.output, read, options.workers, options.vectors)
