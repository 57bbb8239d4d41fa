"""A program of fairseq's, run by our own starter: the same program, and not what it hardly uses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_plugins.experiments import processes
from fairseq_plugins.fairseq_program import python_command

# What a process knows of itself that says how it was started, and what is imported with fairseq.
START = """
import sys
print(sys.argv, sys.path[0], __name__, __file__, __spec__ and __spec__.name, sys.modules["__main__"].__file__)
"""
IMPORTS = """
from fairseq_cli import train
print(sorted({"sklearn", "scipy"} & set(sys.modules)), "fairseq_plugins" in sys.modules)
"""
END = "raise SystemExit(3)"


@pytest.mark.system
@pytest.mark.parametrize(("as_module", "safe_path"), [(False, ""), (True, ""), (False, "1")])
def test_the_same_program(as_module: bool, safe_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python 3.11 and later: no folder of a program is looked through.
    monkeypatch.setenv("PYTHONSAFEPATH", safe_path)
    file = tmp_path / "fairseq-program.py"
    # What is imported does not hang upon how a program is named.
    imports = "" if as_module or safe_path else IMPORTS
    for path in file, tmp_path / "named.py":
        path.write_text(START + imports + END, encoding="utf-8")
    plain, program = (["-m", "named"], "named") if as_module else ([str(file)], str(file))
    outputs = [
        subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
        for command in ([sys.executable, *plain, "a b", "-c"], python_command(program, ["a b", "-c"]))
    ]
    assert [output.returncode for output in outputs] == [3, 3]
    plain_lines, lines = (output.stdout.splitlines() for output in outputs)
    assert lines[0] == plain_lines[0]
    if imports:
        assert (plain_lines[-1], lines[-1]) == ("['scipy', 'sklearn'] False", "[] False")


@pytest.mark.system
def test_a_command_of_fairseq_is_run_so(tmp_path: Path) -> None:
    file = tmp_path / "fairseq-train"
    file.write_text(START + IMPORTS + END, encoding="utf-8")
    lines: list[str] = []
    assert processes.run([str(file), "--cpu"], lines.append) == 3
    assert lines[0].startswith(f"['{file}', '--cpu'] {tmp_path} __main__") and lines[-1] == "[] False\n"
