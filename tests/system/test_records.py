"""scripts/evaluate.sh --record: a run of one of the project's configurations becomes a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.experiments import evaluate, fairseq_commands, sentence_statistics, train
from fairseq_plugins.scoring.metrics import metric_named
from tests.commands import CHECKOUT, run_command, run_in_process
from tests.conftest import TranslationData


def test_a_run_is_recorded(
    tiny_translation_data: TranslationData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tiny_translation_data.raw
    files = {split: (raw / f"{split}.xx", raw / f"{split}.yy") for split in ("train", "valid", "test")}
    prepare(PairsPreparation(source_lang="xx", target_lang="yy", bpe_size=40), files, tmp_path / "data")
    configuration = CHECKOUT / "configs" / "quickstart" / "rnnsearch.yaml"
    arguments = [configuration, "--work", tmp_path / "work", "--data", tmp_path / "data", "--gpus", "0"]
    environment = {"FAIRSEQ_PLUGINS_RESULTS": str(tmp_path / "results")}

    refused = run_in_process(evaluate.main, *arguments, "--record", status=1)
    assert "results.json tells of no training; run 'fairseq-plugins train' first" in refused.stderr
    scripts = CHECKOUT / "scripts"
    run_command([scripts / "train.sh", *arguments, "--max-update", "2", "--seed", "5"], **environment)
    monkeypatch.setattr(fairseq_commands, "available_gpus", lambda: 0)
    for main in train.main, evaluate.main:
        refused = run_in_process(main, *arguments, "--gpus", "1", status=1)
        assert "--gpus 1: PyTorch sees" in refused.stderr
    finished = run_command([scripts / "evaluate.sh", *arguments, "--record", "--beam", "2"], **environment)
    path = tmp_path / "results" / "quickstart" / "rnnsearch" / "seed_5_max-update_2_beam_2.json"
    assert f"record: {path}\n" in finished.stdout
    record = json.loads(path.read_text(encoding="utf-8"))
    results = json.loads((tmp_path / "work" / "results.json").read_text(encoding="utf-8"))
    assert record["differs"] == {"train": {"max-update": "2"}, "generate": {"beam": "2"}}
    assert results["evaluate_command"].endswith("--record --beam 2")
    assert record["scores"]["test"]["bleu_tokenized"] == results["bleu_tokenized"]
    assert record["scores"]["test"]["sacrebleu_signature"] == results["sacrebleu_signature"]
    assert (record["seed"], record["updates"]) == (5, 2)
    # What a test of significance needs is there without the translations.
    rows = sentence_statistics.beside(path)["test"]
    assert len(rows) == 101
    scores = metric_named("bleu").scores_of(rows.sum(axis=0))
    assert [round(score, 2) for score in scores] == [results["bleu_tokenized"], results["bleu_sacrebleu"]]
    assert record["machine"]["threads"] == 1 and record["machine"]["processor"]
    assert record["revision"] == results["git_revision"]
    assert str(tmp_path) not in path.read_text(encoding="utf-8")
