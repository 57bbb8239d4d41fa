"""The architectures of sequence tasks: classification, entailment and ranking of RCRN's paper (Section 4.2), and tests
of long memory of DilatedRNN's (Section 4)."""

from __future__ import annotations

from typing import Any

from .preset import Preset

_NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "bilstm": ("one bidirectional LSTM layer", {"recurrent_layer": "lstm", "layers": 1}),
    "bilstm_3": ("three bidirectional LSTM layers", {"recurrent_layer": "lstm", "layers": 3}),
    "rcrn": ("one RCRN layer in both directions", {"recurrent_layer": "rcrn", "layers": 1}),
}

_CELLS = {"rnn": "tanh", "lstm": "LSTM", "gru": "GRU"}

_MODELS = {
    "classifier": ("sequence_classifier", "classification"),
    "entailment": ("sequence_pair_classifier", "entailment"),
    "ranking": ("sequence_ranker", "ranking"),
}

# The skip RNN's lags: DilatedRNN, Section 4.1.
_SKIP = {"recurrent_layer": "ho_rnn", "cell": "rnn", "connection": "gate", "lags": "1,256"}

_MEMORY: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"{cell}_pixels": (
            f"one {kind} layer of 256",
            {"recurrent_layer": cell, "layers": 1, "hidden_size": 256},
        )
        for cell, kind in _CELLS.items()
    },
    **{f"stacked_{cell}_pixels": (f"nine {kind} layers", {"recurrent_layer": cell}) for cell, kind in _CELLS.items()},
    **{
        f"dilated_{cell}_pixels": (
            f"DilatedRNN of nine {kind} layers, dilations 1 to 256",
            {"recurrent_layer": "dilated_rnn", "cell": cell},
        )
        for cell, kind in _CELLS.items()
    },
    "skip_rnn_pixels": ("nine tanh layers that also read the output of 256 steps before", _SKIP),
    "dilated_cnn_pixels": ("ten causal convolutions, dilations 1 to 512", {"network": "dilated_cnn", "layers": 10}),
}

SEQUENCE_PRESETS: dict[str, Preset] = {
    **{
        f"{name}_{suffix}": Preset(model, f"{text}, in RCRN's {task} model", options)
        for suffix, (model, task) in _MODELS.items()
        for name, (text, options) in _NETWORKS.items()
    },
    **{
        name: Preset("long_memory_network", f"{text}, in DilatedRNN's tests of long memory", options)
        for name, (text, options) in _MEMORY.items()
    },
}
"""The architectures by name."""
