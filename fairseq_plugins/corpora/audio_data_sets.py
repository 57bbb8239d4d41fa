"""The data sets of labelled recordings, and those of a user's own: rows of :data:`.data_sets.DATA_SETS`.

    fairseq-plugins prepare vctk --input VCTK-Corpus --output work/vctk/data
    fairseq-plugins prepare labelled_audio --input recordings --output work/own_audio/data

A new one is a row, and a function that lists its recordings.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from fairseq_plugins.corpora.data_set import DataSet, named_fields, path_option
from fairseq_plugins.corpora.labelled_audio import SPLITS, LabelledAudioPreparation, Recording, prepare
from fairseq_plugins.corpora.labelled_tables import read_table
from fairseq_plugins.corpora.pipeline import add_run_arguments
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines

ENDINGS = (".wav", ".flac", ".ogg", ".mp3", ".opus", ".aiff", ".aif", ".au")
"""Of the files that are recordings."""
VCTK_SPEAKERS = 109
"""Those of the paper."""


class AudioSet(DataSet[list[Recording]]):
    """A data set of labelled recordings."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        fields = {field.name: field.default for field in dataclasses.fields(LabelledAudioPreparation)}
        default = {**fields, **self.choices}
        for option, field, kind, metavar, text in (
            ("--rate", "sampling_rate", int, "N", "samples a second, to which all recordings are brought"),
            ("--window", "seconds", float, "S", "seconds that are classified together"),
            ("--valid-share", "valid_share", float, "X", "of each label's recordings"),
            ("--test-share", "test_share", float, "X", "of each label's recordings"),
            ("--seed", "seed", int, "N", "of what is held out"),
        ):
            text = f"{text}; default: {default[field]}"
            parser.add_argument(option, dest=field, type=kind, default=default[field], metavar=metavar, help=text)
        add_run_arguments(parser)

    def prepare(self, name: str, options: argparse.Namespace, folder: Path) -> None:
        choices = {**self.choices, **named_fields(LabelledAudioPreparation, options)}
        preparation = LabelledAudioPreparation(data_set=name, **choices)
        prepare(preparation, self.source(options, folder), options.output, options.workers)


def _vctk(options: argparse.Namespace, _: Path) -> list[Recording]:
    """``wav48/p225/p225_001.wav``, or ``wav48_silence_trimmed/p225/p225_001_mic1.flac`` of version 0.92, whose second
    microphone recorded the same utterances."""
    patterns = {"wav48": "*.wav", "wav48_silence_trimmed": "*_mic1.flac"}
    part = next((part for part in patterns if (options.input / part).is_dir()), None)
    if part is None:
        raise InputError(
            f"{options.input}: neither wav48 nor wav48_silence_trimmed is there; give the folder of VCTK as published"
        )
    recordings, folder, pattern = [], options.input / part, patterns[part]
    for path in sorted(folder.glob(f"*/{pattern}")):
        recordings.append(Recording(path, path.parent.name, str(path.relative_to(options.input)), str(path.parent)))
    if not recordings:
        raise InputError(f"{folder}: no recordings {pattern} in folders of speakers; fetch VCTK again")
    speakers = {recording.label for recording in recordings}
    table = options.input / "speaker-info.txt"
    if table.is_file():
        # The first line has the columns' names; version 0.80 leaves out the p.
        ids = [line.split()[0] for line in list(read_lines(table))[1:] if line.split()]
        named = [f"p{name}" if name.isdecimal() else name for name in ids]
        if missing := [name for name in named if name not in speakers]:
            print(
                f"warning: {folder / missing[0]}: no recordings of this speaker ({len(missing)} in all), whom "
                f"{table.name} names: is VCTK whole?"
            )
    if len(speakers) != VCTK_SPEAKERS:
        print(f"note: {len(speakers)} speakers, and the paper's set has {VCTK_SPEAKERS}: not comparable with the paper")
    return recordings


def _spoken_digits(options: argparse.Namespace, _: Path) -> list[Recording]:
    """``7_theo_12.wav``: the digit, the speaker and a number, of which 0 to 4 are the test set."""
    recordings = []
    for path in sorted(options.input.glob("*.wav")):
        parts = path.stem.split("_")
        if len(parts) != 3 or not parts[2].isdecimal():
            raise InputError(f"{path}: not called as a spoken digit is, such as 7_theo_12.wav; leave it out")
        label = parts[1] if options.label == "speaker" else parts[0]
        split = "test" if int(parts[2]) < 5 else None
        recordings.append(Recording(path, label, path.name, str(path), split))
    if not recordings:
        raise InputError(f"{options.input}: no recordings *.wav in it; give the folder 'recordings' of the data set")
    return recordings


def _own(options: argparse.Namespace, _: Path) -> list[Recording]:
    """A folder for each label, or a table."""
    if (options.input is None) == (options.table is None):
        raise InputError("give either --input, a folder, or --table")
    return _of_table(options.table) if options.input is None else _of_folders(options.input)


def _of_folders(folder: Path) -> list[Recording]:
    recordings = []
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.suffix.lower() not in ENDINGS or path.name.startswith(".") or not path.is_file():
            continue
        if len(name.parts) < 2:
            raise InputError(f"{path}: not in a folder of a label; move it, or list the recordings in a --table")
        recordings.append(Recording(path, name.parts[0], name.as_posix(), str(folder / name.parts[0])))
    if not recordings:
        raise InputError(f"{folder}: no recordings ({', '.join(ENDINGS)}) in folders of labels")
    return recordings


def _of_table(table: Path) -> list[Recording]:
    first = next(read_lines(table), "")
    columns = ["path", "label", *(["split"] if "split" in first.split("\t") else [])]
    recordings = []
    for place, (name, label, *split) in read_table([table], columns, "\t"):
        if split and split[0] not in SPLITS:
            raise InputError(f"{place}: there is no split {split[0]!r}; name one of {', '.join(SPLITS)}")
        path = table.parent / name
        recordings.append(Recording(path, label.strip(), name, place, *split))
    if not recordings:
        raise InputError(f"{table}: no recordings in it; write the columns path and label, with tabs between them")
    return recordings


def _generated(options: argparse.Namespace, folder: Path) -> list[Recording]:
    if options.recordings < 3:
        raise InputError(f"--recordings {options.recordings}: it must be at least 3, one for each set")
    # Not at the head of the file: lists of data sets do not wait for NumPy.
    from fairseq_plugins.corpora.waveforms import write_voices

    write_voices(folder, options.recordings, options.sampling_rate)
    return _of_folders(folder)


AUDIO_SETS = {
    "vctk": AudioSet(
        "VCTK's speakers",
        _vctk,
        options={"--input": path_option("DIR", "with wav48 and speaker-info.txt")},
        choices={"label": "speaker"},
        description="Prepares VCTK (Yamagishi 2012): who speaks, by windows of the waveform. Whole utterances are held "
        "out, a tenth of each speaker's for validation and a tenth for the test.",
        examples=("--input VCTK-Corpus --output work/vctk/data",),
    ),
    "spoken_digits": AudioSet(
        "spoken digits: who speaks, or which digit",
        _spoken_digits,
        options={
            "--input": path_option("DIR", "with 0_george_0.wav and the others"),
            "--label": {"choices": ("speaker", "digit"), "default": "speaker", "help": "default: speaker"},
        },
        choices={"sampling_rate": 8_000},
        description="Prepares the Free Spoken Digit Dataset: six speakers, ten digits. Recordings 0 to 4 of each "
        "speaker and digit are the test set, as published; a tenth of the others validates.",
        examples=("--input free-spoken-digit-dataset/recordings --output work/spoken_digits/data",),
    ),
    "labelled_audio": AudioSet(
        "recordings of your own, with labels",
        _own,
        options={
            "--input": path_option("DIR", "a folder of recordings for each label", required=False),
            "--table": path_option(
                "FILE",
                "in its place: columns path and label, with tabs between them, and split, if you like",
                required=False,
            ),
        },
        choices={},
        description="Prepares recordings of your own: a folder for each label, or a table of paths and labels. A model "
        "learns to tell the labels from windows of the waveform.",
        examples=(
            "--input recordings --output work/own_audio/data",
            "--table recordings.tsv --rate 8000 --window 1 --output work/own_audio/data",
        ),
    ),
    "generated_voices": AudioSet(
        "generated sounds of four voices, to try it out",
        _generated,
        options={"--recordings": {"type": int, "default": 60, "metavar": "N", "help": "of each voice; default: 60"}},
        choices={"sampling_rate": 4_000, "seconds": 0.25},
        description="Makes sounds of four voices, of a pitch and formants of its own each, and prepares them.",
        examples=("--output work/generated_voices/data",),
    ),
}
