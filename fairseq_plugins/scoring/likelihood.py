"""How probable a text is to a model: perplexity, and bits per character. Lower is better."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from .metrics import Column, Metric, Outputs, References, register_metric


class Likelihood(Metric):
    """Of the negative log-likelihood of the text, its lines' ends included."""

    decoding = "text"

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        """Of each line the negative logarithm of its probability, and its tokens with its end."""
        rows = [[-sum(line), len(line)] for line in self.log_probabilities(outputs)]
        return np.array(rows, dtype=float).reshape(-1, 2)

    @abstractmethod
    def scores_of(self, summed: np.ndarray) -> np.ndarray: ...

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        tokens = sum(len(line.split()) + 1 for line in references.tokens[0])
        parts = [f"tokens:{tokens}", "line_ends:yes", bootstrap, self.name]
        return "|".join(part for part in parts if part)


class Perplexity(Likelihood):
    """exp of the mean negative log-likelihood of a token."""

    name, label = "perplexity", "perplexity"
    columns = (Column("perplexity", "perplexity", higher_is_better=False, paper="perplexity"),)

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        perplexity: np.ndarray = np.exp(summed[:1] / summed[1])
        return perplexity


class BitsPerCharacter(Likelihood):
    """The mean negative log-likelihood of a character, to the base 2."""

    name, label = "bits_per_character", "bits per character"
    columns = (
        Column("bits_per_character", "bits per character", higher_is_better=False, form=".3f", paper="bpc", digits=4),
    )

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        bits: np.ndarray = summed[:1] / summed[1] / np.log(2)
        return bits


register_metric(Perplexity())
register_metric(BitsPerCharacter())
