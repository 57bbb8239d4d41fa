"""Lines that are too long, and translations that are cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import fairseq_commands, translate
from fairseq_plugins.experiments.prepared_data import PreparedData


@pytest.fixture
def plain(data: PreparedData) -> PreparedData:
    """Data whose tokens are the pieces."""
    PairsPreparation("de", "en", bpe="none").save(data.folder)
    return PreparedData.load(data.folder)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that are run; in their place each word is put into capitals, five at most."""
    seen: list[Sequence[str]] = []

    def run(command: Sequence[str], on_line: Callable[[str], object]) -> int:
        seen.append(command)
        source = Path(fairseq_commands.option(command, "--input"))
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines()):
            words = line.upper().split()[:5]
            on_line(f"S-{number}\t{line}\n")
            on_line(f"D-{number}\t-1\t{' '.join(words)}\n")
            on_line(f"P-{number}\t{' '.join(['-1'] * (len(words) + 1))}\n")
        return 0

    monkeypatch.setattr(translate.processes, "run_here", run)
    return seen


def test_a_line_that_is_too_long_is_empty_and_the_others_are_translated(
    plain: PreparedData, commands: list[Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["a b", "", " ".join(["long"] * 3000), "c", " ".join("defghij")]
    found = translate.translate(lines, "x.pt", plain, 0, ["--max-len-b", "9"], longest=8)
    assert found == ["A B", "", "", "C", "D E F G H"]
    expected = "warning: line 3 has 3,001 tokens, but the model takes 8: its translation is empty\n"
    assert capsys.readouterr().err == expected
    assert fairseq_commands.option(commands[0], "--max-source-positions") == "8"
    assert translate.translate(lines[2:3], "x.pt", plain, 0, longest=8) == [""]
    assert len(commands) == 1, "nothing is left to translate"


def test_the_model_decides_what_is_too_long(plain: PreparedData, commands: list[Sequence[str]]) -> None:
    long = " ".join(["long"] * 3000)
    assert translate.translate([long], "x.pt", plain, 0, longest=100_000) == [" ".join(["LONG"] * 5)]
    assert fairseq_commands.option(commands[0], "--max-source-positions") == "100000"


def test_a_translation_that_is_cut_is_warned_of(
    plain: PreparedData, commands: list[Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    translate.translate(["", "a b c d e f", "a b"], "x.pt", plain, 0, ["--max-len-a", "0", "--max-len-b", "5"])
    expected = "warning: the translation of line 2 ends at 5 tokens, its limit; raise --max-len-b\n"
    assert capsys.readouterr().err == expected
    assert translate.longest_output(["--max-len-a", "2", "--max-len-b=3"], 10) == 23


def test_a_translation_is_not_much_longer_than_its_source(plain: PreparedData, commands: list[Sequence[str]]) -> None:
    """A model that repeats words without end is stopped."""
    for extra, expected in ([], ("1.5", "10")), (["--max-len-b", "300"], ("1.5", "300")):
        translate.translate(["a b"], "x.pt", plain, 0, extra)
        limits = (fairseq_commands.option(commands[-1], name) for name in ("--max-len-a", "--max-len-b"))
        assert tuple(limits) == expected
    assert translate.longest_output([], 10) == 25


def test_a_command_that_fails_is_one_sentence(plain: PreparedData, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: Sequence[str], on_line: Callable[[str], object]) -> int:
        on_line("Traceback (most recent call last):\n")
        on_line("RuntimeError: too dark\n")
        return 1

    monkeypatch.setattr(translate.processes, "run_here", run)
    with pytest.raises(InputError, match="^fairseq-interactive ended with exit status 1: RuntimeError: too dark$"):
        translate.translate(["a"], "x.pt", plain, 0)


@pytest.mark.parametrize("lines", ["a", ["a", None]], ids=repr)
def test_what_is_no_text(plain: PreparedData, lines: list[str]) -> None:
    with pytest.raises(TypeError, match="^translate"):
        translate.translate(lines, "x.pt", plain, 0)
