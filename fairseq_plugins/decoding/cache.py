"""The continuous cache over a trained model, with settings that a search on the validation set has found."""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from torch import Tensor

from ..errors import InputError
from ..files import sha256, write_json
from ..modules.continuous_cache import cache_probabilities, with_cache
from .language_model import LanguageModel, Reading

logger = logging.getLogger(__name__)

WINDOWS = (100, 500, 2000)
THETAS = (0.1, 0.3, 0.6, 1.0)
WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
"""0 is no cache."""


@dataclass(frozen=True)
class CacheSettings:
    """Of :mod:`fairseq_plugins.modules.continuous_cache`.

    Attributes:
        window: pairs of output and word
        theta: how much likeness counts
        weight: lambda, the cache's share; 0 for none

    Raises:
        InputError: a number that cannot be.
    """

    window: int = 500
    theta: float = 1.0
    weight: float = 0.1

    def __post_init__(self) -> None:
        if self.window < 1 or not 0 <= self.theta < math.inf or not 0 <= self.weight < 1:
            raise InputError(
                f"a cache has a window of at least 1, a finite theta of at least 0 and a weight from 0 to below 1, "
                f"not {self.window}, {self.theta} and {self.weight}"
            )

    def of(self, reading: Reading) -> Tensor:
        """The logarithms of probabilities (N,) with the cache."""
        cache = cache_probabilities(reading.outputs, reading.tokens, self.window, self.theta)
        return with_cache(reading.log_probabilities, cache, self.window, self.weight)

    def note(self, tokens: int) -> str:
        """What to tell the user who has a text of so many tokens read with them."""
        note = "" if tokens > self.window + 1 else f"; it changes nothing in a text of {tokens:,} tokens"
        return f"continuous cache: window {self.window}, theta {self.theta}, weight {self.weight}{note}"


def search(
    reading: Reading,
    windows: Sequence[int] = WINDOWS,
    thetas: Sequence[float] = THETAS,
    weights: Sequence[float] = WEIGHTS,
) -> tuple[CacheSettings, list[dict[str, float]]]:
    """The settings of the lowest perplexity, and what was tried, each with its perplexity; no cache is tried once."""

    def perplexity(log_probabilities: Tensor) -> float:
        return math.exp(-log_probabilities.mean().item())

    tried: list[tuple[CacheSettings, float]] = []
    if 0.0 in weights:
        tried.append((CacheSettings(windows[0], thetas[0], 0.0), perplexity(reading.log_probabilities)))
    for window, theta in itertools.product(windows, thetas):
        cache = cache_probabilities(reading.outputs, reading.tokens, window, theta)
        for weight in filter(None, weights):
            mixed = with_cache(reading.log_probabilities, cache, window, weight)
            tried.append((CacheSettings(window, theta, weight), perplexity(mixed)))
    best, _ = min(tried, key=lambda pair: pair[1])
    return best, [{**asdict(settings), "perplexity": number} for settings, number in tried]


def settings_file(checkpoint: Path) -> Path:
    """Where the settings of a checkpoint's cache are, beside it."""
    return checkpoint.with_name(f"{checkpoint.stem}.cache.json")


def searched_settings(model: LanguageModel, **settings: Any) -> CacheSettings:
    """The settings that the validation set chooses beside those that are given, by their names: what an earlier search
    for this checkpoint and this set has written, or a new one writes.

    Raises:
        InputError: a number that cannot be.
    """
    CacheSettings(**settings)
    path = settings_file(model.path)
    tokens = model.numbers(model.lines_of("valid"))
    of_tokens = hashlib.sha256(tokens.numpy().tobytes()).hexdigest()
    searched = {"checkpoint_sha256": sha256(model.path), "tokens_sha256": of_tokens, "given": settings}
    if path.is_file():
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if searched.items() <= content.items():
                return CacheSettings(**content["chosen"])
        except (InputError, ValueError, AttributeError, LookupError, TypeError):
            logger.warning(f"{path}: damaged; the settings of the cache are searched for again")
    chosen, tried = search(model.read(tokens), **{f"{name}s": (value,) for name, value in settings.items()})
    write_json(path, {"chosen": asdict(chosen), **searched, "set": "valid", "tried": tried})
    return chosen


def chosen_settings(model: LanguageModel, options: argparse.Namespace) -> CacheSettings | None:
    """What the options ``--cache…`` say; the rest a search chooses (``--cache``), or is as it is without options.

    Returns:
        None where no option says anything of a cache.

    Raises:
        InputError: a number that cannot be.
    """
    names = [setting.name for setting in fields(CacheSettings)]
    values = {name: getattr(options, f"cache_{name}") for name in names}
    values = {name: value for name, value in values.items() if value is not None}
    if options.cache and len(values) < len(names):
        return searched_settings(model, **values)
    return CacheSettings(**values) if values else None


def log_probabilities(model: LanguageModel, tokens: Tensor, settings: CacheSettings | None) -> Tensor:
    """The natural logarithm of each token's probability (N,), with the cache where there are settings for one."""
    reading = model.read(tokens, keeps_outputs=settings is not None)
    return reading.log_probabilities if settings is None else settings.of(reading)
