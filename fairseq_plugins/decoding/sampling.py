"""Draws text from a trained language model."""

from __future__ import annotations

import logging
import math

import torch

from ..errors import InputError
from ..exported.language_model import LEAST_TEMPERATURE
from ..symbols import padding_words
from .language_model import LanguageModel

logger = logging.getLogger(__name__)

SEEDS = range(-(1 << 63), 1 << 64)
"""What PyTorch's generators take."""


@torch.no_grad()
def sample(
    model: LanguageModel, tokens: int, seed: int, prompt: str = "", temperature: float = 1.0, top_k: int | None = None
) -> list[str]:
    """Lines of text, empty ones too; the last one may be cut off.

    Args:
        model: what draws them
        tokens: how many, the lines' ends among them
        seed: the same one draws the same text
        prompt: what is before them; it is given back at their head, its unknown words (with a warning) as ``<unk>``
        temperature: below 1 the probable becomes more probable
        top_k: draws from that many most probable tokens alone; None for all

    Raises:
        TypeError: the prompt is no text.
        InputError: a number that cannot be, or a prompt of characters that the model does not know.
    """
    if not isinstance(prompt, str):
        raise TypeError(f"the prompt is {prompt!r}, not a text (str)")
    if tokens < 1 or (top_k is not None and top_k < 1):
        shown = top_k if top_k is not None else "none"
        raise InputError(f"tokens and top-k are at least 1, not {tokens} and {shown}")
    if not LEAST_TEMPERATURE <= temperature < math.inf:
        raise InputError(f"the temperature is a number from {LEAST_TEMPERATURE} on, not {temperature}")
    if seed not in SEEDS:
        raise InputError(f"the seed is a whole number from -2^63 on and less than 2^64, not {seed}")
    eos = model.dictionary.eos()
    # A prompt is the beginning of a line: without its end.
    written = []
    if prompt:
        encoded = model.encoded([prompt], "the prompt")
        if unknown := model.unknown(encoded):
            logger.warning(
                f"the prompt has words that the model does not know, and reads as <unk>: {' '.join(unknown)}"
            )
        written = model.numbers(encoded)[:-1].tolist()
    dictionary = model.dictionary
    entries = zip(dictionary.symbols, dictionary.count, strict=True)
    never = [dictionary.bos(), dictionary.pad(), dictionary.unk(), *padding_words(entries)]
    generator = torch.Generator().manual_seed(seed)
    incremental_state: dict = {}
    logits = _next(model, eos, incremental_state)
    for token in written:
        logits = _next(model, token, incremental_state)
    for _ in range(tokens):
        # Of what is unknown no text can be made.
        logits[never] = -torch.inf
        if top_k is not None:
            logits[logits < logits.topk(min(top_k, len(logits))).values[-1]] = -torch.inf
        probabilities = (logits / temperature).softmax(0)
        written.append(int(torch.multinomial(probabilities.cpu(), 1, generator=generator)))
        logits = _next(model, written[-1], incremental_state)
    lines: list[list[str]] = [[]]
    for token in written:
        if token == eos:
            lines.append([])
        else:
            lines[-1].append(model.dictionary[token])
    if not lines[-1]:
        lines.pop()
    return [model.preparation.decode(" ".join(line)) for line in lines]


def _next(model: LanguageModel, token: int, incremental_state: dict) -> torch.Tensor:
    """The logits (V,) of what follows one more token."""
    read = torch.tensor([[token]], device=model.device)
    logits, _ = model.model.decoder(read, incremental_state=incremental_state)
    return logits[0, -1].float()
