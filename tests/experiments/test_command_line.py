"""What the scripts say before they need PyTorch and fairseq: help, versions, mistakes in arguments, missing files."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.command_line import ScriptParser, standard_input
from fairseq_plugins.versions import VERSION
from tests.commands import CHECKOUT, run_command

CONFIGURATION = "configs/quickstart/mc_rnn_3.yaml"
SCRIPTS = sorted(path.name for path in (CHECKOUT / "scripts").glob("*.sh") if path.name != "common.sh")
# As if neither were installed: who imports them fails with another error.
WITHOUT = """
import runpy, sys
sys.modules |= dict.fromkeys(("torch", "fairseq"))
sys.argv = sys.argv[1:]
runpy.run_module("fairseq_plugins." + sys.argv[0], run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_has_a_version(script: str) -> None:
    assert run_command([CHECKOUT / "scripts" / script, "--version"]).stdout == f"fairseq-plugins {VERSION}\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        *(
            (f"{module} --version", 0, f"fairseq-plugins {VERSION}")
            for module in (
                *(
                    "__main__",
                    "analysis",
                    "checkpoints",
                    "report",
                    "tables.workflow",
                    "tables.writing",
                    "tables.gpu_slots",
                ),
                *(f"experiments.{name}" for name in ("train", "evaluate", "translate", "quickstart")),
            )
        ),
        *(
            (f"{module} --help", 0, text)
            for module, text in (
                ("analysis", "channel-attention"),
                ("report", "scripts/report.sh WORK"),
                ("tables.workflow", "scripts/reproduce.sh TABLE"),
                (f"experiments.train {CONFIGURATION}", "scripts/train.sh CONFIG"),
                ("experiments.evaluate", "--subset NAME"),
                ("experiments.quickstart", "--task NAME"),
            )
        ),
        ("experiments.train", 2, "scripts/train.sh CONFIG"),
        ("experiments.train --work x", 2, "CONFIG comes first, before --work"),
        (f"experiments.train {CONFIGURATION} --gpus x", 2, "argument --gpus: invalid int value: 'x'"),
        (f"experiments.train {CONFIGURATION} --gpus -1", 2, "argument --gpus: -1 GPUs cannot be used; 0 is the CPU"),
        (f"experiments.train {CONFIGURATION} --work {CONFIGURATION}", 1, "is a file: name a folder for --work"),
        (f"experiments.evaluate {CONFIGURATION} --work {CONFIGURATION}", 1, "is a file: name a folder for --work"),
        *(
            (f"experiments.{name} --work a/12:30", 1, "/a/12:30: fairseq takes a path with ':' for several; name")
            for name in (f"train {CONFIGURATION}", f"evaluate {CONFIGURATION}", "quickstart")
        ),
        (f"experiments.train {CONFIGURATION} --data a:b", 1, "/a:b: fairseq takes a path with ':' for several"),
        (f"experiments.quickstart --work {CONFIGURATION}", 1, "is a file: name a folder for --work"),
        ("experiments.train nowhere.yaml", 1, "error: nowhere.yaml: no such file"),
        (f"experiments.train {CONFIGURATION} --data nowhere", 1, "nowhere/preparation.json: no such file"),
        (f"experiments.evaluate {CONFIGURATION} --data nowhere", 1, "nowhere/preparation.json: no such file"),
        ("experiments.translate nowhere.pt", 1, "error: nowhere.pt: no such checkpoint"),
        ("experiments.predict nowhere.pt", 1, "error: nowhere.pt: no such checkpoint"),
        *(
            (f"language_models {name} nowhere.pt", 1, "error: nowhere.pt: no such checkpoint")
            for name in ("score", "perplexity", "generate")
        ),
        ("experiments.quickstart --task x", 2, "argument --task: invalid choice: 'x'"),
        ("checkpoints --inputs nowhere.pt --output x", 1, "error: nowhere.pt: no such checkpoint"),
        ("report nowhere", 1, "error: nowhere/results.json: no such file"),
        ("tables.workflow mc_rnn_table_9", 1, "error: there is no table 'mc_rnn_table_9'"),
        ("tables.writing mc_rnn_table_2 --work nowhere", 1, "no experiment there; run scripts/reproduce.sh"),
        ("analysis nothing", 2, "invalid choice: 'nothing'"),
        ("analysis compare --source x --reference x --system a=x b=x --output y", 1, "error: x: no such file"),
    ],
)
def test_what_is_said_without_pytorch_and_fairseq(arguments: str, status: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "configs").symlink_to(CHECKOUT / "configs")
    finished = run_command(["python", "-c", WITHOUT, *arguments.split()], status=status, cwd=tmp_path)
    assert message in (finished.stdout if status == 0 else finished.stderr)
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_symlinked_script_works(script: str, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(CHECKOUT / "scripts" / script)
    assert run_command([tmp_path / "linked", "--version"], cwd=tmp_path).stdout == f"fairseq-plugins {VERSION}\n"


def test_commands_of_the_package_import_what_they_need() -> None:
    finished = run_command(["python", "-X", "importtime", "-m", "fairseq_plugins.analysis", "--version"])
    assert "fairseq_plugins.versions" in finished.stderr
    imported = {line.split("|")[-1].strip() for line in finished.stderr.splitlines()}
    assert not {"torch", "fairseq"} & imported


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


def test_help_is_the_scripts_own(capsys: pytest.CaptureFixture[str]) -> None:
    text = ScriptParser("train").format_help()
    head = (CHECKOUT / "scripts" / "train.sh").read_text(encoding="utf-8").splitlines()
    assert text.splitlines()[0] == head[1].removeprefix("# ")
    assert text.splitlines() == run_command([CHECKOUT / "scripts" / "train.sh", "--help"]).stdout.splitlines()
    assert "usage: scripts/none.sh" in ScriptParser("none").format_help()
