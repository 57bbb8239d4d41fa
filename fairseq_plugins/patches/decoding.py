"""Decoding: the speed of beam search, diverse beam search, alignments, and the transformer's encoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq import utils
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from fairseq.search import DiverseBeamSearch, Sampling
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from fairseq.tasks import FairseqTask
from torch import Tensor

from ..symbols import padding_words
from .replacing import replace_once


def search_among_few_tokens() -> None:
    """Has fairseq's tasks search by :class:`.FewTokensGenerator` where all models are of this package.

    fairseq's generator passes over tables of all hypotheses and the whole vocabulary some ten times a step. That is a
    quarter of RNNSearch's time. Other models, alignments and tasks that choose a generator themselves keep theirs.

    For fairseq 0.12.
    """

    def build(build_generator: Callable) -> Callable:
        def build_faster(
            self: FairseqTask, models: Any, args: Any, seq_gen_cls: Any = None, *rest: Any, **options: Any
        ):
            # Not at the head of the file: models begin with the patches.
            from ..models.beam_search import FewTokensGenerator, searches_faster

            if seq_gen_cls is None and not getattr(args, "print_alignment", False) and searches_faster(models):
                seq_gen_cls = FewTokensGenerator
            return build_generator(self, models, args, seq_gen_cls, *rest, **options)

        return build_faster

    replace_once(FairseqTask, "build_generator", build)


def write_no_padding_words() -> None:
    """Has no translation have a word that pads the dictionary (``madeupword0000``).

    fairseq's preprocessing adds up to seven, for a size that is a multiple of eight. Training makes them improbable,
    and ``--sampling`` draws them nevertheless. What is drawn is drawn of the others alone; in beam search their scores
    stay as they are.

    For fairseq 0.12.
    """
    replace_once(SequenceGenerator, "__init__", _telling_ensembles)
    replace_once(EnsembleModel, "forward_decoder", _excluding_padding_words)


def _telling_ensembles(init: Callable) -> Callable:
    def initialise(self: SequenceGenerator, models: Any, tgt_dict: Any, *rest: Any, **options: Any) -> None:
        init(self, models, tgt_dict, *rest, **options)
        self.model.padding_words = padding_words(zip(tgt_dict.symbols, tgt_dict.count, strict=True))
        self.model.is_sampled = isinstance(self.search, Sampling)

    return initialise


def _excluding_padding_words(forward_decoder: Callable) -> Callable:
    def forward(self: EnsembleModel, *args: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
        # Not at the head of the file: models begin with the patches.
        from ..models.beam_search import without_padding_words

        table, attention = forward_decoder(self, *args, **options)
        return without_padding_words(self, table), attention

    return forward


def repair_diverse_beam_search() -> None:
    """Has diverse beam search remember how far groups overlap by a sentence's place in its batch.

    fairseq looks it up by the sentence's number in the whole set: in the wrong row where the batch is in another order,
    and beyond the last row in all batches but the first (IndexError).

    For fairseq 0.12.
    """

    def build(step: Callable) -> Callable:
        def step_by_place(
            self: DiverseBeamSearch,
            step_number: int,
            lprobs: Tensor,
            scores: Tensor | None,
            prev_output_tokens: Tensor | None = None,
            original_batch_idxs: Tensor | None = None,
        ) -> tuple[Tensor, Tensor, Tensor]:
            if original_batch_idxs is not None:
                if step_number == 0:
                    self._sentences = original_batch_idxs
                # Finished sentences leave the batch; those that are left are found among all of them.
                original_batch_idxs = (original_batch_idxs[:, None] == self._sentences).long().argmax(dim=1)
            return step(self, step_number, lprobs, scores, prev_output_tokens, original_batch_idxs)

        return step_by_place

    replace_once(DiverseBeamSearch, "step", build)


def repair_alignments() -> None:
    """Undoes the shift of alignments where a model pads the source on the other side than the data.

    fairseq's ``lstm`` turns left-padded sources to right-padded ones and returns its attention so. A model never
    attends to padding, so attention there tells that it is shifted by the length of the padding.

    For fairseq 0.12 (its issue 3625).
    """

    def build(extract: Callable) -> Callable:
        def extract_unshifted(attn, src_sent, tgt_sent, pad, eos):
            padding = src_sent.eq(pad)
            length = int(padding.sum())
            if length > 0 and attn[:, padding].any():
                attn = attn.roll(length if padding[0] else -length, dims=1)
            return extract(attn, src_sent, tgt_sent, pad, eos)

        return extract_unshifted

    replace_once(utils, "extract_hard_alignment", build)
    replace_once(utils, "extract_soft_alignment", build)


def avoid_transformer_fast_path() -> None:
    """Keeps the transformer's encoder off a fused kernel whose arguments changed in PyTorch 1.13.

    It fails in generation: "Mask Type should be defined".

    For fairseq 0.12.2. fairseq-fixed has no such path.
    """
    _avoid_fast_path(TransformerEncoderLayerBase)


def _avoid_fast_path(layer: type) -> None:
    if "can_use_fastpath" not in vars(layer)["__init__"].__code__.co_names:
        return

    def build(init: Callable) -> Callable:
        def initialise(self: TransformerEncoderLayerBase, *args: Any, **keywords: Any) -> None:
            init(self, *args, **keywords)
            self.can_use_fastpath = False

        return initialise

    replace_once(layer, "__init__", build)
