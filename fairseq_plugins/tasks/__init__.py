"""fairseq tasks; importing them registers them."""

from . import streaming_language_modeling

__all__ = ["streaming_language_modeling"]
