"""Any text at all: it is prepared, line by line, or refused in a sentence."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairseq_plugins.corpora.lines import read_aligned
from fairseq_plugins.corpora.pairs import PairsPreparation, PairsRun
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines
from tests.corpora.conftest import no_binarising as no_binarising  # noqa: PLC0414 - a fixture

line_ends = st.sampled_from(["\n", "\r\n", "\r", "\u2028", "\x85", "\x0b", ""])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
lines = st.lists(st.tuples(texts, line_ends), max_size=12)
contents = lines.map(lambda parts: "".join(text + end for text, end in parts).encode())


@settings(max_examples=60)
@given(contents, contents)
@example(b"", b"a\n")
@example(b"\xff\xfea\0", b"a\n")
@example(b"a\rb\r", b"a\rb\r")
@example(b"a" * 10_000 + b"\n", b"a\n")
@example(b"a\n" * 10_000, b"a\n" * 10_000)
@example(b"a\n" * 10_000, b"a\n" * 9_999)
def test_files_are_read_line_by_line_or_refused(source: bytes, target: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "a.de", Path(folder) / "a.en"]
        for path, content in zip(paths, (source, target), strict=True):
            path.write_bytes(content)
        try:
            pairs = list(read_aligned(paths))
        except InputError as error:
            assert folder in str(error) and "\n" not in str(error).replace("'\\n'", "")
            return
        for path, side, content in zip(paths, zip(*pairs, strict=True), (source, target), strict=True):
            assert list(side) == list(read_lines(path))
            assert len(side) == content.count(b"\n") + (not content.endswith(b"\n"))
            assert not any("\n" in line or "\0" in line for line in side)


@settings(max_examples=40)
@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_refused(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        try:
            lines = list(read_lines(file.name))
        except InputError as error:
            assert file.name in str(error)
            return
        assert "\n".join(lines).encode().count(b"\n") == max(0, len(lines) - 1)
        content.decode()


@pytest.mark.parametrize("bpe", ["none", "subword-nmt"])
@settings(max_examples=15)
@given(parts=st.lists(st.tuples(texts, texts), min_size=1, max_size=12))
def test_any_pairs_are_prepared_or_refused(bpe: str, parts: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(PairsRun, "_write_bin", _no_bin)
        paths = (Path(folder) / "a.de", Path(folder) / "a.en")
        for side, path in enumerate(paths):
            path.write_bytes("".join(pair[side].replace("\n", " ") + "\n" for pair in parts).encode())
        steps = PairsPreparation("de", "en", tokenizer="moses", lowercase=True, bpe=bpe, bpe_size=5)
        output = Path(folder) / "out"
        try:
            prepared = PairsRun(steps, {"train": paths, "valid": paths}, output).prepare()
        except InputError:
            assert not output.exists()
            return
        assert prepared.splits["valid"]["kept"] == len(parts)
        for name in ("raw", "tokens", "bpe"):
            for split in ("train", "valid"):
                sides = [(output / name / f"{split}.{language}").read_bytes() for language in ("de", "en")]
                assert sides[0].count(b"\n") == sides[1].count(b"\n") == prepared.splits[split]["kept"]


def _no_bin(run: PairsRun, folder: Path, *_: object) -> str:
    for language in run.languages:
        path = folder / "bin" / f"dict.{language}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("word 1\n")
    return "none"
