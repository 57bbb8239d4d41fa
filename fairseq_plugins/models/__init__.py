"""fairseq models; importing them registers them and their architectures."""

from . import double_path, recurrent_seq2seq, single_path_baselines

__all__ = ["double_path", "recurrent_seq2seq", "single_path_baselines"]
