"""fairseq tasks; importing them, as ``--user-dir`` does, tells fairseq of everything in this package."""

from .. import register

register()

from . import long_memory, sequence_classification, sequence_ranking, streaming_language_modeling  # noqa: E402

__all__ = ["long_memory", "sequence_classification", "sequence_ranking", "streaming_language_modeling"]
