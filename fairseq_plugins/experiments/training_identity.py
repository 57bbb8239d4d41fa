"""What the training of a work folder was started with, ``training.json``: a later command is measured by it."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..command_parser import flag
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..files import write_json
from . import fairseq_commands, provenance

RECORD = "training.json"
FORMAT = 1

# What may differ when a training goes on. The device's group of options is not looked at either.
_LIMITS = {"max_update", "max_epoch", "patience", "stop_time_hours", "stop_min_lr"}
_KEPT = {"keep_interval_updates", "keep_interval_updates_pattern", "keep_last_epochs", "keep_best_checkpoints"}
_WORKERS = {"num_workers", "data_buffer_size", "write_checkpoints_asynchronously"}
_LOGGING = {
    *("no_progress_bar", "log_interval", "log_format", "log_file", "tensorboard_logdir", "wandb_project"),
    *("azureml_logging", "aim_repo", "aim_run_hash", "reset_logging", "profile", "suppress_crashes"),
    *("eval_bleu_print_samples", "debug_param_names"),
}
_DEVICE = {"cpu", "tpu", "empty_cache_freq", "all_gather_list_size", "use_plasma_view", "plasma_path"}
# Where files lie is said by --work and --data; the data is compared by its checksums.
_PLACES = {"user_dir", "save_dir", "data"}
# The batch counts as a whole, however it is shared. That of the validation changes nothing that is trained.
_BATCH = ("max_tokens", "batch_size")
_BATCHES = {*_BATCH, "update_freq", "max_tokens_valid", "batch_size_valid", "distributed_world_size"}
WITHOUT_EFFECT = frozenset(_KEPT | _WORKERS | _LOGGING | _DEVICE)
"""Options that change nothing of what is trained, by fairseq's names."""
_FREE = _LIMITS | WITHOUT_EFFECT | _PLACES | _BATCHES
_GROUPS = ("common", "dataset", "optimization", "checkpoint", "bmuf", "ema")
_CHOSEN = ("model", "task", "criterion", "optimizer", "lr_scheduler")

# What a training and what was done with its checkpoints leave in a work folder.
_LEFT = ("results.json", "train.log", "train.jsonl", "generate", "analysis", "report.html")


@dataclass(frozen=True)
class TrainingIdentity:
    """What decides what is trained.

    Attributes:
        options: of fairseq-train, by their names there, those that were not given among them
        batch: for each of ``--update-freq``: what all processes together take before an update, by ``--max-tokens`` and
            by ``--batch-size``
        data: file of the prepared data → SHA-256
        git_revision: the checkout's, when the training was started; a training may go on with another one
        kernels: operation → backend on which it runs on GPUs, with which a training goes on; empty on a CPU
        format: the version of ``training.json``
    """

    options: dict[str, Any]
    batch: dict[str, list[int]]
    data: dict[str, str]
    git_revision: str | None
    kernels: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    @classmethod
    def of(cls, options: argparse.Namespace, data: PreparedData) -> TrainingIdentity:
        """What fairseq-train would train with some options.

        Args:
            options: of fairseq-train, as its parser made them
            data: the prepared data that it names
        """
        groups = fairseq_commands.resolved_options(options)
        number = int(groups["distributed_training"]["distributed_world_size"])
        frequencies = groups["optimization"]["update_freq"]
        batch = {
            name: [number * int(times) * groups["dataset"][name] for times in frequencies]
            for name in _BATCH
            if groups["dataset"][name] is not None
        }
        free = {*_FREE, "_name"}
        deciding = {name: value for group in _GROUPS for name, value in groups[group].items() if name not in free}
        # Models and tasks in fairseq's older style have the options of all groups.
        elsewhere = {name for group, section in groups.items() if group not in _CHOSEN for name in section or {}}
        for group in _CHOSEN:
            section = groups[group] or {}
            # A schedule may reach over --max-update: with another one all rates are others.
            left_out = free - _LIMITS if group == "lr_scheduler" else free | elsewhere | set(_CHOSEN)
            deciding |= {name: value for name, value in section.items() if name not in left_out}
            deciding["arch" if group == "model" else group] = section.get("_name")
        deciding["matmul_precision"] = getattr(options, "matmul_precision", None)  # of none of fairseq's groups
        # As JSON gives it back.
        deciding = json.loads(json.dumps(deciding, default=str))
        return cls(deciding, batch, data.training_checksums(), provenance.git_revision())

    @classmethod
    def load(cls, work: Path) -> TrainingIdentity | None:
        """That of a work folder; None where there is none.

        Raises:
            InputError: the file is damaged.
        """
        path = work / RECORD
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            record = cls(**content)
            if not all(isinstance(part, dict) for part in (record.options, record.batch, record.data, record.kernels)):
                raise TypeError
        except (ValueError, TypeError):
            raise InputError(
                f"{path}: damaged, so that nobody knows what {work} was started with; give another --work, or train "
                f"anew with --restart"
            ) from None
        if record.format != FORMAT:
            raise InputError(f"{path}: of format {record.format}, but {FORMAT} is read here; give another --work")
        return record

    def save(self, work: Path) -> None:
        """Writes it into a work folder."""
        write_json(work / RECORD, asdict(self))

    def differences(self, other: TrainingIdentity, command: Sequence[str] = ()) -> list[str]:
        """In words, what ``other``, whose ``command`` is given, would train differently.

        An option that this record does not know came later, and had its default so far: it counts where the command
        has it.
        """
        names = {word.partition("=")[0] for word in command}
        differing = [
            f"{flag(name)} {_shown(self.options.get(name))}, not {_shown(value)}"
            for name, value in other.options.items()
            if self.options.get(name) != value and (name in self.options or flag(name) in names)
        ]
        differing += [
            f"a batch of {_shown(self.batch.get(name))} by {flag(name)} in all processes together, "
            f"not {_shown(other.batch.get(name))}"
            for name in _BATCH
            if not _same_batch(self.batch.get(name), other.batch.get(name))
        ]
        files = [name for name in {**self.data, **other.data} if self.data.get(name) != other.data.get(name)]
        if files:
            more = f" and {len(files) - 1} more files" if len(files) > 1 else ""
            differing.append(f"other prepared data ({sorted(files)[0]}{more})")
        return differing


def _same_batch(one: list[int] | None, other: list[int] | None) -> bool:
    return _shortened(one) == _shortened(other)


def _shortened(values: list[int] | None) -> list[int]:
    # The last entry of --update-freq holds for all epochs that follow.
    values = list(values or [])
    while len(values) > 1 and values[-1] == values[-2]:
        values.pop()
    return values


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_shown, value))
    return "nothing" if value is None else str(value)


def agree(work: Path, record: TrainingIdentity, command: Sequence[str]) -> TrainingIdentity:
    """Lets a training go on if it is the one that the work folder was started with, which is returned.

    Raises:
        InputError: it would be another training, or there is no record of what the folder was started with.
    """
    begun = TrainingIdentity.load(work)
    if begun is None:
        raise InputError(
            f"{work / RECORD}: no such file, so that nobody knows what {work} was started with; give another --work, "
            f"or train anew with --restart"
        )
    if differing := begun.differences(record, command):
        raise InputError(
            f"{work} was started with different options or data: {'; '.join(differing)}; give another --work, or "
            f"--restart to delete what was trained there"
        )
    if begun.git_revision != record.git_revision:
        print(f"note: this training was started with revision {begun.git_revision}", flush=True)
    return begun


def clear(work: Path) -> None:
    """Deletes what a training left in a work folder, and what was made of its checkpoints; the record goes last."""
    checkpoints, removed = work / "checkpoints", work / ".checkpoints.old"
    if removed.is_symlink():
        removed.unlink()
    shutil.rmtree(removed, ignore_errors=True)
    if checkpoints.is_symlink() and checkpoints.is_dir():
        for path in checkpoints.iterdir():  # the link, to another disk perhaps, stays
            path.unlink()
    # All of them at once: of some of them a training would go on.
    elif checkpoints.exists():
        os.replace(checkpoints, removed)
    for path in (removed, *(work / name for name in (*_LEFT, RECORD))):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
