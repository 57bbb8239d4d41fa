"""What every way of decoding begins with: batches that fit a set, and options that win over those of the training."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import ListDataset
from omegaconf import OmegaConf

from fairseq_plugins.corpora.generated_sequences import GeneratedSequencesPreparation
from fairseq_plugins.decoding.classification import ClassificationModel
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.decoding.trained_model import BatchOptions, model_overrides
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.configuration import Configuration
from fairseq_plugins.experiments.decoding import Classification


def test_batches_fit_a_set() -> None:
    dataset = ListDataset([torch.ones(size) for size in (3, 9, 5)], [3, 9, 5])
    assert BatchOptions().fitted(dataset, 7).max_tokens == 9
    assert BatchOptions().fitted(dataset, 20).max_tokens == 20
    assert BatchOptions(batch_size=2).fitted(dataset, 20) == BatchOptions(batch_size=2)
    assert BatchOptions(max_tokens=9).fitted(dataset, 20).max_tokens == 9
    with pytest.raises(InputError, match="--max-tokens 8: an example has 9 tokens, which no batch can hold; say at le"):
        BatchOptions(max_tokens=8).fitted(dataset, 20)


@pytest.mark.parametrize("given", ["{'dropout': 0.1", "dropout=0.1", "0.1"])
def test_overrides_that_are_no_dictionary(given: str) -> None:
    assert model_overrides(argparse.Namespace(model_overrides="{'dropout': 0.1}")) == {"dropout": 0.1}
    with pytest.raises(InputError, match="write a dictionary of Python, such as"):
        model_overrides(argparse.Namespace(model_overrides=given))


@pytest.mark.parametrize("kind", [OmegaConf.create, lambda values: argparse.Namespace(**values)])
def test_options_of_the_task_win_over_the_trainings(tmp_path: Path, kind: type) -> None:
    data = PreparedData(tmp_path, GeneratedSequencesPreparation(problem="pixels", length=784))
    extra = ["--sequence-length", "800", "--batch-size", "7"]
    batches, of_task, _ = Classification().options(Configuration(tmp_path / "model.yaml"), data, extra)
    assert batches.batch_size == 7 and of_task == {"sequence_length": 800, "batch_size": 7}
    task = SimpleNamespace(cfg=kind({"sequence_length": 784}), load_dataset=lambda *_, **__: None, dataset=str)
    model = ClassificationModel([Path("a.pt")], ["a"], [], None, task, data, torch.device("cpu"))
    assert model.dataset("test", of_task) == "test"
    assert vars(task)["cfg"].sequence_length == 800 and "batch_size" not in task.cfg
