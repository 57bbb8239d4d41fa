"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import fairseq_plugins
from fairseq_plugins import patches

from .unpatched import original_of

fairseq_plugins.register()


@pytest.fixture
def unpatch(monkeypatch: pytest.MonkeyPatch) -> Callable[[object, str], None]:
    """Puts back what patches have replaced, until the test ends: ``unpatch(data_utils, "batch_by_size")``."""
    monkeypatch.setattr(patches, "apply", lambda: None)  # whoever registers again
    return lambda owner, name: monkeypatch.setattr(owner, name, original_of(owner, name))
