"""Preparing a corpus of any kind: steps that go on where they were interrupted, and fairseq-preprocess.

A kind of corpus says in a subclass of :class:`Run` what its steps are. A step writes folders that are there as a whole
or not at all; what it finds out is kept in a file of progress until the record, ``preparation.json``, ends the run.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from fairseq_plugins.corpora.preparation import PREPARATION, Preparation
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import locked, sha256, write_json
from fairseq_plugins.versions import add_version_argument, versions

DOWNLOAD = "download"
"""The one thing that may stand in an output folder before its preparation: what was downloaded for it."""
PACKAGES = ("fairseq-fixed", "fairseq", "jieba", "opencc", "sacremoses", "sentencepiece", "subword-nmt")
"""Those that prepared data depend on; their versions go into its record."""

_LOCK = ".lock"
_PROGRESS = ".progress.json"


class Run(ABC):
    """One run of a preparation; a subclass for each kind of corpus has its steps."""

    folders: ClassVar[tuple[str, ...]]
    """What the steps write into the output folder."""

    def __init__(
        self,
        preparation: Preparation,
        inputs: Mapping[str, Sequence[Path]],
        output: str | os.PathLike[str],
        workers: int = 1,
    ) -> None:
        """
        Args:
            preparation: what to do; what is counted and learned on the way is not read from it.
            inputs: split (``train``, ``valid``, ``test``, ``test1``, …) → the files that are given for it.
            output: the folder to write; new, empty, or from an earlier run.
            workers: processes for what is done line by line.

        Raises:
            InputError: a file is missing, or there is no worker.
        """
        if workers < 1:
            raise InputError(f"workers is {workers}: it must be at least 1")
        self.preparation, self.inputs = preparation, inputs
        self.output, self.workers = Path(output), workers
        self.given: dict[str, dict[str, Any]] = {
            split: {"files": [path.name for path in paths], "sha256": [_checksum(path) for path in paths]}
            for split, paths in inputs.items()
        }
        """Split → what is known of it beforehand."""
        self.found: dict[str, Any] = {}
        """Finished step → what it found out."""

    @abstractmethod
    def steps(self) -> Mapping[str, Callable[[], Any]]:
        """The steps in their order: name → function, which returns what it found out, as JSON can hold it."""

    @abstractmethod
    def results(self) -> dict[str, Any]:
        """What came out of the steps: values for the fields of the record that say so."""

    def prepare(self) -> Preparation:
        """Prepares the corpus.

        A folder that already holds the same preparation of the same files is left as it is. An interrupted preparation
        goes on with the first step that is not finished, and ends with the same bytes as an uninterrupted one.

        Returns:
            The preparation with everything that was counted and learned, as saved in ``preparation.json``.

        Raises:
            InputError: for any input or choice that cannot be used; the message says which and what to do. The folder
                is then as if there had been no run.
        """
        plan = {**self.preparation.choices(), "splits": self.given}
        if (self.output / PREPARATION).exists():
            prepared = Preparation.load(self.output)
            if differing := _differences(plan, {**prepared.choices(), "splits": prepared.splits}):
                raise InputError(
                    f"{self.output} was prepared otherwise ({', '.join(differing)}): remove it, or name another folder"
                )
            print(f"{self.output} is up to date")
            return prepared
        with self._claimed(plan):
            for name, step in self.steps().items():
                # An earlier run may have finished it.
                if name not in self.found:
                    self.found[name] = step()
                    write_json(self.output / _PROGRESS, {"plan": plan, **self.found})
            prepared = dataclasses.replace(self.preparation, **self.results(), versions=versions(PACKAGES))
            prepared.save(self.output)
            (self.output / _PROGRESS).unlink()
        return prepared

    def fairseq_preprocess(self, arguments: Sequence[str], folder: Path, name: str) -> str:
        """Runs fairseq-preprocess in the output folder.

        Args:
            arguments: but for ``--destdir`` and ``--workers``.
            folder: the ``--destdir``.
            name: what that folder will be called, relative to the output folder.

        Returns:
            The command as it could be typed in the output folder.

        Raises:
            InputError: it failed; its output was printed.
        """
        command = shlex.join(["fairseq-preprocess", *arguments, "--destdir", name])
        print(f"fairseq-preprocess: {command}", flush=True)
        destination = str(folder.relative_to(self.output))
        finished = subprocess.run(
            [sys.executable, "-m", "fairseq_cli.preprocess", *arguments]
            + ["--destdir", destination, "--workers", str(self.workers)],
            cwd=self.output,
            env=os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if finished.returncode:
            print(finished.stdout, file=sys.stderr)
            raise InputError(f"fairseq-preprocess failed with status {finished.returncode}: its output stands above")
        # Its times and temporary names would make every run's bytes differ; preparation.json has the command.
        (folder / "preprocess.log").unlink(missing_ok=True)
        return command

    @contextlib.contextmanager
    def _claimed(self, plan: Mapping[str, Any]) -> Iterator[None]:
        """Has the output folder for itself, with what an earlier run with the same plan finished, or nothing.

        After an :class:`InputError` in the block the folder is as if there had been no run.

        Raises:
            InputError: the folder holds something else, or another run is at work in it.
        """
        output = self.output
        if output.exists() and not output.is_dir():
            raise InputError(f"{output} is a file: name a folder for --output")
        created = not output.exists()
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{output}: cannot make this folder ({error.strerror}): name another for --output"
            ) from None
        if not os.access(output, os.W_OK):
            raise InputError(f"{output}: cannot write into this folder: name another for --output")
        try:
            with locked(output / _LOCK, f"{output}: another preparation is at work in this folder", keep=False):
                self._resume(plan)
                try:
                    yield
                except InputError:
                    self._remove_folders()
                    (output / _PROGRESS).unlink()
                    raise
        except InputError:
            if created:
                # Unless another run has begun meanwhile.
                with contextlib.suppress(OSError):
                    output.rmdir()
            raise

    def _resume(self, plan: Mapping[str, Any]) -> None:
        """Finds what an earlier run finished, and removes what it did not."""
        output = self.output
        names = set(os.listdir(output)) - {DOWNLOAD, _LOCK}
        if PREPARATION in names:
            raise InputError(f"{output}: another preparation has just ended in this folder: start again")
        if names and _PROGRESS not in names:
            raise InputError(f"{output} is not empty and holds no preparation: name another folder for --output")
        if _PROGRESS in names:
            found = json.loads((output / _PROGRESS).read_text(encoding="utf-8"))
            if not _differences(plan, found.pop("plan")):
                self.found = found
        for leftover in itertools.chain(output.glob(".*.tmp"), output.glob(".*.old")):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        if not self.found:
            self._remove_folders()
            write_json(output / _PROGRESS, {"plan": plan})

    def _remove_folders(self) -> None:
        for name in self.folders:
            shutil.rmtree(self.output / name, ignore_errors=True)


def _differences(plan: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """In words, what of a plan is otherwise in another plan."""
    differing = [name for name in plan if name != "splits" and other.get(name) != plan[name]]
    for split in sorted({*plan["splits"], *other["splits"]}):
        checksums = [splits.get(split, {}).get("sha256") for splits in (plan["splits"], other["splits"])]
        if checksums[0] != checksums[1]:
            differing.append(f"the {split} files")
    return differing


def _checksum(path: Path) -> str:
    try:
        return sha256(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that prepares a corpus."""
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes; default: the number of CPUs"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="a new folder, or one of an earlier run")
    add_version_argument(parser)
