"""How a command starts."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from fairseq_plugins import startup


def test_commands_are_quiet_from_the_first_import_of_fairseq_on() -> None:
    text = "`torch.jit.script` is deprecated."
    warn = f"warnings.warn_explicit({text!r}, FutureWarning, 'file.py', 1, 'torch.jit._script')"
    for start, is_shown in ("prepare_command()", False), ("None", True):
        code = f"import warnings; from fairseq_plugins.startup import prepare_command; {start}; {warn}"
        finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert (text in finished.stderr) == is_shown, finished.stderr


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
