"""The embeddings of positions, and how a model is trained on positions that its sentences do not reach."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import field
from typing import Any

import torch
from fairseq import utils
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import Tensor, nn

from ..errors import InputError


def embedding_of_positions_options() -> type[FairseqDataclass]:
    """What positions can be asked for."""
    table = "embeddings of the positions: learned, or sinusoidal as the transformer's"
    shift = (
        "in training the positions of a sentence begin anywhere up to this one, so that a longer sentence "
        "has none that are new"
    )
    fields = [
        ("positions", ChoiceEnum(["learned", "sinusoidal"]), field(default="learned", metadata={"help": table})),
        ("position_shift", int, field(default=0, metadata={"help": shift})),
    ]
    return dataclasses.make_dataclass("EmbeddingOfPositionsOptions", fields, bases=(FairseqDataclass,))


class Positions(nn.Embedding):
    """A table of positions, learned or fixed, which starts at N(0, 0.1) or is as large.

    Args:
        longest: the number of positions.
        embed_dim: d.
        padding_idx: of the dictionary; padding has no position.
        is_sinusoidal: the table is that of the transformer (Vaswani et al., 2017), and is not trained.
        shift: in training the positions of a sentence begin anywhere up to this one (Kiyono et al., 2021, "SHAPE:
            Shifted Absolute Position Embedding for Transformers").

    Raises:
        InputError: embeddings that are too small for a sinus and a cosine of two frequencies.
    """

    def __init__(
        self, longest: int, embed_dim: int, padding_idx: int, is_sinusoidal: bool = False, shift: int = 0
    ) -> None:
        if is_sinusoidal and embed_dim < 4:
            raise InputError(f"--positions sinusoidal needs embeddings of 4 numbers at least, not {embed_dim}")
        super().__init__(longest + padding_idx + 1, embed_dim, padding_idx)
        self.padding_idx: int = padding_idx
        self.max_positions = longest
        self.shift = shift
        if is_sinusoidal:
            table = SinusoidalPositionalEmbedding.get_embedding(self.num_embeddings, embed_dim, padding_idx)
            # The mean square of a sinus is a half.
            self.weight = nn.Parameter(table * (0.1 * math.sqrt(2)), requires_grad=False)
        else:
            nn.init.normal_(self.weight, std=0.1)
        nn.init.zeros_(self.weight[padding_idx])

    def forward(self, tokens: Tensor, incremental_state: dict[str, dict[str, Any]] | None = None) -> Tensor:
        """tokens (B, T), padded on either side -> (B, T, d); with ``incremental_state`` the last one's (1, 1, d)."""
        if incremental_state is not None:
            return super().forward(tokens.new_full((1, 1), self.padding_idx + tokens.size(1)))
        positions = utils.make_positions(tokens, self.padding_idx)
        if self.training and self.shift:
            most = min(self.shift, self.max_positions - tokens.size(1))
            shifts = torch.randint(most + 1, (tokens.size(0), 1), device=tokens.device)
            positions = torch.where(positions == self.padding_idx, positions, positions + shifts)
        return super().forward(positions)
