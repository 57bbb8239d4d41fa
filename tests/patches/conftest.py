"""What the tests of this folder share."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import fairseq_plugins
from fairseq_plugins import patches
from tests.commands import run_command

from .unpatched import UNPATCHED, Unpatched, original_of

fairseq_plugins.register()


@pytest.fixture
def unpatch(monkeypatch: pytest.MonkeyPatch) -> Callable[[object, str], None]:
    """Puts back what patches have replaced, until the test ends: ``unpatch(data_utils, "batch_by_size")``."""
    monkeypatch.setattr(patches, "apply", lambda: None)  # whoever registers again
    return lambda owner, name: monkeypatch.setattr(owner, name, original_of(owner, name))


@pytest.fixture(scope="session")
def unpatched() -> Unpatched:
    """Faults that only a process of its own shows."""
    return Unpatched(**json.loads(run_command(["python", "-c", UNPATCHED]).stdout))
