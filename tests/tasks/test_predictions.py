"""Criterions by which a model of labels can be trained, and those by which it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairseq import options, tasks
from fairseq.criterions import FairseqCriterion
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import fairseq_plugins
from fairseq_plugins.errors import InputError

fairseq_plugins.register()

FITTING = {
    "sequence_classification": "sequence_classification",
    "long_memory": "sequence_classification",
    "sequence_ranking": "ranking_hinge",
}


def built(folder: Path, task: str, criterion: str) -> FairseqCriterion:
    for name in "input0", "label":
        (folder / name).mkdir()
        (folder / name / "dict.txt").write_text("a 1\n", encoding="utf-8")
    args = [str(folder), "--task", task, "--arch", "sequence_classifier", "--criterion", criterion]
    config = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), args))
    return tasks.setup_task(config.task).build_criterion(config.criterion)


@pytest.mark.system
@pytest.mark.parametrize("criterion", ["cross_entropy", "label_smoothed_cross_entropy", "output_cross_entropy"])
@pytest.mark.parametrize("task", FITTING)
def test_criterions_of_texts_are_refused(tmp_path: Path, task: str, criterion: str) -> None:
    """fairseq's cross-entropy, its default, leaves out the class whose number is that of padding."""
    expected = f"--criterion {criterion}: --task {task} needs --criterion {FITTING[task]}, or one of your own with "
    with pytest.raises(InputError, match=expected):
        built(tmp_path, task, criterion)


@pytest.mark.system
@pytest.mark.parametrize("task", FITTING)
def test_those_of_labels_are_built(tmp_path: Path, task: str) -> None:
    assert built(tmp_path, task, FITTING[task])
