"""What fairseq has other libraries complain of."""

from __future__ import annotations

import logging
import sys
import warnings

import pytest

from fairseq_plugins.patches.messages import quiet_loggers, quiet_warnings

from .unpatched import Unpatched, needless

WARNINGS = [
    (UserWarning, "hydra.experimental.compose() is no longer experimental", "hydra.experimental.compose", False),
    (UserWarning, "\n'config' is validated against ConfigStore schema with the same name.", "sys", False),
    (FutureWarning, "`torch.cuda.amp.autocast(args...)` is deprecated.", "fairseq.tasks.fairseq_task", False),
    (UserWarning, "'pin_memory' argument is set as true but no accelerator is found", "torch.utils.data", False),
    (UserWarning, "loss is not a number", "fairseq.trainer", True),
    (FutureWarning, "something of the user's own", "my_layer", True),
]


@pytest.mark.parametrize(("category", "text", "module", "is_shown"), WARNINGS)
def test_what_is_shown(
    category: type[Warning], text: str, module: str, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, expected in ([], is_shown), (["default"], True):
        monkeypatch.setattr(sys, "warnoptions", options)
        with warnings.catch_warnings(record=True) as seen:
            warnings.resetwarnings()
            warnings.simplefilter("always")
            quiet_warnings()
            warnings.warn_explicit(text, category, "file.py", 1, module)
        assert bool(seen) == expected


def test_fairseq_has_others_warn_and_log(unpatched: Unpatched) -> None:
    assert any("hydra" in file for file in unpatched.warnings), needless(quiet_warnings)
    assert unpatched.level_of_matplotlib == logging.DEBUG, needless(quiet_loggers)
    assert logging.getLogger("matplotlib").level == logging.WARNING
