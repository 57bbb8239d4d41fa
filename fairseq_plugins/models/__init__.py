"""fairseq models; importing them registers them and their architectures."""

from . import recurrent_seq2seq

__all__ = ["recurrent_seq2seq"]
