"""Fixtures of the tests of this room."""

from tests.experiments.conftest import data, data_for, text_data

__all__ = ["data", "data_for", "text_data"]
