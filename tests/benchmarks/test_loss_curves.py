"""The benchmark of loss curves trains with and without each fast operation, and makes the changes that it names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands import CHECKOUT, run_command
from tests.conftest import TranslationData

COMMAND = ["python", str(CHECKOUT / "benchmarks" / "loss_curves.py")]
CHANGES = """
import fairseq_plugins, loss_curves, torch
from fairseq_plugins.kernels.dispatch import OPERATIONS

linear = torch.nn.Linear(20, 20)
before = linear.weight.clone()
loss_curves.disturb(linear)
assert 0 < (linear.weight / before - 1).abs().max() < 3e-7
assert (linear.weight > before).any() and (linear.weight < before).any()
first = {name: next(each.name for each in backends if not each.is_measured) for name, backends in OPERATIONS.items()}
fairseq_plugins.register()
step = loss_curves.Adam.step
for name in loss_curves.WITHOUT:
    loss_curves.withdraw(name)
left = {name: [each.name for each in backends] for name, backends in OPERATIONS.items()}
assert [name for name in left if first[name] in left[name]] == ["dropout"]
assert loss_curves.Adam.step is not step and "fairseq.optim" in loss_curves.Adam.step.__module__
print("all")
"""
SIZES = ["--encoder-embed-dim", "8", "--encoder-hidden-size", "8", "--decoder-embed-dim", "8"]
SIZES += ["--decoder-hidden-size", "8"]


@pytest.mark.slow
def test_curves_agree_to_rounding(tiny_translation_data: TranslationData, tmp_path: Path) -> None:
    options = ["--task", "translation", "--arch", "mc_rnn_iwslt_de_en", *SIZES, "--criterion", "output_cross_entropy"]
    options += ["--optimizer", "adam", "--lr", "1e-3", "--max-tokens", "200", "--dropout", "0.1"]
    without = ["additive_attention", "output_cross_entropy", "adam"]
    arguments = ["--updates", "4", "--without", *without, "--json", tmp_path / "curves.json"]
    finished = run_command([*COMMAND, *arguments, tiny_translation_data.separate, *options])
    printed = re.findall(r"^(rounding|without \w+) +largest (\S+)   end (\S+) bits$", finished.stdout, re.MULTILINE)
    assert [name for name, _, _ in printed] == ["rounding", *(f"without {name}" for name in without)]
    assert all(float(largest) < 1e-5 for _, largest, _ in printed)
    curves = {row["training"]: row["losses"] for row in json.loads((tmp_path / "curves.json").read_text())["rows"]}
    assert list(curves) == ["as it is", "rounding", *without] and {len(curve) for curve in curves.values()} == {4}
    assert 4 < curves["as it is"][0] < 6, "bits of 28 types, untrained"


@pytest.mark.slow
def test_the_changes_are_made() -> None:
    finished = run_command(["python", "-c", CHANGES], PYTHONPATH=str(CHECKOUT / "benchmarks"))
    assert finished.stdout.splitlines()[-1] == "all"


def test_a_training_that_fails_is_shown(tmp_path: Path) -> None:
    arguments = [tmp_path / "nothing", "--task", "translation", "--arch", "mc_rnn_iwslt_de_en"]
    finished = run_command([*COMMAND, *arguments], status=1)
    assert "fairseq-train failed (as it is)" in finished.stderr
