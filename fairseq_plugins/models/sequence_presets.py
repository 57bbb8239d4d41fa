"""The architectures of sequence tasks: classification, entailment, ranking and reading comprehension of RCRN's paper
(Section 4.2), and tests of long memory and speakers of DilatedRNN's (Section 4)."""

from __future__ import annotations

from typing import Any

from .preset import Preset

_NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "bilstm": ("one bidirectional LSTM layer", {"recurrent_layer": "lstm", "layers": 1}),
    "bilstm_2": ("two bidirectional LSTM layers", {"recurrent_layer": "lstm", "layers": 2}),
    "bilstm_3": ("three bidirectional LSTM layers", {"recurrent_layer": "lstm", "layers": 3}),
    "rcrn": ("one RCRN layer in both directions", {"recurrent_layer": "rcrn", "layers": 1}),
    "rcrn_gru": (
        "one RCRN layer of GRU cells in both directions (Section 3.3's variant)",
        {"recurrent_layer": "rcrn", "layers": 1, "cell": "gru"},
    ),
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

_GRU = "bidirectional GRU"

_READERS: dict[str, tuple[str, dict[str, Any]]] = {
    "rnet": (f"three {_GRU} layers", {"recurrent_layer": "gru", "layers": 3}),
    "rnet_1": (f"one {_GRU} layer", {"recurrent_layer": "gru", "layers": 1}),
    "rnet_bilstm": _NETWORKS["bilstm"],
    "rnet_rcrn": _NETWORKS["rcrn_gru"],
}

_DILATED_GRU = {"recurrent_layer": "dilated_rnn", "cell": "gru", "first_dilation": 8}

_AUDIO: dict[str, tuple[str, dict[str, Any]]] = {
    "dilated_gru_audio": (
        "Raw Dilated GRU: eight layers of 50, dilations 8 to 1,024",
        {**_DILATED_GRU, "layers": 8, "hidden_size": 50},
    ),
    "fused_gru_audio": (
        "Raw Fused GRU: one layer of 256 over eight interleaved parts of the waveform",
        {**_DILATED_GRU, "layers": 1, "hidden_size": 256},
    ),
    "log_mel_gru_audio": (
        "MFCC GRU: one layer of 128 over 13 log-mel features",
        {"recurrent_layer": "gru", "layers": 1, "hidden_size": 128, "log_mel": 13},
    ),
    "stacked_log_mel_gru_audio": (
        "MFCC GRU: five layers of 20 over 13 log-mel features",
        {"recurrent_layer": "gru", "layers": 5, "hidden_size": 20, "log_mel": 13},
    ),
}

SEQUENCE_PRESETS: dict[str, Preset] = {
    **{
        f"{name}_{suffix}": Preset(model, f"{text}, in RCRN's {task} model", options)
        for suffix, (model, task) in _MODELS.items()
        for name, (text, options) in _NETWORKS.items()
    },
    **{
        name: Preset("reading_comprehension", f"R-NET, which encodes by {text}; RCRN's Table 9", options)
        for name, (text, options) in _READERS.items()
    },
    **{
        name: Preset("long_memory_network", f"{text}, in DilatedRNN's tests of long memory", options)
        for name, (text, options) in _MEMORY.items()
    },
    **{
        name: Preset("waveform_classifier", f"{text}, of DilatedRNN's Table 3", options)
        for name, (text, options) in _AUDIO.items()
    },
}
"""The architectures by name."""
