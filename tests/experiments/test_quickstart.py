"""The quick start's own parts; as a whole it runs in CI."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairseq_plugins.corpora import builtin
from fairseq_plugins.corpora.preparation import Preparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import quickstart, recorded_runs
from fairseq_plugins.experiments.recorded_runs import Record
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.scoring.metrics import metric_named


def printing(*lines: str, then: str = "") -> list[str]:
    return [sys.executable, "-c", f"print({chr(10).join(lines)!r}, flush=True)\n{then}"]


def training(folder: Path, *updates: tuple[float, int], options: Sequence[str] = ()) -> list[str]:
    """A command that writes statistics as a training does, and a line after each."""
    rows = [{"split": "valid", "epoch": 1, "ppl": ppl, "num_updates": number} for ppl, number in updates]
    folder.mkdir()
    path = str(folder / "train.jsonl")
    program = (
        f"import json\nfor row in {rows!r}:\n  with open({path!r}, 'a') as file: file.write(json.dumps(row) + '\\n')\n"
    )
    return [sys.executable, "-c", f"{program}  print('noise', flush=True)", "--work", str(folder), *options]


def test_both_trainings_report_their_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quickstart.train_side_by_side(
        {
            "MC-RNN-3": training(tmp_path / "a", (2.5, 10), (1.5, 20)),
            "RNNSearch": training(tmp_path / "b", (3.5, 30), options=["--max-update", "50"]),
        },
        {"MC-RNN-3": 2000, "RNNSearch": 2000},
    )
    output = capsys.readouterr().out
    assert "MC-RNN-3: 10 of 2,000 updates, development perplexity 2.50\n" in output
    assert "MC-RNN-3: 20 of 2,000 updates, development perplexity 1.50\n" in output
    assert "RNNSearch: 30 of 50 updates, development perplexity 3.50\n" in output
    assert "noise" not in output.splitlines()


def test_when_one_training_fails_the_other_is_stopped(tmp_path: Path) -> None:
    number = tmp_path / "number"
    program = f"import os, time; open({str(number)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    sleeping = [sys.executable, "-c", program]
    wait = f"import os, time\nwhile not os.path.exists({str(number)!r}): time.sleep(0.01)\ntime.sleep(0.5)"
    started = time.monotonic()
    with pytest.raises(InputError, match="RNNSearch: .* ended with exit status 3: the reason"):
        quickstart.train_side_by_side(
            {"MC-RNN-3": sleeping, "RNNSearch": printing("the reason", then=f"{wait}\nraise SystemExit(3)")},
            {"MC-RNN-3": 1, "RNNSearch": 1},
        )
    assert time.monotonic() - started < 500
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text(encoding="utf-8")), 0)


def test_it_says_which_kernels_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRSEQ_PLUGINS_BACKEND", raising=False)
    quickstart.show_kernels()
    assert capsys.readouterr().out == "kernels: C++ (MC-RNN, attention, scan)\n"


def test_samples(capsys: pytest.CaptureFixture[str]) -> None:
    quickstart.show_samples({"German": [f"de {n}" for n in range(10)], "MC-RNN-3": [f"en {n}" for n in range(10)]})
    output = capsys.readouterr().out
    assert output.count("German") == output.count("MC-RNN-3") == quickstart.SAMPLES
    assert "  German  de 4\nMC-RNN-3  en 4\n" in output


def recorded_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two recorded runs of the quick start's MC-RNN-3, none of RNNSearch."""
    monkeypatch.setenv(recorded_runs.VARIABLE, str(tmp_path / "results"))
    for seed, score in (1, 92.0), (2, 93.0):
        scores = {"test": {"bleu_tokenized": score}}
        recorded_runs.write(Record("quickstart", "mc_rnn_3", "configs/quickstart/mc_rnn_3.yaml", seed, scores=scores))


@pytest.mark.parametrize(("score", "is_below"), [(91.99, True), (92.0, False), (94.0, False)])
def test_scores_are_compared_with_recorded_runs(
    score: float, is_below: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_folder(tmp_path, monkeypatch)
    rows = [
        {"system": name, "BLEU (tokenised)": value}
        for name, value in (("word for word", 28.0), ("MC-RNN-3", score), ("RNNSearch", 1.0))
    ]
    notes = quickstart.add_recorded(rows, quickstart.TASKS["translation"], metric_named("bleu"), True)
    recorded = [row["recorded BLEU (tokenised)"] for row in rows]
    assert recorded == [None, "92.50, from 92.00 to 93.00 (2 runs)", None]
    expected = "MC-RNN-3: BLEU (tokenised) 91.99 is below the recorded 92.00 to 93.00 (2 runs; docs/results/)"
    assert notes == ([expected] if is_below else [])


def test_a_short_training_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded_folder(tmp_path, monkeypatch)
    rows = [{"system": "MC-RNN-3", "BLEU (tokenised)": 1.0}]
    notes = quickstart.add_recorded(rows, quickstart.TASKS["translation"], metric_named("bleu"), False)
    assert notes == ["The recorded runs trained for longer: --max-update cut these short."]
    monkeypatch.setenv(recorded_runs.VARIABLE, str(tmp_path / "none"))
    rows = [{"system": "MC-RNN-3", "BLEU (tokenised)": 1.0}]
    assert quickstart.add_recorded(rows, quickstart.TASKS["translation"], metric_named("bleu"), False) == []
    assert rows[0]["recorded BLEU (tokenised)"] is None


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("translation", "rnnsearch"),
        ("summarization", "mc_rnn_3"),
        ("classification", "rcrn"),
        ("language_model", "lstm"),
    ],
)
def test_another_seed_does_not_go_on_with_a_training(tmp_path: Path, name: str, model: str) -> None:
    Run(tmp_path / model).write({"seed": 1})
    with pytest.raises(InputError, match=f"{model} was trained with seed 1, not 2; name another folder by --work"):
        quickstart.main(["--task", name, "--seed", "2", "--work", str(tmp_path)])
    task = quickstart.TASKS[name]
    for seed in 1, None:
        assert quickstart.work_of(task, tmp_path, seed) == tmp_path
    assert quickstart.work_of(task, None, 2).name == f"{task.configurations}_seed_2"


def test_max_update_must_be_positive() -> None:
    with pytest.raises(InputError, match="--max-update is 0"):
        quickstart.main(["--max-update", "0"])


def test_updates_are_those_of_the_tasks_own_configurations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    totals = {
        name: {quickstart.updates(task, system) for system in task.systems} for name, task in quickstart.TASKS.items()
    }
    assert totals == {"translation": {1500}, "summarization": {1500}, "classification": {320}, "language_model": {1500}}
    folder = tmp_path / "quickstart_summarization"
    folder.mkdir()
    (folder / "mc_rnn_3.yaml").write_text("train: {arch: lstm, max-update: 7}")
    monkeypatch.setattr(quickstart, "CONFIGURATIONS", tmp_path)
    assert quickstart.updates(quickstart.TASKS["summarization"], "MC-RNN-3") == 7


def test_a_bag_of_words_fails_where_order_decides(tmp_path: Path) -> None:
    """At about chance: two people are named in a sentence, and either may be the one who acts."""
    texts = builtin.read("classification")
    (tmp_path / "tokens").mkdir()
    (tmp_path / "raw").mkdir()
    for split, size in ("train", 2000), ("test", 400):
        rows = [line.split("\t") for line in texts[f"{split}.tsv"].splitlines()[1 : size + 1]]
        sentences = "".join(f"{sentence.lower().replace('.', ' .')}\n" for sentence, _ in rows)
        (tmp_path / "tokens" / f"{split}.input0").write_text(sentences, encoding="utf-8")
        (tmp_path / "raw" / f"{split}.label").write_text("".join(f"{who}\n" for _, who in rows), encoding="utf-8")
    [(_, outputs)] = quickstart.bag_of_words(PreparedData(tmp_path, Preparation(metric="accuracy")), tmp_path).items()
    agents = [who for _, who in rows]
    right = sum(one == other for one, other in zip(outputs.text, agents, strict=True))
    assert 0.3 < right / 400 < 0.65
