"""fairseq tasks; importing them registers them."""

from . import long_memory, sequence_classification, sequence_ranking, streaming_language_modeling

__all__ = ["long_memory", "sequence_classification", "sequence_ranking", "streaming_language_modeling"]
