"""Networks of several paths sentence by sentence and position by position, as the DPN-S2S paper writes those of two:
slow, for the tests that hold the paths to it. Dropout is left out. Every function takes the module that has its
parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..attention import AdditiveAttention, ConvolutionalAttention, MultiHeadAttention
from ..convolution import GatedConvolution
from ..recurrent.contract import RecurrentState
from .convolutional import ConvolutionalDecoderPath, ConvolutionalEncoderPath
from .gate import ScalarGate
from .recurrent import RecurrentDecoderPath, RecurrentEncoderPath
from .self_attention import FeedForward, SelfAttentionDecoderPath, SelfAttentionEncoderPath


def attention(query: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 4 for one query (d,) and S keys and values (S, d): the context (d,) and the weights (S,)."""
    weights = torch.softmax(torch.stack([query @ key for key in keys]), dim=0)
    return sum(weight * value for weight, value in zip(weights, values, strict=True)), weights


def multi_head_attention(module: MultiHeadAttention, query: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 6 for one query (d,) and a memory (S, d): (d,) and the mean of the heads' weights (S,)."""
    size = query.size(0) // module.heads
    w_k, w_v = module.key_value_projection.weight.chunk(2)
    contexts, weights = [], []
    for head in range(module.heads):
        rows = slice(head * size, (head + 1) * size)
        q = module.query_projection.weight[rows] @ query / math.sqrt(size)
        keys = [w_k[rows] @ h for h in memory]
        values = [w_v[rows] @ h for h in memory]
        context, weight = attention(q, torch.stack(keys), torch.stack(values))
        contexts.append(context)
        weights.append(weight)
    return module.out_projection.weight @ torch.cat(contexts), torch.stack(weights).mean(0)


def convolutional_attention(
    module: ConvolutionalAttention, z: Tensor, embedded: Tensor, memory: Tensor
) -> tuple[Tensor, Tensor]:
    """ConvS2S's attention for one position: z and its embedding (d,), memory (S, d) -> (d,) and the weights (S,)."""
    memory = module.memory_scale * memory
    query = (module.in_projection.weight @ z + module.in_projection.bias + embedded) * math.sqrt(0.5)
    context, weights = attention(query, memory, memory)
    context = math.sqrt(len(memory)) * context
    return module.out_projection.weight @ context + module.out_projection.bias, weights


def gated_convolution(module: GatedConvolution, h: Tensor) -> Tensor:
    """v([h(i - r/2) ... h(i + r/2)] W + b) of Eq. 5, zero outside the sentence: (T, d) -> (T, d)."""
    size = h.size(1)
    first = -(module.kernel_width - 1) if module.causal else -(module.kernel_width // 2)
    outputs = []
    for i in range(len(h)):
        positions = range(i + first, i + first + module.kernel_width)
        window = torch.cat([h[j] if 0 <= j < len(h) else h.new_zeros(size) for j in positions])
        linear = module.linear.weight @ window + module.linear.bias
        outputs.append(linear[:size] * torch.sigmoid(linear[size:]))
    return torch.stack(outputs)


def layer_norm(module: nn.LayerNorm, x: Tensor) -> Tensor:
    """(d,) -> (d,)."""
    deviation = x - x.mean()
    return module.weight * deviation / torch.sqrt((deviation**2).mean() + module.eps) + module.bias


def feed_forward(module: FeedForward, x: Tensor) -> Tensor:
    """Eq. 7: (d,) -> (d,)."""
    return module.out_projection.weight @ (module.in_projection.weight @ x).clamp(min=0)


def gate(module: ScalarGate, output: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 9 and 10 for one position: two or more of (d,) -> (d,), and the shares of the others (n - 1,)."""
    scores = module.linear.weight @ torch.cat([output, *others]) + module.linear.bias
    if len(others) == 1:
        g = torch.sigmoid(scores[0])
        return output * (1 - g) + others[0] * g, g[None]
    # Of n paths: exp(score) over the sum, the own path's score being 0.
    total = 1 + scores.exp().sum()
    fused = output / total
    for score, other in zip(scores, others, strict=True):
        fused = fused + other * score.exp() / total
    return fused, scores.exp() / total


def additive_attention(module: AdditiveAttention, query: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """Bahdanau's attention for one query (H,) and a memory (S, d): (d,) and the weights (S,)."""
    scores = []
    for h in memory:
        key = module.key_projection.weight @ h + module.key_projection.bias
        scores.append(module.score.weight[0] @ torch.tanh(module.query_projection.weight @ query + key))
    weights = torch.softmax(torch.stack(scores), dim=0)
    return sum(weight * h for weight, h in zip(weights, memory, strict=True)), weights


Decoded = tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]


def convolutional_encoder(path: ConvolutionalEncoderPath, embedded: Tensor) -> Tensor:
    """(S, d) -> (S, d)."""
    h = embedded
    for layer in path.layers:
        h = (gated_convolution(layer, h) + h) * math.sqrt(0.5)
    return h


def self_attention_encoder(path: SelfAttentionEncoderPath, embedded: Tensor) -> Tensor:
    """(S, d) -> (S, d)."""
    h = path.input_scale * embedded
    for layer in path.layers:
        normed = torch.stack([layer_norm(layer.self_attention_norm, x) for x in h])
        h = torch.stack(
            [x + multi_head_attention(layer.self_attention, q, normed)[0] for x, q in zip(h, normed, strict=True)]
        )
        h = torch.stack([x + feed_forward(layer.ffn, layer_norm(layer.ffn_norm, x)) for x in h])
    return torch.stack([layer_norm(path.output_norm, x) for x in h])


def convolutional_decoder(path: ConvolutionalDecoderPath, embedded: Tensor, memories: dict[str, Tensor]) -> Decoded:
    """Embeddings (T, d), memories (S, d) -> (T, d), mean weights for each encoder path (T, S), and the shares of those
    but the own one (T, layers)."""
    gates: list[dict[str, Tensor]] = []
    z = embedded
    weights: dict[str, list[Tensor]] = {name: [] for name in memories}
    for layer in path.layers:
        convolved = gated_convolution(layer.convolution, z)
        outputs = []
        for t, x in enumerate(convolved):
            contexts = {}
            for name, memory in memories.items():
                contexts[name], weight = convolutional_attention(layer.attentions[name], x, embedded[t], memory)
                weights[name].append(weight)
            context, shares = _fused(layer.gate, contexts, "cnn")
            gates.append(shares)
            x = (x + context) * math.sqrt(0.5)
            outputs.append((x + z[t]) * math.sqrt(0.5))
        z = torch.stack(outputs)
    return z, *_by_layer(weights, gates, len(path.layers), len(z))


def self_attention_decoder(path: SelfAttentionDecoderPath, embedded: Tensor, memories: dict[str, Tensor]) -> Decoded:
    """As :func:`convolutional_decoder`."""
    gates: list[dict[str, Tensor]] = []
    z = path.input_scale * embedded
    weights: dict[str, list[Tensor]] = {name: [] for name in memories}
    for name in path.normalized_memories:
        normalized = [(h - h.mean()) / torch.sqrt(h.var(correction=0) + 1e-5) for h in memories[name]]
        memories = {**memories, name: torch.stack(normalized)}
    for layer in path.layers:
        normed = torch.stack([layer_norm(layer.self_attention_norm, x) for x in z])
        outputs = []
        for t in range(len(z)):
            x = z[t] + multi_head_attention(layer.self_attention, normed[t], normed[: t + 1])[0]
            contexts = {}
            for name, memory in memories.items():
                query = layer_norm(layer.attention_norm, x)
                contexts[name], weight = multi_head_attention(layer.attentions[name], query, memory)
                weights[name].append(weight)
            context, shares = _fused(layer.gate, contexts, "san")
            gates.append(shares)
            x = x + context
            outputs.append(x + feed_forward(layer.ffn, layer_norm(layer.ffn_norm, x)))
        z = torch.stack(outputs)
    output = torch.stack([layer_norm(path.output_norm, x) for x in z])
    return output, *_by_layer(weights, gates, len(path.layers), len(z))


def recurrent_encoder(path: RecurrentEncoderPath, embedded: Tensor) -> tuple[Tensor, list[Tensor]]:
    """(S, d) -> (S, d), and the summaries of the layers: what a layer gave at the end of each direction."""
    result = path.stack(path.input_scale * embedded.unsqueeze(1))
    summaries = [
        torch.cat([output[-1, 0, : output.size(2) // 2], output[0, 0, output.size(2) // 2 :]])
        for output in result.layer_outputs
    ]
    return result.output[:, 0], summaries


def recurrent_decoder(
    path: RecurrentDecoderPath, embedded: Tensor, memories: dict[str, Tensor], summaries: list[Tensor] | None = None
) -> Decoded:
    """As :func:`convolutional_decoder`; summaries are those of :func:`recurrent_encoder`, if it is one of the paths."""
    starts = summaries or [memories[path.start].mean(dim=0)]
    first = []
    for i, layer in enumerate(path.stack.layers):
        start = starts[min(i, len(starts) - 1)]
        h0 = torch.tanh(path.initial_hidden[i](start))
        c0 = path.initial_memory[i](start)[None] if layer.has_cell_state else None
        first.append(layer.initial_state(1, h0[None], c0))
    states: Sequence[RecurrentState] = first
    gates: list[dict[str, Tensor]] = []
    weights: dict[str, list[Tensor]] = {name: [] for name in memories}
    outputs = []
    for t in range(len(embedded)):
        token = path.input_scale * embedded[t]
        output, states = path.stack.step(token[None], states)
        contexts = {}
        for name, memory in memories.items():
            scaled = path.memory_scales[name] * memory
            contexts[name], weight = additive_attention(path.attentions[name], output[0], scaled)
            weights[name].append(weight)
        context, shares = _fused(path.gate, contexts, "rnn")
        gates.append(shares)
        read = torch.cat([output[0], context, token])
        outputs.append(torch.tanh(path.readout.weight @ read + path.readout.bias))
    return torch.stack(outputs), *_by_layer(weights, gates, 1, len(embedded))


def _fused(module: ScalarGate | None, contexts: dict[str, Tensor], reader: str) -> tuple[Tensor, dict[str, Tensor]]:
    if module is None:
        (context,) = contexts.values()
        return context, {}
    reader = reader if reader in contexts else next(iter(contexts))
    others = [name for name in contexts if name != reader]
    context, shares = gate(module, contexts[reader], *(contexts[name] for name in others))
    return context, dict(zip(others, shares, strict=True))


def _by_layer(
    weights: dict[str, list[Tensor]], gates: list[dict[str, Tensor]], layers: int, size: int
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    means = {name: torch.stack(rows).unflatten(0, (layers, size)).mean(0) for name, rows in weights.items()}
    shares = {name: torch.stack([shares[name] for shares in gates]) for name in gates[0]}
    return means, {name: values.unflatten(0, (layers, size)).T for name, values in shares.items()}
