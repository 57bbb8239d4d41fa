"""What a decoder path reads, without its padding (:mod:`..packed_sentences`).

Symbols: B sentences, T target tokens, N and M real tokens of all targets and sources, d features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from ..attention import Memory
from ..packed_sentences import PackedFlow, PackedSentences, is_packable


class PackedBatch(NamedTuple):
    """Targets, and the memories that they attend to.

    Attributes:
        embedded: E, (N, d).
        memories: the output of each encoder path (M, d).
        targets, sources: their sentences.
    """

    embedded: Tensor
    memories: dict[str, Tensor]
    targets: PackedSentences
    sources: PackedSentences

    @classmethod
    def of(cls, embedded: Tensor, memories: Mapping[str, Memory], real: Tensor) -> PackedBatch:
        """embedded (B, T, d) and memories of as many sentences; real (B, T), False at padding."""
        targets, sources = PackedSentences.of(real), PackedSentences.of(_real(memories))
        packed = {path: sources.pack(memory.output) for path, memory in memories.items()}
        return cls(targets.pack(embedded), packed, targets, sources)

    @property
    def to_sources(self) -> PackedFlow:
        return PackedFlow(self.targets.offsets, self.sources.offsets)

    @property
    def to_earlier_targets(self) -> PackedFlow:
        return PackedFlow(self.targets.offsets, self.targets.offsets, is_causal=True)


def packs(
    path: nn.Module,
    embedded: Tensor,
    memories: Mapping[str, Memory],
    real: Tensor | None,
    states: Sequence[Any] | None,
    need_attention: bool,
) -> bool:
    """Whether a decoder path packs its batch: in training, where nothing but its output is asked for."""
    if not path.training or real is None or states is not None or need_attention or path.path_dropout:
        return False
    source = _real(memories)
    return len(source) == len(real) and is_packable(embedded, real, source)


def _real(memories: Mapping[str, Memory]) -> Tensor:
    """Those of all encoder paths are the same."""
    return next(iter(memories.values())).mask[:, 0, 0]
