"""Prepared data, as commands are given it."""

from __future__ import annotations

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.prepared_data import PreparedData


def test_prepared_data_lacks_a_dictionary(data: PreparedData) -> None:
    (data.folder / "bin" / "dict.en.txt").unlink()
    with pytest.raises(InputError, match="dict.en.txt: the dictionary is missing"):
        PreparedData.load(data.folder)
