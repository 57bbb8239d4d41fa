"""When fairseq is told of this package, and when not even imported."""

from __future__ import annotations

from tests.commands import CHECKOUT, run_command


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    program = """
import os, sys
import fairseq_plugins
assert not {"fairseq", "torch"} & sys.modules.keys()
# A fairseq-train that is started from here registers.
assert "FAIRSEQ_PLUGINS_REGISTER" not in os.environ
fairseq_plugins.register()
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.scoring import SCORER_REGISTRY
registered = dict(ARCH_MODEL_REGISTRY)
assert "mc_rnn_iwslt_de_en" in registered and "rouge" in SCORER_REGISTRY
fairseq_plugins.register()
assert registered == ARCH_MODEL_REGISTRY
print("registered once")
"""
    finished = run_command(["python", "-c", program], cwd=CHECKOUT, FAIRSEQ_PLUGINS_REGISTER="0")
    assert finished.stdout == "registered once\n"
    assert "Warning" not in finished.stderr


def test_importing_registers() -> None:
    program = """
import fairseq_plugins
from fairseq.models import ARCH_MODEL_REGISTRY
print("mc_rnn_iwslt_de_en" in ARCH_MODEL_REGISTRY)
"""
    assert run_command(["python", "-c", program], cwd=CHECKOUT).stdout == "True\n"


def test_without_fairseq_importing_registers_nothing() -> None:
    program = """
import sys
sys.modules["fairseq"] = None  # as if it were not installed
import fairseq_plugins
from fairseq_plugins.modules import MultiChannelRNN
import torch
print(*MultiChannelRNN(3, 4)(torch.zeros(5, 2, 3))[0].shape)
try:
    fairseq_plugins.register()
except ImportError as error:
    print(error.name.partition(".")[0])
"""
    finished = run_command(["python", "-c", program], cwd=CHECKOUT)
    assert finished.stdout == "5 2 4\nfairseq\n"
