"""Tests of what architectures share."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from fairseq_plugins.models.double_path import DoublePathModel
from fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqModel

from .tasks import make_task


@pytest.mark.parametrize(
    ("model", "option"), [(RecurrentSeq2SeqModel, "order"), (DoublePathModel, "activation_dropout")]
)
def test_a_checkpoint_of_an_earlier_version_lacks_later_options(model: type, option: str) -> None:
    """fairseq hands over the options of the checkpoint as they are where the architecture has a name of its own."""
    options = OmegaConf.structured(model.__dataclass)
    values = {key: value for key, value in OmegaConf.to_container(options).items() if key != option}
    cfg = OmegaConf.create(values)
    OmegaConf.set_struct(cfg, True)
    built = model.build_model(cfg, make_task())
    whole = model.build_model(options, make_task())
    assert {name: p.shape for name, p in built.named_parameters()} == {n: p.shape for n, p in whole.named_parameters()}
