"""Copies of tasks, and of models that were prepared for inference."""

from __future__ import annotations

import argparse
import copy
import copyreg
import pickle
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from fairseq.dataclass.configs import GenerationConfig
from fairseq.dataclass.constants import ChoiceEnum, StrEnum, StrEnumMeta
from fairseq.models import BaseFairseqModel
from fairseq.tasks.fairseq_task import FairseqTask, StatefulContainer

from fairseq_plugins.patches.copied_models import copy_models_and_tasks

from .unpatched import fault_of


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_task_is_copied(copied: Callable, unpatch: Callable[[object, str], None]) -> None:
    task = FairseqTask(argparse.Namespace(seed=3))
    task.state.merge_state_dict({"words": [1, 2]})
    copy_of_task = copied(task)
    assert copy_of_task.state.words == [1, 2] and copy_of_task.state.words is not task.state.words
    with pytest.raises(AttributeError, match="no factory for attribute other"):
        getattr(copy_of_task.state, "other")  # noqa: B009 - which looks it up
    unpatch(StatefulContainer, "__getattr__")
    with fault_of(copy_models_and_tasks, RecursionError):
        copied(task)


def prepared() -> BaseFairseqModel:
    model = BaseFairseqModel()
    model.prepare_for_inference_(SimpleNamespace(generation=GenerationConfig()))
    return model


def test_a_model_that_has_translated_is_sent_to_another_process(unpatch: Callable[[object, str], None]) -> None:
    model = pickle.loads(pickle.dumps(prepared()))
    model.train(False)
    with pytest.raises(RuntimeError, match="cannot train after make_generation_fast"):
        model.train()
    unpatch(BaseFairseqModel, "make_generation_fast_")
    with fault_of(copy_models_and_tasks, AttributeError, pickle.PicklingError):
        pickle.dumps(prepared())


def test_choices_of_options_are_sent_to_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = ChoiceEnum(["first", "second"])
    again = pickle.loads(pickle.dumps({"kind": choices, "value": choices("second")}))
    assert again["value"] == "second" and [str(choice) for choice in again["kind"]] == ["first", "second"]
    assert pickle.loads(pickle.dumps(StrEnum)) is StrEnum, "what has a name is found by it"
    monkeypatch.delitem(copyreg.dispatch_table, StrEnumMeta)
    with fault_of(copy_models_and_tasks, AttributeError, pickle.PicklingError):
        pickle.dumps(choices)
