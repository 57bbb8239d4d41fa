"""Preparing a corpus of any kind; fairseq-preprocess.

A kind of corpus says in a subclass of :class:`Run` what it writes. That goes into a folder beside the output folder,
whose name it takes when all is done. A preparation that is interrupted leaves nothing under that name, and the next one
begins anew.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import dataclasses
import itertools
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic

from fairseq_plugins.corpora.preparation import PREPARATION, Preparation, Record
from fairseq_plugins.cpus import available_cpus
from fairseq_plugins.errors import CommandError, InputError, last_words, nearest
from fairseq_plugins.fairseq_program import environment, python_command
from fairseq_plugins.files import atomic_directory, locked, refuse_colon, refuse_pipe, sha256
from fairseq_plugins.versions import versions

PACKAGES = (
    *("fairseq-fixed", "fairseq", "jieba", "opencc", "sacremoses", "sentencepiece", "soundfile", "soxr", "subword-nmt"),
)
"""Those that prepared data depend on; their versions go into its record."""

# fairseq.data.indexed_dataset.MMapIndexedDataset: magic, version, type of the numbers, how many sentences; then the
# sentences' lengths (int32) and places (int64).
_INDEX_MAGIC = b"MMIDIDX\0\0"
_INDEX_HEAD = struct.Struct("<9sQBQ")
_ITEM_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 4, 7: 8, 8: 2, 9: 4, 10: 8}


class Run(ABC, Generic[Record]):
    """One run of a preparation; a subclass for each kind of corpus writes its files."""

    folders: ClassVar[tuple[str, ...]]
    """What :meth:`write` may make, in the order in which the record lists it."""

    def __init__(
        self,
        preparation: Record,
        inputs: Mapping[str, Sequence[Path]],
        output: str | os.PathLike[str],
        workers: int = 1,
    ) -> None:
        """
        Args:
            preparation: what to do; what is counted and learned on the way is not read from it.
            inputs: split (``train``, ``valid``, ``test``, ``test1``, …) → the files that are given for it.
            output: the folder to write; new, empty, or prepared already.
            workers: processes for what is done line by line.

        Raises:
            InputError: a file is missing, or there is no worker, or a colon is in the path of the output folder.
        """
        refuse_colon(output, "--output")
        if workers < 1:
            raise InputError(f"workers is {workers}: it must be at least 1")
        self.preparation, self.inputs = preparation, inputs
        self.output, self.workers = Path(output), workers
        self.facts: dict[str, dict[str, Any]] = {
            split: {"files": [path.name for path in paths], "sha256": [checksum(path) for path in paths]}
            for split, paths in inputs.items()
        }
        """Split → what is known of it beforehand."""

    @abstractmethod
    def write(self, folder: Path) -> dict[str, Any]:
        """Writes the corpus into a new folder; returns what came out, as the record's fields say it."""

    def prepare(self) -> Record:
        """Prepares the corpus. A folder that already holds the same preparation of the same files is left as it is.

        Returns:
            The preparation with everything that was counted and learned, as saved in ``preparation.json``.

        Raises:
            InputError: for any input or choice that cannot be used; the message says which and what to do.
            CommandError, OSError: fairseq-preprocess or the machine failed.

        After any of them the output folder is as if there had been no run.
        """
        if (self.output / PREPARATION).exists():
            return self._prepared()
        # Sequences that are drawn are given by nobody.
        print(f"preparing {', '.join(self.facts) or 'the splits'} in {self.output}", flush=True)
        self._warn_of_shared_files()
        with self._new_folder() as folder:
            results = self.write(folder)
            dataclasses.replace(
                self.preparation, **results, versions=versions(PACKAGES), files=self._written(folder)
            ).save(folder)
        return type(self.preparation).load(self.output)

    def fairseq_preprocess(self, arguments: Sequence[str], folder: Path, name: str = "bin") -> str:
        """Runs fairseq-preprocess.

        Args:
            arguments: but for ``--destdir`` and ``--workers``; paths are relative to the folder.
            folder: that the corpus is written into.
            name: the ``--destdir``.

        Returns:
            The command as it could be typed in the output folder.

        Raises:
            CommandError: it failed.
        """
        words = [*arguments, "--destdir", name]
        command = shlex.join(["fairseq-preprocess", *words])
        print(f"fairseq-preprocess: {command}", flush=True)
        process = subprocess.Popen(
            [*python_command("fairseq_cli.preprocess", words), "--workers", str(self.workers)],
            cwd=folder,
            env={"OMP_NUM_THREADS": "1", **environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # so that its workers end with it
        )
        try:
            output, _ = process.communicate()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if process.returncode:
            raise CommandError(
                f"fairseq-preprocess failed with status {process.returncode}: {last_words(output.splitlines())}; "
                f"start again"
            )
        _check_binarized(folder / name)
        # Its times and temporary names would make every run's bytes differ; preparation.json has the command.
        (folder / name / "preprocess.log").unlink(missing_ok=True)
        return command

    def _prepared(self) -> Record:
        """What the output folder holds already.

        Raises:
            InputError: other options or files than this run's were prepared, or a file is missing.
        """
        plan = {**self.preparation.choices(), "splits": self.facts}
        prepared = Preparation.load(self.output)
        differing = _differences(plan, {**prepared.choices(), "splits": prepared.splits})
        if differing or not isinstance(prepared, type(self.preparation)):
            raise InputError(
                f"{self.output}: already prepared with different options ({', '.join(differing)}): remove it, or name "
                f"another folder for --output"
            )
        if (name := prepared.missing(self.output)) is not None:
            raise InputError(
                f"{self.output / name}: missing, or not of the size that was prepared: delete {self.output} and "
                f"start again"
            )
        print(f"{self.output} is up to date")
        return prepared

    @contextlib.contextmanager
    def _new_folder(self) -> Iterator[Path]:
        """Yields a folder beside the output folder, whose name it takes when the block ends without an error.

        Raises:
            InputError: the output folder holds something else or cannot be written, or another run is at work.
        """
        # Where the name is a link, the folder that it stands for is meant.
        output = self.output.resolve()
        if output.exists() and not output.is_dir():
            raise InputError(f"{self.output} is a file: name a folder for --output")
        if output.is_mount():
            raise InputError(f"{self.output}: a disk is mounted there: name a folder on it for --output")
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{self.output}: cannot make this folder ({error.strerror}): name another for --output"
            ) from None
        if not os.access(output.parent, os.W_OK):
            raise InputError(f"{self.output}: cannot write into the folder around it: name another for --output")
        lock = output.with_name(f".{output.name}.lock")
        with locked(lock, f"{self.output}: another preparation is at work in this folder", keep=False):
            if (self.output / PREPARATION).exists():
                raise InputError(f"{self.output}: another preparation has just ended in this folder: start again")
            if output.exists() and any(output.iterdir()):
                raise InputError(f"{self.output} is not empty and holds no preparation: name another for --output")
            leftover = re.compile(rf"\.{re.escape(output.name)}\.\w{{8}}\.(tmp|old)")
            for path in output.parent.iterdir():
                if leftover.fullmatch(path.name):
                    # Of a run that was killed, whose fairseq-preprocess may write into it for a moment longer.
                    shutil.rmtree(path, ignore_errors=True)
            with atomic_directory(output) as folder:
                yield folder

    def _warn_of_shared_files(self) -> None:
        for (one, first), (other, second) in itertools.combinations(self.facts.items(), 2):
            if shared := set(first["sha256"]) & set(second["sha256"]):
                file = first["files"][next(i for i, checksum in enumerate(first["sha256"]) if checksum in shared)]
                print(
                    f"warning: {one} and {other} have the same text ({file}): what is measured on one says nothing new"
                )

    def _written(self, folder: Path) -> dict[str, dict[str, Any]]:
        """What is known of every file that was written."""
        paths = [path for name in self.folders for path in sorted((folder / name).rglob("*"))]
        return {
            path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)}
            for path in paths
            if path.is_file()
        }


def _differences(plan: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What differs between two plans, in words."""
    differing = [name for name in plan if name != "splits" and other.get(name) != plan[name]]
    for split in sorted({*plan["splits"], *other["splits"]}):
        checksums = [splits.get(split, {}).get("sha256") for splits in (plan["splits"], other["splits"])]
        if checksums[0] != checksums[1]:
            differing.append(f"the {split} files")
    return differing


def _check_binarized(folder: Path) -> None:
    """Compares the sizes of fairseq's binary files with what their indices say.

    Raises:
        CommandError: one was cut short: fairseq's workers do not report a full disk.
    """
    for index in folder.glob("**/*.idx"):
        content = index.read_bytes()
        if len(content) < _INDEX_HEAD.size or not content.startswith(_INDEX_MAGIC):
            raise CommandError(f"fairseq-preprocess left {index.name} unfinished: is the disk full?")
        _, _, kind, count = _INDEX_HEAD.unpack_from(content)
        sizes = array.array("i", content[_INDEX_HEAD.size : _INDEX_HEAD.size + 4 * count])
        data = index.with_suffix(".bin")
        is_whole = len(content) == _INDEX_HEAD.size + 12 * count and kind in _ITEM_BYTES and data.is_file()
        if not is_whole or data.stat().st_size != sum(sizes) * _ITEM_BYTES[kind]:
            raise CommandError(f"fairseq-preprocess left {data.name} unfinished: is the disk full?")


def checksum(path: Path) -> str:
    """That of a given file. Raises InputError where there is none, or it can be read only once."""
    refuse_pipe(path)
    try:
        return sha256(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None


def note_unknown_metric(name: str, metrics: Collection[str], texts: str) -> None:
    """Says where a metric is none of those here that score models of such ``texts``: it may be a user's own."""
    if name not in metrics:
        print(f"note: '{name}' is no metric of {texts} here: an extension has to define it{nearest(name, metrics)}")


def note_other_sizes(preparation: Preparation, unit: str, sizes: Mapping[str, int], count: str = "kept") -> None:
    """Says which splits are of another size than the papers' set is.

    Args:
        preparation: as it was prepared
        unit: of the sizes, in words
        sizes: split → its size in the whole set
        count: where the splits have theirs
    """
    for split, size in sizes.items():
        if (actual := preparation.splits[split][count]) != size:
            print(f"note: {split} has {actual:,} {unit} and the full set {size:,}: not comparable with the papers")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that prepares a corpus."""
    parser.add_argument(
        "--workers", type=int, default=available_cpus(), metavar="N", help="processes; default: a CPU each"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="a new folder")
