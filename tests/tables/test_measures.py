"""What a table's figures are compared by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairseq_plugins.scoring.metrics import Metric
from fairseq_plugins.tables import measures


@pytest.mark.parametrize(("sets", "columns"), [(None, ["bleu"]), (["nist05"], ["nist05"])])
@pytest.mark.parametrize("tokenizer", ["char", None])
def test_rows_are_compared_by_the_tokenizer_of_their_scores(
    sets: list[str] | None, columns: list[str], tokenizer: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def compare(metric: Metric, *rest: object) -> dict[str, Any]:
        asked.append(metric.tokenizer)
        return {column.key: None for column in metric.columns}

    measure = measures.measure_named("bleu", sets)
    monkeypatch.setattr(measure, "_compared", compare)
    data = SimpleNamespace(preparation=SimpleNamespace(split_of=lambda name: name))
    run = SimpleNamespace(required_data=data, results={"tokenizer": tokenizer} if tokenizer else {})
    assert list(measure.compared(run, run, columns)) == columns
    assert asked == [tokenizer]
