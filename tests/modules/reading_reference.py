"""R-NET's equations (Wang et al. 2017), word by word and row by row, over the parameters of our layers."""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_plugins.modules import GatedMatching, PointerNetwork, SelfMatching


def gru(x: Tensor, h: Tensor, w_x: Tensor, b_x: Tensor, w_h: Tensor, b_h: Tensor) -> Tensor:
    """``torch.nn.GRUCell``'s equations; the weights are (3H, ...)."""
    of_x, of_h = (w_x @ x + b_x).chunk(3), (w_h @ h + b_h).chunk(3)
    r, z = torch.sigmoid(of_x[0] + of_h[0]), torch.sigmoid(of_x[1] + of_h[1])
    return (1 - z) * torch.tanh(of_x[2] + r * of_h[2]) + z * h


def attention(energies: list[Tensor], values: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The weights, and the sum of the values under them."""
    a = torch.softmax(torch.stack(energies), dim=0)
    return a, sum((a[j] * value for j, value in enumerate(values)), torch.zeros_like(values[0]))


def gated_matching(layer: GatedMatching, passage: list[Tensor], question: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Eq. 4 to 6 of one row: v^P (T, 2H), and what is attended to (T, J)."""
    outputs, weights = [], []
    for direction in range(2):
        w_q, w_p, w_v, w_g = (
            getattr(layer, name)[direction].t()
            for name in ("question_weight", "passage_weight", "state_weight", "gate_weight")
        )
        v = layer.score[direction]
        h, of_direction, attended = v.new_zeros(layer.hidden_size), [], []
        for u_p in passage if direction == 0 else reversed(passage):
            a, c = attention([v @ torch.tanh(w_q @ u_q + w_p @ u_p + w_v @ h) for u_q in question], question)
            x = torch.cat([u_p, c])
            x = torch.sigmoid(w_g @ x) * x
            h = gru(
                *(x, h, layer.input_weight[direction].t(), layer.input_bias[direction, 0]),
                *(layer.hidden_weight[direction].t(), layer.hidden_bias[direction, 0]),
            )
            of_direction.append(h)
            attended.append(a)
        order = slice(None) if direction == 0 else slice(None, None, -1)
        outputs.append(torch.stack(of_direction[order]))
        weights.append(torch.stack(attended[order]))
    return torch.cat(outputs, dim=1), (weights[0] + weights[1]) / 2


def self_matching(layer: SelfMatching, passage: list[Tensor]) -> Tensor:
    """Eq. 7 and 8 of one row: h^P (T, 2H)."""
    one = layer.attention
    w_query, w_key, b = one.query_projection.weight, one.key_projection.weight, one.key_projection.bias
    v = one.score.weight[0]
    inputs = []
    for query in passage:
        _, c = attention([v @ torch.tanh(w_key @ key + b + w_query @ query) for key in passage], passage)
        x = torch.cat([query, c])
        inputs.append(torch.sigmoid(layer.gate.weight @ x) * x)
    directions = []
    for network, words in zip(layer.network.networks(0), (inputs, inputs[::-1]), strict=True):
        rnn, outputs = network.rnn, []
        h = v.new_zeros(rnn.hidden_size)
        for x in words:
            h = gru(x, h, rnn.weight_ih_l0, rnn.bias_ih_l0, rnn.weight_hh_l0, rnn.bias_hh_l0)
            outputs.append(h)
        directions.append(torch.stack(outputs))
    return torch.cat([directions[0], directions[1].flip(0)], dim=1)


def pointer(layer: PointerNetwork, passage: list[Tensor], question: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Eq. 9 to 11 of one row: the probabilities of the first and the last word, each (T,)."""
    one = layer.question_attention
    w_v, w_u, b = one.query_projection.weight, one.key_projection.weight, one.key_projection.bias
    energies = [one.score.weight[0] @ torch.tanh(w_u @ u + b + w_v @ layer.question_query) for u in question]
    _, h = attention(energies, question)
    w_p, w_a, v = layer.passage_projection.weight, layer.state_projection.weight, layer.score.weight[0]
    probabilities = []
    for _ in range(2):
        a, c = attention([v @ torch.tanh(w_p @ word + w_a @ h) for word in passage], passage)
        probabilities.append(a)
        cell = layer.cell
        h = gru(c, h, cell.weight_ih, cell.bias_ih, cell.weight_hh, cell.bias_hh)
    return probabilities[0], probabilities[1]
