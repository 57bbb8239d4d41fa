"""One-sentence errors."""

from __future__ import annotations

import pytest

from fairseq_plugins.errors import InputError, report_input_errors


def test_report_input_errors(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        raise InputError("text: no such file")

    with pytest.raises(SystemExit) as exit_:
        report_input_errors(main)
    assert exit_.value.code == 1
    assert capsys.readouterr().err == "error: text: no such file\n"


def test_report_input_errors_hides_no_other_error() -> None:
    with pytest.raises(ZeroDivisionError):
        report_input_errors(lambda: print(1 / 0))
