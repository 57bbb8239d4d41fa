"""What recurrent networks read of words: their own vectors, their characters, and their context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from .recurrent.stack import RecurrentStack


class CharacterEncoder(nn.Module):
    """Words by their characters: the last outputs of a GRU in both directions over a word's characters.

    RCRN (Tay, Luu and Hui 2018), Section 4.2, has a character-level word representation by a BiGRU; sizes are ours.

    Args:
        words: the characters of each word of a dictionary, by its number.
        embed_dim: size of the characters' embeddings.
        hidden_size: H, of each direction; a word has 2 * H.
        longest: characters of a word that are read.
    """

    spelling: Tensor  # (words, longest), 0 after a word's last character

    def __init__(self, words: Sequence[str], embed_dim: int, hidden_size: int, longest: int = 16) -> None:
        super().__init__()
        characters = sorted({character for word in words for character in word})
        number = {character: index for index, character in enumerate(characters, 1)}
        table = torch.zeros(len(words), longest, dtype=torch.long)
        for row, word in enumerate(words):
            spelt = [number[character] for character in word[:longest]]
            table[row, : len(spelt)] = torch.tensor(spelt, dtype=torch.long)
        # It follows from the dictionary, which a checkpoint comes with.
        self.register_buffer("spelling", table, persistent=False)
        self.embedding = nn.Embedding(len(characters) + 1, embed_dim, padding_idx=0)
        self.network = RecurrentStack("gru", embed_dim, [hidden_size], bidirectional=True)
        self.output_size = 2 * hidden_size

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (T, B) -> (T, B, 2 * H)."""
        if tokens.device.type != "cpu":
            # A GPU would have to be waited for, to say how many different words there are.
            return self._encoded(tokens.flatten()).view(*tokens.shape, -1)
        # Each word once: most words of a text are there several times.
        words, places = tokens.unique(return_inverse=True)
        return self._encoded(words)[places]

    def _encoded(self, words: Tensor) -> Tensor:
        """words (N,) -> (N, 2 * H)."""
        spelt = self.spelling[words]  # N, characters
        lengths = (spelt != 0).sum(dim=1)
        result = self.network(self.embedding(spelt).transpose(0, 1), lengths)
        [summary] = self.network.summaries(result, lengths)
        return summary


class ContextEncoder(nn.Module):
    """Vectors of words in their context: two bidirectional LSTM layers over given word vectors, which are not trained.

    McCann et al. (2017), "Learned in Translation: Contextualized Word Vectors" (CoVe): the weights are laid out as in
    their published file, those of ``torch.nn.LSTM(300, 300, num_layers=2, bidirectional=True)``.

    Args:
        input_size: of the word vectors.
        hidden_size: H, of each direction.
    """

    LAYERS = 2

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.output_size = input_size, hidden_size, 2 * hidden_size
        self.network = RecurrentStack("lstm", input_size, [hidden_size] * self.LAYERS, bidirectional=True)
        self.requires_grad_(False)

    @classmethod
    def of(cls, weights: Mapping[str, Tensor]) -> ContextEncoder:
        """The one with the parameters of that LSTM, by their names there.

        Raises:
            ValueError: one is missing, or of another shape.
        """
        if "weight_ih_l0" not in weights or "weight_hh_l0" not in weights:
            raise ValueError("no weight_ih_l0 and weight_hh_l0 there")
        encoder = cls(weights["weight_ih_l0"].size(1), weights["weight_hh_l0"].size(1))
        for layer in range(cls.LAYERS):
            for network, suffix in zip(encoder.network.networks(layer), ("", "_reverse"), strict=True):
                for name in "weight_ih", "weight_hh", "bias_ih", "bias_hh":
                    source, target = f"{name}_l{layer}{suffix}", getattr(network.rnn, f"{name}_l0")
                    if source not in weights or weights[source].shape != target.shape:
                        raise ValueError(f"{source} of the shape {tuple(target.shape)} was expected")
                    with torch.no_grad():
                        target.copy_(weights[source])
        return encoder

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (T, B, D), right-padded, lengths (B,) -> (T, B, 2 * H)."""
        output: Tensor = self.network(x, lengths).output
        return output
