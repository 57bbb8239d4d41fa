"""Recordings with labels, prepared: splits, windows, rates, and files that cannot be used."""

from __future__ import annotations

import os
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from fairseq_plugins import command
from fairseq_plugins.corpora import data_sets
from fairseq_plugins.corpora.labelled_audio import LabelledAudioPreparation
from fairseq_plugins.corpora.waveforms import UNIT, read_recording, windows_of, write_voices
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("soxr")

RATE = 2_000


def run(name: str, *arguments: object) -> LabelledAudioPreparation:
    given = [str(argument) for argument in arguments]
    data_sets.main([name, "--workers", "2", *given])
    return LabelledAudioPreparation.load(given[given.index("--output") + 1])


def refusal(*arguments: object) -> str:
    with pytest.raises(InputError) as raised:
        run(*map(str, arguments))
    return str(raised.value)


def write(path: Path, samples: np.ndarray, rate: int = RATE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, subtype="PCM_16")
    return path


def tone(seconds: float = 1.0, rate: int = RATE, pitch: float = 100.0, level: float = 0.1) -> np.ndarray:
    return level * np.sin(2 * np.pi * pitch * np.arange(round(seconds * rate)) / rate)


@pytest.fixture
def voices(tmp_path: Path) -> Path:
    write_voices(tmp_path / "voices", 10, RATE, voices=2)
    return tmp_path / "voices"


def owners(folder: Path, split: str) -> list[str]:
    return [line.split("\t")[0] for line in read_lines(folder / "raw" / f"{split}.recording")]


def test_whole_recordings_are_held_out(voices: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepared = run("labelled_audio", "--input", voices, "--rate", RATE, "--window", 0.3, "--output", out)
    assert prepared.labels == ["voice1", "voice2"] and prepared.window == 600
    recordings = {split: set(owners(out, split)) for split in ("train", "valid", "test")}
    assert [len(names) for names in recordings.values()] == [16, 2, 2]
    assert len(set.union(*recordings.values())) == 20, "no recording is in two sets"
    assert {name.split("/")[0] for name in recordings["test"]} == {"voice1", "voice2"}, "a share of each label"
    assert [facts["kept"] for facts in prepared.splits.values()] == [48, 6, 6], "three windows of each"
    labels = list(read_lines(out / "raw" / "valid.label"))
    windows = np.load(out / "bin" / "valid.windows.npy")
    assert [prepared.labels[number] for number in windows[:, 3]] == labels
    assert labels == [name.split("/")[0] for name in owners(out, "valid")]
    again = run("labelled_audio", "--input", voices, "--rate", RATE, "--window", 0.3, "--output", tmp_path / "again")
    assert again.splits == prepared.splits, "the same command gives the same sets"
    others = ["--seed", 2, "--valid-share", 0.2, "--test-share", 0.3, "--output", tmp_path / "others"]
    run("labelled_audio", "--input", voices, "--rate", RATE, "--window", 0.3, *others)
    assert len(set(owners(tmp_path / "others", "test"))) == 6
    assert len(set(owners(tmp_path / "others", "valid"))) == 4
    run("labelled_audio", "--input", voices, "--rate", RATE, "--seed", 3, "--output", tmp_path / "drawn anew")
    assert set(owners(tmp_path / "drawn anew", "test")) != recordings["test"]
    assert prepared.fairseq_arguments("DATA")[1:] == [
        *("--task", "waveform_classification", "--sampling-rate", "2000", "--window", "600")
    ]


def test_windows() -> None:
    """One behind the other, the rest left out; quiet ones say nothing; a short recording comes last in its window."""
    loud = np.full(10, 2000, dtype=np.int16)
    assert windows_of(np.concatenate([loud, loud, loud[:9]]), 10) == [0, 10]
    assert windows_of(np.concatenate([loud // 200, loud, loud // 50]), 10) == [10, 20], "40 dB"
    assert windows_of(loud, 10) == [0] and windows_of(loud[:7], 10) == [-3]


def test_another_rate_and_several_channels(tmp_path: Path) -> None:
    """What is resampled is the same sound: a tone keeps its pitch, and loudness goes."""
    stereo = np.stack([tone(rate=8000), tone(rate=8000, level=0.3)], axis=1)
    samples = read_recording(write(tmp_path / "a.wav", stereo, 8000), RATE, RATE)
    assert samples is not None and samples.dtype == np.int16 and len(samples) == RATE
    assert np.sqrt(np.mean(np.square(samples / UNIT))) == pytest.approx(1, abs=0.01)
    spectrum = np.abs(np.fft.rfft(samples))
    assert spectrum.argmax() == 100, "a second of 100 Hz"
    flac = read_recording(write(tmp_path / "a.flac", stereo, 8000), RATE, RATE)
    np.testing.assert_allclose(flac, samples, atol=2)


def test_vctk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of both versions; the second microphone of 0.92 recorded the same utterances."""
    for version, folder, ending in (("0.80", "wav48", ".wav"), ("0.92", "wav48_silence_trimmed", "_mic1.flac")):
        corpus = tmp_path / version
        for speaker in "p225", "p226":
            for number in range(1, 5):
                path = corpus / folder / speaker / f"{speaker}_{number:03}{ending}"
                write(path, tone(pitch=100 + number * int(speaker[1:])), 48_000)
                if version == "0.92":
                    write(path.with_name(path.name.replace("mic1", "mic2")), tone(pitch=90 + number), 48_000)
        named = "225  23  F    English\n227  38  M    English" if version == "0.80" else "p225  23  F\np227  38  M"
        (corpus / "speaker-info.txt").write_text(f"ID  AGE  GENDER  ACCENTS  REGION\n{named}\n", encoding="utf-8")
        prepared = run("vctk", "--input", corpus, "--window", 0.02, "--output", tmp_path / f"{version} out")
        assert (prepared.labels, prepared.sampling_rate) == (["p225", "p226"], 16_000)
        assert sum(facts["recordings"] for facts in prepared.splits.values()) == 8
        said = capsys.readouterr().out
        assert f"{corpus / folder / 'p227'}: no recordings of this speaker (1 in all)" in said
        assert "note: 2 speakers, and the paper's set has 109" in said
    assert "neither wav48 nor wav48_silence_trimmed" in refusal("vctk", "--input", tmp_path, "--output", tmp_path / "x")


def test_spoken_digits(tmp_path: Path) -> None:
    """The set's own test set, and either label."""
    for speaker in "theo", "george":
        for digit in 0, 1:
            for number in range(8):
                pitch = 100 + 50 * digit + 7 * number + len(speaker)
                write(tmp_path / "in" / f"{digit}_{speaker}_{number}.wav", tone(pitch=pitch), 8000)
    prepared = run("spoken_digits", "--input", tmp_path / "in", "--window", 0.1, "--output", tmp_path / "out")
    assert prepared.labels == ["george", "theo"] and prepared.sampling_rate == 8_000
    assert {name.split("_")[2][0] for name in owners(tmp_path / "out", "test")} == set("01234")
    assert {name.split("_")[2][0] for name in owners(tmp_path / "out", "train")} <= set("567")
    digits = ["--label", "digit", "--window", 0.1, "--output", tmp_path / "digits"]
    assert run("spoken_digits", "--input", tmp_path / "in", *digits).labels == ["0", "1"]


def test_a_table(voices: Path, tmp_path: Path) -> None:
    rows = [f"{path.relative_to(voices)}\t{path.parent.name}" for path in sorted(voices.glob("*/*.wav"))]
    table = voices / "table.tsv"
    table.write_text("path\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")
    options = ["labelled_audio", "--table", table, "--rate", RATE]
    assert run(*options, "--output", tmp_path / "out").splits["test"]["recordings"] == 2
    splits = ["valid", "test", *["train"] * 8] * 2
    lines = (f"{row}\t{split}" for row, split in zip(rows, splits, strict=True))
    table.write_text("path\tlabel\tsplit\n" + "\n".join(lines) + "\n", encoding="utf-8")
    run(*options, "--output", tmp_path / "said")
    assert set(owners(tmp_path / "said", "test")) == {rows[place].split("\t")[0] for place in (1, 11)}
    with table.open("a", encoding="utf-8") as stream:
        stream.write(f"{rows[0].replace('voice1', 'voice2', 1).split()[0]}\tvoice3\ttest\n")
    said = refusal(*options, "--output", tmp_path / "x")
    assert said.startswith(f"{table}, line 22: nothing in the training set has the label 'voice3'")
    table.write_text(f"path\tlabel\tsplit\n{rows[0]}\tdev\n", encoding="utf-8")
    assert refusal(*options, "--output", tmp_path / "x") == (
        f"{table}, line 2: there is no split 'dev'; name one of train, valid, test"
    )
    table.write_text("path\tlabel\nnone.wav\ta\n", encoding="utf-8")
    assert refusal(*options, "--output", tmp_path / "x") == f"{table}, line 2: {voices / 'none.wav'}: no such file"
    assert refusal("labelled_audio", "--output", "x") == "give either --input, a folder, or --table"


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def without_samples(path: Path) -> None:
    write(path, np.zeros(0))


def no_numbers(path: Path) -> None:
    soundfile.write(path, np.full(RATE, np.nan), RATE, subtype="FLOAT")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda path: path.write_bytes(b"no sound" * 99), "no recording that can be read (Format not recognised.)"),
        (cut_off, "the file is not whole; fetch it again"),
        (without_samples, "no samples in it; leave it out"),
        (no_numbers, "samples that are no numbers"),
        (lambda path: write(path, tone(rate=1000), 1000), "1,000 samples a second, but --rate is 2,000"),
    ],
)
def test_recordings_that_cannot_be_used(voices: Path, tmp_path: Path, damage: object, sentence: str) -> None:
    damage(voices / "voice2" / "7.wav")  # type: ignore[operator]
    said = refusal("labelled_audio", "--input", voices, "--rate", RATE, "--output", tmp_path / "out")
    assert said.startswith(f"{voices / 'voice2' / '7.wav'}: ") and sentence in said
    assert not (tmp_path / "out").exists(), "nothing half-written"


def test_silence_is_left_out(voices: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(voices / "voice1" / "3.wav", np.zeros(RATE))
    prepared = run("labelled_audio", "--input", voices, "--rate", RATE, "--output", tmp_path / "out")
    assert sum(facts["silent"] for facts in prepared.splits.values()) == 1
    assert f"{voices / 'voice1' / '3.wav'}: silence from its beginning to its end" in capsys.readouterr().out
    assert "voice1/3.wav" not in {name for split in prepared.splits for name in owners(tmp_path / "out", split)}
    for path in (voices / "voice1").iterdir():
        write(path, np.zeros(RATE))
    assert "no recording of 'voice1' has a sound in it" in refusal(
        "labelled_audio", "--input", voices, "--rate", RATE, "--output", tmp_path / "silent"
    )


def test_silence_around_speech_is_no_part_of_its_loudness(tmp_path: Path) -> None:
    """Else what is said between long pauses would be louder than there is room for."""
    speech = tone(level=0.3)
    pauses = np.concatenate([np.zeros(60 * RATE), speech, np.zeros(60 * RATE)])
    alone, between = (
        read_recording(write(tmp_path / f"{name}.wav", samples), RATE, RATE // 2)
        for name, samples in (("alone", speech), ("between", pauses))
    )
    assert alone is not None and between is not None
    np.testing.assert_array_equal(between[60 * RATE : 61 * RATE], alone)


def test_silence_after_resampling_and_channels_of_opposite_phase(tmp_path: Path) -> None:
    """A tone above half the rate is gone at that rate, and so is a single sample; two channels may cancel out."""
    high = write(tmp_path / "high.wav", np.hanning(48_000) * tone(rate=48_000, pitch=12_000), 48_000)
    assert read_recording(high, 8000, 4000) is None
    assert read_recording(write(tmp_path / "short.wav", np.ones(1) * 0.5, 48_000), 8000, 4000) is None
    samples = read_recording(write(tmp_path / "a.wav", np.stack([tone(), -tone()], axis=1)), RATE, RATE)
    np.testing.assert_array_equal(samples, read_recording(write(tmp_path / "b.wav", tone()), RATE, RATE))


def test_sizes_that_were_not_known_when_they_were_written(tmp_path: Path) -> None:
    """As programs write that stream, or forget to correct the whole file's size: no sample is missing."""
    path = write(tmp_path / "a.wav", tone())
    content = path.read_bytes()
    place = content.index(b"data") + 4
    for riff, data in ((len(content), None), (0xFFFFFFFF, 0xFFFFFFFF), (0x7FFFF024, 0x7FFFF000)):
        sized = content[:4] + riff.to_bytes(4, "little") + content[8:]
        if data is not None:
            sized = sized[:place] + data.to_bytes(4, "little") + sized[place + 4 :]
        path.write_bytes(sized)
        samples = read_recording(path, RATE, RATE)
        assert samples is not None and len(samples) == RATE


@pytest.mark.parametrize("name", ["a\nb.wav", "a\tb.wav", os.fsdecode(b"caf\xe9.wav")])
def test_names_that_are_no_line_of_text(voices: Path, tmp_path: Path, name: str) -> None:
    (voices / "voice1" / "1.wav").rename(voices / "voice1" / name)
    said = refusal("labelled_audio", "--input", voices, "--rate", RATE, "--output", tmp_path / "out")
    assert said.endswith("a tab, a line break or no UTF-8 in its name; name the file otherwise")


def test_the_same_recording_in_two_sets(voices: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2, 11):
        (voices / "voice1" / f"{number}.wav").write_bytes((voices / "voice1" / "1.wav").read_bytes())
    run("labelled_audio", "--input", voices, "--rate", RATE, "--output", tmp_path / "out")
    assert "(2 such recordings in all): what is measured on one says nothing" in capsys.readouterr().out


def test_what_makes_no_sense(voices: Path, tmp_path: Path) -> None:
    def said(*options: object) -> str:
        return refusal("labelled_audio", "--input", voices, *options, "--output", tmp_path / "out")

    assert said("--rate", 10) == "--rate 10: a voice needs at least 1000 samples a second"
    assert said("--window", 0) == "--window 0.0: seconds are meant, such as 0.5, 60 at most"
    assert said("--window", "nan").startswith("--window nan: ") and said("--window", "1e9").startswith("--window 1")
    assert said("--workers", 0) == "workers is 0: it must be at least 1"
    assert said("--test-share", 0.95) == "--valid-share 0.1: shares are above 0, and together below 1"
    (voices / "voice3").mkdir()
    write(voices / "voice3" / "1.wav", tone())
    assert said("--rate", RATE) == (
        f"{voices / 'voice3'}: of 'voice3' there are too few recordings, 1: 3 are the fewest, since whole recordings "
        "are held out"
    )
    (voices / "voice3" / "1.wav").rename(voices / "1.wav")
    assert said() == f"{voices / '1.wav'}: not in a folder of a label; move it, or list the recordings in a --table"
    (voices / "1.wav").unlink()
    (voices / "voice2").rename(voices / "a voice")
    assert "the label 'a voice' is no word" in said("--rate", RATE)
    assert "no recordings (.wav, .flac" in refusal(
        "labelled_audio", "--input", tmp_path / "voices" / "voice3", "--output", tmp_path / "out"
    )


@pytest.mark.parametrize("package", ["soundfile", "soxr"])
def test_what_is_not_installed_is_named(
    voices: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"^{package} is not installed for .*--extras audio"):
        command.run(["prepare", "labelled_audio", "--input", str(voices), "--output", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_a_wave_file_of_python_is_read(tmp_path: Path) -> None:
    """Written by another program than the one that reads."""
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((np.sign(tone()) * 1000).astype("<i2").tobytes())
    samples = read_recording(path, RATE, RATE)
    assert samples is not None and np.abs(samples).max() == pytest.approx(UNIT, rel=0.1)
