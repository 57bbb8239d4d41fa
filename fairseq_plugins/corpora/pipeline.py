"""Preparing a corpus of any kind: steps that go on where they were interrupted, and fairseq-preprocess.

A kind of corpus says in a subclass of :class:`Run` what its steps are. A step writes folders that are there as a whole
or not at all; what it finds out is kept in a file of progress until the record, ``preparation.json``, ends the run.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import dataclasses
import itertools
import json
import os
import shlex
import shutil
import signal
import struct
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic

from fairseq_plugins.corpora.preparation import PREPARATION, Preparation, Record
from fairseq_plugins.errors import CommandError, InputError, last_words, nearest
from fairseq_plugins.fairseq_program import environment, python_command
from fairseq_plugins.files import locked, refuse_colon, sha256, write_json
from fairseq_plugins.versions import versions

DOWNLOAD = "download"
"""The one thing that may be in an output folder before its preparation: what was downloaded for it."""
PACKAGES = ("fairseq-fixed", "fairseq", "jieba", "opencc", "sacremoses", "sentencepiece", "subword-nmt")
"""Those that prepared data depend on; their versions go into its record."""

_LOCK = ".lock"
_PROGRESS = ".progress.json"
_PROCESS = ".preprocess.pid"
_PREPROCESS = "fairseq_cli.preprocess"
# Its number goes into the file that is $0; $1 is the process that has started it.
_SAYING_WHO = 'echo $$ > "$0" && [ "$PPID" = "$1" ] && shift && exec "$@"'

# fairseq.data.indexed_dataset.MMapIndexedDataset: magic, version, type of the numbers, how many sentences; then the
# sentences' lengths (int32) and places (int64).
_INDEX_MAGIC = b"MMIDIDX\0\0"
_INDEX_HEAD = struct.Struct("<9sQBQ")
_ITEM_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 4, 7: 8, 8: 2, 9: 4, 10: 8}


class Run(ABC, Generic[Record]):
    """One run of a preparation; a subclass for each kind of corpus has its steps."""

    folders: ClassVar[tuple[str, ...]]
    """What the steps write into the output folder."""

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
            output: the folder to write; new, empty, or from an earlier run.
            workers: processes for what is done line by line.

        Raises:
            InputError: a file is missing, or there is no worker, or a colon is in the path of the output folder.
        """
        refuse_colon(output, "--output")
        if workers < 1:
            raise InputError(f"workers is {workers}: it must be at least 1")
        self.preparation, self.inputs = preparation, inputs
        self.output, self.workers = Path(output), workers
        self.given: dict[str, dict[str, Any]] = {
            split: {"files": [path.name for path in paths], "sha256": [checksum(path) for path in paths]}
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

    def prepare(self) -> Record:
        """Prepares the corpus.

        A folder that already holds the same preparation of the same files is left as it is. An interrupted preparation
        goes on with the first step that is not finished, and ends with the same bytes as an uninterrupted one.

        Returns:
            The preparation with everything that was counted and learned, as saved in ``preparation.json``.

        Raises:
            InputError: for any input or choice that cannot be used; the message says which and what to do. The folder
                is then as if there had been no run.
            CommandError, OSError: fairseq-preprocess or the machine failed. What is finished is kept.
        """
        plan = {**self.preparation.choices(), "splits": self.given}
        if (self.output / PREPARATION).exists():
            prepared = Preparation.load(self.output)
            differing = _differences(plan, {**prepared.choices(), "splits": prepared.splits})
            if differing or not isinstance(prepared, type(self.preparation)):
                raise InputError(
                    f"{self.output} was prepared otherwise ({', '.join(differing)}): remove it, or name another folder"
                )
            if (name := prepared.missing(self.output)) is not None:
                raise InputError(
                    f"{self.output / name}: missing, or not of the size that was prepared: delete {self.output} and "
                    f"start again"
                )
            print(f"{self.output} is up to date")
            return prepared
        # Sequences that are drawn are given by nobody.
        print(f"preparing {', '.join(self.given) or 'the splits'} in {self.output}", flush=True)
        self._warn_of_shared_files()
        with self._claimed(plan):
            for name, step in self.steps().items():
                # An earlier run may have finished it.
                if name not in self.found:
                    self.found[name] = step()
                    write_json(self.output / _PROGRESS, {"plan": plan, **self.found})
            prepared = dataclasses.replace(
                self.preparation, **self.results(), versions=versions(PACKAGES), files=self._written()
            )
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
            CommandError: it failed.
        """
        command = shlex.join(["fairseq-preprocess", *arguments, "--destdir", name])
        print(f"fairseq-preprocess: {command}", flush=True)
        destination = str(folder.relative_to(self.output))
        preprocess = python_command(_PREPROCESS, [*arguments, "--destdir", destination])
        # It says itself which process it is, before it does anything: whoever starts again after a kill ends it. If we
        # are gone by then, it does nothing.
        process = subprocess.Popen(
            ["sh", "-c", _SAYING_WHO, _PROCESS, str(os.getpid()), *preprocess, "--workers", str(self.workers)],
            cwd=self.output,
            env={"OMP_NUM_THREADS": "1", **environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # so that its workers end with it
        )
        try:
            said, _ = process.communicate()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        finally:
            (self.output / _PROCESS).unlink(missing_ok=True)
        if process.returncode:
            raise CommandError(
                f"fairseq-preprocess failed with status {process.returncode}: {last_words(said.splitlines())}; "
                f"start again to go on"
            )
        _check_binarized(folder)
        # Its times and temporary names would make every run's bytes differ; preparation.json has the command.
        (folder / "preprocess.log").unlink(missing_ok=True)
        return command

    @contextlib.contextmanager
    def _claimed(self, plan: Mapping[str, Any]) -> Iterator[None]:
        """Has the output folder for itself, with what an earlier run with the same plan finished, or nothing.

        After an :class:`InputError` in the block, unless a command failed, the folder is as if there had been no run.

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
                except CommandError:
                    raise
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
        names = {
            name
            for name in os.listdir(output)
            if name not in (DOWNLOAD, _LOCK, _PROCESS) and not self._is_leftover(name)
        }
        if PREPARATION in names:
            raise InputError(f"{output}: another preparation has just ended in this folder: start again")
        if names and _PROGRESS not in names:
            raise InputError(f"{output} is not empty and holds no preparation: name another folder for --output")
        _end_earlier_preprocess(output)
        if _PROGRESS in names:
            try:
                found = json.loads((output / _PROGRESS).read_text(encoding="utf-8"))
                if not _differences(plan, found.pop("plan")):
                    self.found = found
            except (ValueError, TypeError, KeyError, AttributeError):
                print(f"warning: {output / _PROGRESS} is damaged: the preparation begins anew")
        for leftover in [output / name for name in os.listdir(output) if self._is_leftover(name)]:
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        if not self.found:
            self._remove_folders()
            write_json(output / _PROGRESS, {"plan": plan})

    def _is_leftover(self, name: str) -> bool:
        """Whether a file or folder is what a run that was killed was writing."""
        ours = (*self.folders, _PROGRESS, PREPARATION)
        return name.endswith((".tmp", ".old")) and name.startswith(tuple(f".{target}." for target in ours))

    def _warn_of_shared_files(self) -> None:
        for (one, first), (other, second) in itertools.combinations(self.given.items(), 2):
            if shared := set(first["sha256"]) & set(second["sha256"]):
                file = first["files"][next(i for i, checksum in enumerate(first["sha256"]) if checksum in shared)]
                print(
                    f"warning: {one} and {other} have the same text ({file}): what is measured on one says nothing new"
                )

    def _written(self) -> dict[str, dict[str, Any]]:
        """What is known of every file that the steps wrote."""
        paths = [path for folder in self.folders for path in sorted((self.output / folder).rglob("*"))]
        return {
            path.relative_to(self.output).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)}
            for path in paths
            if path.is_file()
        }

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


def _end_earlier_preprocess(output: Path) -> None:
    """Ends a fairseq-preprocess that a run left behind when it was killed: it would write into what we make."""
    try:
        number = int((output / _PROCESS).read_text())
        place, command = os.readlink(f"/proc/{number}/cwd"), Path(f"/proc/{number}/cmdline").read_bytes()
    except (OSError, ValueError):
        # It has ended, or there never was one.
        number = None
    if number is not None and Path(place) == output.resolve() and _PREPROCESS.encode() in command:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(number, signal.SIGKILL)
        # Its working directory can be read as long as it writes.
        with contextlib.suppress(OSError):
            while os.readlink(f"/proc/{number}/cwd"):
                time.sleep(0.02)
    (output / _PROCESS).unlink(missing_ok=True)


def _check_binarized(folder: Path) -> None:
    """Compares the sizes of fairseq's binary files with what their indices say.

    Raises:
        CommandError: one was cut short: fairseq's workers do not report a full disk.
    """
    for index in folder.glob("**/*.idx"):
        content = index.read_bytes()
        if len(content) < _INDEX_HEAD.size or not content.startswith(_INDEX_MAGIC):
            raise CommandError(
                f"fairseq-preprocess left {index.name} unfinished: is the disk full? Start again to go on"
            )
        _, _, kind, count = _INDEX_HEAD.unpack_from(content)
        sizes = array.array("i", content[_INDEX_HEAD.size : _INDEX_HEAD.size + 4 * count])
        data = index.with_suffix(".bin")
        is_whole = len(content) == _INDEX_HEAD.size + 12 * count and kind in _ITEM_BYTES and data.is_file()
        if not is_whole or data.stat().st_size != sum(sizes) * _ITEM_BYTES[kind]:
            raise CommandError(
                f"fairseq-preprocess left {data.name} unfinished: is the disk full? Start again to go on"
            )


def checksum(path: Path) -> str:
    """That of a given file. Raises InputError where there is none."""
    try:
        return sha256(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None


def note_unknown_metric(name: str, known: Collection[str], texts: str) -> None:
    """Says where a metric is none of those here that score models of such ``texts``: it may be a user's own."""
    if name not in known:
        print(f"note: '{name}' is no metric of {texts} here: an extension has to define it{nearest(name, known)}")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that prepares a corpus."""
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes; default: the number of CPUs"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="a new folder, or one of an earlier run")
