"""How a command starts."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_plugins import startup
from fairseq_plugins.experiments import processes


def test_commands_are_quiet_from_the_first_import_of_fairseq_on() -> None:
    text = "`torch.jit.script` is deprecated."
    warn = f"warnings.warn_explicit({text!r}, FutureWarning, 'file.py', 1, 'torch.jit._script')"
    for start, is_shown in ("prepare_command()", False), ("None", True):
        code = f"import warnings; from fairseq_plugins.startup import prepare_command; {start}; {warn}"
        finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert (text in finished.stderr) == is_shown, finished.stderr


START = "from fairseq_plugins.startup import prepare_command; prepare_command(); "


@pytest.mark.parametrize(
    "variables", [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}]
)
def test_text_is_utf_8_whatever_the_locale(variables: dict[str, str]) -> None:
    code = START + r"import sys; print('\u20ac \u6211 \udcff'); print('\u6211 \udcff', file=sys.stderr)"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, env={**os.environ, **variables})
    assert finished.stdout == "€ 我 ".encode() + b"\xff\n", "bytes in the names of files stay as they are"
    assert finished.stderr == "我 \\udcff\n".encode()


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "latin-1"}, {"PYTHONUTF8": "0", "LC_ALL": "C"}])
def test_what_a_command_starts_writes_utf_8(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    lines: list[str] = []
    code = r"import locale, sys; print('\u6211', locale.getpreferredencoding(), file=sys.stderr)"
    assert processes.run([sys.executable, "-c", code], lines.append, subprocess.STDOUT) == 0
    assert [line.lower() for line in lines] == ["我 utf-8\n"]


IN_A_LOCALE_WITHOUT_LETTERS = r"""
import pathlib, sys, types
from fairseq_plugins.corpora import pipeline
from fairseq_plugins.experiments import quickstart, side_by_side

def program(status=0):
    return [sys.executable, "-c", f"import sys; print(chr(0x6211), *sys.stdin.read().split()); sys.exit({status})"]

side_by_side.steps_side_by_side([program()])
quickstart.own_command = lambda *words: program()
quickstart.try_out(types.SimpleNamespace(systems={"RNN": "rnn"}, program="translate"), pathlib.Path("work"), ["\u4f60"])
pipeline.python_command = lambda *words: program(status=3)
try:
    pipeline.Run.fairseq_preprocess(types.SimpleNamespace(workers=1), [], ".")
except pipeline.CommandError as error:
    print(error)
"""


def test_what_a_command_starts_is_read_as_utf_8() -> None:
    variables = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", START + IN_A_LOCALE_WITHOUT_LETTERS]
    finished = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", env={**os.environ, **variables}
    )
    assert finished.returncode == 0, finished.stderr
    lines = finished.stdout.splitlines()
    assert "我" in lines, "steps side by side"
    assert lines[lines.index("你") + 1] == "  我 你", "a text that is tried"
    assert "fairseq-preprocess failed with status 3: 我" in lines[-1]


def test_a_closed_output_leads_nowhere(tmp_path: Path) -> None:
    """And no file that is opened then gets what is meant for it."""
    code = f"open({str(tmp_path / 'file')!r}, 'w'); import os; print('lost', flush=True); os.system('echo lost')"
    code += "; print('kept', file=__import__('sys').stderr)"
    command = f"exec {sys.executable} -c {shlex.quote(START + 'f = ' + code)} >&-"
    finished = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert (finished.stderr, (tmp_path / "file").read_text()) == ("kept\n", "")


def test_commands_do_without_docstrings() -> None:
    """As PYTHONOPTIMIZE=2 has it."""
    command = [sys.executable, "-OO", "-m", "fairseq_plugins", "word-overlap", "--help"]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "None" not in finished.stdout and "which a ranker has to beat" in finished.stdout


def test_a_terminal_says_what_takes_long_in_a_command_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    startup.announce()
    assert terminal.getvalue() == ""
    monkeypatch.setattr(startup, "_is_command", True)
    startup.announce()
    assert terminal.getvalue() == "starting PyTorch and fairseq\n"


@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_garbage_is_collected_while_the_package_is_imported(is_enabled: bool) -> None:
    code = (
        "import gc, fairseq_plugins\n"
        "def collections():\n"
        "    return sum(generation['collections'] for generation in gc.get_stats())\n"
        f"{'pass' if is_enabled else 'gc.disable()'}\n"
        "before = collections()\n"
        "fairseq_plugins.register()\n"
        "print(collections() - before, gc.isenabled())"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    number, is_left_enabled = finished.stdout.split()
    assert int(number) < 10, "those of the register's own first lines"
    assert is_left_enabled == str(is_enabled)


def test_what_a_command_imported_is_no_garbage_at_its_end() -> None:
    code = (
        "import gc\nfrom fairseq_plugins.experiments.command_line import begin_decoding\n"
        "begin_decoding([])\nprint(gc.get_freeze_count() > 100_000, gc.isenabled())"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout == "True True\n"
