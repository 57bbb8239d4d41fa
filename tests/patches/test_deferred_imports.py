"""scikit-learn and SciPy wait until fairseq calls them, and are themselves then."""

from __future__ import annotations

import sys

import pytest

from fairseq_plugins.patches.deferred_imports import defer_imports
from tests.commands import run_command

from .unpatched import Unpatched, needless

WAITING = """
import fairseq_plugins, numpy, sys
fairseq_plugins.register()
print(sorted({"scipy", "sklearn"} & set(sys.modules)))
from fairseq.criterions import sentence_prediction
print(round(sentence_prediction.acc_and_f1(numpy.array([1, 0, 1, 1]), numpy.array([1, 0, 0, 1]))["f1"], 6))
from fairseq.tasks.audio_classification import sklearn_metrics
print(sklearn_metrics.roc_curve([0, 1], [0.2, 0.7])[1].tolist())
import sklearn.metrics, scipy.optimize
print(sklearn.metrics.f1_score.__module__)
"""
BEFORE = """
import sklearn.metrics, fairseq_plugins
fairseq_plugins.register()
from fairseq.criterions import sentence_prediction
print(sentence_prediction.f1_score is sklearn.metrics.f1_score)
"""


@pytest.mark.system
@pytest.mark.parametrize(
    ("program", "output"),
    [
        (WAITING, "[]\n0.8\n[0.0, 1.0, 1.0]\nsklearn.metrics._classification\n"),
        (BEFORE, "True\n"),
    ],
)
def test_until_they_are_called(program: str, output: str) -> None:
    assert run_command([sys.executable, "-c", program]).stdout == output


def test_fairseq_imports_them(unpatched: Unpatched) -> None:
    assert unpatched.imported == ["scipy", "sklearn"], needless(defer_imports)
