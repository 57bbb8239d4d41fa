"""What importing this package changes, which is nothing, and when fairseq is told of it."""

from __future__ import annotations

import pytest

from tests.commands import CHECKOUT, USER_DIR, run_command

EVERY_LAYER = """
import importlib, pkgutil, sys
import fairseq_plugins, fairseq_plugins.modules, fairseq_plugins.kernels
for room in (fairseq_plugins.modules, fairseq_plugins.kernels):
    for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        # Triton is another package, which the GPUs' kernels alone import, when one is chosen.
        if module.name.rpartition(".")[2] not in ("triton", "cuda_graph"):
            importlib.import_module(module.name)
"""
REGISTRIES = """
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.optim import OPTIMIZER_REGISTRY
from fairseq.scoring import SCORER_REGISTRY
from fairseq.tasks import TASK_REGISTRY

def registered():
    return [
        "mc_rnn_iwslt_de_en" in ARCH_MODEL_REGISTRY, "streaming_language_modeling" in TASK_REGISTRY,
        "ranking_hinge" in CRITERION_REGISTRY, "asgd" in OPTIMIZER_REGISTRY, "rouge" in SCORER_REGISTRY,
    ]
"""
USER_FOLDER = f"""
import argparse
from fairseq import utils
utils.import_user_module(argparse.Namespace(user_dir={USER_DIR!r}))
"""


def output(program: str) -> list[str]:
    """What a program prints, a line each, in a process of its own."""
    return run_command(["python", "-c", program], cwd=CHECKOUT).stdout.splitlines()


@pytest.mark.system
def test_layers_change_nothing_where_fairseq_was_imported_before() -> None:
    program = f"""
import fairseq, fairseq_cli.generate, fairseq_cli.train
from tests.effects import difference, fingerprint
before = fingerprint()
{EVERY_LAYER}
print(len(before) > 10000, difference(before))
fairseq_plugins.register()
places = ["fairseq.trainer.Trainer.begin_epoch", "fairseq.models.build_model", "sys.excepthook", "warnings.filters"]
print(set(places) <= set(difference(before)))
before = fingerprint()
fairseq_plugins.register()
print(difference(before))
"""
    # Registering is seen, and seen once.
    assert output(program) == ["True []", "True", "[]"]


@pytest.mark.system
def test_layers_import_pytorch_alone() -> None:
    program = f"""
import sys, torch
from tests.effects import difference, fingerprint
before, modules = fingerprint(), set(sys.modules)
{EVERY_LAYER}
names = {{name.partition(".")[0] for name in set(sys.modules) - modules}} - sys.stdlib_module_names
print(sorted(name for name in names if "editable" not in name), difference(before))
"""
    assert output(program) == ["['fairseq_plugins'] []"]


def test_the_package_itself_imports_nothing() -> None:
    program = """
import sys
modules = set(sys.modules)
import fairseq_plugins
names = {name.partition(".")[0] for name in set(sys.modules) - modules} - sys.stdlib_module_names
print(sorted(name for name in names if "editable" not in name))
"""
    assert output(program) == ["['fairseq_plugins']"]


@pytest.mark.system
@pytest.mark.parametrize(
    "first",
    [
        USER_FOLDER,
        "import fairseq_plugins.optim.asgd",
        # As docs/python.md has it; the layers may be there already.
        "import fairseq_plugins.modules\nfrom fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqModel",
    ],
    ids=["user folder", "optimizer", "model"],
)
def test_importing_what_is_for_fairseq_registers_everything(first: str) -> None:
    program = f"""
{first}
{REGISTRIES}
from fairseq.trainer import Trainer
print(all(registered()), hasattr(Trainer.begin_epoch, "__wrapped__"))
"""
    assert output(program) == ["True True"]


@pytest.mark.system
def test_user_folder_after_the_layers() -> None:
    """fairseq skips a user folder that is imported already, as docs/python.md says."""
    program = f"""
import fairseq_plugins.modules
{USER_FOLDER}
{REGISTRIES}
print(any(registered()))
fairseq_plugins.register()
print(all(registered()))
"""
    assert output(program) == ["False", "True"], "fairseq no longer skips it: docs/python.md need not say so"


@pytest.mark.system
def test_without_fairseq() -> None:
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
    assert output(program) == ["5 2 4", "fairseq"]
