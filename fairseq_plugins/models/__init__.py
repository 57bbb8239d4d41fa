"""fairseq models; importing them registers them and their architectures."""

from . import double_path, presets, recurrent_seq2seq

__all__ = ["double_path", "presets", "recurrent_seq2seq"]

presets.register_architectures()
