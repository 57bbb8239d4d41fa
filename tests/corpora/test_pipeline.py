"""Kinds of corpora that are defined here: one of running text, and one of sequences that nobody has written."""

from __future__ import annotations

import dataclasses
import errno
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairseq_plugins
from fairseq_plugins.corpora.codec import Codec
from fairseq_plugins.corpora.lines import map_lines, read_aligned, text_writer
from fairseq_plugins.corpora.pipeline import Run
from fairseq_plugins.corpora.preparation import Preparation
from fairseq_plugins.corpora.tokenizers import Tokenizer
from fairseq_plugins.errors import CommandError, InputError
from fairseq_plugins.files import read_lines, sha256
from tests.commands import CHECKOUT, run_command
from tests.corpora.parallel_text import contents


@dataclasses.dataclass
class ToyText(Preparation):
    """Running text: no pairs, no languages."""

    kind = "toy_text"

    lowercase: bool = False
    metric: str = dataclasses.field(default="perplexity", kw_only=True)

    def dictionaries(self) -> list[str]:
        return ["bin/dict.txt"]

    @property
    def codec(self) -> Codec:
        return Codec(Tokenizer("en", lowercase=self.lowercase))


class ToyTextRun(Run):
    """Words to tokens/, tokens to bin/."""

    folders = ("tokens", "bin")
    preparation: ToyText

    def write(self, folder: Path) -> dict[str, Any]:
        counts = self.write_tokens(folder / "tokens")
        command = self.write_bin(folder)
        return {
            "splits": {split: {**self.facts[split], "lines": count} for split, count in counts.items()},
            "dictionary_sizes": {"text": sum(1 for _ in read_lines(folder / "bin" / "dict.txt"))},
            "commands": [command],
        }

    def write_tokens(self, folder: Path) -> dict[str, int]:
        counts = {}
        tokenize = self.preparation.codec.tokenize
        folder.mkdir()
        for split, paths in self.inputs.items():
            lines = (line for (line,) in read_aligned(paths))
            with text_writer(folder / f"{split}.txt") as stream:
                tokens = [line for _, line in map_lines(tokenize, lines, self.workers, split)]
                stream.writelines(line + "\n" for line in tokens)
            counts[split] = len(tokens)
        return counts

    def write_bin(self, folder: Path) -> str:
        arguments = ["--only-source"]
        arguments += [word for split in self.inputs for word in (f"--{split}pref", f"tokens/{split}.txt")]
        return self.fairseq_preprocess(arguments, folder)


@dataclasses.dataclass
class ToySequences(Preparation):
    """Sequences of random numbers: no files are given."""

    kind = "toy_sequences"

    seed: int = 1
    metric: str = dataclasses.field(default="accuracy", kw_only=True)


class ToySequencesRun(Run):
    """Draws the sequences."""

    folders = ("bin",)
    preparation: ToySequences

    def write(self, folder: Path) -> dict[str, Any]:
        generator = random.Random(self.preparation.seed)
        (folder / "bin").mkdir()
        for split in ("train", "valid", "test"):
            (folder / "bin" / split).write_bytes(bytes(generator.choices(range(10), k=50)))
        return {"splits": {split: {"sequences": 5} for split in ("train", "valid", "test")}}


TEXT = {
    "train": "The cat sat .\nA dog ran .\n" * 30,
    "valid": "The dog sat .\n",
    "test": "A cat ran .\nThe bird sat .\n",
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    folder = tmp_path_factory.mktemp("text")
    for split, text in TEXT.items():
        (folder / f"{split}.txt").write_text(text)
    return {split: [folder / f"{split}.txt"] for split in TEXT}


@pytest.fixture(scope="module")
def prepared(inputs: dict[str, list[Path]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("output") / "prepared"
    ToyTextRun(ToyText(lowercase=True), inputs, output, workers=2).prepare()
    return output


def test_a_new_kind_is_read_back_by_who_does_not_know_it(prepared: Path) -> None:
    preparation = Preparation.load(prepared)
    assert type(preparation) is ToyText
    assert preparation.lowercase
    assert preparation.metric == "perplexity"
    assert {split: facts["lines"] for split, facts in preparation.splits.items()} == {
        "train": 60,
        "valid": 1,
        "test": 2,
    }
    assert preparation.splits["test"]["files"] == ["test.txt"]
    assert preparation.fairseq_arguments(prepared) == [str(prepared / "bin")]
    assert all((prepared / file).is_file() for file in preparation.dictionaries())
    assert preparation.dictionary_sizes == {"text": 12}  # 7 types and fairseq's 4, padded to a multiple of 8
    assert preparation.commands == [
        "fairseq-preprocess --only-source --trainpref tokens/train.txt --validpref tokens/valid.txt "
        "--testpref tokens/test.txt --destdir bin"
    ]
    assert {path.name for path in prepared.iterdir()} == {"tokens", "bin", "preparation.json"}


def test_fairseq_reads_a_new_kind(prepared: Path) -> None:
    from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask

    fairseq_plugins.register()  # fairseq alone asks numpy for what is there no more
    (folder,) = Preparation.load(prepared).fairseq_arguments(prepared)
    cfg = LanguageModelingConfig(data=folder, sample_break_mode="eos", tokens_per_sample=20)
    cfg.seed, cfg.dataset_impl, cfg.use_plasma_view = 1, None, False
    task = LanguageModelingTask.setup_task(cfg)
    task.load_dataset("test")
    sentences = [task.dictionary.string(task.dataset("test")[index]["target"]) for index in range(2)]
    assert sentences == ["a cat ran .", "the <unk> sat ."]


@pytest.fixture
def no_binarising(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of fairseq-preprocess, which takes seconds: a dictionary, and nothing else."""

    def preprocess(run: Run, arguments: list[str], folder: Path) -> str:
        (folder / "bin").mkdir()
        (folder / "bin" / "dict.txt").write_text("word 1\n")
        return "none"

    monkeypatch.setattr(Run, "fairseq_preprocess", preprocess)


def _killed_in(step: str, inputs: dict[str, list[Path]], output: Path) -> None:
    def kill(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    owner, name = {
        "tokens": (Codec, "tokenize"),
        "bin": (Run, "fairseq_preprocess"),
        "record": (Preparation, "save"),
    }[step]
    setattr(owner, name, kill)
    ToyTextRun(ToyText(lowercase=True), inputs, output).prepare()


def kill_a_run(step: str, inputs: dict[str, list[Path]], output: Path) -> None:
    """Runs in a process of its own, which is killed at a step."""
    process = multiprocessing.get_context("fork").Process(target=_killed_in, args=(step, inputs, output))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("step", ["tokens", "bin", "record"])
def test_a_new_kind_that_was_killed_begins_anew(
    step: str, inputs: dict[str, list[Path]], tmp_path: Path, no_binarising: None
) -> None:
    output = tmp_path / "killed"
    kill_a_run(step, inputs, output)
    assert not output.exists()
    for folder in output, tmp_path / "uninterrupted":
        ToyTextRun(ToyText(lowercase=True), inputs, folder).prepare()
    assert contents(output) == contents(tmp_path / "uninterrupted")
    assert sorted(os.listdir(tmp_path)) == ["killed", "uninterrupted"]


def test_only_leftovers_of_the_same_output_are_removed(
    inputs: dict[str, list[Path]], tmp_path: Path, no_binarising: None
) -> None:
    kept = [".out.2.abcdefgh.tmp", ".out.abcdefgh", ".other.abcdefgh.tmp", "out.download"]
    for name in (".out.abcdefgh.tmp", ".out.12345678.old", *kept):
        (tmp_path / name).mkdir()
    ToyTextRun(ToyText(), inputs, tmp_path / "out").prepare()
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "out"])


def test_the_output_may_be_a_link_to_a_folder_elsewhere(
    inputs: dict[str, list[Path]], tmp_path: Path, no_binarising: None
) -> None:
    (tmp_path / "large disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "large disk" / "data")
    ToyTextRun(ToyText(), inputs, tmp_path / "out").prepare()
    assert (tmp_path / "out").is_symlink()
    assert os.listdir(tmp_path / "large disk") == ["data"]
    assert ToyTextRun(ToyText(), inputs, tmp_path / "out").prepare() == Preparation.load(tmp_path / "large disk/data")


def test_running_a_new_kind_again(
    inputs: dict[str, list[Path]], prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(prepared)
    assert ToyTextRun(ToyText(lowercase=True), inputs, prepared).prepare() == Preparation.load(prepared)
    assert "up to date" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"already prepared with different options \(lowercase, the valid files\)"):
        ToyTextRun(ToyText(), {**inputs, "valid": inputs["test"]}, prepared).prepare()
    with pytest.raises(InputError, match=r"with different options \(kind, .*seed.*the train files"):
        ToySequencesRun(ToySequences(), {}, prepared).prepare()
    assert contents(prepared) == before


@pytest.mark.parametrize("lost", ["bin", "bin/dict.txt", "tokens/test.txt"])
def test_what_is_not_there_any_more_is_not_up_to_date(
    lost: str, inputs: dict[str, list[Path]], tmp_path: Path, no_binarising: None
) -> None:
    def run() -> None:
        ToyTextRun(ToyText(), inputs, tmp_path / "out").prepare()

    run()
    run()
    path = tmp_path / "out" / lost
    files = Preparation.load(tmp_path / "out").files
    assert set(files) == {"tokens/train.txt", "tokens/valid.txt", "tokens/test.txt", "bin/dict.txt"}
    assert files["tokens/test.txt"] == {"bytes": 27, "sha256": sha256(tmp_path / "out" / "tokens" / "test.txt")}
    if lost == "tokens/test.txt":
        path.write_text("A cat", encoding="utf-8")
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    with pytest.raises(InputError, match=f"{lost}.*: missing, or not of the size that was prepared: delete .*/out and"):
        run()


def test_a_choice_that_cannot_be_used_leaves_nothing(inputs: dict[str, list[Path]], tmp_path: Path) -> None:
    class Refusing(ToyTextRun):
        def write_bin(self, folder: Path) -> str:
            raise InputError("no")

    for folder in (tmp_path / "new", tmp_path / "old"):
        if folder.name == "old":
            folder.mkdir()
        with pytest.raises(InputError, match="no"):
            Refusing(ToyText(), inputs, folder).prepare()
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert list((tmp_path / "old").iterdir()) == []


# In the place of fairseq-preprocess.
FULL_DISK = """#!/bin/sh
echo 'INFO: working'
echo 'Traceback (most recent call last):'
echo '  File "preprocess.py", line 1'
echo 'OSError: [Errno 28] No space left on device'
echo 'warnings.warn: an afterthought'
exit 1
"""
CUT_SHORT = """#!/bin/sh
mkdir $OUT
printf 'MMIDIDX\\0\\0\\1\\0\\0\\0\\0\\0\\0\\0\\10\\1\\0\\0\\0\\0\\0\\0\\0' > "$OUT/train.idx"
printf '\\3\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' >> "$OUT/train.idx"
printf '12345' > "$OUT/train.bin"
echo word 1 > "$OUT/dict.txt"
"""


@pytest.fixture
def preprocess(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a program into the place of Python, which runs fairseq-preprocess."""

    def put(program: str) -> None:
        path = tmp_path / "program"
        path.write_text(program.replace("$OUT", "bin"))
        path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(path))

    return put


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (FULL_DISK, "failed with status 1: OSError: .Errno 28. No space left on device; start again"),
        (CUT_SHORT, "fairseq-preprocess left train.bin unfinished: is the disk full"),
        ("#!/bin/sh\nkill -9 $$", "failed with status -9: it said nothing"),
    ],
)
def test_a_full_disk_in_the_last_step(
    program: str, message: str, inputs: dict[str, list[Path]], tmp_path: Path, preprocess: Callable[[str], None]
) -> None:
    preprocess(program)
    output = tmp_path / "out"
    with pytest.raises(CommandError, match=message):
        ToyTextRun(ToyText(), inputs, output).prepare()
    assert os.listdir(tmp_path) == ["program"], "it leaves nothing that fills the disk"
    preprocess(CUT_SHORT.replace("12345", "123456"))
    ToyTextRun(ToyText(), inputs, output).prepare()
    assert {path.name for path in output.iterdir()} == {"tokens", "bin", "preparation.json"}


def test_a_full_disk_at_the_end_is_said(
    inputs: dict[str, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_binarising: None
) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left") as raised:
        patch.setattr(os, "fsync", fsync)
        ToyTextRun(ToyText(), inputs, tmp_path / "out").prepare()
    assert raised.value.filename.endswith("/preparation.json")
    assert os.listdir(tmp_path) == []
    ToyTextRun(ToyText(), inputs, tmp_path / "out").prepare()


def test_somebody_elses_files_are_left_alone(inputs: dict[str, list[Path]], tmp_path: Path) -> None:
    for name in ".thesis.tmp", "notes.old", ".bin":
        output = tmp_path / name[1:]
        output.mkdir()
        (output / name).write_text("the only copy")
        with pytest.raises(InputError, match="not empty and holds no preparation"):
            ToyTextRun(ToyText(), inputs, output).prepare()
        assert (output / name).read_text() == "the only copy"


def test_a_preprocess_that_outlives_its_run_disturbs_nobody(
    inputs: dict[str, list[Path]], tmp_path: Path, preprocess: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It goes on writing after the run that started it was killed.
    preprocess("#!/bin/sh\necho $$ > ../number\nwhile true; do date > late; sleep 0.05; done")
    output, number = tmp_path / "out", tmp_path / "number"
    process = multiprocessing.get_context("fork").Process(target=ToyTextRun(ToyText(), inputs, output).prepare)
    process.start()
    deadline = time.monotonic() + 60
    while not number.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()

    def binarise(_: Run, arguments: list[str], folder: Path) -> str:
        (folder / "bin").mkdir()
        (folder / "bin" / "dict.txt").write_text("a 1\n")
        return "none"

    with monkeypatch.context() as patch:
        patch.setattr(Run, "fairseq_preprocess", binarise)
        ToyTextRun(ToyText(), inputs, output).prepare()
    before = contents(output)
    time.sleep(0.3)
    os.kill(int(number.read_text()), signal.SIGKILL)
    assert contents(output) == before and "late" not in before


def test_the_same_text_twice_is_warned_of(
    inputs: dict[str, list[Path]], tmp_path: Path, no_binarising: None, capsys: pytest.CaptureFixture[str]
) -> None:
    ToyTextRun(ToyText(), {**inputs, "test": inputs["train"]}, tmp_path / "out").prepare()
    warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert warnings == [
        "warning: train and test have the same text (train.txt): what is measured on one says nothing new"
    ]


def test_sequences_without_files(tmp_path: Path) -> None:
    for name, seed in ("one", 1), ("same", 1), ("two", 2):
        prepared = ToySequencesRun(ToySequences(seed), {}, tmp_path / name).prepare()
    assert prepared.splits["valid"] == {"sequences": 5}
    assert contents(tmp_path / "one") == contents(tmp_path / "same")
    assert (tmp_path / "one/bin/test").read_bytes() != (tmp_path / "two/bin/test").read_bytes()
    assert Preparation.load(tmp_path / "two") == prepared


def test_no_worker(inputs: dict[str, list[Path]], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="workers is 0"):
        ToyTextRun(ToyText(), inputs, tmp_path / "out", workers=0)
    with pytest.raises(InputError, match="absent: no such file"):
        ToyTextRun(ToyText(), {"train": [tmp_path / "absent"]}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_kind_that_is_not_there(prepared: Path) -> None:
    program = "import sys; from fairseq_plugins.corpora.preparation import Preparation; Preparation.load(sys.argv[1])"
    finished = run_command(["python", "-c", program, prepared], cwd=CHECKOUT, status=1)
    assert "InputError: " in finished.stderr
    assert "there is no kind of corpus 'toy_text' here" in finished.stderr
