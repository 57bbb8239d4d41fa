"""Lets tests import the grammars, which lie outside the package."""

from __future__ import annotations

import sys

from tests.commands import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "benchmarks"))
