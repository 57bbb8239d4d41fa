"""A text as contiguous streams side by side, cut into windows.

Stream s of S has the tokens that are in the s-th part of the text. Each token is predicted exactly once: the first of
the text from the end of a line, that of another stream from the last token of the stream before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset
from torch import Tensor

SHORTEST_WINDOW = 5
WINDOW_DEVIATION = 5.0
HALF_WINDOWS = 0.05
"""The share of windows that are half as long on average (Merity, Keskar and Socher 2018, Section 5)."""


def window_lengths(total: int, mean: int, random: np.random.Generator | None = None) -> list[int]:
    """The lengths of the windows that make up ``total`` steps; the last one is what is left.

    Args:
        total: the steps of the longest stream
        mean: the length of each; with ``random``, N(mean, 5) with probability 0.95 and else N(mean / 2, 5), at least 5
        random: draws them
    """
    lengths = []
    while total > 0:
        length = mean
        if random is not None:
            centre = mean / 2 if random.random() < HALF_WINDOWS else mean
            length = max(SHORTEST_WINDOW, int(random.normal(centre, WINDOW_DEVIATION)))
        lengths.append(min(length, total))
        total -= lengths[-1]
    return lengths


class Text(FairseqDataset):
    """The tokens (N,) of a set, line after line; fairseq's data set of it."""

    def __init__(self, tokens: Tensor, eos: int, pad: int, is_training: bool) -> None:
        """Cuts nothing yet.

        Args:
            tokens: (N,)
            eos: what the first token is predicted from
            pad: what is at the end of streams that are a token shorter than others
            is_training: whether it is the training set
        """
        self.tokens, self.eos, self.pad, self.is_training = tokens, eos, pad, is_training

    def __len__(self) -> int:
        return len(self.tokens)

    def longest_stream(self, streams: int) -> int:
        """The tokens of the longest of so many streams."""
        return -(-len(self.tokens) // streams)

    def windows(self, streams: int, lengths: Sequence[int], share: slice) -> Windows:
        """The windows of these lengths of a ``share`` of so many streams."""
        size, longer = divmod(len(self.tokens), streams)
        sizes = torch.tensor([size + (stream < longer) for stream in range(streams)])
        starts = sizes.cumsum(0) - sizes
        steps = torch.arange(self.longest_stream(streams))
        # (streams, steps)
        places = starts[share].unsqueeze(1) + steps
        is_real = steps < sizes[share].unsqueeze(1)
        before = torch.cat([self.tokens.new_tensor([self.eos]), self.tokens[:-1]])
        source, target = (
            torch.where(is_real, side[places.clamp(max=len(self.tokens) - 1)], self.pad)
            for side in (before, self.tokens)
        )
        return Windows(source, target, lengths, self.pad)


class Windows(FairseqDataset):
    """The windows of some streams in their order; each is a whole batch."""

    def __init__(self, source: Tensor, target: Tensor, lengths: Sequence[int], pad: int) -> None:
        """Cuts the batch into its windows.

        Args:
            source, target: (B, steps)
            lengths: of the windows
            pad: no token
        """
        self._pad = pad
        parts = ([part.contiguous() for part in side.split(list(lengths), dim=1)] for side in (source, target))
        self._windows = list(zip(*parts, strict=True))

    def __len__(self) -> int:
        return len(self._windows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """fairseq's batch, with ``window``, its number in the text; 0 is where states begin."""
        source, target = self._windows[index]
        return {
            "id": torch.arange(len(target)),
            "nsentences": len(target),
            "ntokens": int(target.ne(self._pad).sum()),
            "net_input": {"src_tokens": source},
            "target": target,
            "window": index,
        }

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(len(self)))

    def collater(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The only one of the samples: it is a batch."""
        [sample] = samples
        return sample
