"""What R-NET reads a passage with after it is encoded: for a question, for itself, and for the answer's place.

Wang, Yang, Wei, Chang and Zhou (2017), "Gated Self-Matching Networks for Reading Comprehension and Question Answering".
Symbols: T words of a passage, J words of its question, B batch, P and Q their sizes, H hidden size of a direction.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..kernels import dispatch
from ..kernels.checks import check_tensor, checked_lengths
from ..kernels.padding import padding_mask
from .attention import AdditiveAttention
from .linear import Linear
from .recurrent.stack import RecurrentStack, reverse

CHUNK = 1 << 24
"""Numbers of the scores' tanh that self-matching holds at a time, where the attention's kernel does not avoid them."""


class Matched(NamedTuple):
    """What :class:`GatedMatching` returns."""

    output: Tensor  # (T, B, 2H), forwards, then backwards; zero at padding
    weights: Tensor  # (T, B, J), what each word of the passage attends to: the mean of both directions


class GatedMatching(nn.Module):
    """Gated attention-based recurrent networks (Section 3.2), in both directions as their Section 4.1 has it.

        s(t, j) = v^T tanh(W_u^Q u^Q(j) + W_u^P u^P(t) + W_v^P v^P(t - 1)),   a(t) = softmax over j         (Eq. 4)
        c(t) = sum over j of a(t, j) u^Q(j)
        g(t) = sigmoid(W_g [u^P(t); c(t)]),   v^P(t) = GRU(v^P(t - 1), g(t) * [u^P(t); c(t)])               (Eq. 5, 6)

    Both directions run in one loop, each with its own weights: the first dimension of every parameter.

    Args:
        passage_size: P.
        question_size: Q.
        hidden_size: H.
        attention_size: A, rows of W_u^Q, W_u^P and W_v^P.
    """

    def __init__(self, passage_size: int, question_size: int, hidden_size: int, attention_size: int) -> None:
        super().__init__()
        self.passage_size, self.question_size, self.hidden_size = passage_size, question_size, hidden_size
        joined = passage_size + question_size

        def weight(rows: int, columns: int) -> nn.Parameter:
            parameter = nn.Parameter(torch.empty(2, columns, rows))
            for direction in parameter:
                nn.init.xavier_uniform_(direction)
            return parameter

        def of_gru(*shape: int) -> nn.Parameter:
            bound = hidden_size**-0.5
            return nn.Parameter(torch.empty(2, *shape).uniform_(-bound, bound))

        # Transposed, for products of the form x W.
        self.question_weight = weight(attention_size, question_size)
        self.passage_weight = weight(attention_size, passage_size)
        self.state_weight = weight(attention_size, hidden_size)
        self.score = nn.Parameter(
            torch.empty(2, attention_size).uniform_(-(attention_size**-0.5), attention_size**-0.5)
        )
        self.gate_weight = weight(joined, joined)
        self.input_weight, self.hidden_weight = of_gru(joined, 3 * hidden_size), of_gru(hidden_size, 3 * hidden_size)
        self.input_bias, self.hidden_bias = of_gru(1, 3 * hidden_size), of_gru(1, 3 * hidden_size)
        self.output_size = 2 * hidden_size

    def forward(self, passage: Tensor, lengths: Tensor, question: Tensor, question_lengths: Tensor) -> Matched:
        """passage u^P (T, B, P) and question u^Q (J, B, Q), right-padded.

        Raises:
            ValueError: their sizes, precisions or devices do not fit the layer or each other; or lengths are below 1,
                or above T and J. The latter is seen on CPUs only.
        """
        passage, padding = _without_padding("passage", passage, lengths, self.passage_size, self.score)
        question, question_padding = _without_padding(
            "question", question, question_lengths, self.question_size, self.score
        )
        _check_rows(passage, question)
        steps, rows, _ = passage.shape
        hidden, attention = self.hidden_size, self.score.size(1)
        both = torch.stack([passage, reverse(passage, lengths)])  # 2, T, B, P
        flat = both.flatten(1, 2)
        scores_of_passage = (flat @ self.passage_weight).unflatten(1, (steps, rows)).unbind(1)
        gates_of_passage = (flat @ self.gate_weight[:, : self.passage_size]).unflatten(1, (steps, rows)).unbind(1)
        keys = (question.transpose(0, 1).unsqueeze(0) @ self.question_weight.unsqueeze(1)).contiguous()  # 2, B, J, A
        values = question.transpose(0, 1).repeat(2, 1, 1)  # 2B, J, Q
        mask = torch.zeros_like(question_padding, dtype=passage.dtype).masked_fill(question_padding, float("-inf")).t()
        score = self.score.unsqueeze(-1)
        of_state = torch.cat([self.state_weight, self.hidden_weight], dim=-1)
        of_context = self.gate_weight[:, self.passage_size :]

        state = passage.new_zeros(2, rows, hidden)
        states, weights = [], []
        for word, of_word, gate_of_word in zip(both.unbind(1), scores_of_passage, gates_of_passage, strict=True):
            attended, recurrent = (state @ of_state).split([attention, 3 * hidden], dim=-1)
            features = torch.tanh(keys + (of_word + attended).unsqueeze(2))  # 2, B, J, A
            energies = torch.bmm(features.flatten(1, 2), score).view(2, rows, -1) + mask
            weight = torch.softmax(energies, dim=-1)  # 2, B, J
            context = torch.bmm(weight.view(2 * rows, 1, -1), values).view(2, rows, -1)
            gate = torch.sigmoid(torch.baddbmm(gate_of_word, context, of_context))
            inputs = torch.baddbmm(self.input_bias, gate * torch.cat([word, context], dim=-1), self.input_weight)
            state = _gru(inputs, recurrent + self.hidden_bias, state)
            states.append(state)
            weights.append(weight)
        # (T, 2, B, ...): the second direction goes back into the passage's order.
        forwards, backwards = torch.stack(states).unbind(1)
        output = torch.cat([forwards, reverse(backwards, lengths)], dim=-1).masked_fill(padding.unsqueeze(-1), 0)
        of_both = torch.stack(weights).unbind(1)
        return Matched(output, (of_both[0] + reverse(of_both[1], lengths)) / 2)


class SelfMatching(nn.Module):
    """Self-matching attention (Section 3.3): each word of a passage reads what the whole passage holds for it.

        s(t, j) = v^T tanh(W_v^P v^P(j) + W_v~^P v^P(t) + b),   a(t) = softmax over j,   c(t) = sum of a(t, j) v^P(j)
        h^P = BiGRU(g(t) * [v^P(t); c(t)]),   g(t) = sigmoid(W_g [v^P(t); c(t)])                          (Eq. 7, 8)

    b, the attention's own, is not in the paper. There are T * T scores, each of A numbers. Where the kernel of the
    attention keeps these, queries go in chunks, which are computed again for their gradients: :data:`CHUNK` numbers are
    held at a time, however long the passage is.

    Args:
        size: of v^P.
        hidden_size: H.
        attention_size: A.
    """

    def __init__(self, size: int, hidden_size: int, attention_size: int) -> None:
        super().__init__()
        self.size, self.attention_size = size, attention_size
        self.attention = AdditiveAttention(size, size, attention_size)
        self.gate = Linear(2 * size, 2 * size, bias=False)
        self.network = RecurrentStack("gru", 2 * size, [hidden_size], bidirectional=True)
        self.output_size = self.network.output_size

    def forward(self, passage: Tensor, lengths: Tensor) -> Tensor:
        """passage v^P (T, B, size), right-padded -> h^P (T, B, 2H), zero at padding.

        Raises:
            ValueError: its size, precision or device does not fit the layer, or lengths are below 1 or above T.
        """
        passage, padding = _without_padding("passage", passage, lengths, self.size, self.gate.weight)
        joined = torch.cat([passage, self.contexts(passage.transpose(0, 1), padding.t()).transpose(0, 1)], dim=-1)
        output: Tensor = self.network(torch.sigmoid(self.gate(joined)) * joined, lengths).output
        return output

    def contexts(self, passage: Tensor, padding: Tensor, chunk: int = CHUNK) -> Tensor:
        """c(t) of each word: passage (B, T, size), padding (B, T) -> (B, T, size)."""
        keys = self.attention.project_keys(passage, padding)
        rows, steps, _ = passage.shape
        if dispatch.choose("additive_attention", keys, keys, self.attention.score.weight.squeeze(0)).name == "cpp":
            return self._attended(passage, keys, passage, padding)
        queries = max(1, chunk // (rows * steps * self.attention_size))
        return torch.cat(
            [
                checkpoint(self._attended, part, keys, passage, padding, use_reentrant=False, preserve_rng_state=False)
                for part in passage.split(queries, dim=1)
            ],
            dim=1,
        )

    def _attended(self, queries: Tensor, keys: Tensor, passage: Tensor, padding: Tensor) -> Tensor:
        context: Tensor = self.attention(queries, keys, passage, padding)[0]
        return context


class Pointed(NamedTuple):
    """What :class:`PointerNetwork` returns: natural logarithms, -inf at padding."""

    start: Tensor  # (B, T), of the answer's first word
    end: Tensor  # (B, T), of its last word


class PointerNetwork(nn.Module):
    """Where the answer begins and ends (Section 3.4).

        s(t, j) = v^T tanh(W_h^P h^P(j) + W_h^a h^a(t - 1)),   a(t) = softmax over j,   c(t) = sum of a(t, j) h^P(j)
        h^a(t) = GRU(h^a(t - 1), c(t))                                                                  (Eq. 9, 10)
        h^a(0) = r^Q = sum of a(j) u^Q(j),   s(j) = v^T tanh(W_u^Q u^Q(j) + W_v^Q V_r^Q + b)                (Eq. 11)

    b, the attention's own, is not in the paper.

    Args:
        passage_size: of h^P.
        question_size: Q, of u^Q and h^a.
        attention_size: A.
    """

    def __init__(self, passage_size: int, question_size: int, attention_size: int) -> None:
        super().__init__()
        self.passage_size, self.question_size = passage_size, question_size
        self.question_attention = AdditiveAttention(attention_size, question_size, attention_size)
        self.question_query = nn.Parameter(torch.empty(attention_size).uniform_(-1, 1))
        self.passage_projection = Linear(passage_size, attention_size, bias=False)
        self.state_projection = Linear(question_size, attention_size, bias=False)
        self.score = nn.Linear(attention_size, 1, bias=False)
        self.cell = nn.GRUCell(passage_size, question_size)

    def forward(self, passage: Tensor, lengths: Tensor, question: Tensor, question_lengths: Tensor) -> Pointed:
        """passage h^P (T, B, P) and question u^Q (J, B, Q), right-padded.

        Raises:
            ValueError: as :meth:`GatedMatching.forward`.
        """
        like = self.question_query
        passage, padding = _without_padding("passage", passage, lengths, self.passage_size, like)
        question, question_padding = _without_padding("question", question, question_lengths, self.question_size, like)
        _check_rows(passage, question)
        question, question_padding = question.transpose(0, 1), question_padding.t()
        keys = self.question_attention.project_keys(question, question_padding)
        query = self.question_query.expand(question.size(0), 1, -1)
        state = self.question_attention(query, keys, question, question_padding)[0].squeeze(1)
        of_passage = self.passage_projection(passage)
        pointed = []
        for _ in range(2):
            energies = self.score(torch.tanh(of_passage + self.state_projection(state))).squeeze(-1)  # T, B
            energies = energies.masked_fill(padding, float("-inf"))
            pointed.append(torch.log_softmax(energies, dim=0).t())
            if len(pointed) == 1:
                state = self.cell(torch.einsum("tb,tbp->bp", torch.softmax(energies, dim=0), passage), state)
        return Pointed(*pointed)


def best_spans(pointed: Pointed, longest: int) -> tuple[Tensor, Tensor]:
    """The most probable place of each answer, of at most ``longest`` words.

    Returns:
        its first and its last word (B, 2), and the natural logarithm of its probability (B,).
    """
    start, end = pointed
    longest = min(longest, start.size(1))
    padded = torch.nn.functional.pad(end, (0, longest - 1), value=float("-inf"))
    scores = start.unsqueeze(2) + padded.unfold(1, longest, 1)  # B, T, longest
    best, index = scores.flatten(1).max(dim=1)
    first = index.div(longest, rounding_mode="floor")
    return torch.stack([first, first + index % longest], dim=1), best


def _gru(inputs: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
    """``torch.nn.GRU``'s step after its products: inputs and recurrent (..., 3H), state (..., H)."""
    hidden = state.size(-1)
    gates = torch.sigmoid(inputs[..., : 2 * hidden] + recurrent[..., : 2 * hidden])
    reset, update = gates.chunk(2, dim=-1)
    candidate = torch.tanh(torch.addcmul(inputs[..., 2 * hidden :], reset, recurrent[..., 2 * hidden :]))
    return torch.lerp(candidate, state, update)


def _without_padding(name: str, x: Tensor, lengths: Tensor, size: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """x (T, B, size), zero at padding, and where that is (T, B)."""
    check_tensor(name, x, ("T", "B", size), like)
    padding = padding_mask(checked_lengths(lengths, x, least=1), x.size(0))
    return x.masked_fill(padding.unsqueeze(-1), 0), padding


def _check_rows(passage: Tensor, question: Tensor) -> None:
    if passage.size(1) != question.size(1):
        raise ValueError(f"passage has {passage.size(1)} rows, question {question.size(1)}")
