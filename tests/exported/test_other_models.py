"""Exported language models and classifiers say what the models say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import onnx
import pytest

from fairseq_plugins import exported
from fairseq_plugins.decoding.classification import ClassificationModel
from fairseq_plugins.decoding.language_model import LanguageModel, by_line
from fairseq_plugins.decoding.trained_model import BatchOptions
from fairseq_plugins.errors import InputError
from fairseq_plugins.export.command import export
from fairseq_plugins.exported.classification import ExportedClassifier
from fairseq_plugins.exported.language_model import ExportedLanguageModel
from fairseq_plugins.exported.translation import ExportedTranslationModel
from fairseq_plugins.files import sha256
from tests.commands import train_in_process
from tests.system.test_sequence_tasks import classifier
from tests.texts import training

pytestmark = pytest.mark.slow  # tests/export has the forms in seconds; this exports them

__all__ = ["classifier"]


def test_a_language_model(running_text: Path, tmp_path: Path) -> None:
    train_in_process(*training(running_text, tmp_path, *"--max-epoch 2 --optimizer adam --lr 0.01".split()))
    trained = LanguageModel.load([tmp_path / "checkpoint_best.pt"])
    export(trained, tmp_path / "exported")
    model = exported.load(tmp_path / "exported")
    assert isinstance(model, ExportedLanguageModel)
    lines = [trained.preparation.decode(line) for line in trained.lines_of("test")]
    encoded = trained.encoded(lines, "text")
    expected = by_line(trained.read(trained.numbers(encoded)).log_probabilities, encoded)
    result = model.log_probabilities(lines)
    assert list(map(len, result)) == list(map(len, expected))
    values = np.concatenate(expected)
    np.testing.assert_allclose(np.concatenate(result), values, atol=1e-5)
    assert model.perplexity(lines) == pytest.approx(math.exp(-values.mean()), rel=1e-5)
    drawn = model.sample(20, seed=1, prompt=lines[0], temperature=0.7, top_k=5)
    assert drawn == model.sample(20, seed=1, prompt=lines[0], temperature=0.7, top_k=5)
    assert drawn != model.sample(20, seed=2, prompt=lines[0], temperature=0.7, top_k=5)
    assert drawn[0].startswith(lines[0])
    model.dictionary.impossible.append(len(model.dictionary) - 1)
    assert model.dictionary.symbols[-1] not in " ".join(model.sample(200, seed=1, temperature=1e6)).split()
    with pytest.raises(InputError, match="the temperature is at least 1e-06"):
        model.sample(20, seed=1, temperature=1e-320)
    for numbers in {"temperature": float("nan")}, {"seed": -1}:
        with pytest.raises(InputError, match="the seed is at least 0"):
            model.sample(20, **{"seed": 1, **numbers})


def test_a_classifier(classifier: tuple[Path, Path], tmp_path: Path) -> None:  # noqa: F811
    _, work = classifier
    trained = ClassificationModel.load([work / "checkpoints" / "checkpoint_best.pt"])
    export(trained, tmp_path / "exported")
    model = exported.load(tmp_path / "exported")
    assert isinstance(model, ExportedClassifier)
    texts = ["the baker bakes bread", "", "who sings", "<pad>", "who <pad> sings"]
    expected, result = trained.predictions_of(texts, BatchOptions()), model.classify(texts)
    assert result[1] is None and expected[1] is None
    for one, right in zip(result, expected, strict=True):
        if one is not None and right is not None:
            assert one.label == right.pieces
            np.testing.assert_allclose(list(one.log_probabilities.values()), right.log_probabilities, atol=1e-5)
    with pytest.raises(InputError, match="a model of the kind 'classifier', not 'translation'"):
        ExportedTranslationModel.load(tmp_path / "exported")
    card = json.loads((tmp_path / "exported" / "model.json").read_text(encoding="utf-8"))
    for labels in None, card["labels"][1:], [1] * len(card["labels"]):
        (tmp_path / "exported" / "model.json").write_text(json.dumps({**card, "labels": labels}), encoding="utf-8")
        with pytest.raises(InputError, match="'labels' is missing or damaged; export the model again"):
            exported.load(tmp_path / "exported")
    path = tmp_path / "exported" / "classifier.onnx"
    graph = onnx.load(path)
    next(part for part in graph.graph.input if part.name == "lengths").name = "sizes"
    for node in graph.graph.node:
        node.input[:] = ["sizes" if name == "lengths" else name for name in node.input]
    onnx.save(graph, path)
    card["files"][path.name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    (tmp_path / "exported" / "model.json").write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(InputError, match="classifier.onnx: another version of fairseq-plugins exported it"):
        exported.load(tmp_path / "exported")
