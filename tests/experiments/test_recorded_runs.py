"""Records of runs: what is written, what belongs together, and what is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration as configurations
from fairseq_plugins.experiments import groups_of_runs, provenance, recorded_runs
from fairseq_plugins.experiments.configuration import Configuration
from fairseq_plugins.experiments.fairseq_commands import options_of
from fairseq_plugins.experiments.groups_of_runs import Figure
from fairseq_plugins.experiments.recorded_runs import Record
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.package_files import CONFIGURATIONS, ROOT

SCORES = {
    "bleu_tokenized": 92.61,
    "bleu_tokenized_signature": "nrefs:1|tok:none",
    "bleu_sacrebleu": 92.59,
    "sacrebleu_signature": "nrefs:1|tok:13a",
    "decode_sentences_per_second": 12.5,
}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of records."""
    monkeypatch.setenv(recorded_runs.VARIABLE, str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture
def configuration() -> Configuration:
    return configurations.load(CONFIGURATIONS / "quickstart" / "mc_rnn_3.yaml")


@pytest.fixture
def work(configuration: Configuration, data: PreparedData, tmp_path: Path) -> Path:
    """A work folder whose model was trained by the configuration as it is."""
    trained(tmp_path / "work", configuration, data)
    return tmp_path / "work"


def trained(work: Path, configuration: Configuration, data: PreparedData, *extra: str, seed: int = 1, **facts) -> None:
    """Writes what scripts/train.sh leaves."""
    options = [
        part
        for key, value in configuration.train.items()
        for part in ([f"--{key}"] if value.text == "true" else [f"--{key}", value.text])
    ]
    command = ["fairseq-train", *data.arguments(), "--save-dir", f"{work}/checkpoints", *options]
    command += ["--distributed-world-size", "1", "--cpu", *extra]
    found = {
        "config": str(configuration.path),
        "data": str(data.folder),
        "options": options_of(command),
        "parameters": 1701696,
        "updates": 1500,
        "train_seconds": 123.4,
        "train_tokens_per_second": 5000.0,
        "seed": seed,
        "device": "CPU, 1 thread",
        "machine": {"processor": "a processor", "cores": 2, "threads": 1},
        "git_revision": "abc",
        "versions": {"torch": "2.13.0"},
    }
    Run(work).write({**found, **facts})


def record(
    configuration: Configuration, data: PreparedData, work: Path, average: int = 0, extra: Sequence[str] = (), **scores
) -> Path:
    return recorded_runs.record(configuration, data, Run(work), average, "test", {**SCORES, **scores}, extra)


def test_a_record_says_what_was_run(configuration: Configuration, data: PreparedData, work: Path, root: Path) -> None:
    path = record(configuration, data, work)
    assert path == root / "quickstart" / "mc_rnn_3" / "seed_1.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    expected = {
        "dataset": "quickstart",
        "system": "mc_rnn_3",
        "configuration": "configs/quickstart/mc_rnn_3.yaml",
        "seed": 1,
        "checkpoint": "best",
        "parameters": 1701696,
        "updates": 1500,
        "train_seconds": 123.4,
        "train_tokens_per_second": 5000.0,
        "decode_sentences_per_second": 12.5,
        "device": "CPU, 1 thread",
        "machine": {"processor": "a processor", "cores": 2, "threads": 1},
        "revision": "abc",
        "versions": {"torch": "2.13.0"},
        "format": 1,
    }
    assert {key: content[key] for key in expected} == expected
    assert "differs" not in content
    assert content["scores"]["test"] == {key: SCORES[key] for key in list(SCORES)[:4]}
    assert content["options"]["train"]["max-update"] == configuration.train["max-update"].text
    assert content["options"]["generate"]["beam"] == "5"
    assert str(data.folder) not in path.read_text(encoding="utf-8"), "no path of a machine"
    assert recorded_runs.load(path).differences == {}


def test_a_record_keeps_the_validation_loss(configuration: Configuration, data: PreparedData, work: Path) -> None:
    lines = [
        {"split": "train_inner", "num_updates": 100, "loss": 5.0},
        {"split": "valid", "num_updates": 750, "loss": 4.5, "nll_loss": 4.25},
        {"split": "valid", "num_updates": 1500, "loss": 9.0, "nll_loss": 9.0},
        {"split": "valid", "num_updates": 1500, "loss": 4.0, "nll_loss": 3.5},
    ]
    (work / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    found = recorded_runs.load(record(configuration, data, work))
    assert found.validation_loss == {"750": 4.25, "1500": 3.5}, "that of the training that went on"


def test_options_that_differ(configuration: Configuration, data: PreparedData, work: Path, root: Path) -> None:
    trained(work, configuration, data, "--max-update", "20", "--fp16", "--dropout=0.5")
    path = record(configuration, data, work, 5, ["--cache", "--gen-subset", "x"])
    name = "seed_1_average_5_dropout_0.5_fp16_true_max-update_20_cache_true.json"
    assert path == root / "quickstart" / "mc_rnn_3" / name
    found = recorded_runs.load(path)
    train = {"dropout": "0.5", "fp16": "true", "max-update": "20"}
    assert found.differs == {"train": train, "generate": {"cache": "true"}}
    assert found.checkpoint == "mean of the last 5 epochs"
    assert groups_of_runs.group_of(configuration, [found]) is None


def test_another_tokenizer_makes_another_run(configuration: Configuration, data: PreparedData, work: Path) -> None:
    path = record(configuration, data, work, extra=["--sacrebleu-tokenize=char"])
    assert path.stem == "seed_1_sacrebleu-tokenize_char"
    assert recorded_runs.load(path).differences == {"sacrebleu-tokenize": "char"}


def test_options_without_effect_make_no_other_run(
    configuration: Configuration, data: PreparedData, work: Path, root: Path
) -> None:
    trained(work, configuration, data, "--no-progress-bar", "--log-interval", "7", "--keep-last-epochs", "3")
    path = record(configuration, data, work)
    assert path == root / "quickstart" / "mc_rnn_3" / "seed_1.json"
    assert recorded_runs.load(path).differences == {}


def test_seeds_start_from_their_own_models() -> None:
    configuration = configurations.load(CONFIGURATIONS / "ptb" / "awd_lstm_finetuned.yaml")
    options = {key: value.text for key, value in configuration.train.items() if value.text != "false"}
    start = "finetune-from-model"
    assert recorded_runs._differing({"train": {**options, start: "work/seed_2/best.pt"}}, configuration) == {}
    del options[start]
    assert recorded_runs._differing({"train": options}, configuration) == {"train": {start: None}}


def test_a_configuration_that_was_changed_since_then_makes_its_records_differ(
    configuration: Configuration, data: PreparedData, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = record(configuration, data, work)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["options"]["train"]["max-update"] = "3000"
    del content["options"]["train"]["clip-norm"]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert recorded_runs.load(path).differences == {"clip-norm": None, "max-update": "3000"}


def test_several_processes_share_the_batch_of_the_configuration(
    configuration: Configuration, data: PreparedData, work: Path
) -> None:
    trained(work, configuration, data, "--distributed-world-size", "2", "--batch-size", "16")
    assert recorded_runs.load(record(configuration, data, work)).differences == {}


def test_the_same_run_is_replaced_and_that_of_another_machine_is_not(
    configuration: Configuration, data: PreparedData, work: Path, root: Path
) -> None:
    first = record(configuration, data, work)
    trained(work, configuration, data, train_seconds=200.0)
    assert record(configuration, data, work, bleu_sacrebleu=90.0) == first
    trained(work, configuration, data, machine={"processor": "another", "cores": 64, "threads": 1})
    second = record(configuration, data, work, bleu_sacrebleu=91.0)
    assert second.name == "seed_1_machine_2.json"
    trained(work, configuration, data, seed=2)
    record(configuration, data, work, bleu_sacrebleu=95.0)
    known = recorded_runs.load_all()
    assert [(one.seed, one.scores["test"]["bleu_sacrebleu"]) for one in known] == [(1, 90.0), (1, 91.0), (2, 95.0)]
    (group,) = groups_of_runs.groups(known)
    assert group == groups_of_runs.group_of(configuration, known)
    figure = group.figure("bleu_sacrebleu")
    assert figure.mean == pytest.approx(92) and figure.deviation == pytest.approx(7**0.5)
    assert (figure.text(".2f"), figure.range(".2f"), figure.runs) == ("92.00 ± 2.65", "90.00 to 95.00", "3 runs")
    assert group.figure("rouge1") is None


def test_several_sets_are_one_record(configuration: Configuration, data: PreparedData, work: Path) -> None:
    recorded_runs.record(configuration, data, Run(work), 0, "nist04", SCORES)
    path = recorded_runs.record(configuration, data, Run(work), 0, "nist05", {**SCORES, "bleu_tokenized": 40.0})
    assert list(recorded_runs.load(path).scores) == ["nist04", "nist05"]
    trained(work, configuration, data, train_seconds=7.0)
    assert list(
        recorded_runs.load(recorded_runs.record(configuration, data, Run(work), 0, "nist05", SCORES)).scores
    ) == ["nist05"]


def test_what_is_not_trained() -> None:
    path = recorded_runs.record_baseline("quickstart", "word_for_word", SCORES)
    found = recorded_runs.load(path)
    assert (found.configuration, found.seed, found.differences) == (None, None, {})
    assert found.scores["test"]["bleu_sacrebleu"] == 92.59


def test_one_run() -> None:
    assert (Figure((92.59,)).text(".2f"), Figure((92.59,)).range(".2f")) == ("92.59", "92.59")
    assert Figure((92.59,)).runs == "one run"


def test_what_cannot_be_recorded(configuration: Configuration, data: PreparedData, work: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leave out --checkpoint"):
        recorded_runs.recordable(configuration, Run(work), "some.pt")
    with pytest.raises(InputError, match="tells of no training"):
        recorded_runs.recordable(configuration, Run(tmp_path / "nothing"), None)
    Run(tmp_path / "translated").write({"bleu_tokenized": 1.0})
    with pytest.raises(InputError, match="tells of no training"):
        recorded_runs.recordable(configuration, Run(tmp_path / "translated"), None)
    other = configurations.load(CONFIGURATIONS / "quickstart" / "rnnsearch.yaml")
    with pytest.raises(InputError, match="was trained with .*mc_rnn_3.yaml, not with .*rnnsearch.yaml"):
        recorded_runs.recordable(other, Run(work), None)
    (work / "train.jsonl").write_text('{"split": "valid"}\n{"split": "val\n', encoding="utf-8")
    with pytest.raises(InputError, match="train.jsonl, line 2: not a line of statistics; delete this line"):
        recorded_runs.recordable(configuration, Run(work), None)
    own = tmp_path / "own.yaml"
    own.write_text("train: {arch: lstm}", encoding="utf-8")
    with pytest.raises(InputError, match="own.yaml is not below"):
        recorded_runs.recordable(configurations.load(own), Run(work), None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a record"),
        ('{"dataset": "a", "system": "b", "scores": {}, "sores": 1}', r"not a record \(unknown: sores\)"),
        ('{"dataset": "a", "system": "b", "scores": {}, "format": 2}', "format 2; this version reads format 1"),
        (
            '{"dataset": "a", "system": "b", "scores": {}, "format": 1, "configuration": "configs/no.yaml"}',
            "there is no configs/no.yaml",
        ),
    ],
)
def test_files_that_are_no_records(root: Path, content: str, message: str) -> None:
    path = root / "a" / "b" / "seed_1.json"
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=f"seed_1.json: .*{message}"):
        recorded_runs.load_all()


def test_options_of_a_command() -> None:
    command = ["fairseq-train", "bin", "-a", "lstm", "--lr", "1", "2", "--x=y", "--z", "-0.5", "--flag", "--lr", "3"]
    expected = {"a": "lstm", "lr": "3", "x": "y", "z": "-0.5", "flag": "true"}
    assert options_of(command) == expected
    assert "lr" not in options_of(command, ["lr"])
    assert options_of(["--lr", "1", "2"]) == {"lr": "1 2"}


def test_the_records_of_the_project_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(recorded_runs.VARIABLE)
    for known in recorded_runs.load_all():
        assert isinstance(known, Record) and known.scores


def test_every_record_of_the_project_has_its_configuration_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those too of files that are one file now: by a recipe, and of the review sets."""
    monkeypatch.delenv(recorded_runs.VARIABLE)
    for known in recorded_runs.load_all():
        if known.configuration is None:
            continue
        configuration = configurations.load(ROOT / known.configuration, known.recipe)
        if "*" in (folder := configuration.data["folder"].text if configuration.data else ""):
            name = known.system.removeprefix(f"{configuration.model}_")
            configuration = configurations.load(configuration.path, data=folder.replace("*", name))
        assert (configuration.dataset, configuration.model) == (known.dataset, known.system)
        # What the configuration says today, with what is different, is what was trained.
        said = {key: value.text for key, value in configuration.train.items() if value.text != "false"}
        trained = {**said, **known.differences}
        for key, value in known.options.get("train", {}).items():
            assert trained[key] == value, f"{known.path}: {key}"


def test_runs_by_the_papers_recipe_before_it_was_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(recorded_runs.VARIABLE)
    earlier = [known for known in recorded_runs.load_all() if known.recipe == "paper" and known.carried_over]
    assert len(earlier) == 10 and {known.dataset for known in earlier} == {"multi30k_de_en"}
    for known in earlier:
        assert known.differences == {"label-smoothing": "0.1"}, "no run by the recipe of today"


def test_a_run_by_another_recipe(data: PreparedData, tmp_path: Path, root: Path) -> None:
    configuration = configurations.load("multi30k_de_en/dpn", "paper")
    trained(tmp_path, configuration, data, recipe="paper")
    path = record(configuration, data, tmp_path)
    assert path == root / "multi30k_de_en" / "dpn_paper" / "seed_1.json"
    made = recorded_runs.load(path)
    assert (made.configuration, made.recipe) == ("configs/multi30k_de_en/dpn.yaml", "paper")
    assert made.differences == {} and made.options["train"]["cross-memory"] == "plain"
    own = configurations.load("multi30k_de_en/dpn")
    assert groups_of_runs.group_of(configuration, [made]) and not groups_of_runs.group_of(own, [made])
    with pytest.raises(InputError, match="was trained by another recipe; say --recipe paper$"):
        recorded_runs.recordable(own, Run(tmp_path), None)
    trained(tmp_path, own, data)
    with pytest.raises(InputError, match="was trained by another recipe; leave out --recipe$"):
        recorded_runs.recordable(configuration, Run(tmp_path), None)


def test_a_run_of_one_of_several_data_sets(data: PreparedData, tmp_path: Path, root: Path) -> None:
    books = configurations.load("reviews/rcrn", data="work/reviews_books/data")
    trained(tmp_path, books, data)
    path = record(books, data, tmp_path)
    assert path == root / "reviews" / "rcrn_books" / "seed_1.json"
    assert recorded_runs.load(path).configuration == "configs/reviews/rcrn.yaml"
    expected = (
        r"configs/reviews/_base.yaml, line \d+: for several data sets; name one by --data, a folder work/reviews_\*/"
    )
    with pytest.raises(InputError, match=f"^--record: .*{expected}"):
        recorded_runs.recordable(configurations.load("reviews/rcrn"), tmp_path, None)


def test_a_record_makes_the_revision_of_the_next_one_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").mkdir()
    files = [tmp_path / "results" / "run.json", tmp_path / "code.py"]
    for file in files:
        file.write_text("1", encoding="utf-8")
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", tmp_path, *arguments], check=True)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    revision = provenance.git_revision()
    for file, ending in zip(files, ("", "-dirty"), strict=True):
        file.write_text("2", encoding="utf-8")
        assert provenance.git_revision() == f"{revision}{ending}"
