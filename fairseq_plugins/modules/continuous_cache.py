"""The continuous cache: Grave, Joulin and Usunier (2017), "Improving Neural Language Models with a Continuous Cache".

At evaluation the last ``window`` pairs of the last layer's output h_i and the word that followed it, x_i, vote for the
next word by how alike h_i and h_t are:

    p_cache(w | t) = sum over i of softmax_i(theta h_i . h_t) [x_i = w],   i = t - window ... t - 1
    p(w | t) = lambda p_cache(w | t) + (1 - lambda) p_model(w | t)

As in the code of Merity, Keskar and Socher (2018), the cache has a say once more than ``window`` words were read, and p
is the model's until then.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

CHUNK = 512
"""Words that are looked up together."""


def cache_probabilities(outputs: Tensor, words: Tensor, window: int, theta: float) -> Tensor:
    """p_cache of the words that did follow: 0 where the cache has no say yet.

    Args:
        outputs: h (N, H), the last layer's output before each word
        words: x (N,)
        window: the pairs that it holds
        theta: how much likeness counts

    Returns:
        (N,)

    Raises:
        ValueError: there is not one word for each output, or no window.
    """
    if outputs.dim() != 2 or words.shape != outputs.shape[:1]:
        raise ValueError(f"outputs (N, H) and words (N,) do not fit: {tuple(outputs.shape)} and {tuple(words.shape)}")
    if window < 1:
        raise ValueError(f"the window must be at least 1, not {window}")
    shares = outputs.new_zeros(len(words))
    for start in range(window + 1, len(words), CHUNK):
        stop = min(start + CHUNK, len(words))
        first = start - window
        # Pair j of these is at first + j; word t of the chunk may look at those from t on, window in number.
        offsets = torch.arange(stop - 1 - first, device=words.device)
        places = torch.arange(stop - start, device=words.device).unsqueeze(1)
        is_held = (offsets >= places) & (offsets < places + window)
        likeness = theta * outputs[start:stop] @ outputs[first : stop - 1].t()
        weights = likeness.masked_fill(~is_held, -math.inf).softmax(dim=1)
        agrees = words[start:stop].unsqueeze(1) == words[first : stop - 1]
        shares[start:stop] = (weights * agrees).sum(dim=1)
    return shares


def with_cache(log_probabilities: Tensor, cache: Tensor, window: int, weight: float) -> Tensor:
    """log p of the words that did follow (N,), of the model's and of :func:`cache_probabilities`.

    Args:
        log_probabilities: the model's (N,)
        cache: p_cache (N,)
        window: of the cache
        weight: lambda; 0 leaves the model's

    Raises:
        ValueError: they are not of one shape (N,).
    """
    if log_probabilities.dim() != 1 or cache.shape != log_probabilities.shape:
        raise ValueError(
            f"log_probabilities and cache must be (N,), not {tuple(log_probabilities.shape)} and {tuple(cache.shape)}"
        )
    if weight == 0:
        return log_probabilities
    mixed = torch.logaddexp(log_probabilities + math.log1p(-weight), cache.log() + math.log(weight))
    has_say = torch.arange(len(cache), device=cache.device) > window
    return torch.where(has_say, mixed, log_probabilities)


def cache_reference(
    outputs: Tensor, words: Tensor, log_probabilities: Tensor, window: int, theta: float, weight: float
) -> Tensor:
    """log p (N,) of the words that did follow, word by word, from the model's whole distributions (N, V)."""
    result = []
    for t, word in enumerate(words.tolist()):
        p = log_probabilities[t].exp()
        if t > window:
            attention = torch.softmax(theta * outputs[t - window : t] @ outputs[t], dim=0)
            p_cache = torch.zeros_like(p)
            for i in range(window):
                p_cache[words[t - window + i]] += attention[i]
            p = weight * p_cache + (1 - weight) * p
        result.append(p[word].log())
    return torch.stack(result)
