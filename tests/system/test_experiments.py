"""The scripts, from a configuration to scores and translations, on a tiny corpus; interrupted, damaged and misused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import evaluate, train, translate
from fairseq_plugins.files import read_lines
from fairseq_plugins.report import analyses as analysis
from fairseq_plugins.scoring.metrics import read_numbers
from tests.commands import CHECKOUT, PYTHON, run_command, run_in_process
from tests.conftest import TranslationData

BASE = """
train:
  optimizer: adam
  lr: 5e-3
  clip-norm: 1.0
  dropout: 0.2
  encoder-embed-dim: 16
  encoder-hidden-size: 16
  encoder-layers: 1
  decoder-embed-dim: 16
  decoder-hidden-size: 16
  decoder-layers: 1
  batch-size: 8
  max-epoch: 4
  seed: 7
generate:
  beam: 5
  batch-size: 32
  max-len-b: 20
"""
MODEL = """
base: _base.yaml
train:
  arch: mc_rnn_2_iwslt_de_en
paper: {table: mc_rnn_table_2, row: MC-RNN-2}
"""


@dataclass(frozen=True)
class Trained:
    """A configuration, the prepared corpus, and the work folder of an uninterrupted training."""

    configuration: Path
    data: Path
    work: Path

    def arguments(self, work: Path | None = None) -> list[str]:
        return [str(self.configuration), "--work", str(work or self.work), "--data", str(self.data)]


@pytest.fixture(autouse=True, scope="module")
def same_python() -> Iterator[None]:
    """The scripts use the Python that runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHON", PYTHON)
        yield


@pytest.fixture(scope="module")
def trained(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A tiny MC-RNN, trained for four epochs on 200 pairs by scripts/train.sh; the folders' names have spaces."""
    folder = tmp_path_factory.mktemp("with spaces") / "my experiments"
    folder.mkdir()
    steps = PairsPreparation(source_lang="xx", target_lang="yy", bpe_size=40)
    files = {
        split: (tiny_translation_data.raw / f"{split}.xx", tiny_translation_data.raw / f"{split}.yy")
        for split in ("train", "valid", "test")
    }
    prepare(steps, files, folder / "data")
    (folder / "_base.yaml").write_text(BASE, encoding="utf-8")
    (folder / "model.yaml").write_text(MODEL, encoding="utf-8")
    result = Trained(folder / "model.yaml", folder / "data", folder / "work")
    run_command([CHECKOUT / "scripts" / "train.sh", *result.arguments(), "--gpus", "0"], is_fresh=True)
    return result


def test_scores_and_translations(trained: Trained, tmp_path: Path) -> None:
    finished = run_command(
        [CHECKOUT / "scripts" / "evaluate.sh", *trained.arguments(), "--average", "2"], is_fresh=True
    )
    results = json.loads((trained.work / "results.json").read_text(encoding="utf-8"))
    assert f"{results['bleu_tokenized']:.2f}" in finished.stdout
    assert results["sacrebleu_signature"] in finished.stdout
    assert results["updates"] == 100
    assert results["seed"] == 7
    assert results["paper"] == {"system": "MC-RNN-2", "params": 28, "bleu": 31.98}
    assert results["checkpoint"].endswith("checkpoint_average_2.pt")
    assert " --arch mc_rnn_2_iwslt_de_en " in results["command"]
    model = torch.load(trained.work / "checkpoints" / "checkpoint_last.pt", weights_only=True)["model"]
    assert results["parameters"] == sum(parameter.numel() for parameter in model.values())
    for key in "train_seconds", "train_tokens_per_second", "decode_sentences_per_second":
        assert results[key] > 0
    for key in "git_revision", "versions", "bleu_sacrebleu":
        assert key in results
    generated = trained.work / "generate"
    hypotheses = list(read_lines(generated / "test.yy"))
    probabilities = read_numbers(generated / "test.log_probabilities.yy")
    assert len(hypotheses) == len(probabilities) == 101
    lengths = [len(line.split()) + 1 for line in hypotheses]
    assert all(len(numbers) >= length for numbers, length in zip(probabilities, lengths, strict=True))

    # The same sentences as raw text, with empty lines between them, through the same model.
    sources = list(read_lines(trained.data / "raw" / "test.xx"))[:5]
    translated = run_command(
        [CHECKOUT / "scripts" / "translate.sh", results["checkpoint"], "--max-len-b", "20"],
        stdin="\n".join(["", *sources, " ", sources[0]]),
    )
    assert translated.stdout.split("\n") == ["", *hypotheses[:5], "", hypotheses[0], ""]


def test_analyses_of_a_checkpoint_and_its_report(trained: Trained, tmp_path: Path) -> None:
    run_in_process(evaluate.main, *trained.arguments(), "--subset", "test")
    checkpoint = str(trained.work / "checkpoints" / "checkpoint_best.pt")
    options = [checkpoint, "--sentences", "3", "101"]
    for name in "alignments", "channel-attention":
        prefix = tmp_path / "figures" / name
        if name == "alignments":
            command = ["python", "-m", "fairseq_plugins", "analysis", name, *options, "--output", prefix]
            assert run_command(command).stderr == ""
        else:
            assert run_in_process(analysis.main, name, *options, "--output", prefix).stderr == ""
        content = json.loads(prefix.with_suffix(".json").read_text(encoding="utf-8"))
        assert content["architecture"] == "mc_rnn_2_iwslt_de_en"
        assert [sentence["number"] for sentence in content["sentences"]] == [3, 101]
        assert "<svg" in (tmp_path / "figures" / f"{name}_101.svg").read_text(encoding="utf-8")
    source = list(read_lines(trained.data / "raw" / "test.xx"))[2].split()
    # What was written last: the words of the source, the pieces of BPE that they were read in joined.
    assert [word for word, _, _ in content["sentences"][0]["words"]] == [*source, "</s>"]
    for layer in content["sentences"][0]["layers"]:
        assert all(sum(row) == pytest.approx(1, abs=1e-5) and len(row) == 2 for row in layer["attention"])

    finished = run_in_process(
        analysis.main, "entropy", checkpoint, "--subset", "valid", "--output", tmp_path / "entropy"
    )
    value = json.loads((tmp_path / "entropy.json").read_text(encoding="utf-8"))["entropy"]["attention"]
    assert 0 < value < 4 and finished.stdout.startswith(f"attention: {value:.3f} nats\nuniform weights: ")

    (tmp_path / "empty").write_text("", encoding="utf-8")
    other = shutil.copytree(trained.data, tmp_path / "other data")
    for dictionary in other.glob("bin/dict.*.txt"):
        dictionary.write_text(dictionary.read_text(encoding="utf-8") + "another 1\n", encoding="utf-8")
    for wrong, message in (
        (["alignments", checkpoint, "--sentences", "102"], "there is no sentence 102; there are 101"),
        (["entropy", checkpoint, "--source", tmp_path / "empty", "--target", tmp_path / "empty"], "the file is empty"),
        (["channel-attention", tmp_path / "empty"], "truncated, or not a checkpoint"),
        (["alignments", checkpoint, "--data", tmp_path], "preparation.json"),
        (["alignments", checkpoint, "--data", other], "missing, or not what was prepared; delete"),
    ):
        finished = run_in_process(analysis.main, *wrong, "--output", tmp_path / "nothing", status=1)
        assert finished.stderr.startswith("error: ") and finished.stderr.count("\n") == 1 and message in finished.stderr
    command = ["python", "-m", "fairseq_plugins", "analysis", *wrong, "--output", tmp_path / "nothing"]
    assert run_command(command, status=1).stderr == finished.stderr, "nothing else is said by the command as a whole"
    assert not list(tmp_path.glob("nothing*"))

    page = run_command(
        [CHECKOUT / "scripts" / "report.sh", trained.work, "--output", tmp_path / "report.html"], is_fresh=True
    )
    assert page.stdout == f"{tmp_path / 'report.html'}\n"
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "attention over channels" in html and "Learning curves" in html
    weights = json.loads(html.split('<script type="application/json" id="weights">')[1].split("</script>")[0])
    assert len(weights) == 5
    for [alignment] in weights:
        assert all(sum(row) == pytest.approx(1, abs=0.01) for row in alignment["mean"])


def test_a_killed_training_ends_with_the_same_model(trained: Trained, tmp_path: Path) -> None:
    work = tmp_path / "killed work"
    command = [str(CHECKOUT / "scripts" / "train.sh"), *trained.arguments(work), "--gpus", "0"]
    last = work / "checkpoints" / "checkpoint_last.pt"
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment, start_new_session=True) as process:
        deadline = time.monotonic() + 800
        while not last.exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert not (work / "results.json").exists()
    with open(last, "r+b") as stream:
        stream.truncate(max(1, last.stat().st_size // 2))

    finished = run_command(command)
    assert "checkpoint_last.pt is truncated; going on from checkpoint" in finished.stdout
    resumed, whole = (torch.load(path, weights_only=True) for path in (last, trained.work / "checkpoints" / last.name))
    assert resumed["model"].keys() == whole["model"].keys()
    for name, parameter in whole["model"].items():
        assert torch.equal(parameter, resumed["model"][name]), name
    results = json.loads((work / "results.json").read_text(encoding="utf-8"))
    assert results["updates"] == 100
    assert results["train_seconds"] > 0


def copy_of(trained: Trained, folder: Path) -> Path:
    """A work folder that a test may damage."""
    shutil.copytree(trained.work, folder)
    return folder


def test_a_complete_training_is_not_trained_further(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = copy_of(trained, tmp_path / "work")
    marked = {**json.loads((work / "results.json").read_text(encoding="utf-8")), "git_revision": "then"}
    (work / "results.json").write_text(json.dumps(marked), encoding="utf-8")
    before = torch.load(work / "checkpoints" / "checkpoint_last.pt", weights_only=True)
    train.main([*trained.arguments(work), "--gpus", "0", "--max-update", "100"])
    assert "100 updates were done before" in capsys.readouterr().out
    after = torch.load(work / "checkpoints" / "checkpoint_last.pt", weights_only=True)
    assert all(torch.equal(after["model"][name], parameter) for name, parameter in before["model"].items())
    assert json.loads((work / "results.json").read_text(encoding="utf-8")) == marked


@pytest.mark.parametrize("damage", ["truncated", "missing"])
def test_the_furthest_readable_checkpoint_takes_the_place_of_the_last(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    checkpoints = copy_of(trained, tmp_path / "work") / "checkpoints"
    last = checkpoints / "checkpoint_last.pt"
    if damage == "missing":
        last.unlink()
    else:
        last.write_bytes(last.read_bytes()[:-100])
    (checkpoints / "checkpoint4.pt").write_bytes(b"")
    (checkpoints / "checkpoint_best.pt").unlink()
    resumed = train.make_resumable(last, "mc_rnn_2_iwslt_de_en")
    assert f"{last} is {damage}; going on from checkpoint3.pt" in capsys.readouterr().out
    assert resumed is not None and resumed["updates"] == 75
    assert last.read_bytes() == (checkpoints / "checkpoint3.pt").read_bytes()
    assert train.make_resumable(tmp_path / "new" / "checkpoint_last.pt", "any") is None


def test_only_truncated_checkpoints(trained: Trained, tmp_path: Path) -> None:
    work = copy_of(trained, tmp_path / "work")
    for checkpoint in (work / "checkpoints").glob("*.pt"):
        checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    with pytest.raises(InputError, match="checkpoint_last.pt: truncated, and none beside it is readable"):
        train.main([*trained.arguments(work), "--gpus", "0"])
    with pytest.raises(InputError, match="checkpoint_best.pt"):
        evaluate.main(trained.arguments(work))
    with pytest.raises(InputError, match="checkpoint_best.pt"):
        translate.main([str(work / "checkpoints" / "checkpoint_best.pt")])


def test_a_checkpoint_of_another_architecture(trained: Trained, tmp_path: Path) -> None:
    expected = "a checkpoint of 'mc_rnn_2_iwslt_de_en', but 'rnnsearch_iwslt_de_en' was asked for"
    with pytest.raises(InputError, match=expected):
        train.main([*trained.arguments(), "--gpus", "0", "--arch", "rnnsearch_iwslt_de_en"])
    other = trained.configuration.with_name("other.yaml")
    other.write_text("base: _base.yaml\ntrain: {arch: rnnsearch_iwslt_de_en}", encoding="utf-8")
    with pytest.raises(InputError, match=expected):
        evaluate.main([str(other), *trained.arguments()[1:]])
    unknown = torch.load(trained.work / "checkpoints" / "checkpoint_best.pt", weights_only=True)
    unknown["cfg"]["model"]["_name"] = "mc_rnn_5"
    torch.save(unknown, tmp_path / "unknown.pt")
    with pytest.raises(InputError, match="a checkpoint of 'mc_rnn_5', which fairseq does not know"):
        translate.main([str(tmp_path / "unknown.pt")])


def test_missing_data(trained: Trained, tmp_path: Path) -> None:
    checkpoint = str(trained.work / "checkpoints" / "checkpoint_best.pt")
    data = tmp_path / "data"
    shutil.copytree(trained.data, data)
    (data / "bin" / "dict.xx.txt").unlink()
    for main, arguments in (
        (train.main, [str(trained.configuration), "--work", str(tmp_path / "work"), "--data", str(data)]),
        (evaluate.main, [str(trained.configuration), "--work", str(trained.work), "--data", str(data)]),
        (translate.main, [checkpoint, "--data", str(data)]),
    ):
        with pytest.raises(InputError, match="dict.xx.txt: the dictionary is missing"):
            main(arguments)
    with pytest.raises(InputError, match="nowhere.*preparation.json: no such file"):
        train.main([str(trained.configuration), "--data", str(tmp_path / "nowhere")])
    assert not (tmp_path / "work").exists()
    moved = torch.load(checkpoint, weights_only=True)
    for place, message in (str(tmp_path / "moved" / "bin"), "is not there any more"), ("bin", "bin, seen from where"):
        moved["cfg"]["task"]["data"] = place
        torch.save(moved, tmp_path / "moved.pt")
        with pytest.raises(InputError, match=f"{message}.*; name it with --data"):
            translate.main([str(tmp_path / "moved.pt")])


def test_a_checkpoint_that_is_past_the_last_epoch_is_gone_on_from_by_none(trained: Trained, tmp_path: Path) -> None:
    options = ["--work", tmp_path, "--data", trained.data, "--gpus", 0, "--max-epoch", 1]
    options += ["--restore-file", trained.work / "checkpoints" / "checkpoint_best.pt"]
    with pytest.raises(InputError, match="or is the checkpoint of --restore-file past --max-epoch or --max-update"):
        train.main(list(map(str, [trained.configuration, *options])))


def test_a_mistake_is_one_sentence_and_leaves_nothing(trained: Trained, tmp_path: Path) -> None:
    wrong = trained.configuration.with_name("wrong.yaml")
    wrong.write_text("base: _base.yaml\ntrain:\n  arch: rnnsearch_iwslt_de_en\n  max-token: 100\n", encoding="utf-8")
    arguments = ["--work", tmp_path / "work", "--data", trained.data]
    finished = run_command([CHECKOUT / "scripts" / "train.sh", wrong, *arguments], status=1)
    expected = f"error: {wrong}, line 4: fairseq-train has no option 'max-token'; did you mean 'max-tokens'?"
    assert finished.stderr.splitlines()[-1] == expected
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("script", ["train", "evaluate", "translate", "quickstart", "test"])
def test_help(script: str) -> None:
    path = CHECKOUT / "scripts" / f"{script}.sh"
    usage = "scripts/test.sh" if script == "test" else f"usage: fairseq-plugins {script} "
    python = {"PYTHON": PYTHON}
    assert usage in run_command([path, "--help"], **python).stdout
    if script in ("train", "evaluate", "translate"):
        assert usage in run_command([path], status=2, **python).stderr
