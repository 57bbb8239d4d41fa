"""scripts/reproduce.sh as a whole: killed in the middle, started again, and a table and a report at the end."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fairseq_plugins.tables.steps import Steps
from fairseq_plugins.tables.tables import load_table
from tests.commands import CHECKOUT, run_command

pytest.importorskip("snakemake", reason="needs scripts/install.sh --extras workflow, and Python 3.11 or later")
pytestmark = pytest.mark.slow
TABLE = "dpn_table_5"
CORPUS = Path("corpora") / "iwslt14_de_en_10k" / "data" / "preparation.json"
RULES = ("prepare", "train", "evaluate", "analyse", "table")


def command(work: Path, *options: str) -> list[str]:
    script = str(CHECKOUT / "scripts" / "reproduce.sh")
    return [script, TABLE, "--scale", "small", "--cores", "2", "--work", str(work), "--max-update", "24", *options]


def rules_of(command: list[str]) -> list[str]:
    """The rules that a workflow runs, or would run."""
    finished = run_command(command)
    said = finished.stdout + finished.stderr
    return [rule for rule in RULES if f"rule {rule}:" in said]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workflow of which every process was killed in the middle of the training."""
    work = tmp_path_factory.mktemp("reproduce") / "work"
    train_log = work / "iwslt14_de_en_10k" / "dpn" / "seed_1" / "train.log"
    with open(work.parent / "log", "w") as log:
        process = subprocess.Popen(command(work), stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 1500
        while not (train_log.exists() and '"num_updates": "20"' in train_log.read_text()):
            assert process.poll() is None, (work.parent / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return work


def test_it_goes_on_after_a_kill(killed: Path) -> None:
    folder = killed / "tables" / TABLE
    assert not folder.exists()
    corpus = killed / CORPUS
    prepared = corpus.stat().st_mtime_ns
    finished = run_command(command(killed))
    assert finished.returncode == 0, finished.stderr
    assert corpus.stat().st_mtime_ns == prepared, "what was done is not done again"
    assert "Not the paper's setting" in finished.stdout

    rows = json.loads((folder / "table.json").read_text())["rows"]
    assert [row["system"] for row in rows] == ["CNN to CNN", "CNN to SAN", "SAN to CNN", "SAN to SAN"]
    entropies = json.loads((killed / "iwslt14_de_en_10k/dpn/seed_1/analysis/entropy.json").read_text())["entropy"]
    for row, flow in zip(rows, ("cc", "ca", "ac", "aa"), strict=True):
        assert 0 < row["ours"]["entropy"] < 4
        assert row["ours"]["entropy"] == entropies[flow]
        assert row["updates"] == 24
    with open(folder / "table.csv", newline="") as stream:
        assert [float(row["paper_entropy"]) for row in csv.DictReader(stream)] == [2.208, 1.886, 1.406, 1.377]
    report = (folder / "report.html").read_text()
    for part in ("Learning curves", "CNN to SAN", "fairseq-train", "Not the paper"):
        assert part in report
    weights = json.loads(report.split('<script type="application/json" id="weights">')[1].split("</script>")[0])
    assert len(weights) == 5
    for [flows] in weights:
        assert list(flows) == ["mean", "cc", "ca", "ac", "aa"]
        for row in (row for rows in flows.values() for row in rows):
            assert sum(row) == pytest.approx(1, abs=0.01)

    again = run_command(command(killed))
    assert again.returncode == 0 and "Nothing to be done" in again.stdout + again.stderr


def test_more_updates_go_on_from_the_checkpoints(killed: Path) -> None:
    options = command(killed)
    assert rules_of([*options, "--dry-run"]) == []
    options[options.index("24")] = "28"
    before = {path: path.stat().st_mtime_ns for path in killed.rglob("*") if ".snakemake" not in path.parts}
    assert rules_of([*options, "--dry-run"]) == ["train", "evaluate", "analyse", "table"]
    after = {path: path.stat().st_mtime_ns for path in killed.rglob("*") if ".snakemake" not in path.parts}
    assert after == before, "a dry run changes nothing"
    # What is left of a corpus is no hindrance to making it anew.
    (killed / CORPUS).unlink()
    assert rules_of([*options, "--dry-run"]) == list(RULES)
    assert rules_of([*options, "--until", "train"]) == ["prepare", "train"]
    work = killed / "iwslt14_de_en_10k" / "dpn" / "seed_1"
    assert json.loads((work / "results.json").read_text())["updates"] == 28
    assert '"num_updates": "20"' in (work / "train.log").read_text()


def test_a_row_of_another_table_trains(killed: Path, tmp_path: Path) -> None:
    steps = Steps(load_table("mc_rnn_table_2"), "small", killed, max_update=3)
    data = steps.prepared_data("iwslt14_de_en_10k", "dpn")
    arguments = [*steps.configuration("iwslt14_de_en", "ho_rnn"), "--work", tmp_path, "--data", data, "--gpus", "0"]
    run_command([CHECKOUT / "scripts" / "train.sh", *arguments, *steps.train_options("iwslt14_de_en", "ho_rnn")])
    assert json.loads((tmp_path / "results.json").read_text())["updates"] == 3


def test_a_row_that_fails_is_named(killed: Path) -> None:
    (killed / "iwslt14_de_en_10k" / "dpn" / "seed_1" / "results.json").unlink()
    (killed / "iwslt14_de_en_10k" / "dpn" / "seed_1" / "trained").unlink()
    checkpoints = killed / "iwslt14_de_en_10k" / "dpn" / "seed_1" / "checkpoints"
    for path in checkpoints.glob("*.pt"):
        path.write_bytes(b"")
    finished = run_command(command(killed), status=1)
    assert "rule train:" in finished.stdout + finished.stderr
    assert "wildcards: data_set=iwslt14_de_en_10k, system=dpn, seed=1" in finished.stdout + finished.stderr
    assert "error: the workflow ended with exit status 1" in finished.stderr
    assert "truncated, and none beside it is readable" in finished.stdout + finished.stderr


def test_a_table_of_language_models(tmp_path: Path) -> None:
    """Running text, and a training that goes on from another row's."""
    script = CHECKOUT / "scripts" / "reproduce.sh"
    options = ["mc_rnn_table_4", "--scale", "small", "--cores", "2", "--work", tmp_path, "--max-update", "4"]
    finished = run_command([script, *options])
    assert "Trained on 162,973 tokens." in finished.stdout
    rows = json.loads((tmp_path / "tables" / "mc_rnn_table_4" / "table.json").read_text())["rows"]
    trained = {row["system"]: row for row in rows if row["ours"]}
    assert len(trained) == 5
    assert trained["AWD-LSTM + finetune + cache"]["updates"] == 4
    started = (tmp_path / "ptb" / "awd_lstm_finetuned" / "seed_1" / "train.log").read_text()
    assert "ptb/awd_lstm/seed_1/checkpoints/checkpoint_best.pt" in started
