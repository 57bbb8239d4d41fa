"""Kinds of corpora that are defined here: one of running text, and one of sequences that nobody has written."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fairseq_plugins.corpora.codec import Codec
from fairseq_plugins.corpora.lines import map_lines, read_aligned, text_writer
from fairseq_plugins.corpora.pipeline import Run
from fairseq_plugins.corpora.preparation import Preparation
from fairseq_plugins.corpora.tokenizers import Tokenizer
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import atomic_directory, read_lines
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

    def steps(self) -> Mapping[str, Callable[[], Any]]:
        return {"tokens": self.write_tokens, "bin": self.write_bin}

    def write_tokens(self) -> dict[str, int]:
        counts = {}
        tokenize = self.preparation.codec.tokenize
        with atomic_directory(self.output / "tokens") as folder:
            for split, paths in self.inputs.items():
                lines = (line for (line,) in read_aligned(paths))
                with text_writer(folder / f"{split}.txt") as stream:
                    tokens = [line for _, line in map_lines(tokenize, lines, self.workers, split)]
                    stream.writelines(line + "\n" for line in tokens)
                counts[split] = len(tokens)
        return counts

    def write_bin(self) -> str:
        arguments = ["--only-source"]
        arguments += [word for split in self.inputs for word in (f"--{split}pref", f"tokens/{split}.txt")]
        with atomic_directory(self.output / "bin") as folder:
            return self.fairseq_preprocess(arguments, folder, "bin")

    def results(self) -> dict[str, Any]:
        return {
            "splits": {split: {**self.given[split], "lines": count} for split, count in self.found["tokens"].items()},
            "dictionary_sizes": {"text": sum(1 for _ in read_lines(self.output / "bin" / "dict.txt"))},
            "commands": [self.found["bin"]],
        }


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

    def steps(self) -> Mapping[str, Callable[[], Any]]:
        return {"draw": self.draw}

    def draw(self) -> dict[str, int]:
        generator = random.Random(self.preparation.seed)
        with atomic_directory(self.output / "bin") as folder:
            for split in ("train", "valid", "test"):
                (folder / split).write_bytes(bytes(generator.choices(range(10), k=50)))
        return {"train": 5, "valid": 5, "test": 5}

    def results(self) -> dict[str, Any]:
        return {"splits": {split: {"sequences": count} for split, count in self.found["draw"].items()}}


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

    def preprocess(run: Run, arguments: list[str], folder: Path, name: str) -> str:
        (folder / "dict.txt").write_text("word 1\n")
        return name

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


@pytest.mark.parametrize(("step", "left"), [("tokens", set()), ("bin", {"tokens"}), ("record", {"tokens", "bin"})])
def test_a_new_kind_goes_on_where_it_was_killed(
    step: str, left: set[str], inputs: dict[str, list[Path]], tmp_path: Path, no_binarising: None
) -> None:
    output = tmp_path / "killed"
    kill_a_run(step, inputs, output)
    assert {path.name for path in output.iterdir() if not path.name.startswith(".")} == left
    times = {path: path.stat().st_mtime_ns for path in output.glob("*/*") if path.parent.name in left}
    for folder in output, tmp_path / "uninterrupted":
        ToyTextRun(ToyText(lowercase=True), inputs, folder).prepare()
    assert contents(output) == contents(tmp_path / "uninterrupted")
    # What was finished was not made again.
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())


def test_an_unfinished_run_with_other_choices_begins_anew(
    inputs: dict[str, list[Path]], tmp_path: Path, no_binarising: None
) -> None:
    kill_a_run("bin", inputs, tmp_path / "out")
    assert (tmp_path / "out" / "tokens" / "test.txt").read_text() == TEXT["test"].lower()
    ToyTextRun(ToyText(), inputs, tmp_path / "out").prepare()
    assert (tmp_path / "out" / "tokens" / "test.txt").read_text() == TEXT["test"]


def test_running_a_new_kind_again(
    inputs: dict[str, list[Path]], prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(prepared)
    assert ToyTextRun(ToyText(lowercase=True), inputs, prepared).prepare() == Preparation.load(prepared)
    assert "up to date" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"prepared otherwise \(lowercase, the valid files\)"):
        ToyTextRun(ToyText(), {**inputs, "valid": inputs["test"]}, prepared).prepare()
    with pytest.raises(InputError, match=r"prepared otherwise \(kind, .*seed.*the train files"):
        ToySequencesRun(ToySequences(), {}, prepared).prepare()
    assert contents(prepared) == before


def test_a_step_that_fails_leaves_nothing(
    inputs: dict[str, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    for folder in (tmp_path / "new", tmp_path / "old"):
        if folder.name == "old":
            folder.mkdir()
        with pytest.raises(InputError, match="fairseq-preprocess failed with status 1"):
            ToyTextRun(ToyText(), inputs, folder).prepare()
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert list((tmp_path / "old").iterdir()) == []


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
    finished = run_command(["python", "-c", program, prepared], cwd=CHECKOUT, status=1, FAIRSEQ_PLUGINS_REGISTER="0")
    assert "InputError: " in finished.stderr
    assert "there is no kind of corpus 'toy_text' here" in finished.stderr
