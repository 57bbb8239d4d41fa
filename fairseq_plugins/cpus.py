"""How many CPUs this process may use. Standard library only."""

from __future__ import annotations

import math
import os
from pathlib import Path

CONTROL_GROUPS = Path("/sys/fs/cgroup")


def available_cpus() -> int:
    """Those of the machine, or fewer where the process is bound to some of them (taskset), or where a container's
    control group has a share of their time; at least 1.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, _share())))


def named_threads() -> int | None:
    """The threads of ``OMP_NUM_THREADS``; of a list, which has a number for each level, the first. None where it names
    none."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else None


def _share() -> float:
    """The CPUs whose time the control group has, by its second version or its first; infinite without a limit."""
    try:
        quota, period = (CONTROL_GROUPS / "cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        quota, period = ((CONTROL_GROUPS / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(quota) / int(period) if int(quota) > 0 else math.inf
    except (OSError, ValueError):
        return math.inf
