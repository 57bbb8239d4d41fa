"""IWSLT 2014 German-English, from the official archive to what fairseq-train reads: the papers' benchmark.

    fairseq-plugins prepare iwslt14_de_en --archive de-en.tgz --output work/iwslt14_de_en/data

Makes the same tokens as fairseq's examples/translation/prepare-iwslt14.sh: Moses tokens, training pairs of 1 to 175
tokens and a ratio of at most 1.5, lower case, every 23rd of them for validation, five TED sets together for testing.
BPE is learned on the training pairs alone. ``--max-length 50`` is the preparation of Ranzato et al. (2016), of about
153,000 training pairs, whose numbers MC-RNN's paper gives.
"""

from __future__ import annotations

import errno
import http.client
import itertools
import os
import re
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import xml.sax.saxutils
import zlib
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path

from lxml import etree
from tqdm import tqdm

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.archives import add_archive_arguments, unpack
from fairseq_plugins.corpora.lines import side_files
from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.corpora.pipeline import add_run_arguments, note_other_sizes
from fairseq_plugins.corpora.subwords import add_bpe_arguments, check_bpe_arguments
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import atomic_file, read_lines, refuse_colon, sha256

LANGUAGES = ("de", "en")
ARCHIVE = "de-en.tgz"
MIRRORS = (
    "https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",  # fairseq's and Joey NMT's copy
    "https://wit3.fbk.eu/archive/2014-01/texts/de/en/de-en.tgz",  # the original address; dead since 2020
)
TEST_SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
"""In the order in which fairseq's test set has them."""
PAIRS = {"train": 160_239, "valid": 7_283, "test": 6_750}
"""What the whole archive gives with the default limits."""
MAX_LENGTH, VALID_EVERY = 175, 23

UNPACKED_GIGABYTES = 1.0
"""Several times what the official archive holds."""

_METADATA_LINE = re.compile(r"<(url|talkid|keywords|speaker|reviewer|translator)\b")
_TEXT_TAG = re.compile(r"</?(title|description)>")
_TIMEOUT = 60  # seconds without a byte


def training_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a ``train.tags`` file that are text.

    It looks like XML and is not (it has no root, and tags that nobody closes), so it is read line by line. Titles and
    descriptions are text too.
    """
    for line in read_lines(path):
        if not _METADATA_LINE.search(line):
            yield _TEXT_TAG.sub("", line).strip()


def test_segments(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """The segments of a dev or test XML file, as (place in the file, text).

    The right single quotation mark becomes an apostrophe, and ``& < >`` stay XML's ``&amp; &lt; &gt;``, as they are
    in the training text too: so the tokens are those that everybody's results on this test set are computed on.

    Raises:
        InputError: the file is no XML; the message names the line.
    """
    try:
        root = etree.parse(os.fspath(path), etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
    except OSError:
        raise InputError(f"{path}: no such file") from None
    except etree.XMLSyntaxError as error:
        raise InputError(f"{path}, line {error.lineno}: not XML ({error.msg}); fetch the archive again") from None
    segments = []
    for document in root.iter("doc"):
        for segment in document.iter("seg"):
            # One line, whatever line breaks and tags are in it.
            text = " ".join("".join(segment.itertext()).split()).replace("\u2019", "'")
            segments.append((f"{document.get('docid')}/{segment.get('id')}", xml.sax.saxutils.escape(text)))
    return segments


def write_raw_text(folder: str | os.PathLike[str], output: str | os.PathLike[str]) -> None:
    """Reads the official files in a folder and writes their text as ``output/{train,test}.{de,en}``, one pair a line.

    Raises:
        InputError: a file is missing or damaged, or the two sides do not belong together.
    """
    folder, output = Path(folder), Path(output)
    training = [folder / f"train.tags.de-en.{language}" for language in LANGUAGES]
    tests = [[folder / f"IWSLT14.{name}.de-en.{language}.xml" for language in LANGUAGES] for name in TEST_SETS]
    if missing := [path.name for path in (*training, *itertools.chain(*tests)) if not path.is_file()]:
        raise InputError(f"not the IWSLT'14 German-English archive: {', '.join(missing)} missing")
    counts = [0, 0]
    for side, (path, language) in enumerate(zip(training, LANGUAGES, strict=True)):
        with atomic_file(output / f"train.{language}") as stream:
            for line in training_lines(path):
                stream.write(line + "\n")
                counts[side] += 1
    if counts[0] != counts[1]:
        names = " and ".join(f"{path.name} has {n:,}" for path, n in zip(training, counts, strict=True))
        raise InputError(f"{names} lines of text, which cannot be translations of each other; fetch the archive again")
    with atomic_file(output / "test.de") as source, atomic_file(output / "test.en") as target:
        for paths in tests:
            sides = [test_segments(path) for path in paths]
            for pair in itertools.zip_longest(*sides, fillvalue=("nothing", "")):
                if pair[0][0] != pair[1][0]:
                    raise InputError(
                        f"{paths[0].name} has {len(sides[0]):,} segments and {paths[1].name} {len(sides[1]):,}: "
                        f"{pair[0][0]} is beside {pair[1][0]}; fetch the archive again"
                    )
                source.write(pair[0][1] + "\n")
                target.write(pair[1][1] + "\n")


def extract(
    archive: str | os.PathLike[str], folder: str | os.PathLike[str], gigabytes: float = UNPACKED_GIGABYTES
) -> Path:
    """Unpacks the official archive and returns the folder within that holds its files.

    Raises:
        InputError, OSError: see :func:`.archives.unpack`.
    """
    unpack(archive, folder, gigabytes)
    inner = Path(folder) / "de-en"
    return inner if inner.is_dir() else Path(folder)


def download(target: str | os.PathLike[str], mirrors: Sequence[str] = MIRRORS) -> None:
    """Fetches the archive from the first mirror that has it; goes on where an interrupted download stopped.

    Raises:
        InputError: no mirror has it; the message says why for each.
        OSError: the disk is full.
    """
    target = Path(target)
    failures = []
    for mirror in mirrors:
        try:
            _download_from(mirror, target)
            return
        except (OSError, http.client.HTTPException, ValueError) as error:
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
                raise  # no other mirror helps
            failures.append(f"{mirror}: {error}")
            print(f"{mirror}: {error}", flush=True)
    raise InputError(f"no mirror gave {target.name} ({'; '.join(failures)}): fetch it yourself and give --archive FILE")


def _download_from(mirror: str, target: Path) -> None:
    # Each mirror has its own part: the rest of one file must not be appended to the beginning of another.
    part = target.with_name(f"{target.name}.{urllib.parse.urlsplit(mirror).hostname}.part")
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(mirror, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if start and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink()
            return _download_from(mirror, target)
        raise
    with response:
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            start = 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        part.parent.mkdir(parents=True, exist_ok=True)
        progress = tqdm(desc=target.name, initial=start, total=total, unit="B", unit_scale=True, disable=None)
        with open(part, "ab" if start else "wb") as stream, progress:
            while block := response.read(1 << 16):
                stream.write(block)
                progress.update(len(block))
    size = part.stat().st_size
    if total is not None and size < total:
        raise OSError(f"the connection ended after {size:,} of {total:,} bytes; run again to go on")
    try:
        with tarfile.open(part, "r:gz") as packed:
            packed.getmembers()  # reads all of it
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        part.unlink()
        raise ValueError(f"what was downloaded is not a whole gzip'd tar archive ({error})") from None
    os.replace(part, target)


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare iwslt14_de_en",
        "Prepares IWSLT'14 German-English for fairseq, as fairseq's prepare-iwslt14.sh does. Without "
        "--archive or --tokenized, the archive (20 MB) is fetched into DIR.download.",
        (
            "--output work/iwslt14_de_en/data",
            "--archive de-en.tgz --bpe subword-nmt --bpe-size 10000 --output work/iwslt14_10k/data",
            "--archive de-en.tgz --max-length 50 --output work/iwslt14_short/data",
            "--tokenized DIR --output work/iwslt14_de_en/data",
        ),
    )
    sources = options.add_mutually_exclusive_group()
    sources.add_argument("--archive", metavar="FILE", help=f"the official {ARCHIVE}")
    sources.add_argument(
        "--tokenized",
        metavar="DIR",
        help="a folder with {train,valid,test}.tok.{de,en}: what prepare-iwslt14.sh makes, before BPE",
    )
    options.add_argument("--sha256", metavar="HEX", help="the checksum that the archive must have")
    options.add_argument("--allow-partial", action="store_true", help="take an archive with other numbers of pairs")
    options.add_argument(
        "--max-length",
        type=int,
        default=MAX_LENGTH,
        metavar="N",
        help="training pairs with more tokens on a side are dropped (default: %(default)s, as fairseq's script; "
        "50 as Ranzato et al. 2016)",
    )
    options.add_argument(
        "--valid-every",
        type=int,
        default=VALID_EVERY,
        metavar="N",
        help="every Nth training pair is held out as the development set (default: %(default)s)",
    )
    options.add_argument(
        "--separate-dictionaries", action="store_true", help="a dictionary for each side, though the BPE is joint"
    )
    add_archive_arguments(options, UNPACKED_GIGABYTES)
    add_bpe_arguments(options, size=25_000)
    add_run_arguments(options)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    check_bpe_arguments(parser(), options)
    if options.tokenized and (options.sha256 or options.allow_partial):
        parser().error("--sha256 and --allow-partial are for an archive, not for --tokenized")
    has_own_limits = (options.max_length, options.valid_every) != (MAX_LENGTH, VALID_EVERY)
    if options.tokenized and has_own_limits:
        parser().error("--max-length and --valid-every are for an archive: --tokenized has been cleaned and divided")
    output = Path(options.output)
    refuse_colon(output, "--output")  # before anything is downloaded into it
    common = {
        "source_lang": LANGUAGES[0],
        "target_lang": LANGUAGES[1],
        "lowercase": True,
        "tokenizer": "moses",
        "bpe": options.bpe,
        "bpe_size": options.bpe_size,
        "separate_dictionaries": options.separate_dictionaries,
    }
    if options.tokenized:
        steps = PairsPreparation(given="tokens", **common)
        inputs = {split: _tokenized_files(Path(options.tokenized), split) for split in PAIRS}
        preparation = prepare(steps, inputs, output, options.workers)
        note_other_sizes(preparation, "pairs", PAIRS)
        return
    if options.archive:
        archive = Path(options.archive)
        if not archive.is_file():
            raise InputError(f"{archive}: no such file")
    else:
        archive = output.with_name(f"{output.name}.download") / ARCHIVE
        if not archive.is_file():
            download(archive)
    checksum = sha256(archive)
    if options.sha256 and checksum != options.sha256.lower():
        raise InputError(
            f"{archive} has the SHA-256 checksum {checksum}, not {options.sha256}: remove it and fetch it again"
        )
    with tempfile.TemporaryDirectory() as temporary:
        raw = Path(temporary) / "raw"
        write_raw_text(extract(archive, Path(temporary) / "archive", options.max_unpacked), raw)
        steps = PairsPreparation(
            min_length=1,
            max_length=options.max_length,
            ratio=1.5,
            valid_every=options.valid_every,
            origin={"archive": archive.name, "sha256": checksum, "test": "right single quotation marks → apostrophes"},
            **common,
        )
        inputs = {split: side_files(raw / split, LANGUAGES) for split in ("train", "test")}
        is_checked = not (options.allow_partial or has_own_limits)
        prepare(steps, inputs, output, options.workers, _check_complete if is_checked else None)


def _check_complete(kept: dict[str, int]) -> None:
    if wrong := [f"{split} {kept[split]:,}, not {full:,}" for split, full in PAIRS.items() if kept[split] != full]:
        raise InputError(
            f"the archive gives other numbers of pairs than the full one ({'; '.join(wrong)}): fetch it again, "
            f"or take it as it is with --allow-partial"
        )


def _tokenized_files(folder: Path, split: str) -> tuple[Path, Path]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    return side_files(folder / f"{split}.tok", LANGUAGES)
