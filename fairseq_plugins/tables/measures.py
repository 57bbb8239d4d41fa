"""What the figures of a paper's table are: scores of a metric, or numbers of an analysis. Tables ask it which."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ..decoding.prepared_data import PreparedData
from ..experiments.decoding import decoding_of
from ..experiments.run import Run
from ..scoring.metrics import Metric, metric_named
from ..scoring.significance import Comparison


class Measure(ABC):
    """The figures of one table.

    Attributes:
        name: in ``configs/tables``
        title: what all of them are called
        form: how one is written, as in ``format``
        columns: key of the paper's figures → what it is called; where there are several test sets, the sets
        sets: the test sets that the paper has figures of; ``test`` where it is one
        metric: whose scores they are; None for an analysis
        analyses: the commands of :mod:`fairseq_plugins.analysis` that they come from; none for scores
    """

    name: str
    title: str
    form: str
    columns: Mapping[str, str]
    sets: tuple[str, ...] = ("test",)
    metric: Metric | None = None
    analyses: ClassVar[tuple[str, ...]] = ()

    @property
    def heading(self) -> str:
        """What the paper's figures are called at the head of their column."""
        return self.title

    @abstractmethod
    def figures_of(self, flow: str | None, variant: str | None, run: Run, small: bool) -> dict[str, float]:
        """Our figures of one experiment, by column.

        Args:
            flow: the attention flow that a row of the table is about; None where it is about a system
            variant: the option of ``fairseq-plugins evaluate`` that sets its results apart; None for none
            run: the experiment
            small: whether it is of the small scale, where there is one test set

        Raises:
            KeyError, FileNotFoundError: one is missing.
        """

    @abstractmethod
    def notes(self, run: Run) -> list[str]:
        """How the figures were computed."""

    def compared(self, baseline: Run, run: Run, columns: Sequence[str]) -> dict[str, Comparison]:
        """Whether a row differs from the baseline of the same seed by more than chance, by column."""
        return {}

    def comparative(self, column: str, difference: float) -> str:
        """``better``, ``worse`` or ``equal``: what a row is that has ``difference`` more than another."""
        return "different" if difference else "equal"

    def systems(self, runs: Mapping[str, Run]) -> dict[str, Run]:
        """What a page shows side by side: the runs of the rows, by their names."""
        return dict(runs)


class Scores(Measure):
    """The scores of a metric, on one test set or on several."""

    metric: Metric

    def __init__(self, metric: Metric, sets: Sequence[str] | None = None) -> None:
        self.metric = metric
        self.name, self.title, self.form = metric.name, metric.title, metric.main.form
        self._columns = {column.paper: column for column in metric.columns if column.paper is not None}
        self._has_several_sets = sets is not None
        if sets is not None:
            self.sets, self.columns = tuple(sets), {name: name for name in sets}
        else:
            self.columns = {key: column.name for key, column in self._columns.items()}

    @property
    def heading(self) -> str:
        return f"{self.title} ({' / '.join(self.columns)})" if self._has_several_sets else self.title

    @property
    def _first(self) -> str:
        """The key of the number that is given for each of several sets."""
        return next(iter(self._columns.values())).key

    def figures_of(self, flow: str | None, variant: str | None, run: Run, small: bool) -> dict[str, float]:
        results = run.results
        if not self._has_several_sets:
            return {name: results[column.key] for name, column in self._columns.items()}
        if variant is not None:
            names = ("test",) if small else self.sets
            return {name: results["subsets"][f"{name} with {variant}"][self._first] for name in names}
        if small:
            return {"test": results[self._first]}
        split_of = run.required_data.preparation.split_of
        sets = {name: results if split_of(name) == "test" else results["subsets"][name] for name in self.sets}
        return {name: scores[self._first] for name, scores in sets.items()}

    def notes(self, run: Run) -> list[str]:
        signatures = dict.fromkeys(column.signature for column in self._columns.values())
        return [f"{self.title}: {run.results[key]}." for key in signatures if key in run.results]

    def compared(self, baseline: Run, run: Run, columns: Sequence[str]) -> dict[str, Comparison]:
        data = run.required_data
        tokenized = self.metric.tokenized_by(run.results.get("tokenizer"))
        if not self._has_several_sets:
            metric = tokenized.only(*(self._columns[name].key for name in columns))
            compared = self._compared(metric, baseline, run, data, "test")
            return {name: compared[self._columns[name].key] for name in columns}
        metric = tokenized.only(self._first)
        return {
            name: self._compared(metric, baseline, run, data, data.preparation.split_of(name))[self._first]
            for name in columns
        }

    def _compared(
        self, metric: Metric, baseline: Run, run: Run, data: PreparedData, subset: str
    ) -> dict[str, Comparison]:
        theirs, ours = (one.outputs(metric, data, subset) for one in (baseline, run))
        return metric.compare(theirs, ours, decoding_of(metric).references(data, subset))

    def comparative(self, column: str, difference: float) -> str:
        return self._columns.get(column, self.metric.main).comparative(difference)


class Entropies(Measure):
    """The entropy of the attention of each of DPN-S2S's flows: rows of one model."""

    name, title, form = "entropy", "entropy in nats", ".3f"
    columns = {"entropy": "entropy"}
    analyses = ("entropy",)

    def figures_of(self, flow: str | None, variant: str | None, run: Run, small: bool) -> dict[str, float]:
        content = json.loads((run.folder / "analysis" / "entropy.json").read_text(encoding="utf-8"))
        return {"entropy": content["entropy"][flow]}

    def notes(self, run: Run) -> list[str]:
        return ["Forced decoding of the test set's references; natural logarithm; mean over tokens, then sentences."]

    def systems(self, runs: Mapping[str, Run]) -> dict[str, Run]:
        return {"DPN-S2S": next(iter(runs.values()))}


def measure_named(name: str, sets: Sequence[str] | None = None) -> Measure:
    """The measure that a table names: ``entropy``, or a metric.

    Args:
        name: of the measure
        sets: the test sets that the paper has figures of, where they are several

    Raises:
        InputError: there is no such metric.
    """
    return Entropies() if name == Entropies.name else Scores(metric_named(name), sets)
