"""Recordings with labels, such as who speaks, cut into windows for a model that reads the waveform.

DilatedRNN (Chang et al. 2017), Section 4.4. The output folder holds

    raw/{train,valid,test}.label        the label of each window
    raw/{train,valid,test}.recording    its recording, and where it begins there, in seconds
    bin/{train,valid,test}.samples      the samples of all recordings of a set, one behind the other: int16
    bin/{train,valid,test}.windows.npy  (W, 4): a window's recording's first sample and length; its own start; its label
    bin/label/dict.txt                  the labels
    preparation.json                    what was done

Every recording is made mono, resampled, and scaled to a mean square of one, so that loudness tells nothing. Whole
recordings are held out: a set has no window of another set's recording.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
import random
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fairseq_plugins.corpora.labelled_texts import Example, check_labels
from fairseq_plugins.corpora.lines import text_writer
from fairseq_plugins.corpora.pipeline import Run
from fairseq_plugins.corpora.preparation import Preparation, result
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import sha256

SPLITS = ("train", "valid", "test")
SAMPLES, WINDOWS = ".samples", ".windows.npy"
"""The ends of a split's files in ``bin/``."""
_NAME = re.compile(r"[^\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]+")
"""Names that fit into a line of ``raw/*.recording``, beside a tab."""
_BLOCK = 256
"""Recordings that are read together, so that a corpus of any size fits into memory."""
_LONGEST_WINDOW = 60
"""Seconds."""

Read = TypeVar("Read")


class Recording(NamedTuple):
    """A recording with its label.

    Attributes:
        path: of its file
        label: one word
        name: the path as the corpus has it, wherever that lies
        place: what errors in its label name
        split: one of :data:`SPLITS`, where the corpus says it
    """

    path: Path
    label: str
    name: str
    place: str
    split: str | None = None


@dataclasses.dataclass(kw_only=True)
class LabelledAudioPreparation(Preparation):
    """What recordings became."""

    kind = "labelled_audio"
    title = "labelled recordings"
    examples = "windows"

    data_set: str
    """Whose recordings, by the name of the command."""
    label: str = "label"
    """What the label is of a recording."""
    sampling_rate: int = 16_000
    """Samples a second, to which recordings of a higher rate are brought."""
    seconds: float = 0.5
    """Of a window."""
    valid_share: float = 0.1
    """Of each label's recordings, where the corpus does not say which ones validate."""
    test_share: float = 0.1
    """The same for the test."""
    seed: int = 1
    """Of what is drawn."""
    metric: str = "accuracy"
    labels: list[str] = result(list)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampling_rate < 1_000:
            raise InputError(f"--rate {self.sampling_rate}: a voice needs at least 1000 samples a second")
        if not (math.isfinite(self.seconds) and self.window >= 2 and self.seconds <= _LONGEST_WINDOW):
            raise InputError(f"--window {self.seconds}: seconds are meant, such as 0.5, {_LONGEST_WINDOW} at most")
        for option, share in (("--valid-share", self.valid_share), ("--test-share", self.test_share)):
            if not 0 < share < 1 or self.valid_share + self.test_share >= 1:
                raise InputError(f"{option} {share}: shares are above 0, and together below 1")

    @property
    def window(self) -> int:
        """Samples of a window."""
        return round(self.seconds * self.sampling_rate)

    def dictionaries(self) -> list[str]:
        return ["bin/label/dict.txt"]

    def task_options(self) -> dict[str, Any]:
        return {"sampling_rate": self.sampling_rate, "window": self.window}

    def fairseq_arguments(self, folder: str | os.PathLike[str]) -> list[str]:
        sizes = ["--sampling-rate", str(self.sampling_rate), "--window", str(self.window)]
        return [*super().fairseq_arguments(folder), "--task", "waveform_classification", *sizes]


class LabelledAudioRun(Run[LabelledAudioPreparation]):
    """One run of a preparation.

    Args:
        preparation: what to do
        recordings: split → its recordings
        lists: split → a file whose checksum stands for them
        output: the folder to write
        workers: threads that read
    """

    folders = ("raw", "bin")

    def __init__(
        self,
        preparation: LabelledAudioPreparation,
        recordings: Mapping[str, Sequence[Recording]],
        lists: Mapping[str, Path],
        output: str | os.PathLike[str],
        workers: int = 1,
    ) -> None:
        super().__init__(preparation, {split: [path] for split, path in lists.items()}, output, workers)
        self.recordings = recordings

    def write(self, folder: Path) -> dict[str, Any]:
        labels = sorted({recording.label for recording in self.recordings["train"]})
        for recordings in self.recordings.values():
            check_labels((Example((), recording.label, recording.place) for recording in recordings), labels)
        if len(labels) < 2:
            raise InputError(f"every recording has the label {labels[0]!r}: two classes are the fewest")
        (folder / "raw").mkdir()
        (folder / "bin" / "label").mkdir(parents=True)
        splits, silent = {}, []
        counts = dict.fromkeys(labels, 0)
        for split in self.recordings:
            facts, silent_ones = self._write_split(folder, split, counts)
            splits[split] = {**self.facts[split], **facts}
            silent += silent_ones
        if silent:
            print(
                f"warning: {silent[0].path}: silence from its beginning to its end ({len(silent):,} such recordings in "
                f"all), left out"
            )
        with text_writer(folder / "bin" / "label" / "dict.txt") as stream:
            stream.writelines(f"{label} {count}\n" for label, count in counts.items())
        return {"splits": splits, "labels": labels, "dictionary_sizes": {"label": len(labels)}}

    def _write_split(self, folder: Path, split: str, counts: dict[str, int]) -> tuple[dict[str, int], list[Recording]]:
        """A split's files; what was counted of it, and its silent recordings. Windows are added to ``counts``."""
        # Not at the head of the file: what asks how data were prepared does not wait for NumPy.
        import numpy as np

        from fairseq_plugins.corpora.waveforms import SAMPLE_TYPE, read_recording, windows_of

        steps, numbers = self.preparation, {label: number for number, label in enumerate(counts)}
        windows, silent, first = [], [], 0
        of_labels = dict.fromkeys(counts, 0)

        def read(recording: Recording) -> np.ndarray | None:
            return read_recording(recording.path, steps.sampling_rate, steps.window)

        with contextlib.ExitStack() as stack:
            samples_file = stack.enter_context(open(folder / "bin" / f"{split}{SAMPLES}", "wb"))
            label_file, name_file = (
                stack.enter_context(text_writer(folder / "raw" / f"{split}.{name}")) for name in ("label", "recording")
            )
            for recording, samples in _in_threads(read, self.recordings[split], self.workers, split):
                if samples is None:
                    silent.append(recording)
                    continue
                for start in windows_of(samples, steps.window):
                    windows.append((first, len(samples), start, numbers[recording.label]))
                    of_labels[recording.label] += 1
                    label_file.write(f"{recording.label}\n")
                    name_file.write(f"{recording.name}\t{max(0, start) / steps.sampling_rate:.3f}\n")
                samples.astype(SAMPLE_TYPE).tofile(samples_file)
                first += len(samples)
        nothing = [label for label, count in of_labels.items() if split == "train" and not count]
        if nothing or not windows:
            of = f" of {nothing[0]!r}" if nothing else ""
            raise InputError(f"{split}: no recording{of} has a sound in it; give others")
        np.save(folder / "bin" / f"{split}{WINDOWS}", np.array(windows, dtype=np.int64))
        for label, count in of_labels.items():
            counts[label] += count
        facts = {
            "recordings": len(self.recordings[split]),
            "silent": len(silent),
            "seconds": round(first / steps.sampling_rate),
            "kept": len(windows),
        }
        return facts, silent


def in_splits(recordings: Sequence[Recording], steps: LabelledAudioPreparation) -> dict[str, list[Recording]]:
    """The recordings of each split; of those that the corpus has in none, shares of each label are drawn.

    Where the corpus says which recordings test, only those that validate are drawn, and the other way round.

    Raises:
        InputError: there are too few of a label, or all recordings are in one split.
    """
    splits: dict[str, list[Recording]] = {split: [] for split in SPLITS}
    undecided: dict[str, list[Recording]] = {}
    for recording in recordings:
        if recording.split is None:
            undecided.setdefault(recording.label, []).append(recording)
        else:
            splits[recording.split].append(recording)
    drawn = [(split, getattr(steps, f"{split}_share")) for split in ("valid", "test") if not splits[split]]
    generator = random.Random(steps.seed)
    for label, of_label in sorted(undecided.items()):
        if len(of_label) <= len(drawn):
            raise InputError(
                f"{of_label[0].place}: of {label!r} there are too few recordings, {len(of_label)}: {len(drawn) + 1} "
                f"are the fewest, since whole recordings are held out"
            )
        order = generator.sample(of_label, len(of_label))
        for split, share in drawn:
            count = min(max(1, round(share * len(of_label))), len(order) - 1)
            splits[split] += order[:count]
            order = order[count:]
        splits["train"] += order
    for split, of_split in splits.items():
        if not of_split:
            raise InputError(f"no recording is in '{split}': name that split for some, or none for any")
        of_split.sort(key=lambda recording: recording.name)
    return splits


def prepare(
    preparation: LabelledAudioPreparation,
    recordings: Sequence[Recording],
    output: str | os.PathLike[str],
    workers: int = 1,
) -> LabelledAudioPreparation:
    """Prepares labelled recordings and says what there is; see :meth:`.Run.prepare`."""
    for recording in recordings:
        if not recording.path.is_file():
            raise InputError(f"{recording.place}: {recording.path}: no such file")
        if not _NAME.fullmatch(recording.name):
            raise InputError(
                f"{recording.name!r}: a tab, a line break or no UTF-8 in its name; name the file otherwise"
            )
    if workers < 1:
        raise InputError(f"workers is {workers}: it must be at least 1")
    splits = in_splits(recordings, preparation)
    with tempfile.TemporaryDirectory() as folder:
        lists: dict[str, Path] = {}
        checksums: dict[str, tuple[str, Recording]] = {}
        copies = []
        for split, of_split in splits.items():
            lists[split] = Path(folder) / f"{split}.tsv"
            with text_writer(lists[split]) as stream:
                for recording, checksum in _in_threads(_checksum, of_split, workers, f"{split}, checksums"):
                    # Not where the corpus is: it says nothing of the recordings.
                    stream.write(f"{recording.name}\t{recording.label}\t{checksum}\n")
                    first_split, first = checksums.setdefault(checksum, (split, recording))
                    if first_split != split:
                        copies.append(f"{recording.path}, of '{split}', is {first.path}, of '{first_split}'")
        if copies:
            print(
                f"warning: {copies[0]} ({len(copies):,} such recordings in all): what is measured on one says nothing "
                f"new of the other; leave them out"
            )
        prepared = LabelledAudioRun(preparation, splits, lists, output, workers).prepare()
    counts = ", ".join(
        f"{facts['kept']:,} {name} (of {facts['recordings']:,} recordings)" for name, facts in prepared.splits.items()
    )
    print(f"{output}: {len(prepared.labels)} labels; windows of {prepared.seconds:g} s: {counts}")
    return prepared


def _checksum(recording: Recording) -> str:
    return sha256(recording.path)


def _in_threads(
    function: Callable[[Recording], Read], recordings: Iterable[Recording], workers: int, description: str
) -> Iterator[tuple[Recording, Read]]:
    """Yields each recording with what the function makes of it, in order. Shows a progress bar on a terminal."""
    from tqdm import tqdm

    recordings = iter(recordings)
    # Threads: what reads and resamples lets the others run.
    with ThreadPoolExecutor(workers) as executor, tqdm(desc=description, unit=" recordings", disable=None) as progress:
        while block := list(itertools.islice(recordings, _BLOCK)):
            for recording, made in zip(block, executor.map(function, block), strict=True):
                yield recording, made
                progress.update()
