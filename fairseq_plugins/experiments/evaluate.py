"""``scripts/evaluate.sh``: translates a test set with fairseq-generate and scores all of its sentences."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import sacrebleu

from ..checkpoints import average_checkpoints, last_checkpoints, readable
from ..files import InputError, atomic_file, read_lines
from . import commands, config, results


def main(arguments: list[str]) -> None:
    """Translates and scores, and writes the evaluation's part of ``results.json``."""
    parser = argparse.ArgumentParser(prog="scripts/evaluate.sh", allow_abbrev=False)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--checkpoint")
    parser.add_argument("--average", type=int)
    parser.add_argument("--subset", default="test")
    parser.add_argument("--gpus", type=int, choices=(0, 1))
    options, extra = parser.parse_known_args(arguments[1:])
    configuration = config.load(arguments[0])
    work = options.work or configuration.default_work
    data = commands.PreparedData.load(options.data or configuration.data_folder)
    average = configuration.average if options.average is None else options.average
    checkpoint = find_checkpoint(work / "checkpoints", options.checkpoint, average)
    references = References.load(data, options.subset)
    gpus = options.gpus
    if gpus is None:
        gpus = 0 if "--cpu" in extra else min(1, commands.available_gpus())
    command = commands.generate_command(configuration, data, checkpoint, options.subset, gpus, extra)
    print(commands.shown(command), flush=True)

    generated = work / "generate"
    with atomic_file(generated / f"{options.subset}.log") as log:
        status = commands.run(command, log.write)
        if status != 0:
            log.flush()
            failed = generated / f"{options.subset}.failed.log"
            failed.write_text(Path(log.name).read_text(encoding="utf-8"), encoding="utf-8")
    if status != 0:
        sys.exit(f"error: fairseq-generate ended with exit status {status}; its output stands in {log}")
