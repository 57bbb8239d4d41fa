"""fairseq models; importing them registers them and their architectures."""

from . import double_path, epochs, presets, recurrent_language_model, recurrent_seq2seq

__all__ = ["double_path", "epochs", "presets", "recurrent_language_model", "recurrent_seq2seq"]

epochs.tell_networks_of_epochs()
presets.register_architectures()
