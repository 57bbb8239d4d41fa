"""Fixtures of the tests of this room."""

from tests.experiments.conftest import data

__all__ = ["data"]
