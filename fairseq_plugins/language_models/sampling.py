"""Draws text from a trained language model."""

from __future__ import annotations

import torch

from ..errors import InputError
from .evaluation import LanguageModel


@torch.no_grad()
def sample(
    model: LanguageModel, tokens: int, seed: int, prompt: str = "", temperature: float = 1.0, top_k: int | None = None
) -> list[str]:
    """Lines of text; the last one may be cut off.

    Args:
        model: what draws them
        tokens: how many, the lines' ends among them
        seed: the same one draws the same text
        prompt: what is before them; it is given back at their head
        temperature: below 1 the probable becomes more probable
        top_k: draws from that many most probable tokens alone; None for all

    Raises:
        InputError: a number that cannot be, or a prompt of characters that the model does not know.
    """
    if tokens < 1 or temperature <= 0 or (top_k is not None and top_k < 1):
        raise InputError(
            "tokens and top-k are at least 1, and the temperature is above 0, "
            f"not {tokens}, {top_k if top_k is not None else 'none'} and {temperature}"
        )
    eos = model.dictionary.eos()
    # A prompt is the beginning of a line: without its end.
    written = model.numbers(model.encoded([prompt], "the prompt"))[:-1].tolist() if prompt else []
    never = [model.dictionary.bos(), model.dictionary.pad(), model.dictionary.unk()]
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
    return [model.preparation.decode(" ".join(line)) for line in lines if line]


def _next(model: LanguageModel, token: int, incremental_state: dict) -> torch.Tensor:
    """The logits (V,) of what follows one more token."""
    read = torch.tensor([[token]], device=model.device)
    logits, _ = model.model.decoder(read, incremental_state=incremental_state)
    return logits[0, -1].float()
