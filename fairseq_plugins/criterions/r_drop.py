"""``--criterion r_drop``: cross-entropy, and how far two passes under dropout are from each other (Liang, Wu, Li and
others, 2021, "R-Drop: Regularized Dropout for Neural Networks").
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..errors import InputError
from .output_cross_entropy import (
    OutputCrossEntropyConfig,
    OutputCrossEntropyCriterion,
    finds_unused_parameters,
    says_its_output_layer,
)

# Numbers in a table of tokens by vocabulary.
_CHUNK_NUMBERS = 1 << 22


@dataclass
class RDropConfig(OutputCrossEntropyConfig):
    """The options of ``r_drop``."""

    r_drop_weight: float = field(
        default=5.0, metadata={"help": "alpha: weight of the divergence beside the cross-entropy of both passes"}
    )


@register_criterion("r_drop", dataclass=RDropConfig)
class RDropCriterion(OutputCrossEntropyCriterion):
    """In training, a batch is read twice in one pass, under two draws of dropout, p and q.

    The loss is half of their Eq. 4: the mean of both (label-smoothed) cross-entropies + alpha / 2 times
    (KL(p || q) + KL(q || p)) / 2, summed over tokens. What is logged, and validated by, is the cross-entropy alone.

    Raises:
        InputError: a weight below 0, or a label smoothing outside 0 ... 1.
    """

    def __init__(self, task: FairseqTask, sentence_avg: bool, label_smoothing: float, r_drop_weight: float) -> None:
        super().__init__(task, sentence_avg, label_smoothing)
        if r_drop_weight < 0:
            raise InputError(f"--r-drop-weight must be at least 0, not {r_drop_weight}")
        self.weight = r_drop_weight

    def forward(
        self, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """The summed loss of a batch, the number that gradients are divided by, and what is logged."""
        if not model.training:
            return super().forward(model, sample, reduce)
        self.check_smoothing(model)
        # The two passes of a sentence are neighbours: fairseq's lstm wants sentences by falling length.
        inputs = {name: value.repeat_interleave(2, dim=0) for name, value in sample["net_input"].items()}
        target = sample["target"].repeat_interleave(2, dim=0)
        if says_its_output_layer(model) and not finds_unused_parameters(model):
            features, _ = model(**inputs, features_only=True)
            loss, nll_loss = self.of_features(model, features, target)
            weight, bias = model.decoder.output_parameters()
            first, second = features[::2], features[1::2]
            divergence = self._divergence_in_chunks(first, second, weight, bias, sample["target"])
        else:
            net_output = model(**inputs)
            log_probabilities = model.get_normalized_probs(net_output, log_probs=True)
            loss, nll_loss = label_smoothed_nll_loss(
                log_probabilities.flatten(0, 1), target.flatten(), self.label_smoothing, self.padding_idx
            )
            real = sample["target"].ne(self.padding_idx)
            divergence = (_divergence(log_probabilities[::2], log_probabilities[1::2]) * real).sum()
        size, logged = self.logged(sample, loss / 2, nll_loss / 2)
        return loss / 2 + self.weight / 2 * divergence, size, logged

    def _divergence_in_chunks(
        self, first: Tensor, second: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor
    ) -> Tensor:
        """The divergence of what features (B, T, E) of two passes say, summed over the real tokens of target (B, T).

        Tables of tokens by vocabulary exist for some tokens at a time: those of a chunk are made again where their
        gradients are needed.
        """
        real = target.ne(self.padding_idx)
        rows = max(1, _CHUNK_NUMBERS // weight.size(0))
        chunks = zip(
            *(tensor.split(rows) for tensor in (first.flatten(0, 1), second.flatten(0, 1), real.flatten())), strict=True
        )
        divergences = [
            checkpoint(_divergence_of, *chunk, weight, bias, use_reentrant=False, preserve_rng_state=False)
            for chunk in chunks
        ]
        return torch.stack(divergences).sum()


def _divergence_of(first: Tensor, second: Tensor, real: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    logits = (F.linear(features, weight, bias) for features in (first, second))
    precision = torch.promote_types(weight.dtype, torch.float32)
    log_probabilities = (F.log_softmax(tensor, dim=-1, dtype=precision) for tensor in logits)
    return (_divergence(*log_probabilities) * real).sum()


def _divergence(first: Tensor, second: Tensor) -> Tensor:
    """(KL(p || q) + KL(q || p)) / 2 out of log p and log q (..., V): (...)."""
    return ((first.exp() - second.exp()) * (first - second)).sum(dim=-1) / 2
