"""Calls of everything that reads tensors here, each right as it stands, and what can be wrong with each tensor."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fairseq_plugins.kernels.additive_attention import additive_attention
from fairseq_plugins.kernels.additive_attention import cpu as attention_kernel
from fairseq_plugins.kernels.dot_product_attention import cpu as dot_product_kernel
from fairseq_plugins.kernels.forget_scan import cpu as scan_kernel
from fairseq_plugins.kernels.linear import linear, onednn
from fairseq_plugins.kernels.multi_channel import cpu as recurrent_kernel
from fairseq_plugins.kernels.output_cross_entropy import output_cross_entropy
from fairseq_plugins.kernels.packed_sentences import cpu as packed_kernel
from fairseq_plugins.modules import (
    RECURRENT_KINDS,
    AdditiveAttention,
    AttentivePooling,
    ContextEncoder,
    ConvolutionalAttention,
    ConvolutionalDecoderPath,
    ConvolutionalEncoderPath,
    DilatedRNNStack,
    GatedConvolution,
    GatedMatching,
    Highway,
    LayerSizes,
    Linear,
    Memory,
    MultiChannelRNN,
    MultiHeadAttention,
    PointerNetwork,
    RecurrentDecoderPath,
    RecurrentEncoderPath,
    RecurrentlyControlledRNN,
    RecurrentNetwork,
    RecurrentStack,
    ScalarGate,
    SelfAttentionDecoderPath,
    SelfAttentionEncoderPath,
    SelfAttentionOptions,
    SelfMatching,
    forget_scan,
    pool,
)
from fairseq_plugins.modules.continuous_cache import cache_probabilities, with_cache
from fairseq_plugins.modules.recurrent.registry import RecurrentKind

STEPS, ROWS, SIZE, HIDDEN = 4, 3, 6, 8


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        name: what it is.
        function: of the tensors by their names.
        tensors: with which it is right.
        sizes: of each tensor, a letter for each dimension: one that several dimensions or the layer itself know is in
            ``bound``, any other may be of any length. ``b`` may be a multiple of what it is.
        bound: letters.
        any_type: of tensors that may have another precision or device as long as they are alone.
    """

    name: str
    function: Callable[[Mapping[str, Tensor]], Any]
    tensors: dict[str, Tensor]
    sizes: dict[str, str]
    bound: str
    any_type: frozenset[str] = field(default_factory=frozenset)

    def bound_sizes(self) -> list[tuple[str, int]]:
        """The dimensions, by the name of their tensor and their number, whose length matters."""
        return [
            (name, dimension)
            for name, letters in self.sizes.items()
            for dimension, letter in enumerate(letters)
            if letter in self.bound
        ]


def recurrent_calls(hidden: int = HIDDEN) -> list[Call]:
    """Sequences and steps of every kind of recurrent network, with each of its cells, and of stacks."""
    calls = []
    for name, kind in sorted(RECURRENT_KINDS.items()):
        for options in _cells(kind):
            sizes = LayerSizes(SIZE, (hidden,) * (2 if kind.handles_depth else 1))
            network = kind.make(options, sizes)
            label = f"{name} {options}"
            calls += [_sequence(label, network, True), _sequence(label, network, False), _steps(label, network)]
    for cell in "lstm", "gru":
        network = RecurrentlyControlledRNN(SIZE, hidden, cell)
        tensors, sizes = _x_and_lengths()
        calls.append(
            Call(f"two-way RCRN, {cell}", lambda t, n=network: n(t["x"], t["lengths"]).output, tensors, sizes, "BD")
        )
    stacks = {
        "stack of LSTMs": RecurrentStack("lstm", SIZE, [hidden, hidden]),
        "two-way stack of GRUs": RecurrentStack("gru", SIZE, [hidden, hidden], bidirectional=True),
        "stack of DilatedRNNs": DilatedRNNStack(SIZE, [hidden, hidden], [2, 4]),
        "contexts": ContextEncoder(SIZE, hidden),
    }
    for name, stack in stacks.items():
        tensors, sizes = _x_and_lengths()
        calls.append(Call(name, lambda t, n=stack: _output(n(t["x"], t["lengths"])), tensors, sizes, "BD"))
    return calls


def other_calls() -> list[Call]:
    """The other layers and the operations of the kernels."""
    x, real = torch.randn(ROWS, STEPS, HIDDEN), torch.ones(ROWS, STEPS, dtype=torch.bool)
    real[0, 2:] = False
    memory = Memory.of(torch.randn(ROWS, 5, HIDDEN), torch.ones(ROWS, 5, dtype=torch.bool))
    options = SelfAttentionOptions(HIDDEN, 2, 2, 16)
    attention = AdditiveAttention(SIZE, HIDDEN, 7)
    heads, convolved = MultiHeadAttention(HIDDEN, 2), ConvolutionalAttention(HIDDEN)
    keys, values = heads.project_memory(memory.output)
    highway, projection = Highway(HIDDEN), Linear(HIDDEN, 5)
    causal, gate = GatedConvolution(HIDDEN, 3, causal=True), ScalarGate(HIDDEN)
    pooling, paths = AttentivePooling(HIDDEN), (ConvolutionalEncoderPath(HIDDEN, 2, 3, 0.0),)
    by_time, lengths = torch.randn(STEPS, ROWS, HIDDEN), torch.tensor([4, 1, 2])
    projected = torch.randn(ROWS, 5, 7)
    question_and_passage = {"p": by_time, "p_lengths": lengths}
    question_and_passage |= {"q": torch.randn(5, ROWS, HIDDEN), "q_lengths": lengths}
    matching, itself = GatedMatching(HIDDEN, HIDDEN, 5, 7), SelfMatching(HIDDEN, 5, 7)
    pointer = PointerNetwork(HIDDEN, HIDDEN, 7)
    encoder = {"x": x, "real": real}
    decoders = (
        ConvolutionalDecoderPath(HIDDEN, 2, 3, 0.0),
        SelfAttentionDecoderPath(options),
        RecurrentDecoderPath(HIDDEN, 2, 0.0, ("lstm", None)),
    )
    calls = [
        Call(
            type(path).__name__,
            lambda t, p=path: p(t["x"], t["real"]).output,
            encoder,
            {"x": "BTD", "real": "BT"},
            "BTD",
        )
        for path in (*paths, SelfAttentionEncoderPath(options), RecurrentEncoderPath(HIDDEN, 2, 0.0, ("lstm", None)))
    ]
    calls += [
        Call(
            type(path).__name__,
            lambda t, p=path: p(t["x"], dict.fromkeys(("cnn", "san"), Memory.of(t["m"], t["mask"])), t["real"]).output,
            {**encoder, "m": memory.output, "mask": memory.mask[:, 0, 0]},
            # Rows of x may be a multiple of the memory's.
            {"x": "bTD", "real": "bT", "m": "BSD", "mask": "BS"},
            "bBTSD",
        )
        for path in decoders
    ]
    calls += [
        Call(
            "GatedConvolution",
            lambda t: causal(t["x"], t["real"], t["context"])[0],
            {**encoder, "context": torch.randn(ROWS, 2, HIDDEN)},
            {"x": "BTD", "real": "BT", "context": "BWD"},
            "BTDW",
        ),
        Call(
            "AdditiveAttention",
            lambda t: attention(t["query"], t["keys"], t["values"], t["mask"])[0],
            {
                "query": torch.randn(ROWS, 2, SIZE),
                "keys": projected,
                "values": memory.output,
                "mask": ~memory.mask[:, 0, 0],
            },
            {"query": "BTQ", "keys": "BSA", "values": "BSK", "mask": "BS"},
            "BQSA",
        ),
        Call(
            "MultiHeadAttention",
            lambda t: heads(t["x"], t["keys"], t["values"], memory.mask)[0],
            {"x": x, "keys": keys.detach(), "values": values.detach()},
            {"x": "bTD", "keys": "NhSd", "values": "NhSd"},
            "bDNhSd",
        ),
        Call(
            "ConvolutionalAttention",
            lambda t: convolved(t["x"], t["embedded"], memory)[0],
            {"x": x, "embedded": torch.randn_like(x)},
            {"x": "BTD", "embedded": "BTD"},
            "BTD",
        ),
        Call(
            "ScalarGate",
            lambda t: gate(t["a"], t["b"])[0],
            {"a": x, "b": x + 1},
            {"a": "BTD", "b": "BTD"},
            "BTD",
            frozenset({"a", "b"}),
        ),
        Call("Highway", lambda t: highway(t["x"]), {"x": x}, {"x": "BTD"}, "D"),
        Call("Linear", lambda t: projection(t["x"]), {"x": x}, {"x": "BTD"}, "D"),
        Call(
            "AttentivePooling",
            lambda t: torch.stack(pooling(t["q"], t["q_lengths"], t["a"], t["a_lengths"])),
            {"q": by_time, "q_lengths": lengths, "a": torch.randn(5, ROWS, HIDDEN), "a_lengths": lengths},
            {"q": "TBD", "q_lengths": "B", "a": "SBD", "a_lengths": "B"},
            "BD",
        ),
        Call(
            "GatedMatching",
            lambda t: matching(t["p"], t["p_lengths"], t["q"], t["q_lengths"]).output,
            question_and_passage,
            {"p": "TBD", "p_lengths": "B", "q": "JBD", "q_lengths": "B"},
            "BD",
        ),
        Call(
            "SelfMatching",
            lambda t: itself(t["x"], t["lengths"]),
            {"x": by_time, "lengths": lengths},
            {"x": "TBD", "lengths": "B"},
            "BD",
        ),
        Call(
            "PointerNetwork",
            lambda t: pointer(t["p"], t["p_lengths"], t["q"], t["q_lengths"]).start.exp(),
            question_and_passage,
            {"p": "TBD", "p_lengths": "B", "q": "JBD", "q_lengths": "B"},
            "BD",
        ),
        Call(
            "pool",
            lambda t: pool(t["x"], t["lengths"], ["max", "mean", "min", "last"]).output,
            {"x": by_time, "lengths": lengths},
            {"x": "TBH", "lengths": "B"},
            "B",
            frozenset({"x"}),
        ),
        Call(
            "cache_probabilities",
            lambda t: cache_probabilities(t["outputs"], t["words"], 3, 1.0),
            {"outputs": torch.randn(9, HIDDEN), "words": torch.randint(4, (9,))},
            {"outputs": "NH", "words": "N"},
            "N",
            frozenset({"outputs", "words"}),
        ),
        Call(
            "with_cache",
            lambda t: with_cache(t["log_p"], t["cache"], 3, 0.1),
            {"log_p": -torch.rand(9), "cache": torch.rand(9)},
            {"log_p": "N", "cache": "N"},
            "N",
            frozenset({"log_p", "cache"}),
        ),
        Call(
            "forget_scan",
            lambda t: forget_scan(t["gate"], t["candidate"], t["initial"]),
            {"gate": torch.rand(4, 3, 5), "candidate": torch.randn(4, 3, 5), "initial": torch.randn(3, 5)},
            {"gate": "TBF", "candidate": "TBF", "initial": "BF"},
            "TBF",
            frozenset({"gate", "candidate", "initial"}),
        ),
        Call(
            "additive_attention",
            lambda t: additive_attention(t["query"], t["keys"], t["values"], t["score"], t["mask"])[0],
            {
                "query": torch.randn(ROWS, 2, 7),
                "keys": projected,
                "values": memory.output,
                "score": torch.randn(7),
                "mask": ~memory.mask[:, 0, 0],
            },
            {"query": "BTA", "keys": "BSA", "values": "BSK", "score": "A", "mask": "BS"},
            "BSA",
        ),
        Call(
            "linear",
            lambda t: linear(t["x"], t["weight"], t["bias"]),
            {"x": x, "weight": torch.randn(5, HIDDEN), "bias": torch.randn(5)},
            {"x": "BTD", "weight": "FD", "bias": "F"},
            "DF",
        ),
        Call(
            "output_cross_entropy",
            lambda t: output_cross_entropy(t["features"], t["weight"], t["bias"], t["target"], 1, 0.1)[0],
            {
                "features": torch.randn(9, HIDDEN),
                "weight": torch.randn(6, HIDDEN),
                "bias": torch.randn(6),
                "target": torch.tensor([0, 1, 2, 3, 4, 5, 1, 0, 5]),
            },
            {"features": "NE", "weight": "VE", "bias": "V", "target": "N"},
            "NEV",
        ),
    ]
    if onednn.is_available():
        calls.append(
            Call(
                "onednn.linear",
                lambda t: onednn.linear(t["x"], t["weight"], t["bias"]),
                {"x": x, "weight": torch.randn(5, HIDDEN), "bias": torch.randn(5)},
                {"x": "BTD", "weight": "FD", "bias": "F"},
                "DF",
            )
        )
    return calls


def compiled_calls() -> list[Call]:
    """The entry points of the C++ kernels, without what Python checks before; none where there is no compiler."""
    kernels = recurrent_kernel, scan_kernel, attention_kernel, dot_product_kernel, packed_kernel
    if None in [kernel.compiled() for kernel in kernels]:
        return []
    queries, keys = torch.tensor([0, 2, 6]), torch.tensor([0, 3, 7])
    packed = {"query": torch.randn(6, HIDDEN), "memory": torch.randn(7, 2 * HIDDEN), "queries": queries, "keys": keys}
    of_packed = {"query": "ND", "memory": "Md", "queries": "O", "keys": "O"}
    gate = {name: torch.rand(STEPS, ROWS, HIDDEN) for name in ("gate", "candidate")} | {"initial": torch.rand(3, 8)}
    scanned = {"gate": "TBF", "candidate": "TBF", "initial": "BF"}
    attention = {"query": torch.randn(3, 2, 7), "keys": torch.randn(3, 5, 7), "v": torch.randn(7)}
    attended = {"query": "BTA", "keys": "BSA", "v": "A"}
    calls = [
        Call("scan, forward", lambda t: scan_kernel.compiled().forward(*t.values()), gate, scanned, "TBF"),
        Call(
            "scan, backward",
            lambda t: scan_kernel.compiled().backward(*t.values())[0],
            {"gradient": torch.rand(STEPS, ROWS, HIDDEN), **gate, "c": torch.rand(STEPS, ROWS, HIDDEN)},
            {"gradient": "TBF", **scanned, "c": "TBF"},
            "TBF",
        ),
        Call(
            "attention, forward",
            lambda t: attention_kernel.compiled().forward(*t.values()),
            {**attention, "padding": torch.zeros(3, 5, dtype=torch.bool)},
            {**attended, "padding": "BS"},
            "BSA",
        ),
        Call(
            "attention, backward",
            lambda t: attention_kernel.compiled().backward(*t.values())[0],
            {"gradient": torch.rand(3, 2, 5), **attention, "weights": torch.rand(3, 2, 5)},
            {"gradient": "BTS", **attended, "weights": "BTS"},
            "BTSA",
        ),
    ]
    calls += [
        Call(
            "attention by dot products",
            lambda t: dot_product_kernel.compiled().dot_product_attention(*t.values(), 0.5),
            {
                "query": torch.randn(3, 2, 1, 4),
                "keys": torch.randn(3, 2, 5, 4),
                "values": torch.randn(3, 2, 5, 4),
                "mask": torch.ones(3, 1, 1, 5, dtype=torch.bool),
            },
            # A mask is as large as it likes to be, where it is 1.
            {"query": "NATd", "keys": "NASd", "values": "NASd", "mask": "wxyz"},
            "NASd",
        ),
        Call(
            "attention of packed sentences",
            lambda t: packed_kernel.compiled().attention(*t.values(), 2, 0.5, False),
            packed,
            of_packed,
            "NMO",
        ),
        Call(
            "attention of packed sentences, backward",
            lambda t: packed_kernel.compiled().attention_backward(*t.values(), 2, 0.5, False)[1],
            {"gradient": torch.randn(6, HIDDEN), **packed},
            {"gradient": "ND", **of_packed},
            "NMO",
        ),
        Call(
            "windows of packed sentences",
            lambda t: packed_kernel.compiled().windows(t["x"], t["offsets"], 3, 2),
            {"x": torch.randn(6, HIDDEN), "offsets": queries},
            {"x": "ND", "offsets": "O"},
            "NO",
            frozenset({"x"}),
        ),
        Call(
            "windows of packed sentences, backward",
            lambda t: packed_kernel.compiled().windows_backward(t["gradient"], t["offsets"], 3, 2),
            {"gradient": torch.randn(6, 3 * HIDDEN), "offsets": queries},
            {"gradient": "ND", "offsets": "O"},
            "NO",
            frozenset({"gradient"}),
        ),
    ]
    for cell in "lstm", "gru", "rnn":
        layer = MultiChannelRNN(SIZE, HIDDEN, 3, cell)
        state = layer.initial_state(ROWS)
        weights = recurrent_kernel._Weights.of(layer._layer(), torch.float32)
        tensors = {name: tensor.detach() for name, tensor in weights._asdict().items() if tensor is not None}
        tensors |= {"x": torch.randn(STEPS, ROWS, SIZE), "history": state.history, "cell_state": state.cell_state}
        tensors["lengths"] = torch.tensor([4, 0, 2])
        letters = {
            **{"weight_input": "GD", "bias_input": "G", "candidate_bias": "H", "weight_hh": "gH"},
            **{"weight_connection": "KHH", "v_hidden": "AH", "score": "A"},
            **{"x": "TBD", "history": "BLCH", "cell_state": "BCc", "lengths": "B"},
        }
        sizes = {name: letters[name] for name in tensors}
        bound = "GDHgKALCcB"
        calls.append(Call(f"MC-RNN in C++, {cell}", partial(_forward, layer), tensors, sizes, bound))
        backward = partial(_backward, layer, tensors)
        calls.append(Call(f"MC-RNN in C++, {cell}, backward", backward, tensors, sizes, bound + "T"))
        steps = recurrent_kernel.compiled().Steps(weights.compiled(layer.specification), ROWS)
        of_step = {"x": torch.randn(ROWS, SIZE), "history": state.history, "cell_state": state.cell_state}
        calls.append(
            Call(
                f"step of MC-RNN in C++, {cell}",
                lambda t, steps=steps: steps.forward(*t.values(), False)[0],
                of_step,
                {"x": "BD", "history": "BLCH", "cell_state": "BCc"},
                bound,
            )
        )
    return calls


def _forward(layer: MultiChannelRNN, tensors: Mapping[str, Tensor]) -> Tensor:
    return _kept(layer, tensors, False)[0]


def _backward(layer: MultiChannelRNN, right: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> Tensor:
    """The gradient of x of a call with ``tensors``, given what a right one has kept and returned."""
    output, alpha, history, cell_state, saved = _kept(layer, right, True)
    upstream = [output, alpha, history, cell_state if cell_state.numel() else None]
    return recurrent_kernel.compiled().backward(*_arguments(layer, tensors), saved, upstream, True, True)[0]


def _kept(layer: MultiChannelRNN, tensors: Mapping[str, Tensor], keep: bool) -> tuple[Any, ...]:
    return recurrent_kernel.compiled().forward(*_arguments(layer, tensors), keep)


def _arguments(layer: MultiChannelRNN, tensors: Mapping[str, Tensor]) -> tuple[Any, tuple[Tensor, ...]]:
    weights = recurrent_kernel._Weights(*(tensors.get(name) for name in recurrent_kernel._Weights._fields))
    call = tuple(tensors[name] for name in ("x", "history", "cell_state", "lengths"))
    return weights.compiled(layer.specification), call


def _cells(kind: RecurrentKind) -> list[Any]:
    """The options of a kind, one for each of its cells."""
    for option in dataclasses.fields(kind.options):
        if option.name == "cell":
            return [kind.options(cell=cell) for cell in option.metadata["choices"]]
    return [kind.options()]


def _x_and_lengths() -> tuple[dict[str, Tensor], dict[str, str]]:
    tensors = {"x": torch.randn(STEPS, ROWS, SIZE), "lengths": torch.tensor([4, 0, 2])}
    return tensors, {"x": "TBD", "lengths": "B"}


def _sequence(name: str, network: RecurrentNetwork, is_ragged: bool) -> Call:
    tensors, sizes = _x_and_lengths() if is_ragged else ({"x": torch.randn(STEPS, ROWS, SIZE)}, {"x": "TBD"})
    state, of_state = _state(network)

    def run(t: Mapping[str, Tensor]) -> Tensor:
        return network(t["x"], t.get("lengths"), type(state)(*(t[part] for part in of_state))).output

    return Call(f"{name}, sequence", run, tensors | state._asdict(), sizes | of_state, "BDxyz")


def _steps(name: str, network: RecurrentNetwork) -> Call:
    state, of_state = _state(network)

    def run(t: Mapping[str, Tensor]) -> Tensor:
        step = network.stepper(ROWS)
        after = type(state)(*(t[part] for part in of_state))
        # The second one is what most are: as the one before.
        for _ in range(2):
            output, after = step(t["x"], after)
        return output

    tensors = {"x": torch.randn(ROWS, SIZE)} | state._asdict()
    return Call(f"{name}, step", run, tensors, {"x": "BD"} | of_state, "BDxyz")


def _state(network: RecurrentNetwork) -> tuple[Any, dict[str, str]]:
    """A state as a layer makes it, and the letters of its parts."""
    state = network.initial_state(ROWS)
    return state, {name: "Bxyz"[: part.dim()] for name, part in state._asdict().items()}


def _output(result: Any) -> Tensor:
    return result if isinstance(result, Tensor) else result.output
