"""``fairseq-plugins train``: trains a configuration's model with fairseq-train; it goes on where it was interrupted."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..checkpoints import checked_checkpoint, newest_readable_checkpoint, read_checkpoint, updates
from ..command_parser import CommandParser
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..files import atomic_file
from ..limits import reached_limit
from ..versions import versions
from . import configuration as configurations
from . import fairseq_commands, processes, provenance, training_identity
from .command_line import gpu_count, process_count, started, work_folder
from .configuration import Configuration
from .decoding import check_evaluation
from .run import Run, configuration_name
from .training_statistics import parse_statistics, shown_statistics

_NOTES = """\
A work folder is of one training: it keeps the options, the checksums of the data and the revision that it was started
with (training.json). Limits (--max-update, --max-epoch, --patience), workers, logging and the device may change when
the training goes on, --gpus and --update-freq if the batch stays the same. Anything else needs --restart or another
--work.

A configuration may name files of your own with layers or metrics, which lie beside it: extensions: [my_layer.py]

Several GPUs, or processes on the CPU, share the batch of the configuration: --update-freq is divided among them, then
--max-tokens or --batch-size; where that does not come out even, a line says how large the batch is.

The training keeps the memory that it frees, which saves a fifth to a quarter of the time on a CPU: glibc's variables
MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_ and MALLOC_TOP_PAD_ are set for it. Those that you set yourself win.

Further options are passed on to fairseq-train and win over the configuration. The exact fairseq-train command is
printed first, so that it can be copied.

Across machines, run that command under torchrun on each of them, with the number of all GPUs at its end; the batch is
then as many times larger as there are more of them. On 2 machines with 8 GPUs each:
  torchrun --no-python --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29500 \\
    fairseq-train ... --distributed-world-size 16"""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "train",
        "Trains the model of a configuration. It goes on where an earlier run of the same work folder stopped.",
        (
            "multi30k_de_en/mc_rnn_3",
            "multi30k_de_en/dpn --recipe paper",
            "configs/mine/mc_rnn_3.yaml --work work/mine --max-epoch 3",
        ),
        _NOTES,
        passes_on_to="fairseq-train",
    )
    options.add_argument(
        "configuration", metavar="CONFIG", help="a YAML file, or one of this project's: iwslt14_de_en/mc_rnn_3"
    )
    options.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        help="where checkpoints/, train.log, train.jsonl and results.json go (default: work/<dataset>/<model>, "
        "with --recipe work/<dataset>/<model>_<recipe>)",
    )
    options.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="the prepared data, which holds bin/ and preparation.json (default: work/<dataset>/data)",
    )
    options.add_argument(
        "--recipe",
        metavar="NAME",
        help="one of the configuration's recipes, in the place of its own: paper is what the paper prints",
    )
    options.add_argument(
        "--gpus", type=gpu_count, metavar="N", help="of this machine, 0 for the CPU (default: all that there are)"
    )
    options.add_argument(
        "--processes",
        type=process_count,
        metavar="N",
        help="that train together and share the batch; --gpus 0 has several on the CPU (default: one for each GPU)",
    )
    options.add_argument(
        "--restart",
        action="store_true",
        help="delete what was trained in the work folder before, its scores and translations too, and train anew",
    )
    return options


def main(arguments: Sequence[str]) -> None:
    """Trains, and writes the training's part of ``results.json``."""
    options, extra = parser().parse_and_pass_on(arguments)
    path = options.configuration
    configuration = configurations.load(path, options.recipe, options.data)
    work = work_folder(options.work or configuration.default_work)
    configuration.load_extensions()  # the kind of the data may be one of theirs
    data = configuration.prepared_data(options.data)
    started(path)
    parsed = fairseq_commands.train_command(configuration, data, work, options.gpus, extra, options.processes)
    command = parsed.words
    check_evaluation(configuration, data)
    last = work / "checkpoints" / "checkpoint_last.pt"
    if options.restart or newest_readable_checkpoint(last.parent) is None:
        check_first_model(configuration, parsed.options.finetune_from_model)
    # What is refused leaves the work folder as it was, and --restart deletes nothing for it.
    data.verify_training()
    record = training_identity.TrainingIdentity.of(parsed.options, data)
    with processes.only_one(work) as descriptors:
        if options.restart:
            training_identity.clear(work)
        run = Run(work)  # what is damaged is said before hours of training
        resumed = make_resumable(last, fairseq_commands.architecture(configuration, extra))
        if not parsed.options.cpu:
            record = replace(record, kernels=provenance.kernels(parsed.options))
        kernels = record.kernels
        if resumed is None:
            training_identity.clear(work)  # whose checkpoints were deleted
            record.save(work)
        else:
            begun = training_identity.agree(work, record, command)
            if named_kernels(kernels):
                kernels = begun.kernels or kernels
        training = Training(run, configuration, data, parsed, record.git_revision, kernels)
        print(processes.shown(command), flush=True)
        if note := fairseq_commands.share_of(configuration, extra, parsed.options.distributed_world_size).note:
            print(note, flush=True)
        ended = None if resumed is None else end_of(read_checkpoint(last), parsed.options)
        if ended is not None:
            print(f"{last}: {ended}", flush=True)
        else:
            try:
                with TrainingLog(run) as log:
                    variables = named_kernels(kernels)
                    status = processes.run(command, log.write, subprocess.STDOUT, descriptors, variables)
            except KeyboardInterrupt:
                newest = newest_readable_checkpoint(last.parent)
                if newest is not None:
                    done = training.write_results(newest, resumed)["updates"]
                    with contextlib.suppress(OSError):  # a terminal that has hung up
                        print(f"kept: {done:,} updates, from which the same command goes on", file=sys.stderr)
                raise
            if status != 0:
                # Why fairseq-train failed is to be said, even if nothing can be written for the same reason.
                with contextlib.suppress(OSError):
                    if (newest := newest_readable_checkpoint(last.parent)) is not None:
                        training.write_results(newest, resumed)
                raise processes.failure(command, status, log.last_lines, run.log)
        if not last.exists():
            raise InputError(
                f"fairseq-train left no {last}; was it told --no-save or --no-last-checkpoints, or is the checkpoint "
                "of --restore-file past --max-epoch or --max-update? Then give a higher one, or --finetune-from-model"
            )
        trained = training.write_results(last, resumed)
    print(f"{trained['updates']:,} updates in {trained['train_seconds']:,.0f} seconds; {work / 'results.json'}")


@dataclass(frozen=True)
class Training:
    """A training that is going on.

    Attributes:
        run: where it goes on
        configuration: of the experiment
        data: the prepared data
        command: of fairseq-train
        revision: the checkout's when the command began
        kernels: operation → backend, on GPUs; empty on a CPU, where nobody has to choose
    """

    run: Run
    configuration: Configuration
    data: PreparedData
    command: fairseq_commands.TrainCommand
    revision: str | None
    kernels: dict[str, str]

    def write_results(self, checkpoint: Path, resumed: dict[str, Any] | None) -> dict[str, Any]:
        """Writes the training's part of ``results.json``, up to a checkpoint; scores of an earlier one go.

        Args:
            checkpoint: what the training has come to
            resumed: :func:`training_results` of what the training went on from; None where it began

        Returns:
            :func:`training_results` of the checkpoint.
        """
        trained = training_results(read_checkpoint(checkpoint))
        extensions = list(map(str, self.configuration.extensions))
        with self.run.changing() as present:
            # Where nothing was trained, what is there is still true, unless a kill kept it from being written; where
            # something was, the scores are not.
            is_true = resumed is not None and present.get("updates") == trained["updates"] <= resumed["updates"]
            if not is_true:
                self.run.write(
                    {
                        "config": configuration_name(self.configuration.path),
                        **({"recipe": self.configuration.recipe} if self.configuration.recipe else {}),
                        "data": str(self.data.folder),
                        "architecture": self.command.options.arch,
                        "options": fairseq_commands.options_of(self.command.words),
                        "command": processes.shown(self.command.words),
                        **({"extensions": extensions} if extensions else {}),
                        **trained,
                        "paper": self.configuration.paper_row(),
                        "device": provenance.device(self.command.options),
                        "kernels": self.kernels or provenance.kernels(self.command.options),
                        "machine": provenance.machine(),
                        "git_revision": self.revision,
                        "versions": versions(provenance.PACKAGES),
                    }
                )
        return trained


def make_resumable(last: Path, arch: str) -> dict[str, Any] | None:
    """Puts the furthest readable checkpoint in the place of a ``checkpoint_last.pt`` that a kill left truncated.

    fairseq writes checkpoint_last.pt as a plain copy, so that it can be cut short, and then fails to start from it.

    Returns:
        What :func:`training_results` finds in the checkpoint to go on from; None where the training begins.

    Raises:
        InputError: no checkpoint is readable, or the one to go on from is of another architecture.
    """
    newest = newest_readable_checkpoint(last.parent)
    if newest is None:
        if last.exists():
            raise InputError(f"{last}: truncated, and none beside it is readable; delete {last.parent} to start anew")
        return None
    if newest != last:
        print(f"{last} is {'truncated' if last.exists() else 'missing'}; going on from {newest.name}", flush=True)
        with open(newest, "rb") as source, atomic_file(last, "wb") as target:
            shutil.copyfileobj(source, target)
    return training_results(checked_checkpoint(last, arch))


def check_first_model(configuration: Configuration, path: str | None) -> None:
    """Looks before a training for the model that it starts from, if any: ``--finetune-from-model``.

    Raises:
        InputError: there is no such file.
    """
    if path and not Path(path).is_file():
        said = configuration.train.get("finetune-from-model")
        place = f"{said.place}: " if said and said.text == path else ""
        raise InputError(
            f"{place}--finetune-from-model {path}: no such file here; train that model first, start in the folder that "
            f"the path begins in, or name another one by --finetune-from-model FILE"
        )


def named_kernels(kernels: dict[str, str]) -> dict[str, str]:
    """What has to be in the environment for fairseq-train to run operations on these backends; nothing where the user
    names others."""
    from ..kernels.dispatch import BACKEND_VARIABLE, naming  # --help need not wait for it

    return {BACKEND_VARIABLE: naming(kernels)} if kernels and not os.environ.get(BACKEND_VARIABLE) else {}


def end_of(checkpoint: dict[str, Any], options: argparse.Namespace) -> str | None:
    """In words, by which limit among fairseq-train's options a training has ended; None where it goes on from its
    checkpoint.

    fairseq would see it too, after it has read all data.
    """
    limits = options.max_update, options.patience, options.stop_time_hours
    return reached_limit(updates(checkpoint), checkpoint["extra_state"], *limits)


class TrainingLog:
    """fairseq-train's output: on the screen, in ``train.log``, and its statistics as JSON lines in ``train.jsonl``.

    Both files grow when a training goes on.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.last_lines: deque[str] = deque(maxlen=200)

    def __enter__(self) -> TrainingLog:
        self._log = open(self._run.log, "a", encoding="utf-8", buffering=1)
        self._statistics = open(self._run.statistics, "a", encoding="utf-8", buffering=1)
        return self

    def __exit__(self, *_) -> None:
        self._log.close()
        self._statistics.close()

    def write(self, line: str) -> None:
        """Takes one line of the output."""
        self.last_lines.append(line)
        self._log.write(line)
        statistics = parse_statistics(line)
        if statistics is not None:
            self._statistics.write(json.dumps(statistics) + "\n")
            print(shown_statistics(statistics), flush=True)
        # fairseq prints its whole configuration as one line of some 15,000 characters: the file is the place for it.
        elif " | fairseq_cli.train | {" not in line:
            print(line, end="", flush=True)


def training_results(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint knows about the training that led to it, interruptions and resumptions included."""
    # fairseq's meters begin anew where a training goes on at the end of an epoch: the rate is that of what came since.
    meters = {name: state for _, name, _, state in checkpoint["extra_state"]["metrics"]["default"]}
    # Several processes keep their times as tensors.
    seconds_in_updates = float(meters["train_wall"]["sum"])
    return {
        "parameters": checkpoint.get("parameters"),
        "updates": updates(checkpoint),
        "train_seconds": round(float(checkpoint["extra_state"]["previous_training_time"]), 2),
        "train_tokens_per_second": round(float(meters["wpb"]["sum"]) / seconds_in_updates, 1),
        "seed": checkpoint["cfg"]["common"]["seed"],
    }
