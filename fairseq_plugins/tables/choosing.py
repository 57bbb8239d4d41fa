"""The value of an option that trains a system best, by the validation set.

``python -m fairseq_plugins.tables.choosing OPTION DIR ...`` prints ``--OPTION VALUE`` of the best of these trainings.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from ..errors import InputError
from ..experiments.command_line import run_module
from ..experiments.run import Run
from ..experiments.training_statistics import by_split, read_statistics


def main(arguments: list[str]) -> None:
    """Prints the option with its best value; of equals the first."""
    parser = argparse.ArgumentParser(prog="python -m fairseq_plugins.tables.choosing", allow_abbrev=False)
    parser.add_argument("option")
    parser.add_argument("folders", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    runs = [Run.required(folder) for folder in options.folders]
    best = max(runs, key=goodness)
    print(f"--{options.option} {best.options[options.option]}")


def goodness(run: Run) -> float:
    """How good its best epoch is on the validation set, by what its training chooses checkpoints by: more is better.

    Raises:
        InputError: it has not been validated.
    """
    metric = run.options.get("best-checkpoint-metric", "loss")
    sign = 1 if run.options.get("maximize-best-checkpoint-metric") == "true" else -1
    lines = by_split(read_statistics(run.statistics)).get("valid", ())
    scores = [sign * line[metric] for line in lines if metric in line]
    if not scores:
        raise InputError(f"{run.statistics}: no {metric} on the validation set; train it again, with validation")
    return max((score for score in scores if not math.isnan(score)), default=-math.inf)


if __name__ == "__main__":
    run_module(main)
