"""scripts/evaluate.sh says of a model with gates how it uses them, in results.json, in its output and in the report."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.experiments import evaluate
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.report import analyses
from fairseq_plugins.report.experiment import experiment_report
from tests.commands import train_in_process
from tests.conftest import TranslationData

SIZES = {"embed-dim": 8, "cnn-layers": 1, "san-layers": 1, "attention-heads": 2, "ffn-embed-dim": 8}
OPTIONS = [
    part for side in ("encoder", "decoder") for name, n in SIZES.items() for part in (f"--{side}-{name}", f"{n}")
]


@pytest.fixture
def data(tiny_translation_data: TranslationData, tmp_path: Path) -> PreparedData:
    raw = tiny_translation_data.raw
    files = {split: (raw / f"{split}.xx", raw / f"{split}.yy") for split in ("train", "valid", "test")}
    prepare(PairsPreparation("xx", "yy", bpe="subword-nmt", bpe_size=10), files, tmp_path / "data")
    return PreparedData.load(tmp_path / "data")


@pytest.mark.slow
def test_entropies_gates_and_warnings(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    work = tmp_path / "work"
    configuration = tmp_path / "model.yaml"
    configuration.write_text("train: {arch: dpn_iwslt_de_en}\ngenerate: {beam: 1, batch-size: 128}", encoding="utf-8")
    # So slow that every attention is still where it started: nearly uniform.
    options = ["--arch", "dpn_iwslt_de_en", *OPTIONS, "--optimizer", "adam", "--lr", "1e-9", "--max-epoch", "1"]
    train_in_process(*data.arguments(), *options, "--batch-size", "50", "--cpu", "--save-dir", work / "checkpoints")
    evaluate.main([str(configuration), "--work", str(work), "--data", str(data.folder)])

    found = json.loads((work / "results.json").read_text(encoding="utf-8"))["attention"]
    assert list(found["entropy"]) == ["cc", "ca", "ac", "aa"]
    assert all(0 < value <= found["uniform"] + 1e-6 for value in found["entropy"].values())
    assert 0 < found["uniform"] < math.log(50)
    assert {name: len(layers) for name, layers in found["gates"].items()} == {
        "cnn.san": 1,
        "san.cnn": 1,
        "output.san": 1,
    }
    assert found["checkpoint"].endswith("checkpoint_best.pt")
    assert any("looks everywhere alike" in warning for warning in found["warnings"])
    printed = capsys.readouterr().out
    assert [line[9:] for line in printed.splitlines() if line.startswith("warning: ")] == found["warnings"]

    flows, gates = experiment_report(Run(work)).tables[-2:]
    assert flows.heading == "Attention over the development set"
    assert [row[0] for row in flows.rows[:4]] == ["CNN to CNN", "CNN to SAN", "SAN to CNN", "SAN to SAN"]
    assert flows.rows[1][1] == f"{found['entropy']['ca']:.3f}"
    assert gates.rows[2][1] == f"{found['gates']['output.san'][0]:.3f}"
    assert gates.notes == [f"Warning: {warning}." for warning in found["warnings"]]

    checkpoint, prefix = found["checkpoint"], tmp_path / "entropy"
    options = ["--subset", "valid", "--data", str(data.folder), "--output", str(prefix)]
    analyses.main(["entropy", checkpoint, *options])
    alone = json.loads(prefix.with_suffix(".json").read_text(encoding="utf-8"))
    assert {key: alone[key] for key in found} == found, "the analysis finds the same numbers"
    assert evaluate.attention_over_development_set(f"{checkpoint}:{checkpoint}", data) is None

    (data.folder / "bpe" / "valid.yy").write_text("", encoding="utf-8")
    capsys.readouterr()
    assert evaluate.attention_over_development_set(checkpoint, data) is None
    said = capsys.readouterr().out
    assert said.startswith("note: where the model looks is not known: ") and "valid.yy: the file is empty" in said
