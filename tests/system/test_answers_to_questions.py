"""Reading comprehension from text to answers by the commands, on a handful of passages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_plugins.corpora import data_sets
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.experiments import evaluate, train
from fairseq_plugins.experiments.decoding import decoding_of
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.files import read_lines
from fairseq_plugins.report.answers import answers_table
from fairseq_plugins.samples import spread
from fairseq_plugins.scoring.metrics import Outputs, metric_named
from tests.commands import CHECKOUT, run_in_process, run_script
from tests.samples_of_questions import WOLF, narrativeqa

# A rate at which ten updates tell places apart: between equals, rounding would choose.
SMALL = ["--embed-dim", 8, "--hidden-size", 8, "--attention-size", 8, "--num-workers", 0, "--patience", -1]
SMALL += ["--lr", 0.02]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Generated passages, and the work folder of a model of them."""
    folder = tmp_path_factory.mktemp("reading")
    data, work = folder / "data", folder / "work"
    run_script("prepare_generated_passages", "--passages", 40, "--workers", 1, "--output", data)
    place = [CHECKOUT / "configs/generated_passages/rnet_rcrn.yaml", "--work", work, "--data", data, "--gpus", 0]
    run_script("train", *place, *SMALL, "--max-epoch", 2)
    run_script("evaluate", *place)
    return data, work


@pytest.mark.system
def test_every_answer_is_scored(trained: tuple[Path, Path]) -> None:
    """The scores are those of the answers that were written, which stand in the passages where it is said."""
    data, work = trained
    results = json.loads((work / "results.json").read_text(encoding="utf-8"))
    rows = [line.split("\t") for line in read_lines(work / "generate" / "test.answers.tsv")]
    passages = list(read_lines(data / "raw" / "test.passage"))
    owners = [int(line.split()[0]) for line in read_lines(data / "bin" / "span" / "test.txt")]
    assert len(rows) == len(owners) == 16
    for (start, stop, number, text), owner in zip(rows, owners, strict=True):
        assert passages[owner][int(start) : int(stop)] == text and float(number) < 0
    prepared, metric = PreparedData.load(data), metric_named("squad")
    texts = [row[3] for row in rows]
    scores = metric.scores(Outputs(texts, texts), decoding_of(metric).references(prepared, "test"))
    assert results["squad_f1"] == scores["squad_f1"] and results["squad_exact_match"] == scores["squad_exact_match"]
    assert results["updates"] == 2 * 40 * 4 / 32


@pytest.mark.system
def test_questions_in_answers_out(trained: tuple[Path, Path], tmp_path: Path) -> None:
    data, work = trained
    questions = list(read_lines(data / "raw" / "test.question"))[:2]
    passage = next(read_lines(data / "raw" / "test.passage"))
    (tmp_path / "passage.txt").write_text(passage.replace(". ", ".\n\n"), encoding="utf-8")
    options = ["predict", work, "--gpus", 0]
    shown = run_script(*options, "--passage", tmp_path / "passage.txt", stdin="\n".join([*questions, ""]) + "\n").stdout
    *answers, empty = shown.removesuffix("\n").split("\n")
    expected = [line.split("\t") for line in read_lines(work / "generate" / "test.answers.tsv")][:2]
    assert [line.split("\t")[:2] for line in answers] == [
        [text, f"{start}-{stop}"] for start, stop, _, text in expected
    ]
    assert empty == "" and all(0 < float(line.split("\t")[2]) <= 1 for line in answers)
    pairs = "".join(f"{question}\t{passage}\n" for question in questions)
    assert run_script(*options, stdin=pairs).stdout.splitlines() == answers
    error = run_script(*options, stdin="Who?\n", status=1).stderr.splitlines()[-1]
    assert error == "error: standard input, line 1: no tab in the line; write QUESTION TAB PASSAGE, or give --passage"


@pytest.mark.system
def test_the_report_shows_answers_in_their_passages(trained: tuple[Path, Path]) -> None:
    data, work = trained
    prepared = PreparedData.load(data)
    [table] = answers_table(Run(work), prepared)
    rows = [line.split("\t") for line in read_lines(work / "generate" / "test.answers.tsv")]
    questions = [line.lower() for line in read_lines(data / "raw" / "test.question")]
    assert len(table.rows) == 8
    for place, (question, passage, wanted, attended) in zip(spread(16, 8), table.rows, strict=True):
        assert f"▶{rows[place][3]}◀" in passage
        assert question.split()[0] == questions[place].split()[0]
        assert wanted == " / ".join(json.loads(list(read_lines(data / "raw" / "test.answers"))[place]))
        assert 0 < sum(int(part.split()[-2]) for part in attended.split(", ") if part.split()[0] in question) <= 101


@pytest.mark.slow
def test_narrativeqa_s_form_with_rcrn(tmp_path: Path) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    folder = narrativeqa(tmp_path / "narrativeqa")
    options = ["narrativeqa", "--input", folder, "--min-count", 1, "--workers", 1, "--output", data]
    run_in_process(data_sets.main, *options)
    place = [CHECKOUT / "configs/narrativeqa/rnet_rcrn.yaml", "--work", work, "--data", data, "--gpus", 0]
    run_in_process(train.main, *place, *SMALL, "--character-hidden-size", 4, "--max-update", 3)
    run_in_process(evaluate.main, *place)
    results = json.loads((work / "results.json").read_text(encoding="utf-8"))
    assert {"answer_bleu1", "answer_bleu4", "answer_meteor", "answer_rougeL"} <= results.keys()
    answers = [line.split("\t")[3] for line in read_lines(work / "generate" / "test.answers.tsv")]
    assert len(answers) == 2 and all(answer in WOLF.replace(". ", " ") for answer in answers)
