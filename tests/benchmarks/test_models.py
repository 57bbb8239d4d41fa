"""The benchmark of whole models runs and prints its ratios. It is never timed here."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.commands import CHECKOUT, run_command

sys.path.insert(0, str(CHECKOUT / "benchmarks"))

import joeynmt_models  # noqa: E402
import models  # noqa: E402

COMMAND = ["python", str(CHECKOUT / "benchmarks" / "models.py")]


@pytest.mark.slow
def test_prints_ratios_and_writes_json(tmp_path: Path) -> None:
    options = ["--systems", "dpn_iwslt_de_en", "lstm_as_rnnsearch", "san_deeper_iwslt_de_en", "--types", "50"]
    options += ["--train-peer", "san_deeper_iwslt_de_en", "--sentences", "2", "2", "--threads", "1"]
    options += ["--repetitions", "2", "--json", str(tmp_path / "rows.json")]
    printed = run_command([*COMMAND, *options]).stdout
    assert "tokens/s" in printed
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [(row["work"], row["arch"]) for row in rows] == [
        (work, arch) for work in ("training", "beam search") for arch in options[1:4]
    ]
    assert [row["ratio_to_peer"] for row in rows if row["arch"] == row["peer"]] == [1, 1]
    assert all(row["speed"] > 0 for row in rows)


def test_a_peer_must_be_there() -> None:
    options = ["--systems", "dpn_iwslt_de_en", "--train-peer", "dpn_iwslt_de_en"]
    finished = run_command([*COMMAND, *options], status=2)
    assert "--decode-peer san_deeper_iwslt_de_en is not among the --systems" in finished.stderr


def test_joey_nmt_is_an_installation_of_its_own() -> None:
    if importlib.util.find_spec("joeynmt"):
        pytest.skip("Joey NMT is installed")
    finished = run_command([*COMMAND, "--peer", "joeynmt"], status=2)
    assert "joeynmt is not installed: pip install --no-deps joeynmt==2.3.0" in finished.stderr


@pytest.mark.system
def test_joey_nmt_reads_the_same_sentences() -> None:
    pytest.importorskip("joeynmt", reason="Joey NMT is not installed (benchmarks/joeynmt_models.py says how)")
    sample = models.batch(models.task_of("lstm_as_rnnsearch", 60), 4, "cpu")
    read = joeynmt_models.batch(sample)
    sentences = [row[row != 1].tolist() for row in sample["net_input"]["src_tokens"]]
    assert [row[row != 1].tolist() for row in read["src"]] == [[*words[:-1], 3] for words in sentences]
    assert read["ntokens"] == sample["ntokens"]
    for system in joeynmt_models.SYSTEMS:
        model = joeynmt_models.build(system, 60)
        assert joeynmt_models.loss(model, sample)().item() > 0
        joeynmt_models.beam_search(model.eval(), sample, 2, 4)()


@pytest.mark.system
def test_models_with_products_in_bfloat16(tmp_path: Path) -> None:
    arch = "rnnsearch_iwslt_de_en"
    options = ["--systems", arch, "--train-peer", arch, "--decode-peer", arch, "--types", "50", "--sentences", "2", "2"]
    options += ["--threads", "1", "--medium", "--repetitions", "2", "--json", str(tmp_path / "rows.json")]
    run_command([*COMMAND, *options])
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["arch"] for row in rows] == [arch, f"{arch}, medium"] * 2


def test_medium_precision_ends_with_the_step() -> None:
    seen = []
    models.at_medium_precision(lambda: seen.append(torch.get_float32_matmul_precision()))()
    assert [*seen, torch.get_float32_matmul_precision()] == ["medium", "highest"]


@pytest.mark.slow
def test_exported_models_decode_beside_the_others(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="what exports is not installed (extra export)")
    options = ["--systems", "rnnsearch_iwslt_de_en", "--train-peer", "rnnsearch_iwslt_de_en", "--types", "50"]
    options += ["--decode-peer", "rnnsearch_iwslt_de_en", "--sentences", "2", "2", "--threads", "1", "--exported"]
    run_command([*COMMAND, *options, "--repetitions", "2", "--json", str(tmp_path / "rows.json")])
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    exported = "rnnsearch_iwslt_de_en, exported"
    assert [row["arch"] for row in rows if row["work"] == "beam search"] == ["rnnsearch_iwslt_de_en", exported]


def test_an_exported_model_decodes_the_same_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = models.batch(models.task_of("lstm_as_rnnsearch", 60), 3, "cpu", (2, 4))
    asked = []
    monkeypatch.setattr(models, "search", lambda *arguments: asked.append(arguments))
    model = SimpleNamespace(padding=1)
    models.exported_beam_search(model, sample, 7)()
    [(_, sources, options)] = asked
    assert list(map(len, sources)) == sample["net_input"]["src_lengths"].tolist()
    assert all(source[-1] == 2 for source in sources)
    assert (options.beam, options.limit(4, 100), options.min_len) == (models.BEAM, 7, 7)
