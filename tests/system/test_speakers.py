"""Speakers, from recordings to predictions by the commands, on generated voices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_plugins.experiments import evaluate, predict, train
from fairseq_plugins.export import command as export
from fairseq_plugins.files import read_lines
from fairseq_plugins.report import command as report
from tests.commands import CHECKOUT, run_in_process, run_script

pytest.importorskip("soundfile")
pytest.importorskip("soxr")

SMALL = ["--batch-size", 16, "--num-workers", 0, "--validate-interval-updates", 30, "--save-interval-updates", 30]


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Recordings, a folder for each of four voices, and the prepared data."""
    from fairseq_plugins.corpora.waveforms import write_voices

    folder = tmp_path_factory.mktemp("voices")
    write_voices(folder / "recordings", 12, 2_000)
    options = ["--input", folder / "recordings", "--rate", 2000, "--window", 0.2, "--workers", 1]
    run_script("prepare_labelled_audio", *options, "--output", folder / "data")
    return folder / "recordings", folder / "data"


@pytest.mark.parametrize(
    ("model", "options"),
    [
        pytest.param(
            *("mfcc_gru", ["--log-mel", "8", "--hidden-size", "32", "--max-update", "90", "--lr", "5e-3"]),
            marks=pytest.mark.slow,
        ),
        ("dilated_gru", ["--layers", "2", "--hidden-size", "8", "--max-update", "3"]),
    ],
)
def test_from_recordings_to_voices(voices: tuple[Path, Path], tmp_path: Path, model: str, options: list[str]) -> None:
    recordings, data = voices
    place = [CHECKOUT / f"configs/vctk/{model}.yaml", "--work", tmp_path, "--data", data, "--gpus", 0]
    run_in_process(train.main, *place, *SMALL, *options)
    run_in_process(evaluate.main, *place)
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    predicted = [line.split("\t")[0] for line in list(read_lines(tmp_path / "generate/test.predicted.tsv"))[1:]]
    labels = list(read_lines(data / "raw" / "test.label"))
    right = sum(one == other for one, other in zip(predicted, labels, strict=True))
    assert results["accuracy"] == pytest.approx(100 * right / len(labels), abs=0.005)
    if model != "mfcc_gru":
        return
    assert results["accuracy"] > 60, "four voices are told from each other"
    paths = [recordings / f"voice{voice}" / "1.wav" for voice in (3, 1)]
    first, blank, *rest = run_script(
        "predict", tmp_path, "--gpus", 0, stdin=f"{paths[0]}\n\n{paths[1]}\n"
    ).stdout.splitlines()
    assert blank == "", "a line for each line"
    lines = [first, *rest]
    assert [line.split("\t")[0] for line in lines] == ["voice3", "voice1"]
    shares = [float(pair.split("=")[1]) for pair in lines[0].split("\t")[1].split()]
    assert len(shares) == 4 and sum(shares) == pytest.approx(1, abs=0.001)
    failed = run_script("predict", tmp_path, "--gpus", 0, stdin="nowhere.wav\n", status=1)
    assert failed.stderr.splitlines()[-1] == "error: nowhere.wav: no such file"
    run_in_process(report.main, tmp_path, "--output", tmp_path / "report.html")
    assert "confusion matrix" in (tmp_path / "report.html").read_text(encoding="utf-8")
    refused = run_in_process(export.main, tmp_path, "--output", tmp_path / "exported", status=1)
    assert "a corpus of labelled recordings, but what is done here needs labelled texts" in refused.stderr
    # A model of windows of 0.2 s, and data of windows of 0.1 s.
    options = ["--input", recordings, "--rate", 2000, "--window", 0.1, "--workers", 1, "--output", tmp_path / "data"]
    run_script("prepare_labelled_audio", *options)
    refused = run_in_process(predict.main, tmp_path, "--data", tmp_path / "data", "--gpus", 0, status=1)
    assert "of window 200, but" in refused.stderr and "trained with window 400" in refused.stderr


def test_a_model_of_texts_refuses_recordings(voices: tuple[Path, Path], tmp_path: Path) -> None:
    place = [CHECKOUT / "configs/trec/bilstm.yaml", "--work", tmp_path / "texts", "--data", voices[1], "--gpus", 0]
    refused = run_in_process(train.main, *place, status=1)
    assert "a corpus of labelled recordings, but --" in refused.stderr
