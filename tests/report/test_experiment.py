"""The pages of experiments: what they say is what the work folders hold."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.report import command, experiment, sections
from fairseq_plugins.report import page as pages
from fairseq_plugins.report.page import Drawing, Report, ReportTable, Sample
from fairseq_plugins.scoring.metrics import Metric
from tests.commands import CHECKOUT, run_command

from .html import Page

EMPTY = Report("a title", "a line", None, [], [], [], [])


@pytest.fixture
def work(data: PreparedData, tmp_path: Path) -> Path:
    """A work folder as scripts/train.sh and scripts/evaluate.sh leave it, with 11 test sentences."""
    for folder, suffix in ("raw", "."), ("tokens", " ."):
        (data.folder / folder).mkdir()
        for language, kind in ("de", "Quelle"), ("en", "reference"):
            lines = "".join(f"{kind} {number}{suffix}\n" for number in range(11))
            (data.folder / folder / f"test.{language}").write_text(lines, encoding="utf-8")
    folder = tmp_path / "set" / "model"
    (folder / "generate").mkdir(parents=True)
    (folder / "generate" / "test.en").write_text("".join(f"hypothesis {n}.\n" for n in range(11)), encoding="utf-8")
    statistics = [
        {"split": "train_inner", "num_updates": 100, "loss": 7.0, "lr": 1e-3},
        {"split": "valid", "num_updates": 150, "loss": 6.0},
        {"split": "train_inner", "num_updates": 200, "loss": 5.0, "lr": 1e-3},
    ]
    (folder / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in statistics), encoding="utf-8")
    configuration = tmp_path / "corpus" / "rnn.yaml"
    configuration.parent.mkdir()
    configuration.write_text("train: {arch: lstm, lr: 1e-3}\n", encoding="utf-8")
    binarized = f"'{data.folder}/bin'"
    results = {
        "config": str(configuration),
        "data": str(data.folder),
        "architecture": "lstm",
        "command": f"fairseq-train {binarized} --arch lstm --lr 1e-3 --save-dir 'a b' --cpu",
        "parameters": 1234567,
        "updates": 5000,
        "train_seconds": 5400.0,
        "train_tokens_per_second": 1234.5,
        "seed": 3,
        "paper": {"system": "RNN", "params": 25, "bleu": 31.03},
        "device": "CPU, 1 thread",
        "git_revision": "0123abcd",
        "versions": {"python": "3.11.7", "torch": "2.13.0"},
        "bleu_tokenized": 30.5,
        "bleu_tokenized_signature": "nrefs:1|tok:none",
        "bleu_sacrebleu": 30.91,
        "sacrebleu_signature": "nrefs:1|tok:13a",
        "decode_sentences_per_second": 42.25,
        "checkpoint": "best.pt",
        "evaluate_command": "fairseq-plugins evaluate corpus/rnn --beam 5",
    }
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return folder


def change(work: Path, **values: Any) -> None:
    """Sets keys of ``results.json``; None takes them away."""
    path = work / "results.json"
    results = json.loads(path.read_text(encoding="utf-8")) | values
    path.write_text(json.dumps({key: value for key, value in results.items() if value is not None}), encoding="utf-8")


def test_the_report_of_an_experiment(work: Path) -> None:
    os.utime(work / "results.json", (86400 * 366, 86400 * 366))
    samples = experiment.spread_samples(Run(work))
    made = experiment.experiment_report(Run(work), [Drawing("t", "c", "<svg></svg>")], samples)
    assert made.title == "corpus/rnn"
    assert made.subtitle == "Architecture lstm, 1,234,567 parameters, 5,000 updates, seed 3"
    assert made.tables == [
        ReportTable(
            "Scores",
            ["Set", "BLEU (tokenised)", "sacreBLEU", "The paper", "Difference", "Sentences per second"],
            [["test", "30.50", "30.91", "31.03", "−0.53", "42.25"]],
            ["BLEU (tokenised): nrefs:1|tok:none", "sacreBLEU: nrefs:1|tok:13a"],
        ),
        ReportTable(
            "Training",
            ["Device", "Parameters", "The paper's", "Updates", "Hours", "Tokens per second"],
            [["CPU, 1 thread", "1,234,567", "25M", "5,000", "1.50", "1,234"]],
            [],
        ),
    ]
    assert [figure.title for figure in made.figures] == ["Learning curves", "t"]
    assert made.samples == samples
    [shown] = made.experiments
    assert shown.configuration == "train:\n  arch: lstm\n  lr: 1e-3\n"
    assert list(shown.commands) == ["training", "evaluation"]
    assert shown.environment == {
        "Results of": "1971-01-02",
        "Device": "CPU, 1 thread",
        "Seed": "3",
        "Checkpoint": "best.pt",
        "Git revision": "0123abcd",
        "Python": "3.11.7",
        "torch": "2.13.0",
    }


def test_samples_are_spread_over_the_test_set(work: Path) -> None:
    samples = experiment.spread_samples(Run(work))
    assert samples == [
        Sample(f"Quelle {n}.", f"reference {n}.", {"rnn": f"hypothesis {n}."}, {}) for n in (0, 2, 4, 6, 8)
    ]
    (work / "generate" / "test.en").unlink()
    assert experiment.spread_samples(Run(work)) == []


def test_samples_of_an_earlier_checkpoint_are_left_out(work: Path, tmp_path: Path) -> None:
    # As scripts/train.sh leaves results.json when it goes on: without scores.
    change(work, checkpoint=None, evaluate_command=None)
    assert experiment.spread_samples(Run(work)) == []
    output = tmp_path / "page.html"
    for given in [str(work)], [str(work), f"second={work}"]:
        command.main([*given, "--output", str(output)])
        assert "hypothesis" not in output.read_text(encoding="utf-8")


def test_a_configuration_that_was_changed_since_the_training(work: Path) -> None:
    change(work, options={"arch": "lstm", "lr": "1e-3"})
    assert experiment.experiment_of("RNN", Run(work)).configuration == "train:\n  arch: lstm\n  lr: 1e-3\n"
    Run(work).configuration_path.write_text("train: {arch: lstm, lr: 9e-9, dropout: 0.1}\n", encoding="utf-8")
    notes = "# The training had lr 1e-3.\n# The training had dropout (not given).\n"
    assert experiment.experiment_of("RNN", Run(work)).configuration.startswith(f"{notes}train:")


def test_samples_that_are_not_of_the_data_are_refused(work: Path, data: PreparedData) -> None:
    translation = work / "generate" / "test.en"
    translation.write_text("one\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        experiment.spread_samples(Run(work))
    assert str(raised.value) == (
        f"{translation}: 1 translations of 11 sentences; translate them again with 'fairseq-plugins evaluate'"
    )


def test_a_table_of_several_sets_and_of_rouge(work: Path, data: PreparedData) -> None:
    rouge = {
        "rouge1": 35.5,
        "rouge2": 17.0,
        "rougeL": 33.25,
        "rouge_intervals": {"ROUGE-1": [35.0, 36.0], "ROUGE-2": [16.5, 17.5], "ROUGE-L": [33.0, 33.5]},
        "rouge_signature": "f1|stem:no",
        "checkpoint": "best.pt",
    }
    no_bleu = dict.fromkeys(
        ("bleu_tokenized", "bleu_tokenized_signature", "bleu_sacrebleu", "sacrebleu_signature", "evaluate_command")
    )
    paper = {"system": "RNN", "rouge1": 34.65, "rouge2": 16.13, "rougeL": 33.75}
    change(work, **no_bleu, **rouge, paper=paper, subsets={"valid": rouge})
    scores = experiment.experiment_report(Run(work)).tables[0]
    ours = ["35.50 (35.00–36.00)", "17.00 (16.50–17.50)", "33.25 (33.00–33.50)"]
    assert scores.columns == [
        "Set",
        "ROUGE-1",
        "ROUGE-2",
        "ROUGE-L",
        "The paper",
        "Difference",
        "Sentences per second",
    ]
    assert scores.rows == [
        ["test", *ours, "34.65 / 16.13 / 33.75", "+0.85 / +0.87 / −0.50", "42.25"],
        ["valid", *ours, "–", "–", "–"],
    ]
    assert scores.notes == [f"{name}: ROUGE, F1 with 95 % intervals: f1|stem:no" for name in ("test", "valid")]


def test_sets_with_names_of_their_own_stand_beside_the_papers_figures(work: Path, data: PreparedData) -> None:
    splits = {"test": {"name": "nist04"}, "test1": {"name": "nist05"}, "valid": {"name": "nist03"}}
    PairsPreparation(source_lang="de", target_lang="en", splits=splits).save(data.folder)
    paper = {"system": "SAN", "nist04": 40.39, "nist05": 40.38}
    change(work, paper=paper, subsets={name: {"bleu_tokenized": 40.0} for name in ("nist05", "nist03")})
    scores = experiment.experiment_report(Run(work)).tables[0]
    column = scores.columns.index("The paper")
    assert [[row[0], *row[column : column + 2]] for row in scores.rows] == [
        ["nist04", "40.39", "−9.89"],
        ["nist05", "40.38", "−0.38"],
        ["nist03", "–", "–"],
    ]


def test_parts_that_are_not_there_yet_are_left_out(work: Path, data: PreparedData) -> None:
    (work / "train.jsonl").unlink()
    (work / "results.json").write_text(json.dumps({"subsets": {"valid": {"bleu_tokenized": 12.0}}}), encoding="utf-8")
    made = experiment.experiment_report(Run(work))
    assert made.title == "set/model"
    assert [table.heading for table in made.tables] == ["Scores"]
    assert made.tables[0].rows == [["valid", "12.00"]]
    assert (made.figures, made.samples, made.experiments[0].configuration) == ([], [], "")
    page = Page(pages.render(dataclasses.replace(made, experiments=[])))
    assert page.texts("h2") == ["Scores"]
    assert not page.texts("script")
    assert not Page(pages.render(EMPTY)).texts("h2")


def test_data_that_is_gone_takes_only_the_samples_along(work: Path, data: PreparedData) -> None:
    (data.folder / "preparation.json").unlink()
    assert experiment.spread_samples(Run(work)) == []
    assert experiment.experiment_report(Run(work)).tables[0].rows[0][0] == "test"


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        command.main([str(tmp_path)])
    message = str(raised.value)
    assert message.startswith(f"{tmp_path / 'results.json'}: no such file; ")
    assert "fairseq-plugins train" in message
    assert not list(tmp_path.iterdir())


def test_the_command_writes_one_file(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(work.iterdir())
    command.main([str(work)])
    assert capsys.readouterr().out == f"{work / 'report.html'}\n"
    assert set(work.iterdir()) == {*before, work / "report.html"}
    first = (work / "report.html").read_text(encoding="utf-8")
    other = tmp_path / "new folder" / "other.html"
    command.main([str(work), "--output", str(other)])
    assert other.read_text(encoding="utf-8") == first, "the same command gives the same page"
    page = Page(first)
    assert page.texts("h1") == ["corpus/rnn"]
    headings = ["Scores", "Training", "Learning curves", "Samples", "Configuration, commands, environment"]
    assert page.texts("h2") == headings
    with pytest.raises(InputError, match="is a folder; name a file in it"):
        command.main([str(work), "--output", str(tmp_path)])


@pytest.mark.system
def test_the_script_says_where_the_report_is_and_nothing_else(work: Path, tmp_path: Path) -> None:
    script = CHECKOUT / "scripts" / "report.sh"
    finished = run_command([script, work], PYTHON=sys.executable)
    assert (finished.stdout, finished.stderr) == (f"{work / 'report.html'}\n", "")
    refused = run_command([script, tmp_path], status=1, PYTHON=sys.executable)
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1


def test_folded_commands_are_the_same_commands() -> None:
    folded = experiment.folded("fairseq-train 'my data/bin' --lr=1e-3 --beta '(0.9, 0.98)' --cpu")
    assert folded == "fairseq-train 'my data/bin' \\\n  --lr=1e-3 \\\n  --beta '(0.9, 0.98)' \\\n  --cpu"


def test_curves_of_several_trainings_share_a_figure(work: Path) -> None:
    figure = sections.learning_curves_figure({"first": Run(work), "second": Run(work)})
    assert figure.title == "Learning curves"
    for text in "first", "second", "updates", "learning rate":
        assert text in figure.svg
    with pytest.raises(InputError, match="train.jsonl: no such file"):
        sections.learning_curves_figure({"none": Run(work / "generate")})


def test_several_systems_side_by_side(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline, output = tmp_path / "word_for_word", tmp_path / "page.html"
    baseline.mkdir()
    scores = {"bleu_tokenized": 20.25, "bleu_tokenized_signature": "nrefs:1|tok:none", "bleu_sacrebleu": 20.5}
    (baseline / "results.json").write_text(json.dumps(scores), encoding="utf-8")
    named = [f"word for word={baseline}", f"RNN={work}"]
    command.main([*named, "--output", str(output), "--title", "Both", "--notice", "Not the paper's setting."])
    assert capsys.readouterr().out == f"{output}\n"
    page = Page(output.read_text(encoding="utf-8"))
    assert (page.texts("h1"), page.texts("p", role="note")) == (["Both"], ["Not the paper's setting."])
    assert page.texts("h2") == [
        *("Scores on the test set", "Learning curves", "Samples", "Configuration, commands, environment"),
    ]
    assert page.texts("th", scope="row") == ["word for word", "RNN"]
    assert page.texts("td") == ["-", "-", "-", "20.25", "20.50", "1,234,567", "5,000", "5,400.00", "30.50", "30.91"]
    assert page.texts("li")[0] == "BLEU (tokenised): nrefs:1|tok:none"
    assert "RNN" in page.texts("dt") and "word for word" not in page.texts("dt"), "it left no translations"

    other = tmp_path / "other"
    shutil.copytree(work, other)
    data = Run(other).data.folder
    shutil.copytree(data, tmp_path / "other data")
    for path in tmp_path.glob("other data/*/test.*"), (other / "generate").glob("test.*"):
        for file in path:
            file.write_text("".join(file.read_text(encoding="utf-8").splitlines(keepends=True)[:9]), encoding="utf-8")
    change(other, data=f"{tmp_path}/other data", evaluate_command=None)

    alike = tmp_path / "alike"
    shutil.copytree(work, alike)
    shutil.copytree(data, tmp_path / "data alike")
    for file in tmp_path.glob("data alike/*/test.de"):
        file.write_text(file.read_text(encoding="utf-8").replace("Quelle 3", "Quelle 4"), encoding="utf-8")
    change(alike, data=f"{tmp_path}/data alike")

    for arguments, message in (
        ([*named, f"third={other}", "--output", str(output)], r"test sets differ \(RNN 11, third 9 sentences\)"),
        ([*named, f"third={alike}", "--output", str(output)], "the test sets of RNN, third differ"),
        ([str(work), str(work), "--output", str(output)], "two have one name; give others, as in NAME=WORK"),
        (named, "--output is missing: say where the report of several experiments goes"),
        ([*named, f"third={tmp_path}/nowhere"], "nowhere/results.json: no such file"),
    ):
        with pytest.raises(InputError, match=message):
            command.main(arguments)


def test_a_title_of_ones_own(work: Path, tmp_path: Path) -> None:
    command.main([str(work), "--title", "Mine", "--output", str(tmp_path / "page.html")])
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.texts("h1") == ["Mine"] and page.texts("p", **{"class": "subtitle"})[0].startswith("Architecture lstm")


def test_a_metric_of_a_users_own(work: Path, toy_perplexity: Metric) -> None:
    own = {"toy_perplexity": 7.5, "toy_perplexity_signature": "nrefs:1|toy_perplexity"}
    change(work, **own, paper={"toy_perplexity": 9.0})
    scores = experiment.experiment_report(Run(work)).tables[0]
    row = dict(zip(scores.columns, scores.rows[0], strict=True))
    assert (row["toy perplexity"], row["The paper"], row["Difference"]) == ("7.50", "9.00", "−1.50")
    assert scores.notes[-1] == "toy perplexity: nrefs:1|toy_perplexity"
