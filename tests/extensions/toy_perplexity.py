"""A metric of a user's own, as a configuration's ``extensions`` names it: lower is better, a number for each token."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairseq_plugins.scoring.metrics import Column, Metric, Outputs, References, read_numbers, register_metric


class ToyPerplexity(Metric):
    """How surprised a model is by its own output."""

    name = "toy_perplexity"
    label = "toy perplexity"
    columns = (Column("toy_perplexity", "toy perplexity", higher_is_better=False, paper="toy_perplexity"),)

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        return np.array([[-sum(line), len(line)] for line in self.log_probabilities(outputs)])

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        return np.exp(summed[:1] / summed[1])

    def read(self, path: Path) -> Outputs:
        numbers = read_numbers(path)
        lines = [" ".join(map(str, line)) for line in numbers]
        return Outputs(lines, lines, numbers)


register_metric(ToyPerplexity())
