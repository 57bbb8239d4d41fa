"""What commands say before they need PyTorch and fairseq: help, versions, mistakes in arguments, missing files."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_plugins import completion
from fairseq_plugins.command import COMMANDS
from fairseq_plugins.corpora.data_sets import PREPARATIONS
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.command_line import standard_input
from fairseq_plugins.versions import VERSION
from tests.commands import CHECKOUT, run_command

CONFIGURATION = "quickstart/mc_rnn_3"
SCRIPTS = sorted(path.name for path in (CHECKOUT / "scripts").glob("*.sh") if path.name != "common.sh")
WITHOUT_SCRIPT = {"average", "analysis", "options", "completion", "word-overlap"}
# As if neither were installed: who imports them fails with another error.
WITHOUT = """
import runpy, sys
sys.modules |= dict.fromkeys(("torch", "fairseq"))
runpy.run_module("fairseq_plugins", run_name="__main__", alter_sys=True)
"""


@pytest.mark.system
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_has_a_version(script: str) -> None:
    assert run_command([CHECKOUT / "scripts" / script, "--version"]).stdout == f"fairseq-plugins {VERSION}\n"


@pytest.mark.system
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("--version", 0, f"fairseq-plugins {VERSION}"),
        ("--help", 0, "train the model of a configuration"),
        ("", 2, "usage: fairseq-plugins COMMAND"),
        ("trian", 1, "error: there is no fairseq-plugins trian; did you mean 'train'?"),
        ("prepare", 2, "usage: fairseq-plugins prepare NAME"),
        ("prepare --help", 0, "IWSLT'14 German-English"),
        ("qqq", 1, "error: there is no fairseq-plugins qqq; 'fairseq-plugins --help' lists them"),
        ("prepare iwslt14", 1, "error: there is no fairseq-plugins prepare iwslt14; did you mean 'iwslt14_de_en'?"),
        *((f"{name} --help", 0, f"usage: fairseq-plugins {name} ") for name in COMMANDS),
        *((f"prepare {name} --help", 0, f"usage: fairseq-plugins prepare {name} ") for name in PREPARATIONS),
        *((f"{name} --version", 0, f"fairseq-plugins {VERSION}") for name in ("train", "analysis", "prepare trec")),
        ("analysis --help", 0, "channel-attention"),
        ("train --help", 0, "CONFIG [FAIRSEQ-TRAIN OPTIONS ...]"),
        (f"train {CONFIGURATION} --help", 0, "examples:\n  fairseq-plugins train multi30k_de_en/mc_rnn_3"),
        ("train", 2, "usage: fairseq-plugins train"),
        ("train --work x", 2, "CONFIG comes first, before --work"),
        (f"train {CONFIGURATION} --gpus x", 2, "argument --gpus: invalid int value: 'x'"),
        (f"train {CONFIGURATION} --gpus -1", 2, "argument --gpus: -1 GPUs cannot be used; 0 is the CPU"),
        (f"train {CONFIGURATION} --work file", 1, "is a file: name a folder for --work"),
        (f"evaluate {CONFIGURATION} --work file", 1, "is a file: name a folder for --work"),
        *(
            (f"{name} --work a/12:30", 1, "/a/12:30: fairseq takes a path with ':' for several; name")
            for name in (f"train {CONFIGURATION}", f"evaluate {CONFIGURATION}", "quickstart")
        ),
        (f"train {CONFIGURATION} --data a:b", 1, "/a:b: fairseq takes a path with ':' for several"),
        ("quickstart --work file", 1, "is a file: name a folder for --work"),
        ("train nowhere.yaml", 1, "error: nowhere.yaml: no such file"),
        (
            "train quickstart/mc_rnn_5",
            1,
            "no such file, and no configuration of this project; did you mean",
        ),
        *(
            (f"train {name} --data nowhere", 1, "nowhere/preparation.json: no such file")
            for name in (CONFIGURATION, "configs/quickstart/mc_rnn_3.yaml", "quickstart/mc_rnn_3.yaml")
        ),
        (
            f"train {CONFIGURATION}",
            1,
            "work/quickstart/data: no such folder; prepare the data",
        ),
        (f"evaluate {CONFIGURATION} --data nowhere", 1, "nowhere/preparation.json: no such file"),
        *(
            (f"{name} nowhere.pt", 1, "error: nowhere.pt: no such checkpoint")
            for name in ("translate", "predict", "perplexity", "generate-text", "average --output x --inputs")
        ),
        ("quickstart --task x", 2, "argument --task: invalid choice: 'x'"),
        ("report nowhere", 1, "error: nowhere/results.json: no such file"),
        ("reproduce mc_rnn_table_9", 1, "error: there is no table 'mc_rnn_table_9'"),
        ("analysis nothing", 2, "invalid choice: 'nothing'"),
        ("analysis compare --source x --reference x --system a=x b=x --output y", 1, "error: x: no such file"),
        ("options mc_rnn", 1, "error: fairseq is not installed for "),
    ],
)
def test_what_is_said_without_pytorch_and_fairseq(arguments: str, status: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finished = run_command(["python", "-c", WITHOUT, *arguments.split()], status=status, cwd=tmp_path)
    assert message in (finished.stdout if status == 0 else finished.stderr)
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_symlinked_script_works(script: str, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(CHECKOUT / "scripts" / script)
    assert run_command([tmp_path / "linked", "--version"], cwd=tmp_path).stdout == f"fairseq-plugins {VERSION}\n"


@pytest.mark.parametrize("command", ["--help", "train --help", "translate --help", "prepare parallel --help"])
def test_help_waits_for_nothing(command: str) -> None:
    finished = run_command(["python", "-X", "importtime", "-m", "fairseq_plugins", *command.split()])
    assert "fairseq_plugins.command" in finished.stderr
    imported = {line.split("|")[-1].strip() for line in finished.stderr.splitlines()}
    assert not {"torch", "fairseq", "matplotlib", "lxml", "numpy", "sklearn"} & imported


def test_a_closed_standard_input_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    # What Python makes of ``<&-``.
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="^the standard input is closed: give sentences there, one a line$"):
        standard_input("sentences")


def test_the_standard_input_may_be_a_socket_or_a_file_that_was_begun(tmp_path: Path) -> None:
    program = "from fairseq_plugins.experiments.command_line import standard_input; print(standard_input('sentences'))"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"ein Satz\n")
        theirs.shutdown(socket.SHUT_WR)
        finished = subprocess.run([sys.executable, "-c", program], stdin=ours, capture_output=True, text=True)
    assert finished.stdout == "['ein Satz']\n", finished.stderr
    (tmp_path / "text").write_text("header\nein Satz\n", encoding="utf-8")
    command = f'{{ read header; "{sys.executable}" -c "{program}"; }} < text'
    assert run_command(["bash", "-c", command], cwd=tmp_path).stdout == "['ein Satz']\n"


def test_every_script_runs_a_command() -> None:
    commands = set()
    for script in SCRIPTS:
        line = (CHECKOUT / "scripts" / script).read_text(encoding="utf-8").splitlines()[-1]
        if line.startswith("run_command"):
            _, *words, arguments = line.split()
            assert arguments == '"$@"'
            commands.add(" ".join(words))
    assert commands == {*COMMANDS, *(f"prepare {name}" for name in PREPARATIONS)} - WITHOUT_SCRIPT


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    completion.main([shell])
    script = capsys.readouterr().out
    for word in (*COMMANDS, *PREPARATIONS, "--restart", "--tgt-lang"):
        assert word in script
