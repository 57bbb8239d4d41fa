"""Numbers below the least normal one, in fairseq's commands."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import torch
from fairseq.distributed import utils as distributed_utils
import fairseq_plugins
from omegaconf import OmegaConf

def gate(size):
    return torch.sigmoid(torch.full((size,), -88.0)).max().item()

cfg = OmegaConf.create({"common": {"cpu": True, "tpu": False}, "distributed_training": {
    "distributed_init_method": None, "distributed_world_size": 1, "tpu": False, "pipeline_model_parallel": False}})
torch.set_num_threads(2)
assert gate(1) > 0
seen = []
# So many that every thread has a part of them.
distributed_utils.call_main(cfg, lambda cfg: seen.append(gate(1_000_000)))
assert seen == [0.0], seen
"""


def test_they_are_zero_in_commands_alone() -> None:
    """A closed gate's matrices would be multiplied some hundred times slower. Importing changes nothing."""
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
