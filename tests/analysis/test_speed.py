"""Speeds from the results.json of work folders, and the command."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from fairseq_plugins.analysis.speed import speeds
from fairseq_plugins.errors import InputError

from .commands import run

RESULTS = {
    "config": "configs/iwslt14_de_en/rnnsearch.yaml",
    "parameters": 24416424,
    "updates": 1000,
    "train_seconds": 250.5,
    "train_tokens_per_second": 2000.0,
    "device": "CPU, 1 thread",
    "decode_sentences_per_second": 50,
}


def work(folder: Path, **changes: object) -> Path:
    """A work folder with results; those changed to None are not there."""
    folder.mkdir(parents=True)
    results = {key: value for key, value in {**RESULTS, **changes}.items() if value is not None}
    (folder / "results.json").write_text(json.dumps(results))
    return folder


def test_ratios(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folders = [
        work(tmp_path / "rnnsearch"),
        work(tmp_path / "mc_rnn", train_tokens_per_second=1000, decode_sentences_per_second=75.0),
        work(tmp_path / "no_decoding", decode_sentences_per_second=None),
    ]
    first, second, third = speeds(folders)
    assert (first.name, first.train_ratio, first.decode_ratio) == ("rnnsearch", 1, 1)
    assert first.parameters == 24416424 and first.updates == 1000 and first.train_seconds == 250.5
    assert (second.train_ratio, second.decode_ratio) == (0.5, 1.5)
    assert (third.decode_sentences_per_second, third.decode_ratio, third.train_ratio) == (None, None, 1)
    # Nothing to compare with: no ratio.
    assert [row.decode_ratio for row in speeds(folders[::-1])] == [None, None, None]
    assert not caplog.records
    nothing = work(tmp_path / "nothing", train_tokens_per_second=0)
    assert speeds([nothing, folders[0]])[1].train_ratio is None


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [work(tmp_path / name) for name in ("a/x", "b/x", "b/y")]
    assert [row.name for row in speeds(folders[1:])] == ["x", "y"]
    assert [row.name for row in speeds(folders)] == ["a/x", "b/x", "b/y"]
    monkeypatch.chdir(folders[0])
    assert [row.name for row in speeds([Path("."), folders[2]])] == ["x", "y"]
    with pytest.raises(InputError, match="b/x: given twice; name every work folder once"):
        speeds([folders[1], folders[0], folders[1]])


def test_devices(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folders = [
        work(tmp_path / "a"),
        work(tmp_path / "b", device="1 x NVIDIA A100"),
        work(tmp_path / "c"),
        work(tmp_path / "d", device=None),
    ]
    with caplog.at_level(logging.WARNING):
        speeds(folders)
    assert [record.getMessage() for record in caplog.records] == [
        "the systems ran on different devices, so their speeds do not compare: a on CPU, 1 thread; b on 1 x NVIDIA A100"
    ]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [work(tmp_path / "a"), work(tmp_path / "b", parameters=None, decode_sentences_per_second=None)]
    for name in ("one", "two"):
        run("speed", *folders, "--output", tmp_path / "new" / name)
    written = tmp_path / "new"
    assert (written / "one.svg").read_bytes() == (written / "two.svg").read_bytes()
    systems = json.loads((written / "one.json").read_text())["systems"]
    assert [system["name"] for system in systems] == ["a", "b"]
    assert systems[1]["decode_sentences_per_second"] is None and systems[1]["train_tokens_per_second"] == 2000
    lines = capsys.readouterr().out.splitlines()[:3]
    assert lines[1].split() == "a 24,416,424 1,000 250.50 2,000.00 1.00 50 1.00 CPU, 1 thread".split()
    assert lines[2].split() == "b - 1,000 250.50 2,000.00 1.00 - - CPU, 1 thread".split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "bad/results.json: no such file; give the work folder of a training"),
        ("{", "bad/results.json: not JSON .*; delete it"),
        ("[]", "bad/results.json: not the results of an experiment; delete it"),
        ('{"parameters": 1}', "bad/results.json: neither train_tokens_per_second nor decode"),
        ('{"train_tokens_per_second": "fast"}', "train_tokens_per_second is 'fast', not a number"),
    ],
)
def test_bad_results(tmp_path: Path, text: str | None, message: str) -> None:
    (tmp_path / "bad").mkdir()
    if text is not None:
        (tmp_path / "bad" / "results.json").write_text(text)
    with pytest.raises(InputError, match=message):
        run("speed", work(tmp_path / "good"), tmp_path / "bad", "--output", tmp_path / "new" / "it")
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match="it/results.json: no such file"):
        speeds([tmp_path / "good" / "results.json" / "it"])
