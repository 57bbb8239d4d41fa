"""How a trained model has learned to look: the entropy of its alignments over a whole set, and how far its gates are
open."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from ..checkpoints import architecture, read_checkpoint
from ..models.shown_attention import ShowsAttention
from .flows import FLOWS, gates_of
from .forced_decoding import Reading, forced_decoding, lines_of_set, paired
from .prepared_data import PreparedData
from .trained_model import class_of
from .translation import Sentence, TranslationModel

# A mean share below this is none; an entropy nearer than this to that of uniform weights says nothing.
SHUT = 0.01
UNIFORM_MARGIN = 0.02


def sentence_entropy(weights: Tensor) -> float:
    """The entropy -sum x log x, natural logarithm, of each target token's alignment in weights (T, S), averaged over T.

    A weight of zero counts as zero.
    """
    weights = weights.double()
    return -torch.special.xlogy(weights, weights).sum(dim=1).mean().item()


class Focus(NamedTuple):
    """How a model's attention is spread, and how far its gates are open.

    Attributes:
        entropy: of each flow, in nats
        gates: of DPN-S2S: ``cnn.san``: the mean share of the SAN encoder in each layer of the CNN path;
            ``output.san``: that of the SAN path in the output
        uniform: the entropy of looking everywhere alike, in nats: the mean of ln S over the sentences
    """

    entropy: dict[str, float]
    gates: dict[str, list[float]]
    uniform: float

    @property
    def numbers(self) -> dict[str, Any]:
        """All of it, as JSON has it, with the warnings."""
        return {"entropy": self.entropy, "uniform": self.uniform, "gates": self.gates, "warnings": self.warnings()}

    def warnings(self) -> list[str]:
        """A sentence for each flow that found nothing, and for each gate that is shut."""
        warnings = [
            f"{FLOWS.get(name, name)}: this attention looks everywhere alike: its entropy is {value:.3f} nats, "
            f"that of uniform weights {self.uniform:.3f}"
            for name, value in self.entropy.items()
            if value > (1 - UNIFORM_MARGIN) * self.uniform
        ]
        for gate in gates_of(list(self.entropy), self.gates):
            warnings += [
                f"{gate.label}: shut for {gate.label_of(path)}, whose share is {share:.4f}: it has no effect and "
                "learns nothing"
                for path, share in gate.shares.items()
                if share < SHUT
            ]
        return warnings


def focus(trained: TranslationModel, pairs: Sequence[tuple[Sentence, Sentence]]) -> Focus:
    """The entropy of a model's alignments (Section 5.5) by forced decoding, for each flow, and its gates.

    The alignment of a target token is the mean over layers and heads; tokens are averaged within a sentence, the end of
    sentence included, then sentences.

    Raises:
        InputError: as :func:`.forced_decoding.forced_decoding`.
    """
    readings = tqdm(forced_decoding(trained, pairs), total=len(pairs), unit=" sentences", disable=None, leave=False)
    return focus_of(reading for _, reading in readings)


def focus_over_set(checkpoint: str, data: PreparedData, subset: str) -> Focus | None:
    """The same over a prepared set, of a model with several flows or gates; None of any other.

    Raises:
        InputError: as :func:`focus`, or the set cannot be read.
    """
    if not issubclass(class_of(str(architecture(read_checkpoint(checkpoint)))), ShowsAttention):
        return None
    trained = TranslationModel.load([checkpoint], data.folder)
    preparation = trained.preparation
    sources = lines_of_set(trained, subset, preparation.source_lang)
    targets = lines_of_set(trained, subset, preparation.target_lang)
    return focus(trained, paired(trained, sources, targets, f"the set {subset}"))


def focus_of(readings: Iterable[Reading]) -> Focus:
    """The means over sentences, each of which counts as much as any other."""
    entropy: dict[str, list[float]] = {}
    gates: dict[str, list[list[float]]] = {}
    uniform: list[float] = []
    for flows, open_gates in readings:
        uniform.append(math.log(next(iter(flows.values())).size(1)))
        for name, weights in flows.items():
            entropy.setdefault(name, []).append(sentence_entropy(weights))
        for name, values in open_gates.items():
            gates.setdefault(name, []).append(values.double().mean(dim=0).tolist())
    # fmean adds exactly: the order of the batches changes nothing.
    return Focus(
        {name: statistics.fmean(values) for name, values in entropy.items()},
        {
            name: [statistics.fmean(of_layer) for of_layer in zip(*values, strict=True)]
            for name, values in gates.items()
        },
        statistics.fmean(uniform),
    )
