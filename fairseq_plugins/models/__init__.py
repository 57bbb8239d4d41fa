"""fairseq models; importing them registers them and their architectures."""

from . import (
    double_path,
    epochs,
    long_memory_network,
    presets,
    recurrent_language_model,
    recurrent_seq2seq,
    sequence_classifier,
    sequence_pair_classifier,
    sequence_ranker,
)

__all__ = [
    "double_path",
    "epochs",
    "long_memory_network",
    "presets",
    "recurrent_language_model",
    "recurrent_seq2seq",
    "sequence_classifier",
    "sequence_pair_classifier",
    "sequence_ranker",
]

epochs.tell_networks_of_epochs()
presets.register_architectures()
