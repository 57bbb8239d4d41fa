"""How probable a text is to a trained language model: one stream, window after window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq.data import Dictionary
from torch import Tensor

from ..corpora.codec import list_of_texts
from ..corpora.running_text import RunningTextPreparation
from ..errors import InputError
from ..files import read_lines
from ..models.carried_states import CarriedStates
from ..models.recurrent_language_model import RecurrentLanguageModel
from ..symbols import check_symbols
from .trained_model import TrainedModel, class_of

WINDOW = 70
"""Tokens that are read at once; no result depends on it."""
CHARACTERS_SHOWN = 5


@dataclass(frozen=True)
class Reading:
    """What a model made of N tokens.

    Attributes:
        tokens: (N,)
        log_probabilities: natural logarithms, of each token after those before it (N,)
        outputs: the last layer's output before each token (N, H); (0, H) where nobody wants it
    """

    tokens: Tensor
    log_probabilities: Tensor
    outputs: Tensor


class LanguageModel(TrainedModel):
    """A trained recurrent language model."""

    models: list[RecurrentLanguageModel]
    preparation_class = RunningTextPreparation

    @classmethod
    def check_architecture(cls, name: str, path: str | Path) -> None:
        if not issubclass(class_of(name), RecurrentLanguageModel):
            raise InputError(f"{path}: '{name}' is no recurrent language model; give a checkpoint of recurrent_lm")

    @property
    def preparation(self) -> RunningTextPreparation:
        """How text becomes what the model reads."""
        return self.data.prepared_as(RunningTextPreparation)

    @property
    def dictionary(self) -> Dictionary:
        """Of the model's tokens."""
        return self.source_dictionary

    def lines_of(self, subset: str) -> list[str]:
        """A prepared set, its tokens between spaces.

        Raises:
            InputError: there is none.
        """
        path = self.data.folder / "tokens" / f"{self.preparation.split_of(subset)}.txt"
        if not path.is_file():
            prepared = sorted(file.stem for file in path.parent.glob("*.txt"))
            raise InputError(f"{path}: no such file; the prepared sets are {', '.join(prepared)}")
        return list(read_lines(path))

    def encoded(self, text: Iterable[str], name: str) -> list[str]:
        """Lines of text as tokens between spaces.

        Args:
            text: the lines
            name: of the text, in errors

        Raises:
            TypeError: ``text`` is one text, or one of them is no text.
            InputError: there is nothing, or it has symbols of fairseq's own, or characters that cannot be tokens, or
                that the model knows nothing of.
        """
        lines = []
        for number, raw in enumerate(list_of_texts("encoded", text), start=1):
            place = f"{name}, line {number}"
            self.preparation.check(place, raw)
            line = self.preparation.encode(raw)
            lines.append(line)
            check_symbols(place, line.split())
            if self.preparation.has_characters:
                if unknown := sorted(set(self.unknown([line]))):
                    raise InputError(
                        f"{place}: the model's dictionary lacks {' '.join(unknown[:CHARACTERS_SHOWN])}: "
                        f"remove what it was not trained on"
                    )
        if not lines:
            raise InputError(f"{name} is empty")
        return lines

    def unknown(self, lines: Sequence[str]) -> list[str]:
        """The tokens of lines that the dictionary lacks, in their order, each as often as it is there."""
        return [token for line in lines for token in line.split() if token not in self.dictionary]

    def numbers(self, lines: Sequence[str]) -> Tensor:
        """Lines of tokens as the model reads them (N,), each with its end."""
        encode = self.dictionary.encode_line
        return torch.cat([encode(line, add_if_not_exist=False).long() for line in lines])

    @torch.no_grad()
    def read(self, tokens: Tensor, window: int = WINDOW, keeps_outputs: bool = True) -> Reading:
        """Reads a text (N,) as one stream, its first token after a line's end."""
        before = torch.cat([tokens.new_tensor([self.dictionary.eos()]), tokens[:-1]])
        carried = CarriedStates()
        log_probabilities, outputs = [], []
        for source, target in zip(before.split(window), tokens.split(window), strict=True):
            source, target = source.to(self.device), target.to(self.device)
            logits, extra = self.model(source.unsqueeze(0), carried=carried)
            scores = logits[0].log_softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
            log_probabilities.append(scores.gather(1, target.unsqueeze(1)).squeeze(1))
            output = extra["undropped_output"].squeeze(1)
            outputs.append(output if keeps_outputs else output[:0])
        return Reading(tokens.to(self.device), torch.cat(log_probabilities), torch.cat(outputs))


def by_line(values: Tensor, lines: Sequence[str]) -> list[list[float]]:
    """Values of each token (N,), by line; each line has its end."""
    sizes = [len(line.split()) + 1 for line in lines]
    return [part.tolist() for part in values.split(sizes)]
