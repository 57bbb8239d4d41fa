"""How exactly matrices are multiplied, as an option of fairseq's commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from fairseq import options

from fairseq_plugins.patches.matmul_precision import add_matmul_precision
from tests.commands import USER_DIR

from .unpatched import fault_of


@pytest.fixture(autouse=True)
def _restored_precision() -> Iterator[None]:
    yield
    parse()
    assert torch.get_float32_matmul_precision() == "highest"


def parse(*precision: str) -> None:
    options.parse_args_and_arch(options.get_training_parser(), ["data", "--arch", "lstm", *precision])


def test_fairseq_has_no_such_option(unpatch: Callable[[object, str], None]) -> None:
    unpatch(options, "parse_args_and_arch")
    with fault_of(add_matmul_precision, SystemExit):
        parse("--matmul-precision", "medium")


@pytest.mark.system
@pytest.mark.parametrize("command", ["fairseq-train", "fairseq-generate", "fairseq-interactive"])
def test_fairseq_commands_have_it(command: str) -> None:
    """Their parser is half made when they import the plugin."""
    program = ["-c", f"from fairseq_cli.{command.removeprefix('fairseq-')} import cli_main; cli_main()"]
    arguments = ["data", "--user-dir", USER_DIR, "--matmul-precision", "low"]
    child = subprocess.run([sys.executable, *program, *arguments], capture_output=True, text=True)
    assert child.returncode == 2 and "argument --matmul-precision: invalid choice: 'low'" in child.stderr


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_pytorch_multiplies_as_is_said(precision: str) -> None:
    parse("--matmul-precision", precision)
    assert torch.get_float32_matmul_precision() == precision


def test_the_next_command_has_its_own() -> None:
    parse("--matmul-precision", "medium")
    parse()
    assert torch.get_float32_matmul_precision() == "highest"


def test_what_a_program_has_set_stays() -> None:
    torch.set_float32_matmul_precision("high")
    try:
        parse()
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_processes_of_a_training_have_it() -> None:
    parse("--matmul-precision", "medium")
    program = "import fairseq_plugins, torch; fairseq_plugins.register(); print(torch.get_float32_matmul_precision())"
    child = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "medium"


def test_a_precision_that_is_none_is_refused(capsys) -> None:
    with pytest.raises(SystemExit):
        parse("--matmul-precision", "low")
    assert "invalid choice: 'low'" in capsys.readouterr().err
