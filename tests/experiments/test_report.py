"""The HTML report: what it says is what the work folder holds, and nothing in it can leave its place."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import experiment_report, report
from fairseq_plugins.experiments.commands import PreparedData
from fairseq_plugins.experiments.report import Alignment, Experiment, Figure, Report, ReportTable, Sample
from tests.commands import CHECKOUT, run_command

EMPTY = Report("a title", "a line", None, [], [], [], [])
NASTY = "<unk> \"quoted\" 'single' & </script><script>alert(1)</script> <!-- {{ 7 * 7 }}"
VOID = {"meta", "link", "input", "wbr", "br", "hr", "img"}


class Page(HTMLParser):
    """A page's elements: their names, attributes, and the text directly inside them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(html)
        self.close()
        assert not self._open, f"not closed: {[element[0] for element in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        # A word may be broken inside: the text of an element is that of its own pieces together.
        if self._open:
            self._open[-1][2].append(data)

    def texts(self, tag: str, **attributes: str) -> list[str]:
        """The text of each element with this name and these attributes."""
        return [
            "".join(text)
            for name, found, text in self.elements
            if name == tag and all(found.get(key) == value for key, value in attributes.items())
        ]


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
        "generate_command": f"fairseq-generate {binarized} --beam 5",
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
    samples = experiment_report.spread_samples(work)
    made = experiment_report.experiment_report(work, [Figure("t", "c", "<svg></svg>")], samples)
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
    [experiment] = made.experiments
    assert experiment.configuration == "train:\n  arch: lstm\n  lr: 1e-3\n"
    assert list(experiment.commands) == ["training", "decoding"]
    assert experiment.environment == {
        "Results of": "1971-01-02",
        "Device": "CPU, 1 thread",
        "Seed": "3",
        "Checkpoint": "best.pt",
        "Git revision": "0123abcd",
        "Python": "3.11.7",
        "torch": "2.13.0",
    }


def test_samples_are_spread_over_the_test_set(work: Path) -> None:
    samples = experiment_report.spread_samples(work)
    assert samples == [
        Sample(f"Quelle {n}.", f"reference {n}.", {"rnn": f"hypothesis {n}."}, {}) for n in (0, 2, 4, 6, 8)
    ]
    (work / "generate" / "test.en").unlink()
    assert experiment_report.spread_samples(work) == []


def test_samples_that_are_not_of_the_data_are_refused(work: Path, data: PreparedData) -> None:
    translation = work / "generate" / "test.en"
    translation.write_text("one\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        experiment_report.spread_samples(work)
    assert str(raised.value) == (
        f"{translation}: 1 translations of 11 sentences; translate them again with scripts/evaluate.sh"
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
        ("bleu_tokenized", "bleu_tokenized_signature", "bleu_sacrebleu", "sacrebleu_signature", "generate_command")
    )
    paper = {"system": "RNN", "rouge1": 34.65, "rouge2": 16.13, "rougeL": 33.75}
    change(work, **no_bleu, **rouge, paper=paper, subsets={"valid": rouge})
    scores = experiment_report.experiment_report(work).tables[0]
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
    scores = experiment_report.experiment_report(work).tables[0]
    column = scores.columns.index("The paper")
    assert [[row[0], *row[column : column + 2]] for row in scores.rows] == [
        ["nist04", "40.39", "−9.89"],
        ["nist05", "40.38", "−0.38"],
        ["nist03", "–", "–"],
    ]


def test_parts_that_are_not_there_yet_are_left_out(work: Path, data: PreparedData) -> None:
    (work / "train.jsonl").unlink()
    (work / "results.json").write_text(json.dumps({"subsets": {"valid": {"bleu_tokenized": 12.0}}}), encoding="utf-8")
    made = experiment_report.experiment_report(work)
    assert made.title == "set/model"
    assert [table.heading for table in made.tables] == ["Scores"]
    assert made.tables[0].rows == [["valid", "12.00"]]
    assert (made.figures, made.samples, made.experiments[0].configuration) == ([], [], "")
    page = Page(report.render(dataclasses.replace(made, experiments=[])))
    assert page.texts("h2") == ["Scores"]
    assert not page.texts("script")
    assert not Page(report.render(EMPTY)).texts("h2")


def test_data_that_is_gone_takes_only_the_samples_along(work: Path, data: PreparedData) -> None:
    (data.folder / "preparation.json").unlink()
    assert experiment_report.spread_samples(work) == []
    assert experiment_report.experiment_report(work).tables[0].rows[0][0] == "test"


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        experiment_report.main([str(tmp_path)])
    message = str(raised.value)
    assert message.startswith(f"{tmp_path / 'results.json'}: no such file; ")
    assert "scripts/train.sh" in message
    assert not list(tmp_path.iterdir())


def test_the_command_writes_one_file(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(work.iterdir())
    experiment_report.main([str(work)])
    assert capsys.readouterr().out == f"{work / 'report.html'}\n"
    assert set(work.iterdir()) == {*before, work / "report.html"}
    first = (work / "report.html").read_text(encoding="utf-8")
    other = tmp_path / "new folder" / "other.html"
    experiment_report.main([str(work), "--output", str(other)])
    assert other.read_text(encoding="utf-8") == first, "the same command gives the same page"
    page = Page(first)
    assert page.texts("h1") == ["corpus/rnn"]
    headings = ["Scores", "Training", "Learning curves", "Samples", "Configuration, commands, environment"]
    assert page.texts("h2") == headings
    with pytest.raises(InputError, match="is a folder; name a file in it"):
        experiment_report.main([str(work), "--output", str(tmp_path)])


def test_the_script_says_where_the_report_is_and_nothing_else(work: Path, tmp_path: Path) -> None:
    script = CHECKOUT / "scripts" / "report.sh"
    finished = run_command([script, work], PYTHON=sys.executable)
    assert (finished.stdout, finished.stderr) == (f"{work / 'report.html'}\n", "")
    refused = run_command([script, tmp_path], status=1, PYTHON=sys.executable)
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1


def test_a_page_that_cannot_be_made_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    alignment = Alignment(["a"], ["b"], {"mean": [[float("nan")]]})
    broken = dataclasses.replace(EMPTY, samples=[Sample("a", "b", {"x": "b"}, {"x": alignment})])
    with pytest.raises(ValueError):
        report.write(broken, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def everything_nasty() -> Report:
    alignment = Alignment([NASTY, "x"], [NASTY], {"mean": [[0.25, 0.75]], NASTY: [[0.5, 0.5]]})
    return Report(
        title=NASTY,
        subtitle=NASTY,
        notice=NASTY,
        tables=[ReportTable(NASTY, [NASTY], [[NASTY]], [NASTY])],
        figures=[Figure(NASTY, NASTY, '<svg viewBox="0 0 1 1"></svg>')],
        samples=[Sample(NASTY, NASTY, {NASTY: NASTY, "plain": NASTY}, {NASTY: alignment})],
        experiments=[Experiment(NASTY, NASTY, {NASTY: NASTY}, {NASTY: NASTY})],
    )


def test_text_stays_text() -> None:
    page = Page(report.render(everything_nasty()))
    scripts = [attributes for name, attributes, _ in page.elements if name == "script"]
    assert scripts == [{"type": "application/json", "id": "weights"}, {}]
    assert "unk" not in {name for name, _, _ in page.elements}
    assert page.texts("h1") == [NASTY]
    assert page.texts("p", role="note") == [NASTY]
    assert page.texts("span") == [NASTY, "x", NASTY]
    assert page.texts("pre") == [NASTY, NASTY]
    assert page.texts("li") == [NASTY]
    assert page.texts("dd", dir="auto") == [NASTY, NASTY]
    assert json.loads(page.texts("script", id="weights")[0]) == [[{"mean": [[0.25, 0.75]], NASTY: [[0.5, 0.5]]}]]


def test_the_page_needs_nothing_else() -> None:
    html = report.render(everything_nasty())
    page = Page(html)
    loading = {"src", "srcset", "href", "data", "poster", "action", "xlink:href"}
    found = [attributes[key] for _, attributes, _ in page.elements for key in loading & set(attributes)]
    assert found == ["data:,"]
    assert not re.search(r"@import|url\(", html)


def test_columns_of_numbers_stand_to_the_right() -> None:
    columns = {
        "System": ["1", "2", "3"],
        "BLEU": ["31.03", "not run yet", "30.1 ± 0.2"],
        "Difference": ["−0.16", "+1.00", "–"],
        "Parameters": ["25M / 24.4M", "29M / 26.6M", "25M / –"],
        "ROUGE": ["35.50 (35.00–36.00)", "1", ""],
        "Significance": ["p = 0.003", "–", "p < 0.01"],
        "Device": ["1 x NVIDIA H100", "CPU, 1 thread", "2 x NVIDIA A100"],
        "Nothing": ["–", "", "-"],
        "Words": ["not run yet", "3", "never"],
    }
    table = ReportTable("t", list(columns), [list(row) for row in zip(*columns.values(), strict=True)], [])
    page = Page(report.render(dataclasses.replace(EMPTY, tables=[table])))
    assert page.texts("th", **{"class": "number"}) == ["BLEU", "Difference", "Parameters", "ROUGE", "Significance"]
    assert page.texts("td", **{"class": "number"})[:5] == [
        "31.03",
        "−0.16",
        "25M / 24.4M",
        "35.50 (35.00–36.00)",
        "p = 0.003",
    ]
    assert page.texts("th", scope="row") == ["1", "2", "3"]


def test_systems_that_cut_the_source_differently_have_a_line_of_it_each() -> None:
    def of(*source: str) -> Alignment:
        return Alignment(list(source), ["t"], {"mean": [[1 / len(source)] * len(source)]})

    alignments = {"words": of("ab", "c"), "pieces": of("a", "b", "c"), "also words": of("ab", "c")}
    hypotheses = {"words": "1", "none": "2", "pieces": "3", "also words": "4"}
    page = Page(report.render(dataclasses.replace(EMPTY, samples=[Sample("ab c", "r", hypotheses, alignments)])))
    assert page.texts("dt") == [
        "Source of words, also words",
        "Reference",
        "words",
        "also words",
        "Source of pieces",
        "pieces",
        "none",
    ]
    assert page.texts("span") == ["ab", "c", "t", "t", "a", "b", "c", "t"]
    [of_sample] = json.loads(page.texts("script", id="weights")[0])
    assert [flows["mean"] for flows in of_sample] == [[[0.5, 0.5]], [[0.5, 0.5]], [[0.3333, 0.3333, 0.3333]]]


def test_flows_can_be_chosen_where_there_are_several() -> None:
    names = ("mean", "cc", "ca", "ac", "aa")
    alignments = {
        "DPN-S2S": Alignment(["a"], ["b"], {name: [[1.0]] for name in names}),
        "MC-RNN-3": Alignment(["a"], ["b"], {"mean": [[1.0]]}),
    }
    sample = Sample("a", "b", {"DPN-S2S": "b", "MC-RNN-3": "b"}, alignments)
    page = Page(report.render(dataclasses.replace(EMPTY, samples=[sample])))
    inputs = [attributes for name, attributes, _ in page.elements if name == "input"]
    assert [attributes["value"] for attributes in inputs] == list(names)
    assert ["checked" in attributes for attributes in inputs] == [True, False, False, False, False]
    assert page.texts("label") == ["mean", "CNN → CNN", "CNN → SAN", "SAN → CNN", "SAN → SAN"]
    assert page.texts("legend") == ["Flow of attention of DPN-S2S"]


@pytest.mark.parametrize("flows", [{}, {"mean": [[1.0, 0.0]]}, {"mean": [[1.0], [0.5]]}, {"mean": [[1.0, 0.0], [1.0]]}])
def test_an_alignment_has_a_weight_for_each_pair_of_words(flows: dict[str, list[list[float]]]) -> None:
    with pytest.raises(ValueError, match="flow"):
        Alignment(["a", "b"], ["c", "d"], flows)


def test_folded_commands_are_the_same_commands() -> None:
    folded = experiment_report.folded("fairseq-train 'my data/bin' --lr=1e-3 --beta '(0.9, 0.98)' --cpu")
    assert folded == "fairseq-train 'my data/bin' \\\n  --lr=1e-3 \\\n  --beta '(0.9, 0.98)' \\\n  --cpu"


def test_several_experiments_are_folded_away() -> None:
    experiments = [Experiment(name, "train: {}", {}, {"Seed": "1"}) for name in ("one", "two")]
    page = Page(report.render(dataclasses.replace(EMPTY, experiments=experiments)))
    assert page.texts("summary") == ["one", "two"]
    assert not Page(report.render(dataclasses.replace(EMPTY, experiments=experiments[:1]))).texts("summary")


def test_curves_of_several_trainings_share_a_figure(work: Path) -> None:
    figure = experiment_report.learning_curves_figure({"first": work, "second": work})
    assert figure.title == "Learning curves"
    for text in "first", "second", "updates", "learning rate":
        assert text in figure.svg
    with pytest.raises(InputError, match="train.jsonl: no such file"):
        experiment_report.learning_curves_figure({"none": work / "generate"})
