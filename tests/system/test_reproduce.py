"""scripts/reproduce.sh as a whole: killed in the middle, started again, and a table and a report at the end."""

from __future__ import annotations

import csv
import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fairseq_plugins.tables.tables import load_table
from fairseq_plugins.tables.workflow import plan_of
from tests.commands import CHECKOUT, run_command

pytest.importorskip("snakemake", reason="needs scripts/install.sh --extras workflow, and Python 3.11 or later")
TABLE = "dpn_table_5"


def command(work: Path, *options: str) -> list[str]:
    script = str(CHECKOUT / "scripts" / "reproduce.sh")
    return [script, TABLE, "--scale", "small", "--cores", "2", "--work", str(work), "--max-update", "40", *options]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workflow of which every process was killed in the middle of the training."""
    work = tmp_path_factory.mktemp("reproduce") / "work"
    train_log = work / "iwslt14_de_en_10k" / "dpn" / "seed_1" / "train.log"
    with open(work.parent / "log", "w") as log:
        process = subprocess.Popen(command(work), stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 1500
        while not (train_log.exists() and "num_updates=20" in train_log.read_text()):
            assert process.poll() is None, (work.parent / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return work


def test_it_goes_on_after_a_kill(killed: Path) -> None:
    folder = killed / "tables" / TABLE
    assert not folder.exists()
    corpus = killed / "corpora" / "translation" / "data" / "preparation.json"
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
        assert row["updates"] == 40
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
    options[options.index("40")] = "60"
    finished = run_command(options)
    assert finished.returncode == 0, finished.stderr
    work = killed / "iwslt14_de_en_10k" / "dpn" / "seed_1"
    assert json.loads((work / "results.json").read_text())["updates"] == 60
    assert "num_updates=20," in (work / "train.log").read_text()


def test_a_row_of_another_table_trains(killed: Path, tmp_path: Path) -> None:
    table = load_table("mc_rnn_table_2")
    plan = plan_of(table, killed, "small", [1], 0, None, 3)
    train = shlex.split(plan["experiments"]["iwslt14_de_en/ho_rnn/seed_1"]["command"].split(" && ")[0])
    train[train.index("--work") + 1] = str(tmp_path)
    run_command(train)
    assert json.loads((tmp_path / "results.json").read_text())["updates"] == 3


def test_a_row_that_fails_is_named(killed: Path) -> None:
    (killed / "iwslt14_de_en_10k" / "dpn" / "seed_1" / "results.json").unlink()
    checkpoints = killed / "iwslt14_de_en_10k" / "dpn" / "seed_1" / "checkpoints"
    for path in checkpoints.glob("*.pt"):
        path.write_bytes(b"")
    finished = run_command(command(killed), status=1)
    assert "error: the workflow ended with exit status 1" in finished.stderr
    assert "truncated, and none beside it is readable" in finished.stdout + finished.stderr
