"""Fixtures of the tests of this room."""

from tests.experiments.conftest import data, text_data

__all__ = ["data", "text_data"]
