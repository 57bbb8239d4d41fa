"""What becomes of fairseq-train's output, and results.json."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from fairseq import options as fairseq_options

from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration as configurations
from fairseq_plugins.experiments import train, training_statistics
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.limits import reached_limit
from fairseq_plugins.package_files import CONFIGURATIONS

PREFIX = "2026-11-21 02:32:21 | INFO |"
LINES = {
    f"{PREFIX} fairseq_cli.train | num. shared model params: 5,654,448 (num. trained: 5,654,448)": None,
    f'{PREFIX} train_inner | {{"epoch": 1, "update": 0.13, "loss": "10.525", "ppl": "1473.28", "wps": "2740.8", '
    '"num_updates": "20"}': {
        "split": "train_inner",
        "epoch": 1,
        "update": 0.13,
        "loss": 10.525,
        "ppl": 1473.28,
        "wps": 2740.8,
        "num_updates": 20,
    },
    f'{PREFIX} valid | {{"epoch": 12, "valid_loss": "7.714", "valid_ppl": "210.04", "valid_best_loss": "7.7"}}': {
        "split": "valid",
        "epoch": 12,
        "loss": 7.714,
        "ppl": 210.04,
        "best_loss": 7.7,
    },
    f'{PREFIX} train | {{"epoch": 2, "train_loss": "7.62", "train_num_updates": "82", "train_lr": "1e-05", '
    '"train_wall": "45"}': {
        "split": "train",
        "epoch": 2,
        "loss": 7.62,
        "num_updates": 82,
        "lr": 1e-05,
        "wall": 45,
    },
    f"{PREFIX} fairseq.trainer | begin training epoch 2": None,
    f"{PREFIX} fairseq.tasks | {{}}": None,
    "Traceback (most recent call last):": None,
}


@pytest.mark.parametrize("line", LINES)
def test_progress_lines_are_numbers(line: str) -> None:
    assert training_statistics.parse_statistics(line + "\n") == LINES[line]


def test_log_and_statistics_files_grow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part in list(LINES)[:3], list(LINES)[3:]:
        with train.TrainingLog(Run(tmp_path)) as log:
            for line in part:
                log.write(line + "\n")
    everything = "".join(line + "\n" for line in LINES)
    assert (tmp_path / "train.log").read_text(encoding="utf-8") == everything
    shown = capsys.readouterr().out.splitlines()
    assert shown[1:4] == [
        "epoch 1, 20 updates: loss 10.525, perplexity 1473.28, words/s 2,741",
        "epoch 12, 0 updates: development loss 7.714, perplexity 210.04",
        "epoch 2, 82 updates: epoch's loss 7.620, rate 1e-05",
    ]
    assert [shown[0], *shown[4:]] == [line for line, numbers in LINES.items() if numbers is None]
    statistics = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    assert statistics == [numbers for numbers in LINES.values() if numbers]


def test_many_updates_are_easy_to_read() -> None:
    assert reached_limit(1820, {}, 100, 0, 0) == "1,820 updates were done before, the limit of --max-update 100"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--max-update", "100"], "100 updates were done before, the limit of --max-update 100"),
        (["--max-update", "101"], None),
        (["--max-update", "100", "--max-update", "200"], None),
        (["--max-epoch", "3"], None),
        (["--patience", "2"], "validations in a row that were no better: 2, the limit of --patience 2"),
        (["--patience", "1"], "validations in a row that were no better: 2, the limit of --patience 1"),
        (["--patience", "3", "--max-update", "0"], None),
        (["--patience", "-1"], None),
        (["--stop-time-hours", "0.5"], "1.50 hours were trained before, the limit of --stop-time-hours 0.5"),
        (["--stop-time-hours", "2"], None),
    ],
)
def test_a_training_has_ended_by_a_limit(options: list[str], reason: str | None) -> None:
    extra_state = {"early_stopping": {"best": 3.5, "num_runs": 2}, "previous_training_time": torch.tensor(5400.0)}
    checkpoint = {"optimizer_history": [{"num_updates": 100}], "extra_state": extra_state}
    parsed, _ = fairseq_options.get_training_parser().parse_known_args(options)
    assert train.end_of(checkpoint, parsed) == reason


def test_the_model_that_a_training_starts_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    configuration = configurations.load(CONFIGURATIONS / "ptb" / "awd_lstm_finetuned.yaml")
    path = configuration.train["finetune-from-model"].text
    with pytest.raises(InputError) as raised:
        train.check_first_model(configuration, path)
    told = f"awd_lstm_finetuned.yaml, line 13: --finetune-from-model {path}: no such file here; train that model first,"
    assert told in str(raised.value)
    with pytest.raises(InputError, match="^--finetune-from-model other.pt: no such file here;"):
        train.check_first_model(configuration, "other.pt")
    (tmp_path / "other.pt").touch()
    train.check_first_model(configuration, "other.pt")
    train.check_first_model(configuration, None)


def test_results_keep_what_others_wrote(tmp_path: Path) -> None:
    Run(tmp_path).write({"updates": 5, "seed": 1})
    Run(tmp_path).update(bleu_tokenized=30.5, seed=2)
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == Run(tmp_path).results
    assert Run(tmp_path).results == {"updates": 5, "seed": 2, "bleu_tokenized": 30.5}
    assert sorted(path.name for path in tmp_path.iterdir()) == [".results.lock", "results.json"]
    for content, message in ("{", "results.json: not JSON"), ("[]", "results.json: not the results of an experiment"):
        (tmp_path / "results.json").write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            Run(tmp_path)


def test_results_of_several_sets_at_once(tmp_path: Path) -> None:
    names = [f"test{number}" for number in range(12)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: Run(tmp_path).update(subsets={name: {"bleu": 1.0}}, **{name: 1}), names))
    found = Run(tmp_path).results
    assert set(found) == {"subsets", *names} and set(found["subsets"]) == set(names)


@pytest.mark.parametrize("number", [float, torch.tensor])
def test_what_a_checkpoint_knows_of_its_training(number: type) -> None:
    """One process keeps numbers, several keep tensors."""
    meters = [[0, name, None, {"sum": number(value)}] for name, value in (("train_wall", 4.0), ("wpb", 1000.0))]
    checkpoint = {
        "extra_state": {"metrics": {"default": meters}, "previous_training_time": number(12.5)},
        "optimizer_history": [{"num_updates": 75}],
        "cfg": {"common": {"seed": 7}},
        "parameters": 5654448,
    }
    expected = {
        "parameters": 5654448,
        "updates": 75,
        "train_seconds": 12.5,
        "train_tokens_per_second": 250.0,
        "seed": 7,
    }
    assert json.loads(json.dumps(train.training_results(checkpoint))) == expected
