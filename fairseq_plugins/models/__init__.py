"""fairseq models; importing them, as ``--user-dir`` does, tells fairseq of everything in this package."""

from .. import register

register()  # first of all: extensions come before the models make options of the layers that there are

from . import (  # noqa: E402
    double_path,
    long_memory_network,
    presets,
    reading_comprehension,
    recurrent_language_model,
    recurrent_seq2seq,
    sequence_classifier,
    sequence_pair_classifier,
    sequence_ranker,
    waveform_classifier,
)

__all__ = [
    "double_path",
    "long_memory_network",
    "presets",
    "reading_comprehension",
    "recurrent_language_model",
    "recurrent_seq2seq",
    "sequence_classifier",
    "sequence_pair_classifier",
    "sequence_ranker",
    "waveform_classifier",
]

presets.register_architectures()
