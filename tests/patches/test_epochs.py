"""The recurrent networks of a model hear of each epoch."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from fairseq.trainer import Trainer
from torch import nn

from fairseq_plugins.modules import ConventionalRNN
from fairseq_plugins.patches.epochs import tell_networks_of_epochs

from .unpatched import needless


class Network(ConventionalRNN):
    def on_epoch(self, epoch: int) -> None:
        self.epoch = epoch


def begin_epoch(epoch: int) -> list[int | None]:
    """Which epoch each network of a model knows of after fairseq's trainer has begun one."""
    model = nn.Sequential(Network(2, 3), nn.Sequential(Network(3, 3)))
    task = SimpleNamespace(begin_epoch=lambda epoch, model: None)
    trainer = SimpleNamespace(
        get_model=lambda: model, task=task, quantizer=None, tpu=False, lr_step_begin_epoch=lambda epoch: None
    )
    Trainer.begin_epoch(trainer, epoch)
    return [getattr(network, "epoch", None) for network in model.modules() if isinstance(network, Network)]


def test_each_network_is_told(unpatch: Callable[[object, str], None]) -> None:
    assert begin_epoch(3) == [3, 3]
    unpatch(Trainer, "begin_epoch")
    assert begin_epoch(3) == [None, None], needless(tell_networks_of_epochs)
