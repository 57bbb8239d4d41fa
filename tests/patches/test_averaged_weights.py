"""fairseq's trainer validates the averages of ``--optimizer asgd``; as whole commands in tests/system."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

from fairseq_plugins.optim.asgd import ASGDConfig, AveragedSGD
from fairseq_plugins.patches.averaged_weights import use_averaged_weights

from .unpatched import needless


@pytest.fixture
def trainer() -> SimpleNamespace:
    """As far as the methods look at it that begin a validation."""
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = AveragedSGD(OmegaConf.structured(ASGDConfig(lr=[0.5])), [parameter])
    for gradient in 1.0, 3.0, 2.0:
        parameter.grad = torch.tensor([gradient])
        optimizer.step()
    task = SimpleNamespace(begin_valid_epoch=lambda epoch, model: None)
    return SimpleNamespace(optimizer=optimizer, task=task, get_model=lambda: None, parameter=parameter)


def test_averages_are_validated(trainer: SimpleNamespace, unpatch: Callable[[object, str], None]) -> None:
    assert trainer.parameter.item() == -2
    Trainer.begin_valid_epoch(trainer, 1)
    assert trainer.parameter.item() == -1.5, "the mean of -1 and -2"
    trainer.optimizer.hold_parameters()
    unpatch(Trainer, "begin_valid_epoch")
    Trainer.begin_valid_epoch(trainer, 1)
    assert trainer.parameter.item() == -2, needless(use_averaged_weights)
