"""Fixtures of the tests of the decoder: prepared data of each kind."""

from __future__ import annotations

from tests.experiments.conftest import data, data_for, text_data

__all__ = ["data", "data_for", "text_data"]
