"""Attention of a decoder to an encoder, and of a sequence to itself.

- :class:`AdditiveAttention`: Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align
  and translate".
- Of double path networks (DPN-S2S): :class:`MultiHeadAttention` (Eq. 6) for the self-attention path and
  :class:`ConvolutionalAttention` for the convolutional path, both on :func:`dot_product_attention` (Eq. 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..kernels import dot_product_attention as kernel
from ..kernels.additive_attention import additive_attention
from ..kernels.checks import check_mask, check_tensor
from ..kernels.linear import linear
from ..kernels.packed_sentences import packed_attention
from .convolution import weight_norm_linear
from .linear import Linear
from .packed_sentences import PackedFlow


class AdditiveAttention(nn.Module):
    """e(t, s) = v^T tanh(W_a q(t) + U_a h(s) + b), softmax over the source positions s (their Section A.1.2).

    Args:
        query_size: Q.
        key_size: K.
        attention_size: A, rows of W_a and U_a.
    """

    def __init__(self, query_size: int, key_size: int, attention_size: int) -> None:
        super().__init__()
        self.query_projection = Linear(query_size, attention_size, bias=False)
        self.key_projection = Linear(key_size, attention_size)
        self.score = nn.Linear(attention_size, 1, bias=False)

    def project_keys(self, keys: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """U_a h(s) + b, once for each sentence: keys (B, S, K) -> (B, S, A).

        Args:
            keys: h.
            padding_mask: (B, S), True at padding, which counts as zero; None if there is none, or it is zero.

        Raises:
            ValueError: their sizes, precisions or devices do not fit the layer or each other.
        """
        check_tensor("keys", keys, ("B", "S", self.key_projection.in_features), self.score.weight)
        if padding_mask is not None:
            check_mask("padding_mask", padding_mask, keys)
            keys = keys.masked_fill(padding_mask.unsqueeze(-1), 0)
        projected: Tensor = self.key_projection(keys)
        return projected

    def forward(
        self, query: Tensor, projected_keys: Tensor, values: Tensor, padding_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Attends for T queries of each sentence at once.

        Args:
            query: (B, T, Q).
            projected_keys: (B, S, A) from :meth:`project_keys`.
            values: (B, S, K).
            padding_mask: (B, S), True at padding; None if there is none.

        Returns:
            context (B, T, K) and weights (B, T, S).

        Raises:
            ValueError: their sizes, precisions or devices do not fit the layer or each other.
        """
        return self.attending(projected_keys, values, padding_mask)(query)

    def attending(
        self,
        projected_keys: Tensor,
        values: Tensor,
        padding_mask: Tensor | None,
        project_query: Callable[[Tensor], Tensor] | None = None,
    ) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        """:meth:`forward` as a function of the queries alone, for many calls over the same sentences.

        Args:
            projected_keys, values, padding_mask: as :meth:`forward` takes them.
            project_query: W_a, (B T, Q) -> (B T, A), where it is prepared; the layer's own if None.
        """
        score = self.score.weight.squeeze(0)
        check_tensor("projected_keys", projected_keys, ("B", "S", score.size(0)), score)
        check_tensor("values", values, (*projected_keys.shape[:2], "K"), score)
        if padding_mask is not None:
            check_mask("padding_mask", padding_mask, projected_keys)
            # Under a weight of 0 NaN would stay NaN.
            values = values.masked_fill(padding_mask.unsqueeze(-1), 0)

        def attend(query: Tensor) -> tuple[Tensor, Tensor]:
            check_tensor("query", query, ("B", "T", self.query_projection.in_features), self.score.weight)
            if project_query is None:
                projected = self.query_projection(query)
            else:
                projected = project_query(query.flatten(0, 1)).view(*query.shape[:2], -1)
            return additive_attention(projected, projected_keys, values, score, padding_mask, are_values_masked=True)

        return attend


def attention_mask(real: Tensor) -> Tensor:
    """What attention may look at, (N, 1, 1, S), of real (N, S), False at padding.

    Whoever reads a sentence of nothing but padding looks at all of it: the softmax of no numbers would be NaN.
    """
    return (real | ~real.any(dim=1, keepdim=True))[:, None, None, :]


class Memory(NamedTuple):
    """What a path of the encoder gives to the attentions of the decoder, for N sentences.

    The decoder may have a multiple of N rows: the hypotheses of a beam, those of a sentence one after the other. They
    attend together, so that the memory, which is most of what a decoding step reads, is read once for each sentence.

    Attributes:
        output: (N, S, d).
        mask: (N, 1, 1, S), False at padding, but where a sentence has nothing else.
        scale: (N, 1, 1), the square root of the number of real tokens.
        summaries: of each level (N, size), what a recurrent decoder starts from, where the path has some.
    """

    output: Tensor
    mask: Tensor
    scale: Tensor
    summaries: tuple[Tensor, ...] = ()

    @classmethod
    def of(cls, output: Tensor, real: Tensor, summaries: Sequence[Tensor] = ()) -> Memory:
        """output (N, S, d), real (N, S), False at padding; whatever is at padding does not count.

        Raises:
            ValueError: they do not fit each other.
        """
        check_tensor("output", output, ("N", "S", "d"), output)
        check_mask("real", real, output)
        # Under a weight of 0 NaN would stay NaN.
        output = output.masked_fill(~real.unsqueeze(-1), 0)
        scale = real.sum(dim=1).to(output.dtype).sqrt().view(-1, 1, 1)
        return cls(output, attention_mask(real), scale, tuple(summaries))

    def of_sentences(self, sentences: Tensor) -> Memory:
        """That of some of the sentences (N',)."""
        return Memory(
            self.output.index_select(0, sentences),
            self.mask.index_select(0, sentences),
            self.scale.index_select(0, sentences),
            tuple(summary.index_select(0, sentences) for summary in self.summaries),
        )


class ProjectedMemory(NamedTuple):
    """A memory on which the projections of an attention have been done, for N sentences.

    Attributes:
        keys, values: (N, 1, S, d).
        bias: of the scores (N, 1, 1, S), -inf at padding.
    """

    keys: Tensor
    values: Tensor
    bias: Tensor


def dot_product_attention(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float, need_weights: bool = False
) -> tuple[Tensor, Tensor | None]:
    """softmax(scale q k^T) v (Eq. 4).

    Args:
        query: (B, A, T, d), A heads.
        keys, values: (B, A, S, d).
        mask: True where a query may look at a key, or what is added to their product; broadcasts to (B, A, T, S). Every
            query needs one key. With ``need_weights`` it is of the first kind; None if all may look at all.
        need_weights: return the weights too; the product is then written out, since the fused one keeps them to itself.

    Returns:
        contexts (B, A, T, d), and the weights (B, A, T, S) or None.
    """
    if not need_weights:
        return kernel.dot_product_attention(query, keys, values, mask, scale), None
    scores = query @ keys.transpose(-1, -2) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = F.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32)).type_as(scores)
    return weights @ values, weights


class MultiHeadAttention(nn.Module):
    """MH(q, k, v) of Eq. 6, without biases, started at U(-0.1, 0.1) as in the authors' code.

    Args:
        size: d.
        heads: s; each has d / s features.

    Raises:
        ValueError: the heads do not divide d.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        if size % heads:
            raise ValueError(f"{heads} heads do not divide {size} features")
        self.size = size
        self.heads = heads
        self.query_projection = Linear(size, size, bias=False)
        self.key_value_projection = Linear(size, 2 * size, bias=False)
        self.out_projection = Linear(size, size, bias=False)
        for projection in self.query_projection, self.key_value_projection, self.out_projection:
            nn.init.uniform_(projection.weight, -0.1, 0.1)

    def project_memory(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, d) -> keys and values of every head, each (B, s, S, d / s)."""
        check_tensor("x", x, ("B", "S", self.size), self.query_projection.weight)
        keys, values = self.key_value_projection(x).chunk(2, dim=-1)
        return self._split(keys), self._split(values)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attends from x (B, T, d) to :meth:`project_memory`'s keys and values of N sentences (:class:`Memory`), under
        a mask as in :func:`dot_product_attention`.

        Returns:
            (B, T, d), and the mean of the heads' weights (B, T, S) or None.

        Raises:
            ValueError: their sizes, precisions or devices do not fit the layer or each other.
        """
        check_tensor("x", x, ("B", "T", self.size), self.query_projection.weight)
        check_tensor("keys", keys, ("N", self.heads, "S", self.size // self.heads), x)
        check_tensor("values", values, tuple(keys.shape), x)
        query = self._split(by_sentence(self.query_projection(x), keys.size(0)))
        context, weights = dot_product_attention(query, keys, values, mask, query.size(-1) ** -0.5, need_weights)
        context = self.out_projection(context.transpose(1, 2).reshape(x.shape))
        return context, None if weights is None else weights.mean(1).view(*x.shape[:2], -1)

    def forward_packed(self, x: Tensor, memory: Tensor, flow: PackedFlow) -> Tensor:
        """Attends from the tokens x (N, d) of packed sentences to those of ``memory`` (M, d): (N, d)."""
        query, keys_and_values = self.query_projection(x), self.key_value_projection(memory)
        scale = (self.size // self.heads) ** -0.5
        context: Tensor = self.out_projection(
            packed_attention(query, keys_and_values, *flow[:2], self.heads, scale, flow.is_causal)
        )
        return context

    def _split(self, x: Tensor) -> Tensor:
        by_head: Tensor = x.unflatten(-1, (self.heads, -1))
        return by_head.transpose(1, 2)


class ConvolutionalAttention(nn.Module):
    """The attention of a convolutional decoder (ConvS2S), as Eq. 8 states it: keys and values are the encoder's output.

    q = (W_in z + E) sqrt(0.5), context = W_out sqrt(S) softmax(q M^T) M with one head and no 1 / sqrt(d), S the number
    of real source tokens. ConvS2S adds the source embeddings to the values; Eq. 8 does not.

    Args:
        size: d.
        dropout: for the initialisation N(0, sqrt((1 - dropout) / d)) of ConvS2S.
        memory_scale: what M is multiplied by before it is read, as keys and as values.
    """

    def __init__(self, size: int, dropout: float = 0.0, memory_scale: float = 1.0) -> None:
        super().__init__()
        self.memory_scale = memory_scale
        self.in_projection = weight_norm_linear(size, size, math.sqrt(1 - dropout))
        self.out_projection = weight_norm_linear(size, size, math.sqrt(1 - dropout))

    def forward(
        self,
        x: Tensor,
        embedded: Tensor,
        memory: Memory,
        need_weights: bool = False,
        weights: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends for T positions of each sentence.

        Args:
            x, embedded: z and E, (B, T, d).
            memory: M.
            need_weights: return the attention weights too.
            weights: :meth:`projection_weights` where many calls share them.

        Returns:
            (B, T, d), and the attention weights (B, T, S) or None.

        Raises:
            ValueError: their sizes, precisions or devices do not fit the layer or each other.
        """
        size = self.in_projection.out_features
        check_tensor("x", x, ("B", "T", size), self.in_projection.bias)
        check_tensor("embedded", embedded, tuple(x.shape), x)
        check_tensor("the memory's output", memory.output, ("N", "S", size), x)
        in_weight, out_weight = self.projection_weights() if weights is None else weights
        query = (linear(x, in_weight, self.in_projection.bias) + embedded) * math.sqrt(0.5)
        query = by_sentence(query, memory.output.size(0)).unsqueeze(1)
        output = memory.output.unsqueeze(1)
        context, attention = dot_product_attention(query, output, output, memory.mask, self.memory_scale, need_weights)
        context = (context.squeeze(1) * (self.memory_scale * memory.scale)).view(x.shape)
        context = linear(context, out_weight, self.out_projection.bias)
        return context, None if attention is None else attention.view(*x.shape[:2], -1)

    def project_memory(self, memory: Memory, weights: tuple[Tensor, Tensor]) -> ProjectedMemory:
        """Both projections on the memory's side, so that each query of :meth:`attend` needs none.

        Args:
            memory: M.
            weights: :meth:`projection_weights`.
        """
        in_weight, out_weight = weights
        asked = memory.output * (self.memory_scale * math.sqrt(0.5))
        bias = (asked @ self.in_projection.bias)[:, None, None].masked_fill(~memory.mask, float("-inf"))
        answered = linear(memory.output * (self.memory_scale * memory.scale), out_weight, self.out_projection.bias)
        # W_out and its bias may stand before the mean as after it, since the weights sum to 1.
        return ProjectedMemory(linear(asked, in_weight.t()).unsqueeze(1), answered.unsqueeze(1), bias)

    def embedding_scores(self, embedded: Tensor, memory: Memory) -> Tensor:
        """What E (B, T, d) adds to the scores, the same for all layers: (N, 1, B / N T, S)."""
        scale = self.memory_scale * math.sqrt(0.5)
        query = by_sentence(embedded, memory.output.size(0)) * scale
        return torch.bmm(query, memory.output.transpose(1, 2)).unsqueeze(1)

    @staticmethod
    def attend(x: Tensor, embedding_scores: Tensor, memory: ProjectedMemory) -> Tensor:
        """What :meth:`forward` returns for x (B, T, d), by :meth:`embedding_scores` and :meth:`project_memory`."""
        query = by_sentence(x, memory.keys.size(0)).unsqueeze(1)
        context, _ = dot_product_attention(query, memory.keys, memory.values, embedding_scores + memory.bias, 1.0)
        return context.reshape(x.shape)

    def forward_packed(
        self, x: Tensor, embedded: Tensor, memory: Tensor, memory_scale: Tensor, flow: PackedFlow
    ) -> Tensor:
        """Attends for the tokens of packed sentences.

        Args:
            x, embedded: z and E, (N, d).
            memory: the output of M (M, d).
            memory_scale: the scale of M, of each token's sentence (N, 1).
            flow: which tokens attend to which.

        Returns:
            (N, d).
        """
        in_weight, out_weight = self.projection_weights()
        query = linear(x, in_weight, self.in_projection.bias) + embedded
        # The factor of the query, sqrt(0.5), goes with that of the memory.
        context = packed_attention(query, memory, *flow[:2], 1, self.memory_scale * math.sqrt(0.5), flow.is_causal)
        return linear(context * (self.memory_scale * memory_scale), out_weight, self.out_projection.bias)

    def projection_weights(self) -> tuple[Tensor, Tensor]:
        """The normalised weights of W_in and W_out, each (d, d)."""
        return self.in_projection.weight, self.out_projection.weight


def by_sentence(query: Tensor, sentences: int) -> Tensor:
    """(B, T, d) -> (N, B / N T, d): the rows of a sentence ask as so many positions of one row."""
    rows = query.size(0)
    if rows != sentences and (not sentences or rows % sentences):
        raise ValueError(f"{rows} rows are no multiple of {sentences} sentences")
    return query.reshape(sentences, -1, query.size(-1))
