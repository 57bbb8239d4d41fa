"""IWSLT'14 German-English from an archive in the official form, which the tests make themselves."""

from __future__ import annotations

import hashlib
import http.server
import io
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairseq_plugins.corpora import iwslt14
from fairseq_plugins.corpora.iwslt14 import TEST_SETS, download, extract, test_segments, training_lines, write_raw_text
from fairseq_plugins.corpora.lines import read_aligned, side_files
from fairseq_plugins.corpora.pairs import PairsPreparation, PairsRun
from fairseq_plugins.corpora.tokenizers import Tokenizer
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines

test_segments.__test__ = False  # not a test, whatever its name begins with
TALKS = 3
LINES = 40


def train_tags(language: str) -> str:
    """Three talks; every seventh line is cleaned away for its length or ratio."""
    text = ""
    for talk in range(TALKS):
        text += f"<url>http://www.example.org/talks/lang/{language}/{talk}.html</url>\n"
        text += f"<keywords>talks, <b>, {language}</keywords>\n<speaker>Some One</speaker>\n<talkid>{talk}</talkid>\n"
        text += f"<title>Some One: {'Titel' if language == 'de' else 'Title'} {talk}</title>\n"
        text += f"<description>TED talk: R&amp;D & <em> {talk}.</description>\n"
        for line in range(LINES):
            words = 200 if line % 14 == 6 else 9 if line % 7 == 6 and language == "de" else 4
            word = f"{'Wort' if language == 'de' else 'word'}{line}"
            text += f" {' '.join([word] * words)}, {talk}!\n"
        text += '<reviewer href="http://www.example.org/1">A B</reviewer>\n'
        text += '<translator href="http://www.example.org/2">C D</translator>\n'
    return text


def xml(name: str, language: str) -> str:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<mteval>
<{"srcset" if language == "de" else "refset"} setid="iwslt2014-{name}" srclang="german">
<doc docid="1" genre="lectures">
<url>http://www.example.org</url>
<description>not <em>a</em> segment</description>
<title>no segment</title>
<seg id="1"> {name} {language}: It’s R&amp;D, "so to speak". </seg>
<seg id="2"> Second
 line of {name}. </seg>
</doc>
<doc docid="2" genre="lectures">
<seg id="1">They live in the U.S.</seg>
</doc>
</{"srcset" if language == "de" else "refset"}>
</mteval>
"""


def official_files() -> dict[str, str]:
    files = {"README": "IWSLT 2014 evaluation campaign"}
    for language in ("de", "en"):
        files[f"train.tags.de-en.{language}"] = train_tags(language)
        files |= {f"IWSLT14.{name}.de-en.{language}.xml": xml(name, language) for name in TEST_SETS}
    return files


def pack(path: Path, files: dict[str, str], folder: str = "de-en/") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(folder + name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "official"
    folder.mkdir()
    for name, text in official_files().items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return pack(tmp_path / "de-en.tgz", official_files())


@pytest.fixture
def main(no_binarising: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Runs the command line; fairseq-preprocess is left out."""

    def run(*arguments: object) -> None:
        options = ["--output", tmp_path / "out", "--bpe-size", 100, "--workers", 1, *arguments]
        iwslt14.main(list(map(str, options)))

    return run


# Reading the official files


def test_training_lines_are_text_titles_and_descriptions(folder: Path) -> None:
    lines = list(training_lines(folder / "train.tags.de-en.en"))
    assert len(lines) == TALKS * (LINES + 2)
    assert lines[:3] == ["Some One: Title 0", "TED talk: R&amp;D & <em> 0.", "word0 word0 word0 word0, 0!"]


def test_segments_are_one_line_each_with_apostrophes_and_xml_escapes(folder: Path) -> None:
    assert test_segments(folder / "IWSLT14.TED.tst2011.de-en.en.xml") == [
        ("1/1", 'TED.tst2011 en: It\'s R&amp;D, "so to speak".'),
        ("1/2", "Second line of TED.tst2011."),
        ("2/1", "They live in the U.S."),
    ]


def test_the_test_set_is_five_sets_in_this_order(folder: Path, tmp_path: Path) -> None:
    write_raw_text(folder, tmp_path)
    first = [line.split()[0] for line in read_lines(tmp_path / "test.de")][::3]
    assert first == ["TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"]
    assert len(list(read_aligned(side_files(tmp_path / "test", ("de", "en"))))) == 15


def test_real_test_set_gives_the_tokens_of_prepare_iwslt14() -> None:
    """All 6,750 lines, both sides, on the real text where it is there."""
    shared = Path(__file__).resolve().parents[3] / "shared" / "data" / "iwslt14_de_en"
    if not shared.is_dir():
        pytest.skip("needs the official test sets, which are not ours to distribute")
    for language in ("de", "en"):
        tokenizer = Tokenizer(language, "moses", lowercase=True)
        paths = [shared / "orig_xml" / f"IWSLT14.{name}.de-en.{language}.xml" for name in TEST_SETS]
        tokens = [tokenizer(text) for path in paths for _, text in test_segments(path)]
        assert tokens == list(read_lines(shared / f"test.tok.{language}"))


# The whole way


def test_an_archive_to_tokens(archive: Path, main: Callable[..., None], tmp_path: Path) -> None:
    main("--archive", archive, "--allow-partial", "--sha256", hashlib.sha256(archive.read_bytes()).hexdigest().upper())
    tokens = tmp_path / "out" / "tokens"
    first = "ted.dev2010 en : it &apos;s r &amp; amp ; d , &quot; so to speak &quot; ."
    assert next(read_lines(tokens / "test.en")) == first
    assert list(read_lines(tokens / "test.de"))[2] == "they live in the u.s ."
    clean = [line for line in range(LINES) if line % 7 != 6]
    per_talk = ["some one : title", "ted talk : r &amp; amp ; d &amp; &lt; em &gt;", *(f"word{n}" for n in clean)]
    expected = [(talk, start) for talk in range(TALKS) for start in per_talk]
    for split, kept in (
        ("valid", expected[22::23]),
        ("train", [pair for number, pair in enumerate(expected, start=1) if number % 23]),
    ):
        lines = list(read_lines(tokens / f"{split}.en"))
        assert len(lines) == len(kept)
        for line, (talk, start) in zip(lines, kept, strict=True):
            assert line.startswith(start + " ") and re.search(rf"{talk} [.!]$|{talk}$", line)
    preparation = PairsPreparation.load(tmp_path / "out")
    assert (preparation.ratio, preparation.max_length, preparation.valid_every) == (1.5, 175, 23)
    assert preparation.origin["archive"] == "de-en.tgz"
    # 200 words, and 9 words against 4
    assert preparation.splits["train"]["dropped"] == {"too short": 0, "too long": 3 * TALKS, "ratio": 2 * TALKS}


def test_an_archive_with_other_numbers_of_pairs(archive: Path, main: Callable[..., None], tmp_path: Path) -> None:
    counts = "train 107, not 160,239; valid 4, not 7,283; test 15, not 6,750"
    with pytest.raises(InputError, match=rf"\({counts}\): .*--allow-partial"):
        main("--archive", archive)
    assert not (tmp_path / "out").exists()


def test_other_limits(archive: Path, main: Callable[..., None], tmp_path: Path) -> None:
    main("--archive", archive, "--allow-partial", "--max-length", 7, "--valid-every", 10, "--bpe-size", 60)
    splits = PairsPreparation.load(tmp_path / "out").splits
    assert splits["train"]["dropped"]["too long"] > 3 * TALKS
    lines = [
        line.split() for split in ("train", "valid") for line in read_lines(tmp_path / "out" / "tokens" / f"{split}.en")
    ]
    assert max(map(len, lines)) == 7
    assert splits["valid"]["kept"] == len(lines) // 10
    # The numbers of pairs are known of the default limits alone.
    main("--archive", archive, "--max-length", 50, "--bpe-size", 60, "--output", tmp_path / "short")


def test_running_again_does_nothing(
    archive: Path, main: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main("--archive", archive, "--allow-partial")
    monkeypatch.setattr(PairsRun, "write", None)
    main("--archive", archive, "--allow-partial")
    assert "up to date" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"already prepared with different options \(bpe_size\)"):
        main("--archive", archive, "--allow-partial", "--bpe-size", 99)


def test_tokenised_files(main: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    text = {"de": "das sind wörter &quot; &amp; .\n", "en": "these are words &quot; &amp; .\n"}
    for language in ("de", "en"):
        for split, number in (("train", 30), ("valid", 4), ("test", 3)):
            (folder / f"{split}.tok.{language}").write_text(text[language] * number, encoding="utf-8")
    main("--tokenized", folder, "--bpe-size", 45)
    preparation = PairsPreparation.load(tmp_path / "out")
    assert (preparation.given, preparation.tokenizer, preparation.lowercase) == ("tokens", "moses", True)
    assert (tmp_path / "out" / "tokens" / "test.de").read_bytes() == (folder / "test.tok.de").read_bytes()
    assert "train has 30 pairs and the full set 160,239" in capsys.readouterr().out
    tokens = preparation.decode_target(preparation.encode_target('These are "words".'))
    assert tokens == "these are &quot; words &quot; ."
    assert preparation.detokenize_target(tokens) == 'these are "words".'


def test_separate_dictionaries(archive: Path, main: Callable[..., None], tmp_path: Path) -> None:
    main("--archive", archive, "--allow-partial", "--separate-dictionaries")
    preparation = PairsPreparation.load(tmp_path / "out")
    assert preparation.joint and preparation.separate_dictionaries
    main("--archive", archive, "--allow-partial", "--output", tmp_path / "joined")
    assert not PairsPreparation.load(tmp_path / "joined").separate_dictionaries


# Bad input


def test_a_missing_archive(main: Callable[..., None], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.tgz: no such file"):
        main("--archive", tmp_path / "absent.tgz")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[: len(content) // 2], lambda content: b"<html>sign in</html>", lambda content: b""],
)
def test_a_corrupt_archive(
    archive: Path, main: Callable[..., None], tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(InputError, match=r"de-en\.tgz: not a whole archive .*; fetch it again"):
        main("--archive", archive, "--allow-partial")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../outside", "/tmp/fairseq_plugins_outside"])
def test_a_member_outside_the_folder(archive: Path, main: Callable[..., None], tmp_path: Path, name: str) -> None:
    pack(archive, {"README": "", name: "evil"}, folder="")
    if name.startswith("/"):
        # The filter makes absolute names relative, so that nothing lands outside.
        extract(archive, tmp_path / "extracted")
        assert not Path(name).exists()
    else:
        with pytest.raises(InputError, match="is not safe to unpack: .*outside"):
            main("--archive", archive, "--allow-partial")
        assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "out").exists()


def test_a_link_outside_the_folder(archive: Path, main: Callable[..., None], tmp_path: Path) -> None:
    with tarfile.open(archive, "w:gz") as packed:
        link = tarfile.TarInfo("de-en/train.tags.de-en.de")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    with pytest.raises(InputError, match="is not safe to unpack"):
        main("--archive", archive, "--allow-partial")
    assert not (tmp_path / "out").exists()


def test_a_wrong_checksum(archive: Path, main: Callable[..., None], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"checksum {hashlib.sha256(archive.read_bytes()).hexdigest()}, not 00ff"):
        main("--archive", archive, "--allow-partial", "--sha256", "00ff")
    assert not (tmp_path / "out").exists()


def test_missing_members_are_named(folder: Path, tmp_path: Path) -> None:
    (folder / "train.tags.de-en.en").unlink()
    (folder / "IWSLT14.TEDX.dev2012.de-en.de.xml").unlink()
    with pytest.raises(InputError, match=r"train\.tags\.de-en\.en, IWSLT14\.TEDX\.dev2012\.de-en\.de\.xml missing"):
        write_raw_text(folder, tmp_path / "raw")


def test_training_sides_of_different_length(folder: Path, tmp_path: Path) -> None:
    with (folder / "train.tags.de-en.en").open("a") as stream:
        stream.write("one more\n")
    with pytest.raises(InputError, match=r"train\.tags\.de-en\.de has 126 and train\.tags\.de-en\.en has 127 lines"):
        write_raw_text(folder, tmp_path / "raw")


@pytest.mark.parametrize("segment", ['<seg id="1">They live in the U.S.</seg>\n', '<seg id="2"> Second'])
def test_test_sides_that_do_not_belong_together(folder: Path, tmp_path: Path, segment: str) -> None:
    path = folder / "IWSLT14.TED.tst2010.de-en.de.xml"
    path.write_text(path.read_text().replace(segment, segment.replace('id="2"', 'id="3"') if "2" in segment else ""))
    with pytest.raises(InputError, match=r"tst2010\.de-en\.de\.xml has [23] segments and .*en\.xml 3: .* beside"):
        write_raw_text(folder, tmp_path / "raw")


def test_a_file_that_is_no_xml(folder: Path, tmp_path: Path) -> None:
    path = folder / "IWSLT14.TED.tst2010.de-en.de.xml"
    path.write_text(path.read_text().replace("R&amp;D", "R&D"))
    with pytest.raises(InputError, match=r"tst2010\.de-en\.de\.xml, line 8: not XML"):
        write_raw_text(folder, tmp_path / "raw")


def test_a_training_line_that_is_not_utf8(folder: Path, tmp_path: Path) -> None:
    path = folder / "train.tags.de-en.de"
    path.write_bytes(path.read_bytes().replace(b"Wort0", "W\xf6rt0".encode("latin-1"), 1))
    with pytest.raises(InputError, match=r"train\.tags\.de-en\.de, line 7: not UTF-8"):
        write_raw_text(folder, tmp_path / "raw")


def test_options_that_exclude_each_other(main: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    for options in (
        ["--archive", "a", "--tokenized", "t"],
        ["--tokenized", "t", "--sha256", "00"],
        ["--tokenized", "t", "--max-length", "50"],
        ["--tokenized", "t", "--valid-every", "9"],
        ["--bpe", "no"],
    ):
        with pytest.raises(SystemExit) as exit_:
            main(*options)
        assert exit_.value.code == 2
    assert "invalid choice: 'no'" in capsys.readouterr().err


def test_help_names_every_option(main: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main("--help")
    text = capsys.readouterr().out
    for option in (
        "--archive",
        "--tokenized",
        "--sha256",
        "--allow-partial",
        "--max-length",
        "--bpe",
        "--bpe-size",
        "--output",
    ):
        assert option in text


def test_tokenised_files_that_are_missing(main: Callable[..., None], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="given: no such folder"):
        main("--tokenized", tmp_path / "given")
    (tmp_path / "given").mkdir()
    with pytest.raises(InputError, match=r"train\.tok\.de: no such file"):
        main("--tokenized", tmp_path / "given")
    assert not (tmp_path / "out").exists()


# Downloading


class Server(http.server.ThreadingHTTPServer):
    """Serves ``content`` under every path; ``ranges`` remembers what each request asked for."""

    daemon_threads = True

    def __init__(self, content: bytes, *, resumes: bool = True, stops_after: int | None = None, status: int = 200):
        self.content, self.resumes, self.stops_after, self.status = content, resumes, stops_after, status
        self.ranges: list[str | None] = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/de-en.tgz"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        content, status = self.server.content, self.server.status
        if wanted and self.server.resumes:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            status = 206 if start < len(content) else 416
            content = content[start:]
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: self.server.stops_after])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    monkeypatch.setenv("no_proxy", "*")
    servers: list[Server] = []

    def start(*arguments: object, **options: object) -> Server:
        servers.append(Server(*arguments, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


PART = "de-en.tgz.127.0.0.1.part"


def test_download_and_prepare(
    archive: Path,
    main: Callable[..., None],
    serve: Callable[..., Server],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    server = serve(archive.read_bytes())
    # The default is bound when the function is defined.
    monkeypatch.setattr(iwslt14.download, "__defaults__", ((server.address,),))
    main("--allow-partial")
    main("--allow-partial")
    assert server.ranges == [None]  # the second run fetched nothing
    assert (tmp_path / "out.download" / "de-en.tgz").read_bytes() == archive.read_bytes()
    assert PairsPreparation.load(tmp_path / "out").splits["test"]["kept"] == 15


def test_an_interrupted_download_goes_on(archive: Path, serve: Callable[..., Server], tmp_path: Path) -> None:
    content = archive.read_bytes()
    target = tmp_path / "download" / "de-en.tgz"
    with pytest.raises(InputError, match=r"the connection ended after 500 of [\d,]+ bytes; run again to go on"):
        download(target, [serve(content, stops_after=500).address])
    assert not target.exists()
    server = serve(content)
    download(target, [server.address])
    assert server.ranges == ["bytes=500-"]
    assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == ["de-en.tgz"]


def test_a_server_that_cannot_go_on_starts_afresh(archive: Path, serve: Callable[..., Server], tmp_path: Path) -> None:
    (tmp_path / PART).write_bytes(b"x" * 99)
    server = serve(archive.read_bytes(), resumes=False)
    download(tmp_path / "de-en.tgz", [server.address])
    assert server.ranges == ["bytes=99-"]
    assert (tmp_path / "de-en.tgz").read_bytes() == archive.read_bytes()


def test_a_part_longer_than_the_file_starts_afresh(archive: Path, serve: Callable[..., Server], tmp_path: Path) -> None:
    (tmp_path / PART).write_bytes(b"x" * 1_000_000)
    server = serve(archive.read_bytes())
    download(tmp_path / "de-en.tgz", [server.address])
    assert server.ranges == ["bytes=1000000-", None]
    assert (tmp_path / "de-en.tgz").read_bytes() == archive.read_bytes()


def test_the_next_mirror_is_tried(archive: Path, serve: Callable[..., Server], tmp_path: Path) -> None:
    mirrors = [serve(b"", status=404), serve(b"<html>sign in</html>"), serve(archive.read_bytes())]
    download(tmp_path / "new" / "de-en.tgz", [mirror.address for mirror in mirrors])
    assert [len(mirror.ranges) for mirror in mirrors] == [1, 1, 1]
    assert (tmp_path / "new" / "de-en.tgz").read_bytes() == archive.read_bytes()


def test_no_mirror_has_it(serve: Callable[..., Server], tmp_path: Path) -> None:
    gone, page = serve(b"", status=404).address, serve(b"<html>sign in</html>").address
    with pytest.raises(InputError, match="404.*not a whole gzip.d tar archive.*fetch it yourself and give --archive"):
        download(tmp_path / "new" / "de-en.tgz", [gone, page])
    assert not list(tmp_path.rglob("*.*"))
