"""Double path networks (DPN-S2S) sentence by sentence and position by position, as the paper writes them: slow, for the
tests that hold the stacks to it. Dropout is left out. Every function takes the module that has its parameters.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..attention import ConvolutionalAttention, MultiHeadAttention
from ..convolution import GatedConvolution
from .decoder import ConvolutionalDecoderPath, SelfAttentionDecoderPath
from .encoder import ConvolutionalEncoderPath, FeedForward, SelfAttentionEncoderPath
from .gate import ScalarGate


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


def gate(module: ScalarGate, own: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 9 and 10 for one position: (d,) and (d,) -> (d,) and g ()."""
    g = torch.sigmoid(torch.cat([own, other]) @ module.linear.weight[0] + module.linear.bias[0])
    return own * (1 - g) + other * g, g


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


def convolutional_decoder(
    path: ConvolutionalDecoderPath, embedded: Tensor, memories: dict[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor], Tensor | None]:
    """Embeddings (T, d), memories (S, d) -> (T, d), mean weights for each encoder path (T, S), gates (T, layers)."""
    gates: list[Tensor] = []
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
            if layer.gate is not None:
                context, g = gate(layer.gate, contexts["cnn"], contexts["san"])
                gates.append(g)
            else:
                (context,) = contexts.values()
            x = (x + context) * math.sqrt(0.5)
            outputs.append((x + z[t]) * math.sqrt(0.5))
        z = torch.stack(outputs)
    return z, *_by_layer(weights, gates, len(path.layers), len(z))


def self_attention_decoder(
    path: SelfAttentionDecoderPath, embedded: Tensor, memories: dict[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor], Tensor | None]:
    """As :func:`convolutional_decoder`."""
    gates: list[Tensor] = []
    z = path.input_scale * embedded
    weights: dict[str, list[Tensor]] = {name: [] for name in memories}
    if path.matches_memory and "cnn" in memories:
        normalized = [(h - h.mean()) / torch.sqrt(h.var(correction=0) + 1e-5) for h in memories["cnn"]]
        memories = {**memories, "cnn": torch.stack(normalized)}
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
            if layer.gate is not None:
                context, g = gate(layer.gate, contexts["san"], contexts["cnn"])
                gates.append(g)
            else:
                (context,) = contexts.values()
            x = x + context
            outputs.append(x + feed_forward(layer.ffn, layer_norm(layer.ffn_norm, x)))
        z = torch.stack(outputs)
    output = torch.stack([layer_norm(path.output_norm, x) for x in z])
    return output, *_by_layer(weights, gates, len(path.layers), len(z))


def _by_layer(
    weights: dict[str, list[Tensor]], gates: list[Tensor], layers: int, size: int
) -> tuple[dict[str, Tensor], Tensor | None]:
    means = {name: torch.stack(rows).unflatten(0, (layers, size)).mean(0) for name, rows in weights.items()}
    return means, torch.stack(gates).unflatten(0, (layers, size)).T if gates else None
