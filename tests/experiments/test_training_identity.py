"""A work folder is of one training: what it was started with, and what may differ when it goes on."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import fairseq_plugins
from fairseq_plugins.checkpoints import check_dictionaries
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration as configurations
from fairseq_plugins.experiments import fairseq_commands, provenance, train, training_identity
from fairseq_plugins.experiments.run import Run, configuration_name
from fairseq_plugins.experiments.training_identity import TrainingIdentity
from fairseq_plugins.kernels import BACKEND_VARIABLE
from fairseq_plugins.package_files import CONFIGURATIONS
from tests.conftest import TINY_UPDATES

from .conftest import pairs_data, recorded
from .test_configuration import write

MODEL = f"""
train:
  arch: rnnsearch_iwslt_de_en
  optimizer: adam
  lr: 5e-3
  encoder-hidden-size: 16
  batch-size: 8
  update-freq: 2
  max-update: {TINY_UPDATES}
"""


def record(folder: Path, data: PreparedData, *extra: str, content: str = MODEL) -> TrainingIdentity:
    configuration = configurations.load(write(folder, model=content))
    return TrainingIdentity.of(fairseq_commands.train_command(configuration, data, folder, 0, extra).options, data)


@pytest.fixture
def data(data: PreparedData) -> PreparedData:
    """The same with the checksums of its files."""
    return recorded(data)


@pytest.fixture(scope="module")
def record_of_model(tmp_path_factory: pytest.TempPathFactory) -> TrainingIdentity:
    """That of ``MODEL``, wherever it lies."""
    folder = tmp_path_factory.mktemp("record")
    return record(folder, recorded(pairs_data(folder / "data")))


@pytest.fixture
def begun(tmp_path: Path, record_of_model: TrainingIdentity) -> TrainingIdentity:
    record_of_model.save(tmp_path)
    loaded = TrainingIdentity.load(tmp_path)
    assert loaded == record_of_model
    return loaded


@pytest.mark.system
@pytest.mark.parametrize(
    ("extra", "differing"),
    [
        ([], []),
        (["--max-update", "200", "--max-epoch", "9", "--patience", "3"], []),
        (["--num-workers", "3", "--log-interval", "7", "--keep-last-epochs", "2"], []),
        (["--cpu", "--distributed-world-size", "2"], []),
        (["--update-freq", "1", "--batch-size", "16"], []),
        (["--update-freq", "2,2"], []),
        (["--encoder-hidden-size", "32"], ["--encoder-hidden-size 16, not 32"]),
        (["--lr", "0.5", "--seed", "99"], ["--seed 1, not 99", "--lr 0.005, not 0.5"]),
        (["--channels", "4"], ["--channels nothing, not 4"]),
        (["--arch", "rnnsearch_gigaword"], ["--arch rnnsearch_iwslt_de_en, not rnnsearch_gigaword"]),
        (["--batch-size", "4"], ["a batch of 16 by --batch-size in all processes together, not 8"]),
        (["--update-freq", "2,4"], ["a batch of 16 by --batch-size in all processes together, not 16,32"]),
        (["--max-tokens", "100"], ["a batch of nothing by --max-tokens in all processes together, not 200"]),
        (["--matmul-precision", "medium"], ["--matmul-precision nothing, not medium"]),
        (["--lr-scheduler", "inverse_sqrt"], ["--lr-scheduler fixed, not inverse_sqrt"]),
    ],
)
def test_what_may_differ(
    begun: TrainingIdentity, tmp_path: Path, data: PreparedData, extra: list[str], differing: list[str]
) -> None:
    found = begun.differences(record(tmp_path, data, *extra), extra)
    # An architecture or a schedule brings other values along.
    assert set(found) >= set(differing) if extra[:1] in (["--arch"], ["--lr-scheduler"]) else found == differing


@pytest.mark.system
def test_a_schedule_that_reaches_over_max_update(tmp_path: Path, data: PreparedData) -> None:
    one, two = (record(tmp_path, data, "--lr-scheduler", "cosine", "--max-update", number) for number in ("100", "200"))
    assert one.differences(two) == ["--max-update 100, not 200"]


@pytest.mark.system
def test_models_in_fairseqs_older_style(tmp_path: Path, data: PreparedData) -> None:
    content = "train: {arch: lstm, encoder-layers: 1, batch-size: 8}"
    one = record(tmp_path, data, content=content)
    assert one.options["arch"] == "lstm"
    assert one.differences(record(tmp_path, data, "--max-epoch", "3", "--num-workers", "0", content=content)) == []
    other = record(tmp_path, data, "--encoder-layers", "2", content=content)
    assert one.differences(other) == ["--encoder-layers 1, not 2"]


@pytest.mark.system
def test_other_data(begun: TrainingIdentity, tmp_path: Path, data: PreparedData) -> None:
    (data.folder / "bin" / "test.de-en.de.bin").write_bytes(b"another test set")
    assert begun.differences(record(tmp_path, recorded(data))) == []
    (data.folder / "bin" / "dict.de.txt").write_text("b 1\n", encoding="utf-8")
    assert begun.differences(record(tmp_path, recorded(data))) == ["other prepared data (bin/dict.de.txt)"]
    (data.folder / "bin" / "train.de-en.de.bin").write_bytes(b"more")
    assert begun.differences(record(tmp_path, recorded(data))) == [
        "other prepared data (bin/dict.de.txt and 1 more files)"
    ]


@pytest.mark.system
def test_an_option_that_the_record_does_not_know(begun: TrainingIdentity, tmp_path: Path, data: PreparedData) -> None:
    del begun.options["dropout"]
    assert begun.differences(record(tmp_path, data)) == []
    extra = ["--dropout", "0.5"]
    assert begun.differences(record(tmp_path, data, *extra), extra) == ["--dropout nothing, not 0.5"]


@pytest.fixture
def work(tmp_path: Path, record_of_model: TrainingIdentity, tiny_checkpoint: Path) -> Path:
    """A work folder of a training that has ended: what it was started with, and its last checkpoint."""
    folder = tmp_path / "work"
    (folder / "checkpoints").mkdir(parents=True)
    shutil.copyfile(tiny_checkpoint, folder / "checkpoints" / "checkpoint_last.pt")
    record_of_model.save(folder)
    return folder


def run_train(work: Path, data: PreparedData, *extra: str) -> None:
    configuration = write(work.parent, model=MODEL)
    arguments = ["--work", str(work), "--data", str(data.folder), "--gpus", "0"]
    train.main([str(configuration), *arguments, *extra])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("generate: {beem: 5}", "model.yaml, line 10: fairseq-generate has no option 'beem'; did you mean 'beam'?"),
        ("generate: {beam: x}", "model.yaml, line 10: argument --beam: invalid int value: 'x'"),
        ("evaluate: {metric: blue}", "model.yaml, line 10: metric: there is no metric 'blue'; did you mean 'bleu'?"),
        ("evaluate: {average: x}", "model.yaml, line 10: average: 'x' is not a number of checkpoints"),
    ],
)
def test_mistakes_in_the_evaluation_are_said_before_the_training(
    tmp_path: Path, data: PreparedData, content: str, expected: str
) -> None:
    configuration = write(tmp_path, model=MODEL + content)
    work = tmp_path / "work"
    with pytest.raises(InputError) as raised:
        train.main([str(configuration), "--work", str(work), "--data", str(data.folder), "--gpus", "0"])
    assert expected in str(raised.value)
    assert not work.exists()


@pytest.mark.system
def test_a_finished_training_is_not_taken_for_another(
    work: Path, data: PreparedData, capsys: pytest.CaptureFixture[str]
) -> None:
    run_train(work, data)
    assert f"{TINY_UPDATES} updates were done before" in capsys.readouterr().out
    before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    expected = r"was started with different options or data: --encoder-hidden-size 16, not 32; .*--work, or --restart"
    with pytest.raises(InputError, match=expected):
        run_train(work, data, "--encoder-hidden-size", "32")
    (data.folder / "bin" / "dict.en.txt").write_text("c 1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"other prepared data \(bin/dict.en.txt\)"):
        run_train(work, recorded(data))
    assert {path: path.read_bytes() for path in work.rglob("*") if path.is_file()} == before


@pytest.mark.system
def test_a_training_whose_record_is_missing_does_not_go_on(work: Path, data: PreparedData) -> None:
    (work / "training.json").unlink()
    with pytest.raises(InputError, match=r"training\.json: no such file, .*give another --work, or .* --restart"):
        run_train(work, data)
    assert sorted(path.name for path in work.iterdir()) == [".lock", "checkpoints"]


@pytest.mark.system
def test_another_revision_is_said(work: Path, data: PreparedData, capsys: pytest.CaptureFixture[str]) -> None:
    run_train(work, data)
    content = json.loads((work / "training.json").read_text(encoding="utf-8"))
    (work / "training.json").write_text(json.dumps({**content, "git_revision": "0123"}), encoding="utf-8")
    run_train(work, data)
    assert "note: this training was started with revision 0123" in capsys.readouterr().out


@pytest.mark.system
@pytest.mark.parametrize("content", ["", "[]", "{", '{"format": 1}'])
def test_a_damaged_record(work: Path, data: PreparedData, content: str) -> None:
    (work / "training.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"training\.json: damaged.*--restart"):
        run_train(work, data)


@pytest.mark.system
def test_an_interrupted_training_says_what_it_has_come_to(
    work: Path, data: PreparedData, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_train(work, data)
    updates, parameters = (Run(work).results[key] for key in ("updates", "parameters"))
    (work / "results.json").unlink()

    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(train.processes, "run", interrupted)
    capsys.readouterr()
    with pytest.raises(KeyboardInterrupt):
        run_train(work, data, "--max-update", str(updates + 10))
    assert capsys.readouterr().err == f"kept: {updates:,} updates, from which the same command goes on\n"
    assert Run(work).results["updates"] == updates
    assert Run(work).results["parameters"] == parameters > 0

    # Nothing to go on from.
    with pytest.raises(KeyboardInterrupt):
        run_train(work, data, "--restart")
    assert capsys.readouterr().err == "" and "updates" not in Run(work).results


@pytest.mark.system
def test_results_of_an_earlier_moment_are_not_kept(
    work: Path, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill can come between a checkpoint and results.json; a failure says what it has come to, too."""
    run_train(work, data)
    updates = Run(work).results["updates"]
    Run(work).update(bleu=30.0)
    run_train(work, data)
    assert Run(work).results["bleu"] == 30.0, "nothing was trained"
    Run(work).update(updates=updates - 1)
    run_train(work, data)
    assert Run(work).results["updates"] == updates and "bleu" not in Run(work).results

    Run(work).update(updates=updates - 1, bleu=30.0)
    monkeypatch.setattr(train.processes, "run", lambda *_, **__: 1)
    with pytest.raises(InputError, match="fairseq-train ended with exit status 1"):
        run_train(work, data, "--max-update", str(updates + 10))
    assert Run(work).results["updates"] == updates and "bleu" not in Run(work).results


@pytest.mark.system
def test_results_have_the_revision_that_computed_them(
    work: Path, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours later the checkout may have another one."""
    monkeypatch.setattr(provenance, "git_revision", lambda: "before")

    def run(*_: object, **__: object) -> int:
        monkeypatch.setattr(provenance, "git_revision", lambda: "after")
        return 1

    monkeypatch.setattr(train.processes, "run", run)
    with pytest.raises(InputError, match="fairseq-train ended with exit status 1"):
        run_train(work, data, "--max-update", "100000")
    assert Run(work).results["git_revision"] == "before"


@pytest.mark.system
def test_a_training_keeps_the_kernels_that_it_began_with(
    tmp_path: Path, data: PreparedData, tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On GPUs, which are faked; a faster one may be known when it goes on."""
    work, variables = tmp_path / "work", []

    def run(*arguments: Any, **_: object) -> int:
        variables.append(arguments[-1])
        (work / "checkpoints").mkdir(exist_ok=True)
        shutil.copyfile(tiny_checkpoint, work / "checkpoints" / "checkpoint_last.pt")
        return 0

    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)
    monkeypatch.setattr(train.processes, "run", run)
    monkeypatch.setattr(fairseq_commands, "available_gpus", lambda: 1)
    monkeypatch.setattr(provenance, "device", lambda options: "1 x GPU")
    on_cpu = provenance.kernels

    def kernels(options: argparse.Namespace) -> dict[str, str]:
        return on_cpu(options) if options.cpu else {"multi_channel": fastest, "forget_scan": "eager"}

    monkeypatch.setattr(provenance, "kernels", kernels)
    fastest, further = "cuda_graph", ["--max-update", "100000"]
    run_train(work, data, "--gpus", "1")
    kept = {"multi_channel": "cuda_graph", "forget_scan": "eager"}
    assert variables == [{BACKEND_VARIABLE: "multi_channel=cuda_graph,forget_scan=eager"}]
    assert Run(work).results["kernels"] == kept
    begun = TrainingIdentity.load(work)
    assert begun is not None and begun.kernels == kept

    fastest = "compiled"
    run_train(work, data, "--gpus", "1", *further)
    assert variables[1] == variables[0] and Run(work).results["kernels"] == kept

    run_train(work, data, "--gpus", "0", *further)
    assert variables[2] == {}
    run_train(work, data, "--gpus", "0", "--restart")
    assert Run(work).results["kernels"] == dict.fromkeys(("multi_channel", "additive_attention", "forget_scan"), "cpp")
    # Whoever names another gets it, there too.
    monkeypatch.setenv(BACKEND_VARIABLE, "autograd")
    run_train(work, data, "--gpus", "1", *further)
    assert variables[-1] == {}


@pytest.mark.system
def test_results_name_the_configuration_wherever_they_are_read(
    work: Path, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = CONFIGURATIONS / "trec" / "rcrn.yaml"
    monkeypatch.chdir(CONFIGURATIONS)
    name = configuration_name(Path("trec", "rcrn.yaml"))
    assert name == "configs/trec/rcrn.yaml"
    Run(work.parent / "other").write({"config": name})
    assert Run(work.parent / "other").configuration_path == own
    monkeypatch.chdir(work.parent)
    run_train(work, data)
    assert Run(work).configuration_path == work.parent.resolve() / "model.yaml"
    assert Run(work.parent).configuration_path is None


@pytest.mark.system
def test_a_restart_deletes_what_was_trained(
    work: Path, data: PreparedData, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_train(work, data)
    (work / "generate").mkdir()
    (work / "notes").write_text("mine", encoding="utf-8")
    commands: list[list[str]] = []

    def run(command: list[str], *_: object, **__: object) -> int:
        commands.append(command)
        assert sorted(path.name for path in work.iterdir() if path.name[0] != ".") == [
            *("notes", "train.jsonl", "train.log", "training.json")
        ]
        return 1

    monkeypatch.setattr(train.processes, "run", run)
    with pytest.raises(InputError, match="fairseq-train ended with exit status 1: it said nothing"):
        run_train(work, data, "--restart", "--encoder-hidden-size", "32")
    assert fairseq_commands.option(commands[0], "--encoder-hidden-size") == "32"
    assert TrainingIdentity.load(work).options["encoder_hidden_size"] == 32


@pytest.mark.parametrize("is_new", [True, False])
def test_what_is_refused_changes_no_work_folder(
    work: Path, data: PreparedData, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    if is_new:
        shutil.rmtree(work)
    before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    monkeypatch.setattr(PreparedData, "verify_training", refused)
    with pytest.raises(InputError, match="damaged"):
        run_train(work, data, "--restart")
    assert {path: path.read_bytes() for path in work.rglob("*") if path.is_file()} == before
    assert work.exists() is not is_new


def refused(_: PreparedData) -> None:
    raise InputError("damaged")


def test_a_kill_within_a_restart_leaves_no_part_of_the_checkpoints(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training_identity.Path, "unlink", killed)
        patch.setattr(training_identity.shutil, "rmtree", lambda *_, ignore_errors=False: ignore_errors or killed())
        with pytest.raises(KeyboardInterrupt):
            training_identity.clear(work)
    assert not (work / "checkpoints").exists()
    training_identity.clear(work)
    assert list(work.iterdir()) == []


def test_a_restart_empties_a_folder_on_another_disk(work: Path, tmp_path: Path) -> None:
    checkpoints = work / "checkpoints"
    checkpoints.rename(tmp_path / "large disk")
    checkpoints.symlink_to(tmp_path / "large disk")
    for _ in range(2):
        training_identity.clear(work)
        assert checkpoints.is_symlink() and not list(checkpoints.iterdir())


@pytest.mark.system
def test_what_begins_anew_keeps_nothing_of_what_was_deleted(
    work: Path, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_train(work, data)
    (work / "generate").mkdir()
    (work / "train.jsonl").write_text('{"split": "valid", "num_updates": 50}\n', encoding="utf-8")
    shutil.rmtree(work / "checkpoints")

    def run(*_: object, **__: object) -> int:
        assert not (work / "generate").exists() and not (work / "results.json").exists()
        assert not (work / "train.jsonl").read_text(encoding="utf-8")
        return 1

    monkeypatch.setattr(train.processes, "run", run)
    with pytest.raises(InputError, match="fairseq-train ended with exit status 1: it said nothing"):
        run_train(work, data)


def test_checkpoints_know_their_dictionaries(work: Path, data: PreparedData) -> None:
    path = work / "checkpoints" / "checkpoint_last.pt"
    checkpoint = torch.load(path, weights_only=True)
    del checkpoint["dictionaries"]  # as plain fairseq, whose checkpoints say nothing but their sizes
    with pytest.raises(InputError, match=r"dict.de.txt: 5 words .* knows 32: the dictionaries are of another size"):
        data.check_trained_on(checkpoint, path)
    for language in "de", "en":
        words = "".join(f"{language}{number} 1\n" for number in range(28))
        (data.folder / "bin" / f"dict.{language}.txt").write_text(words, encoding="utf-8")
    data.check_trained_on(checkpoint, path)
    from fairseq.data import Dictionary

    fairseq_plugins.register()  # has dictionaries keep checksums

    german, english = (Dictionary.load(str(data.folder / "bin" / f"dict.{name}.txt")) for name in ("de", "en"))
    checksums = {"d": german._checksum, "e": english._checksum, "x": "0"}
    for given, wrong in (("de", None), ("ed", "de"), ("dd", "en"), ("ee", "de"), ("xe", "de"), ("dx", "en")):
        checkpoint["dictionaries"] = dict(zip(("source", "target"), map(checksums.get, given), strict=True))
        if wrong is None:
            data.check_trained_on(checkpoint, path)
            continue
        with pytest.raises(InputError, match=f"dict.{wrong}.txt: not the dictionary that .*checkpoint_last.pt was tr"):
            data.check_trained_on(checkpoint, path)
    # Of other kinds of corpora any of the dictionaries may be the model's.
    dictionaries = [data.folder / "bin" / f"dict.{name}.txt" for name in ("de", "en")]
    for given, is_right in (("e", True), ("ee", True), ("x", False)):
        known = dict(zip(("source", "target"), map(checksums.get, given), strict=False))
        if is_right:
            check_dictionaries({**checkpoint, "dictionaries": known}, "model", dictionaries, by_side=False)
        else:
            with pytest.raises(InputError, match="not the dictionary that model was trained with"):
                check_dictionaries({**checkpoint, "dictionaries": known}, "model", dictionaries, by_side=False)
