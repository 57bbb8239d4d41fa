"""The exact commands of fairseq, what fairseq's parsers refuse, and how commands are run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import commands, config

from .test_config import CONFIGURATIONS, write


def options_of(tmp_path: Path, content: str, kind: str = "train", extra: tuple[str, ...] = ()) -> list[str]:
    configuration = config.load(write(tmp_path, model=content))
    return commands.option_arguments(kind, getattr(configuration, kind), extra)


def test_train_command(tmp_path: Path, data: commands.PreparedData) -> None:
    configuration = config.load(
        write(tmp_path, model="train:\n  arch: lstm\n  lr: 1e-3\n  encoder-bidirectional: true\n  cpu: false")
    )
    work = tmp_path / "my work"
    command = commands.train_command(configuration, data, work, 0, ["--max-epoch", "3"])
    assert Path(command[0]).name == "fairseq-train"
    assert command[1:] == [
        *[str(tmp_path / "prepared data" / "bin"), "--user-dir", str(config.CHECKOUT / "fairseq_plugins")],
        *["--source-lang", "de", "--target-lang", "en", "--save-dir", str(work / "checkpoints")],
        *["--arch", "lstm", "--lr", "1e-3", "--encoder-bidirectional"],
        *["--distributed-world-size", "1", "--cpu", "--max-epoch", "3"],
    ]
    assert f"'{tmp_path}/prepared data/bin'" in commands.shown(command)


def test_generate_command(tmp_path: Path, data: commands.PreparedData) -> None:
    configuration = config.load(write(tmp_path, model="generate:\n  beam: 5\n  unkpen: -0.5"))
    command = commands.generate_command(configuration, data, "a.pt:b.pt", "valid", 0, ["--lenpen", "0.6"])
    assert Path(command[0]).name == "fairseq-generate"
    assert command[1:] == [
        *[str(tmp_path / "prepared data" / "bin"), "--user-dir", str(config.CHECKOUT / "fairseq_plugins")],
        *["--source-lang", "de", "--target-lang", "en", "--path", "a.pt:b.pt", "--gen-subset", "valid"],
        *["--remove-bpe", "sentencepiece", "--beam", "5", "--unkpen", "-0.5", "--cpu", "--lenpen", "0.6"],
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("train:\n  arch: lstm\n  max-token: 1", "line 3: fairseq-train has no option 'max-token'; did you mean 'ma"),
        ("train:\n  arch: lstm\n  max_tokens: 1", "line 3: fairseq-train has no option 'max_tokens'; did you mean 'ma"),
        ("train:\n  arch: lstm\n  channels: 3", "line 3: fairseq-train has no option 'channels'"),
        ("train:\n  arch: mc_rnn_iwslt", "line 2: arch: fairseq knows no 'mc_rnn_iwslt'; did you mean 'mc_rnn_"),
        ("train:\n  optimizer: adaam", "line 2: optimizer: fairseq knows no 'adaam'; did you mean 'adam'?"),
        ("train:\n  arch: lstm\n  cpu: yes", "line 3: cpu is a flag: write true or false, not 'yes'"),
        ("train:\n  arch: lstm\n  save-dir: x", "line 3: 'save-dir' cannot stand in a configuration: say --work DIR"),
        ("generate:\n  beem: 5", "line 2: fairseq-generate has no option 'beem'; did you mean 'beam'?"),
        ("generate:\n  arch: lstm", "line 2: fairseq-generate has no option 'arch'"),
    ],
)
def test_unknown_options_name_the_nearest(tmp_path: Path, content: str, expected: str) -> None:
    with pytest.raises(InputError) as raised:
        options_of(tmp_path, content, kind=content.split(":")[0])
    assert f"{tmp_path / 'model.yaml'}, {expected}" in str(raised.value)


def test_options_belong_to_the_architecture_of_the_command_line(tmp_path: Path) -> None:
    content = "train:\n  channels: 3"
    assert options_of(tmp_path, content, extra=("--arch", "mc_rnn_iwslt_de_en")) == ["--channels", "3"]


@pytest.mark.parametrize(
    ("content", "extra", "expected"),
    [
        ("train:\n  arch: lstm\n  max-update: x", [], r"model.yaml, line 3: argument --max-update: invalid int value"),
        ("train:\n  arch: lstm", ["--max-epok", "3"], r"no option '--max-epok'; did you mean '--max-epoch'\?"),
        ("train:\n  arch: lstm", ["--max-epoch", "x"], r"fairseq-train: argument --max-epoch: invalid int value"),
        ("train:\n  lr: 1", [], r"model.yaml: train: arch is missing"),
        ("train:\n  arch: lstm", ["--save-dir", "x"], r"--save-dir cannot be passed on to fairseq-train: say --work"),
    ],
)
def test_fairseqs_parser_reads_the_whole_command(
    tmp_path: Path, data: commands.PreparedData, content: str, extra: list[str], expected: str
) -> None:
    configuration = config.load(write(tmp_path, model=content))
    with pytest.raises(InputError, match=expected):
        commands.train_command(configuration, data, tmp_path, 0, extra)


def test_more_gpus_than_there_are(tmp_path: Path, data: commands.PreparedData) -> None:
    configuration = config.load(write(tmp_path, model="train: {arch: lstm}"))
    with pytest.raises(InputError, match="--gpus 1000: PyTorch sees"):
        commands.train_command(configuration, data, tmp_path, 1000, [])


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_fairseq_accepts_every_configuration(path: Path, tmp_path: Path, data: commands.PreparedData) -> None:
    configuration = config.load(path)
    extra = ["--arch", "lstm"] if path.stem.startswith("_base") else []
    train = commands.train_command(configuration, data, tmp_path, 0, extra)
    generate = commands.generate_command(configuration, data, "model.pt", "test", 0, [])
    assert commands.option(train, "--seed") == "1"
    # As the papers: 10 on NIST and for MC-RNN's headlines, else 5.
    is_wide = configuration.dataset in ("nist_zh_en", "gigaword", "quickstart_summarization")
    of_dpn = configuration.dataset == "gigaword" and path.stem in ("dpn", "cnn", "_base_dpn")
    assert commands.option(generate, "--beam") == ("10" if is_wide and not of_dpn else "5")
    assert commands.option(generate, "--min-len") == ("14" if of_dpn else None)


def test_prepared_data_lacks_a_dictionary(data: commands.PreparedData) -> None:
    (data.folder / "bin" / "dict.en.txt").unlink()
    with pytest.raises(InputError, match="dict.en.txt: the dictionary is missing"):
        commands.PreparedData.load(data.folder)


def test_option() -> None:
    arguments = ["--beam", "5", "--lr=1", "--beam", "6", "--cpu"]
    assert commands.option(arguments, "--beam") == "6"
    assert commands.option(arguments, "--lr") == "1"
    assert commands.option(arguments, "--seed", "-s") is None


def test_run_hands_over_lines_and_the_exit_status() -> None:
    lines: list[str] = []
    assert commands.run([sys.executable, "-c", "print('a\\u00e4'); print('b'); raise SystemExit(3)"], lines.append) == 3
    assert lines == ["aä\n", "b\n"]


def test_an_interrupted_run_leaves_no_process_behind() -> None:
    started: list[int] = []

    def interrupt(line: str) -> None:
        started.append(int(line))
        raise KeyboardInterrupt

    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        commands.run([sys.executable, "-c", program], interrupt)
    assert time.monotonic() - before < 30
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_two_trainings_in_one_folder(tmp_path: Path) -> None:
    with commands.only_one(tmp_path / "work"):
        with pytest.raises(InputError, match="a training is at work there"), commands.only_one(tmp_path / "work"):
            pass
    with commands.only_one(tmp_path / "work") as descriptor:
        assert descriptor > 2
