"""fairseq tasks; importing them, as ``--user-dir`` does, tells fairseq of everything in this package."""

from .. import register

register()

from . import (  # noqa: E402
    long_memory,
    reading_comprehension,
    sequence_classification,
    sequence_ranking,
    streaming_language_modeling,
    waveform_classification,
)

__all__ = [
    "long_memory",
    "reading_comprehension",
    "sequence_classification",
    "sequence_ranking",
    "streaming_language_modeling",
    "waveform_classification",
]
