"""``scripts/train.sh``: trains the model of a configuration with fairseq-train, and goes on where it was interrupted."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from ..files import InputError, atomic_file
from . import commands, config, results
from .interim import newest_readable_checkpoint, read_checkpoint


def main(arguments: list[str]) -> None:
    """Trains, and writes the training's part of ``results.json``."""
    parser = argparse.ArgumentParser(prog="scripts/train.sh", allow_abbrev=False)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--gpus", type=int)
    options, extra = parser.parse_known_args(arguments[1:])
    configuration = config.load(arguments[0])
    work = options.work or configuration.default_work
    data = commands.PreparedData.load(options.data or configuration.data_folder)
    command = commands.train_command(configuration, data, work, options.gpus, extra)
    with commands.only_one(work) as lock:
        make_resumable(work / "checkpoints", commands.architecture(configuration, extra))
        print(commands.shown(command), flush=True)
        log = TrainingLog(work)
        with log:
            status = commands.run(command, log.write, pass_fds=[lock])
        if status != 0:
            sys.exit(f"error: fairseq-train ended with exit status {status}; its output stands in {log.path}")
        path = work / "checkpoints" / "checkpoint_last.pt"
        if not path.exists():
            sys.exit(f"error: fairseq-train left no {path}; was it told --no-save or --no-last-checkpoints?")
        values = training_results(read_checkpoint(path))
        results.update(
            work,
            config=str(configuration.path),
            command=commands.shown(command),
            parameters=log.parameters,
            **values,
            paper=configuration.paper_row(),
            device=results.device(0 if "--cpu" in command else int(commands.option(command, "--distributed-world-size"))),
            git_revision=results.git_revision(),
            versions=results.versions(),
        )
    print(f"{values['updates']:,} updates in {values['train_seconds']:,.0f} seconds; {work / 'results.json'}")


def make_resumable(checkpoints: Path, arch: str) -> None:
    """Puts the newest readable checkpoint in the place of a ``checkpoint_last.pt`` that a kill left truncated.

    fairseq writes checkpoint_last.pt as a plain copy, so that it can be cut short, and then fails to start from it.

    Raises:
        InputError: no checkpoint is readable, or the one to go on from is of another architecture.
    """
    last = checkpoints / "checkpoint_last.pt"
    if not last.exists():
        return
    newest = newest_readable_checkpoint(checkpoints)
    if newest is None:
        raise InputError(f"{last}: truncated, and no other checkpoint beside it is readable; delete {checkpoints} to start anew")
    if newest != last:
        print(f"{last} is truncated; going on from {newest.name}", flush=True)
        with open(newest, "rb") as source, atomic_file(last, "wb") as target:
            shutil.copyfileobj(source, target)
    commands.check_architecture(last, arch)


class TrainingLog:
    """fairseq-train's output: on the screen, in ``train.log``, and its statistics as JSON lines in ``train.jsonl``.

    Attributes:
        path: ``train.log``; both files grow when a training goes on
        parameters: the number of the model's parameters, shared ones counted once; None until fairseq has said it
    """

    def __init__(self, work: Path) -> None:
        self.path = work / "train.log"
        self.parameters: int | None = None
        self._statistics_path = work / "train.jsonl"

    def __enter__(self) -> TrainingLog:
        self._log = open(self.path, "a", encoding="utf-8", buffering=1)
        self._statistics = open(self._statistics_path, "a", encoding="utf-8", buffering=1)
        return self

    def __exit__(self, *_) -> None:
        self._log.close()
        self._statistics.close()

    def write(self, line: str) -> None:
        """Takes one line of the output."""
        # fairseq prints its whole configuration as one line of some 15,000 characters: the file is the place for it.
        self._log.write(line)
        if not re.search(r"\| INFO \| fairseq_cli\.train \| \{'_name': None", line):
            sys.stdout.write(line)
            sys.stdout.flush()
        if found := re.search(r"num\. shared model params: ([\d,]+)", line):
            self.parameters = int(found[1].replace(",", ""))
        if (statistics := parse_statistics(line)) is not None:
            self._statistics.write(json.dumps(statistics) + "\n")


def parse_statistics(line: str) -> dict[str, Any] | None:
    """The numbers of a progress line of fairseq, with ``split`` (train_inner, train, valid …) and ``epoch``; or None."""
    found = re.match(r"\S+ \S+ \| INFO \| (\w+) \| epoch (\d+)(.*)", line)
    if not found:
        return None
    split, epoch, rest = found.groups()
    # Inside an epoch: ":  100 / 726 loss=7.3, ppl=164"; at its end: " | loss 7.3 | ppl 164".
    pairs = re.findall(r"([\w.]+)=([^\s,]+)", rest) or re.findall(r"\| ([\w.]+) (\S+)(?= \||\s*$)", rest)
    numbers = {}
    for name, text in pairs:
        try:
            numbers[name] = float(text)
        except ValueError:
            continue
    return {"split": split, "epoch": int(epoch), **numbers}


def training_results(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint knows about the training that led to it, interruptions and resumptions included."""
    # The default meters are never reset, and a checkpoint carries them on: they cover the training from its first update.
    meters = {name: state for _, name, _, state in checkpoint["extra_state"]["metrics"]["default"]}
    seconds_in_updates = meters["train_wall"]["sum"]
    return {
        "updates": checkpoint["optimizer_history"][-1]["num_updates"],
        "train_seconds": round(checkpoint["extra_state"]["previous_training_time"], 2),
        "train_tokens_per_second": round(float(meters["wpb"]["sum"]) / seconds_in_updates, 1),
        "seed": checkpoint["cfg"]["common"]["seed"],
    }


if __name__ == "__main__":
    commands.main_of(main)
