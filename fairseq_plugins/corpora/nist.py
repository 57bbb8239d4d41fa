"""NIST Chinese-English, from the LDC's corpora and NIST's evaluation sets to what fairseq-train reads.

    fairseq-plugins prepare nist_zh_en --ldc LDC --nist EVALUATION --output work/nist_zh_en/data

What DPN-S2S was trained on (Section 4.1): 1.25 million pairs out of six LDC corpora, NIST 2003 for validation, 2004,
2005, 2006, 2008 and 2012 for testing with four references each, a BPE of 25,000 on either side. The corpora are under
licence and must be given. Chinese is normalised (to half-width, simplified characters) and cut into words
by jieba; English gets Moses tokens; both are lower-cased.
"""

from __future__ import annotations

import argparse
import codecs
import collections
import dataclasses
import gzip
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.lines import side_files
from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.corpora.pipeline import add_run_arguments
from fairseq_plugins.corpora.segments import Segment, are_test_sets, read_test_set, refuse_repeated, segments_of
from fairseq_plugins.corpora.subwords import add_bpe_arguments, check_bpe_arguments
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import atomic_file, refuse_pipe

LANGUAGES = ("zh", "en")
LDC_CORPORA = ("LDC2002E18", "LDC2003E07", "LDC2003E14", "LDC2004T07", "LDC2004T08", "LDC2005T06")
HANSARDS_ONLY = "LDC2004T07"
"""Of this corpus the paper takes the Hansards portion."""
VALID_YEAR = 2003
TEST_YEARS = (2004, 2005, 2006, 2008, 2012)
ENCODINGS = ("utf-8", "gb18030")
MAX_LENGTH = 250

_SIDE_NAMES = (
    frozenset({"zh", "ch", "chn", "chi", "cn", "chinese", "mandarin", "src", "source"}),
    frozenset({"en", "eng", "english", "trg", "tgt", "target", "translation"}),
)
_MARKUP_FILE = {".sgm", ".sgml", ".xml"}
_HEAD = 1 << 16
"""Characters in which a file's first tag is."""
_SEGMENT_TAG = re.compile(r"<(seg|s)\b", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)20(03|04|05|06|08|12)(?!\d)|(?:nist|mt)[^\d/]{0,6}(03|04|05|06|08|12)(?!\d)")
_CATALOGUE_NUMBER = re.compile(r"ldc\d{4}[a-z]\d+")


class Reader:
    """Reads text whose encoding is not known, and remembers which it was."""

    def __init__(self, encodings: Sequence[str] = ENCODINGS) -> None:
        if not encodings:
            raise InputError("--encoding names none: leave it out, or give some, such as utf-8,gb18030")
        for encoding in encodings:
            try:
                "".encode(encoding)
            except LookupError:
                raise InputError(f"--encoding: there is no encoding '{encoding}'") from None
        self.encodings = tuple(encodings)
        self.encoding_of: dict[Path, str] = {}

    def text(self, path: Path) -> str:
        """The text of a file (plain or ``.gz``) in the first encoding that it can be read in.

        Raises:
            InputError: it is missing, damaged or a pipe, or in none of the encodings.
        """
        refuse_pipe(path)
        try:
            content = path.read_bytes()
            if path.suffix == ".gz":
                content = gzip.decompress(content)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
        except (zlib.error, EOFError) as error:
            raise InputError(f"{path}: not a whole gzip file ({error})") from None
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and "utf-16" not in self.encodings:
            raise InputError(f"{path}: UTF-16 text; name its encoding with --encoding utf-16")
        for encoding in self.encodings:
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError as error:
                failed = content.count(b"\n", 0, error.start) + 1
                continue
            if "\0" in text:
                raise InputError(f"{path}: NUL bytes, which no text has; name its encoding with --encoding")
            self.encoding_of[path] = encoding
            return text.removeprefix("\ufeff")
        raise InputError(
            f"{path}, line {failed}: {'neither' if len(self.encodings) > 1 else 'not'} "
            f"{' nor '.join(self.encodings)}; name its encoding with --encoding"
        )

    def lines(self, path: Path) -> list[str]:
        """The lines of a text file; only ``\\n`` ends one."""
        return _lines(self.text(path))


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def read_segments(path: Path, reader: Reader) -> dict[str, list[Segment]]:
    """The segments of a NIST set by the system that its documents name; see :func:`.segments_of`."""
    return segments_of(path, reader.text(path))


@dataclasses.dataclass(frozen=True)
class EvaluationSet:
    """One year's sentences with their references.

    Attributes:
        source: the sentences.
        references: for each reference translator one line for each sentence.
    """

    source: list[str]
    references: list[list[str]]


def read_evaluation_set(source: Path, references: Sequence[Path], count: int, reader: Reader) -> EvaluationSet:
    """Reads a source set and its references, which may be in one file or in several.

    Files without markup are taken line by line, one file for each reference.

    Raises:
        InputError: there are not ``count`` references, or one of them lacks a document or a segment of the source, or
            has one that the source has not; the message names file and segment.
    """
    if not _is_markup(source, reader):
        lines = [reader.lines(path) for path in (source, *references)]
        for path, other in zip(references, lines[1:], strict=True):
            if len(other) != len(lines[0]):
                raise InputError(f"{path} has {len(other):,} lines and {source} has {len(lines[0]):,}")
        _check_count(source, [path.name for path in references], count)
        return EvaluationSet(lines[0], lines[1:])

    systems = read_segments(source, reader)
    if len(systems) > 1:
        raise InputError(f"{source}: the documents of {len(systems)} systems, but a source set was expected")
    (segments,) = systems.values()
    refuse_repeated(source, segments)
    keys = [(segment.document, segment.number) for segment in segments]
    translations: dict[str, tuple[Path, list[Segment]]] = {}
    for path in references:
        for system, translated in read_segments(path, reader).items():
            name = system or path.name
            if name in translations:
                raise InputError(f"{path}: the reference {name} is in {translations[name][0]} too")
            translations[name] = path, translated
    _check_count(source, list(translations), count)
    rows = []
    for name, (path, translated) in translations.items():
        refuse_repeated(path, translated, name)
        by_key = {(segment.document, segment.number): segment for segment in translated}
        for key in keys:
            if key not in by_key:
                missing = "document" if all(document != key[0] for document, _ in by_key) else f"segment {key[1]} of"
                where = f"{missing} {key[0]}" if missing == "document" else f"{missing} document {key[0]}"
                raise InputError(f"{path}: the reference {name} lacks {where}, which {source} has")
        if extra := [segment for key, segment in by_key.items() if key not in set(keys)]:
            raise InputError(
                f"{path}, line {extra[0].line}: segment {extra[0].number} of document {extra[0].document} is not in "
                f"{source}: they do not belong together"
            )
        rows.append([by_key[key].text for key in keys])
    return EvaluationSet([segment.text for segment in segments], rows)


def _check_count(source: Path, names: Sequence[str], count: int) -> None:
    if len(names) != count:
        raise InputError(
            f"{source}: {len(names)} references ({', '.join(names)}), but {count} were expected; give all of them, or "
            f"say --references {len(names)}"
        )


def find_evaluation_sets(folder: Path, reader: Reader) -> dict[int, tuple[Path, list[Path]]]:
    """Year → source file and reference files of the Chinese-English sets below a folder.

    Files say by themselves what they are: ``<srcset>`` or ``<refset>`` with their languages. The year is in the
    ``setid``, the file's name or a folder's.

    Raises:
        InputError: the folder is not there, or a year has several source sets; the message says how to name one.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    sources: dict[int, list[Path]] = {}
    references: dict[int, list[Path]] = {}
    for path in sorted(file for file in folder.rglob("*") if file.suffix.lower() in _MARKUP_FILE and file.is_file()):
        head = reader.text(path)[:_HEAD]
        tag = re.search(r"<(srcset|refset)\b([^>]*)>", head, re.IGNORECASE)
        if tag is None:
            continue
        attributes = dict(re.findall(r"(\w+)\s*=\s*[\"']?([^\"'\s>]+)", tag[2].lower()))
        if not attributes.get("srclang", "chinese").startswith(("ch", "zh", "man", "cmn")):
            continue
        if not attributes.get("trglang", "english").startswith("en"):
            continue
        parent = str(path.parent.relative_to(folder))
        year = _year_of(attributes.get("setid", "")) or _year_of(path.name) or _year_of(parent)
        if year is not None:
            (sources if tag[1].lower() == "srcset" else references).setdefault(year, []).append(path)
    sets = {}
    for year in sorted(sources.keys() & references.keys()):
        if len(sources[year]) > 1:
            names = ", ".join(map(str, sources[year]))
            raise InputError(f"{names}: several source sets of {year}; name one with --set {year}=SOURCE,REFERENCES")
        sets[year] = sources[year][0], references[year]
    return sets


def _year_of(name: str) -> int | None:
    if match := _YEAR.search(_CATALOGUE_NUMBER.sub("", name.lower())):
        return 2000 + int(match[1] or match[2])
    return None


def find_parallel_files(folder: Path) -> tuple[list[tuple[Path, Path]], int]:
    """The pairs of files below a folder that differ in nothing but the name of their language, and how many have no
    partner.

    ``chinese/XIN_001.sgm`` and ``english/XIN_001.sgm`` are a pair, ``data.zh`` and ``data.en``, ``1_c.src`` is not.
    """
    sides: tuple[dict[str, Path], dict[str, Path]] = ({}, {})
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        words = re.split(r"([^A-Za-z0-9]+)", str(path.relative_to(folder)))
        for side, names in zip(sides, _SIDE_NAMES, strict=True):
            if any(word.lower() in names for word in words):
                side["".join(word for word in words if word.lower() not in names)] = path
                break
    common = sides[0].keys() & sides[1].keys()
    pairs = [(sides[0][key], sides[1][key]) for key in sorted(common)]
    return pairs, len(sides[0]) + len(sides[1]) - 2 * len(pairs)


def read_parallel_files(paths: tuple[Path, Path], reader: Reader) -> tuple[list[str], list[str]] | None:
    """The lines or segments of both sides, or None where they do not belong together."""
    if not all(_is_markup(path, reader) for path in paths):
        source, target = (reader.lines(path) for path in paths)
        return (source, target) if len(source) == len(target) else None
    sides = []
    for path in paths:
        systems = read_segments(path, reader)
        sides.append([segment for segments in systems.values() for segment in segments])
    if [segment.number for segment in sides[0]] != [segment.number for segment in sides[1]]:
        return None
    return [segment.text for segment in sides[0]], [segment.text for segment in sides[1]]


def _is_markup(path: Path, reader: Reader) -> bool:
    return bool(_SEGMENT_TAG.search(reader.text(path)[:_HEAD]))


def ldc_pairs(folder: Path, reader: Reader) -> Iterator[tuple[str, str]]:
    """The sentence pairs of the corpora in a folder, which has them under their catalogue numbers; says what it found.

    Raises:
        InputError: none of them is there, or nothing in them could be paired.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    below = {path.name.upper(): path for path in sorted(folder.iterdir()) if path.is_dir()}
    total = 0
    for corpus in LDC_CORPORA:
        matches = [path for name, path in below.items() if name.startswith(corpus)]
        if not matches:
            print(f"{corpus}: missing (no folder of that name in {folder})", flush=True)
            continue
        pairs, unpaired = find_parallel_files(matches[0])
        if corpus == HANSARDS_ONLY:
            pairs = [pair for pair in pairs if "hansard" in str(pair[0].relative_to(matches[0])).lower()]
        count, differing = 0, []
        for paths in pairs:
            sides = read_parallel_files(paths, reader)
            if sides is None:
                differing.append(paths[0])
                continue
            for pair in zip(*sides, strict=True):
                count += 1
                yield pair
        total += count
        notes = [f"{unpaired:,} files without a partner"] if unpaired else []
        if differing:
            notes.append(f"{len(differing):,} pairs of files left out whose sides differ, the first is {differing[0]}")
        what = " (Hansards)" if corpus == HANSARDS_ONLY else ""
        print("; ".join([f"{corpus}{what}: {count:,} sentence pairs in {len(pairs):,} pairs of files", *notes]))
    if not total:
        raise InputError(
            f"{folder}: no sentence pairs found. Name the corpora's folders {', '.join(LDC_CORPORA)}, with files that "
            "differ only in the language's name (chinese/x.sgm, english/x.sgm), or give plain files with --train"
        )


def plain_pairs(prefix: str, reader: Reader) -> Iterator[tuple[str, str]]:
    """The line pairs of ``prefix.zh`` and ``prefix.en``; of SGML or XML the pairs of segments.

    Raises:
        InputError: a file is missing, they do not belong together, or they are markup of another kind.
    """
    paths = side_files(prefix, LANGUAGES)
    texts = [reader.text(path) for path in paths]
    if are_test_sets(paths, [text[:_HEAD] for text in texts]):
        pairs = [(source, target) for source, target in read_test_set(paths, texts)]
    else:
        source, target = map(_lines, texts)
        if len(source) != len(target):
            raise InputError(f"{paths[0]} has {len(source):,} lines and {paths[1]} has {len(target):,}")
        pairs = list(zip(source, target, strict=True))
    print(f"{prefix}: {len(pairs):,} pairs")
    yield from pairs


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with atomic_file(path) as stream:
        stream.writelines(" ".join(line.split()) + "\n" for line in lines)


def _write_training_text(pairs: Iterable[tuple[str, str]], folder: Path) -> None:
    paths = [folder / f"train.{language}" for language in LANGUAGES]
    with atomic_file(paths[0]) as source, atomic_file(paths[1]) as target:
        for pair in pairs:
            for stream, line in zip((source, target), pair, strict=True):
                stream.write(" ".join(line.split()) + "\n")


def _evaluation_files(arguments: argparse.Namespace, reader: Reader) -> dict[int, tuple[Path, list[Path]]]:
    files = find_evaluation_sets(Path(arguments.nist), reader) if arguments.nist else {}
    for value in arguments.set:
        year, equals, names = value.partition("=")
        paths = [Path(name) for name in names.split(",") if name]
        if not equals or not year.isdecimal() or len(paths) < 2:
            raise InputError(f"--set {value}: write --set YEAR=SOURCE,REFERENCE[,REFERENCE...]")
        if int(year) not in (VALID_YEAR, *TEST_YEARS):
            years = ", ".join(map(str, (VALID_YEAR, *TEST_YEARS)))
            raise InputError(f"--set {value}: the years are {years}")
        if missing := [path for path in paths if not path.exists()]:
            raise InputError(f"--set {value}: {missing[0]}: no such file")
        files[int(year)] = paths[0], paths[1:]
    for year in (VALID_YEAR, *TEST_YEARS):
        if year in files:
            print(f"NIST {year}: {files[year][0]} and {', '.join(map(str, files[year][1]))}")
        else:
            print(f"NIST {year}: missing")
    if VALID_YEAR not in files:
        raise InputError(f"NIST {VALID_YEAR}, the validation set, is missing: name it with --set {VALID_YEAR}=...")
    return files


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare nist_zh_en",
        "Prepares NIST Chinese-English for fairseq as DPN-S2S's paper does. The LDC's corpora and NIST's "
        "sets must be given; what is found and what is missing is listed.",
        (
            "--ldc LDC --nist EVALUATION --bpe subword-nmt --output work/nist_zh_en/data",
            "--train corpus --set 2003=mt03.src.sgm,mt03.ref.sgm --output work/nist_zh_en/data",
        ),
    )
    inputs = options.add_argument_group("what is given")
    inputs.add_argument("--ldc", metavar="DIR", help=f"a folder with the folders {', '.join(LDC_CORPORA)}")
    inputs.add_argument(
        "--train", default="", metavar="PREFIX[,PREFIX...]", help="files PREFIX.zh, PREFIX.en (or .gz, .sgm, .xml)"
    )
    inputs.add_argument("--nist", metavar="DIR", help="a folder with NIST's source and reference sets of all years")
    inputs.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="YEAR=SOURCE,REFERENCE[,...]",
        help="one year's files, SGML, XML or a sentence on each line; wins over --nist; may be repeated",
    )
    inputs.add_argument("--references", type=int, default=4, metavar="N", help="of each sentence; default: %(default)s")
    inputs.add_argument(
        "--encoding",
        default=",".join(ENCODINGS),
        metavar="NAME[,NAME...]",
        help="each file is read in the first that fits; default: %(default)s",
    )
    steps = options.add_argument_group("what is done to the text")
    steps.add_argument("--no-nfkc", action="store_true", help="leave full-width characters in Chinese as they are")
    steps.add_argument("--no-simplify", action="store_true", help="leave traditional Chinese characters as they are")
    steps.add_argument(
        "--segmenter", choices=("jieba", "none"), default="jieba", help="of Chinese; none: it is segmented already"
    )
    steps.add_argument(
        "--max-length", type=int, default=MAX_LENGTH, metavar="N", help="of training sentences; default: %(default)s"
    )
    add_bpe_arguments(options, size=25_000)
    add_run_arguments(options)
    return options


def _training_pairs(arguments: argparse.Namespace, reader: Reader) -> Iterator[tuple[str, str]]:
    if arguments.ldc:
        yield from ldc_pairs(Path(arguments.ldc), reader)
    for prefix in filter(None, arguments.train.split(",")):
        yield from plain_pairs(prefix, reader)


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    check_bpe_arguments(parser(), options)
    if not options.ldc and not options.train:
        parser().error("give training text: --ldc DIR, --train PREFIX or both")
    reader = Reader([name for name in options.encoding.split(",") if name])
    files = _evaluation_files(options, reader)
    splits: Mapping[int, str] = {VALID_YEAR: "valid"} | {
        year: f"test{number or ''}" for number, year in enumerate(year for year in TEST_YEARS if year in files)
    }
    normalization = [] if options.no_nfkc else ["nfkc"]
    normalization += [] if options.no_simplify else ["simplified"]
    steps = PairsPreparation(
        *LANGUAGES,
        lowercase=True,
        tokenizer="moses",
        source_tokenizer=options.segmenter,
        source_normalization=normalization,
        max_length=options.max_length,
        bpe=options.bpe,
        bpe_size=options.bpe_size,
        joint=False,
        origin={"encoding": options.encoding},
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        references, names = {}, {}
        for year, split in splits.items():
            evaluation = read_evaluation_set(*files[year], options.references, reader)
            _write_lines(folder / f"{split}.zh", evaluation.source)
            paths = [folder / f"{split}.en"]
            paths += [folder / f"{split}.ref{number}.en" for number in range(1, options.references)]
            for path, lines in zip(paths, evaluation.references, strict=True):
                _write_lines(path, lines)
            references[split], names[split] = paths[1:], f"nist{year % 100:02}"
        _write_training_text(_training_pairs(options, reader), folder)
        encodings = collections.Counter(reader.encoding_of.values())
        print("; ".join(f"{count:,} files in {name}" for name, count in encodings.items()), flush=True)
        inputs = {split: side_files(folder / split, LANGUAGES) for split in ("train", *splits.values())}
        prepare(steps, inputs, options.output, options.workers, references=references, names=names)
