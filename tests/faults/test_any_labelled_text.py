"""Any labelled or running text: what is prepared has a line for each example, and all else is refused in a sentence."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairseq_plugins import command
from fairseq_plugins.corpora.labelled_texts import LabelledTextsRun
from fairseq_plugins.corpora.running_text import RunningTextPreparation, RunningTextRun
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines

texts = st.text(max_size=12)
rows = st.lists(st.tuples(texts, st.sampled_from(["1", "0", "", "a b"]) | texts, texts), max_size=8)
KNOWN = [("fine", "1", "q"), ("so it is", "0", "q")]
SCALARS = texts | st.integers() | st.floats() | st.booleans() | st.none() | st.lists(texts, max_size=2)


def prepared(name: str, folder: Path, *arguments: str) -> Path | None:
    """The output of a command in this process; None where it refuses its input, and leaves nothing."""
    output = folder / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LabelledTextsRun, "_write_bin", lambda *_: [])
        try:
            command.run(["prepare", name, *arguments, "--output", str(output), "--workers", "1"])
        except InputError as error:
            assert "\n" not in str(error) and not output.exists()
            return None
    return output


def assert_aligned(output: Path, names: tuple[str, ...]) -> None:
    """Each example has a line in every file."""
    for split in "train", "test":
        counts = {name: len(list(read_lines(output / name.format(split)))) for name in names}
        assert len({*counts.values()}) == 1 and 0 not in counts.values(), counts


def table(given_rows: list[tuple[str, str, str]]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in [*KNOWN, *given_rows]).encode("utf-8", "surrogatepass")


@settings(max_examples=60)
@given(rows.map(table) | st.binary(max_size=60).map(lambda more: table([]) + more), st.booleans())
@example(b"fine\t1\tq\rso\t0\tq\r", False)
@example("fine\t1\tq\n".encode("utf-16"), False)
def test_any_table(content: bytes, ranks: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.tsv"
        path.write_bytes(content)
        options = ["--train", str(path), "--valid", str(path), "--test", str(path), "--text", "1", "--label", "2"]
        options += ["--text", "1", "--group", "3"] if ranks else []
        output = prepared("labelled_texts", Path(name), *options)
        if output is not None:
            groups = ("raw/{}.group",) if ranks else ()
            assert_aligned(output, ("raw/{}.input0", "tokens/{}.input0", "raw/{}.label", *groups))


@settings(max_examples=60)
@given(st.lists(st.dictionaries(st.sampled_from(["text", "label", "id"]), SCALARS), max_size=6), st.booleans())
@example([{"text": "fine \ud83d", "label": "1", "id": "q"}], True)
@example([{"text": "fine", "label": "1", "id": "q\n2"}], True)
def test_any_json_lines(records: list[dict[str, object]], ranks: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.jsonl"
        first = [dict(zip(("text", "label", "id"), row, strict=True)) for row in KNOWN]
        path.write_text("".join(json.dumps(record) + "\n" for record in [*first, *records]), encoding="utf-8")
        options = ["--train", str(path), "--valid", str(path), "--test", str(path), "--format", "jsonl"]
        options += ["--text", "text", "--label", "label", *(["--text", "text", "--group", "id"] if ranks else [])]
        output = prepared("labelled_texts", Path(name), *options)
        if output is not None:
            groups = ("raw/{}.group",) if ranks else ()
            assert_aligned(output, ("raw/{}.input0", "tokens/{}.input0", "raw/{}.label", *groups))


@settings(max_examples=60)
@given(st.binary(max_size=60))
@example(b"NUM:dist wie gro\xc3\x9f\nNUM:dist Andr\xe9\n")
def test_any_labelled_lines(more: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a"
        path.write_bytes(b"NUM:dist how far\nHUM:ind who\n" * 3 + more)
        output = prepared("trec", Path(name), "--train", str(path), "--test", str(path))
        if output is not None:
            assert_aligned(output, ("raw/{}.input0", "tokens/{}.input0", "raw/{}.label"))


@pytest.mark.parametrize("units", ["words", "characters"])
@settings(max_examples=40)
@given(content=st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=40))
@example(content=b"a b\rb c\r")
def test_any_running_text(units: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunningTextRun, "_write_bin", _without_binarising)
        path, output = Path(name) / "a.txt", Path(name) / "out"
        path.write_bytes(content)
        steps = RunningTextPreparation(units=units, keeps_spaces=units == "characters")
        try:
            record = RunningTextRun(steps, {"train": path, "valid": path}, output).prepare()
        except InputError as error:
            assert "\n" not in str(error).replace("'\\n'", "") and not output.exists()
            return
        lines = list(read_lines(output / "tokens" / "train.txt"))
        assert len(lines) == content.count(b"\n") + (not content.endswith(b"\n"))
        assert record.splits["train"]["tokens"] == sum(len(line.split()) + 1 for line in lines)


def _without_binarising(run: RunningTextRun, folder: Path) -> str:
    (folder / "bin").mkdir()
    (folder / "bin" / "dict.txt").write_text("word 1\n")
    return "none"
