"""Numbers below the least normal one, in fairseq's commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys

import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed_utils
from omegaconf import OmegaConf

import fairseq_plugins

PROCESSES = int(sys.argv[1])


def gate(size):
    return torch.sigmoid(torch.full((size,), -88.0)).max().item()


def main(cfg):
    # So many that every thread has a part of them.
    assert gate(1_000_000) == 0
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    open(f"{sys.argv[2]}/{rank}", "w").close()


if __name__ == "__main__":
    cfg = OmegaConf.create(OmegaConf.to_container(OmegaConf.structured(FairseqConfig), enum_to_str=True))
    cfg.model, cfg.common.cpu, cfg.distributed_training.distributed_world_size = None, True, PROCESSES
    torch.set_num_threads(2)
    assert gate(1) > 0
    distributed_utils.call_main(cfg, main)
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_they_are_zero_in_commands_alone(processes: int, tmp_path: Path) -> None:
    """A closed gate's matrices would be multiplied some hundred times slower. Importing changes nothing."""
    script, seen = tmp_path / "script.py", tmp_path / "seen"
    script.write_text(SCRIPT, encoding="utf-8")
    seen.mkdir()
    subprocess.run([sys.executable, script, str(processes), seen], check=True)
    assert sorted(path.name for path in seen.iterdir()) == [str(rank) for rank in range(processes)]
