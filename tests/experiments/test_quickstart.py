"""The quick start's own parts; as a whole it runs in CI."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import quickstart

UPDATES = "2026-11-21 02:32:21 | INFO | valid | epoch 001 | valid on 'valid' subset | ppl {} | num_updates {}"


def printing(*lines: str, then: str = "") -> list[str]:
    return [sys.executable, "-c", f"print({chr(10).join(lines)!r}, flush=True)\n{then}"]


def test_both_trainings_report_their_progress(capsys: pytest.CaptureFixture[str]) -> None:
    quickstart.train_side_by_side(
        {
            "MC-RNN-3": printing("noise", UPDATES.format(2.5, 10), UPDATES.format(1.5, 20)),
            "RNNSearch": [*printing(UPDATES.format(3.5, 30)), "--max-update", "50"],
        },
        {"MC-RNN-3": 2000, "RNNSearch": 2000},
    )
    output = capsys.readouterr().out
    assert "MC-RNN-3: 10 of 2,000 updates, development perplexity 2.50\n" in output
    assert "MC-RNN-3: 20 of 2,000 updates, development perplexity 1.50\n" in output
    assert "RNNSearch: 30 of 50 updates, development perplexity 3.50\n" in output
    assert "noise" not in output.splitlines()


def test_when_one_training_fails_the_other_is_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    number = tmp_path / "number"
    program = f"import os, time; open({str(number)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    sleeping = [sys.executable, "-c", program]
    wait = f"import os, time\nwhile not os.path.exists({str(number)!r}): time.sleep(0.01)\ntime.sleep(0.5)"
    started = time.monotonic()
    with pytest.raises(InputError, match="RNNSearch: .* ended with exit status 3"):
        quickstart.train_side_by_side(
            {"MC-RNN-3": sleeping, "RNNSearch": printing("the reason", then=f"{wait}\nraise SystemExit(3)")},
            {"MC-RNN-3": 1, "RNNSearch": 1},
        )
    assert time.monotonic() - started < 500
    assert "the reason" in capsys.readouterr().err
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text(encoding="utf-8")), 0)


def test_samples(capsys: pytest.CaptureFixture[str]) -> None:
    quickstart.show_samples({"German": [f"de {n}" for n in range(10)], "MC-RNN-3": [f"en {n}" for n in range(10)]})
    output = capsys.readouterr().out
    assert output.count("German") == output.count("MC-RNN-3") == quickstart.SAMPLES
    assert "  German  de 4\nMC-RNN-3  en 4\n" in output


def test_max_update_must_be_positive() -> None:
    with pytest.raises(InputError, match="--max-update is 0"):
        quickstart.main(["--max-update", "0"])


def test_updates_are_those_of_the_tasks_own_configurations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {quickstart.updates(task, "MC-RNN-3") for task in quickstart.TASKS.values()} == {1500}
    folder = tmp_path / "configs" / "quickstart_summarization"
    folder.mkdir(parents=True)
    (folder / "mc_rnn_3.yaml").write_text("train: {arch: lstm, max-update: 7}")
    monkeypatch.setattr(quickstart, "CHECKOUT", tmp_path)
    assert quickstart.updates(quickstart.TASKS["summarization"], "MC-RNN-3") == 7
