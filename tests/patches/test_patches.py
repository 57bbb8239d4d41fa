"""What holds of every patch."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from fairseq_plugins import patches

TESTS = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))


@pytest.mark.parametrize("patch", patches.all_patches(), ids=lambda patch: patch.__name__)
def test_it_says_what_it_is_for_and_a_test_tells_when_it_can_go(patch) -> None:
    assert re.search(r"^For (fairseq|fairseq-fixed|PyTorch) \d", inspect.getdoc(patch) or "", re.MULTILINE)
    assert re.search(rf"\b(needless|fault_of)\({patch.__name__}\b", TESTS)


def test_every_patch_is_made() -> None:
    """A function of this room that takes nothing and has a name of its own is one."""
    made = {patch.__name__ for patch in patches.all_patches()}
    folder = Path(inspect.getfile(patches)).parent
    written = {
        name for path in folder.glob("[a-z]*.py") for name in re.findall(r"^def ([a-z]\w+)\(\)", path.read_text(), re.M)
    }
    # At the end of registering, whose own filters would end its.
    assert written - made == {"quiet_warnings"}
