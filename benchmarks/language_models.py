"""Times the training of language models (tokens/s) against a plain loop in the same run.

``models.py --task language_modeling`` prints it.

The plain loop is AWD-LSTM by hand: embedding, three ``torch.nn.LSTM`` layers, tied softmax, with the same dropouts. A
training step is forward, cross-entropy, backward, clipping and an SGD update on a window of 70 tokens of 20 streams,
with states carried from the window before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.data import Dictionary
from timing import take_turns, versions, write_json
from torch import Tensor, nn

from fairseq_plugins.models.carried_states import CarriedStates
from fairseq_plugins.models.presets import PRESETS
from fairseq_plugins.models.recurrent_language_model import RecurrentLanguageModel, RecurrentLanguageModelConfig

PLAIN = "plain loop"
SYSTEMS = ("awd_lstm_ptb", "mc_rnn_lm_ptb")
TYPES = 10_002
LEARNING_RATE, CLIPPING = 1e-3, 0.25


class PlainLoop(nn.Module):
    """AWD-LSTM by hand; tokens (T, B) -> logits (T, B, V)."""

    def __init__(self, cfg: RecurrentLanguageModelConfig, types: int) -> None:
        super().__init__()
        self.cfg = cfg
        self.embedding = nn.Embedding(types, cfg.decoder_embed_dim)
        self.bias = nn.Parameter(torch.zeros(types))
        sizes = [cfg.decoder_embed_dim, *[cfg.decoder_hidden_size] * (cfg.decoder_layers - 1), cfg.decoder_embed_dim]
        self.layers = nn.ModuleList(nn.LSTM(*pair) for pair in zip(sizes[:-1], sizes[1:], strict=True))
        self.states: list[tuple[Tensor, Tensor]] = []

    def forward(self, tokens: Tensor) -> Tensor:
        cfg = self.cfg
        words = F.dropout(self.embedding.weight.new_ones(len(self.embedding.weight), 1), cfg.embedding_dropout)
        x = locked(F.embedding(tokens, words * self.embedding.weight), cfg.decoder_dropout_in)
        states = []
        for i, layer in enumerate(self.layers):
            if self.states:
                state = self.states[i]
            else:
                zeros = x.new_zeros(1, x.size(1), layer.hidden_size)
                state = (zeros, zeros)
            weights = [F.dropout(w, cfg.weight_dropout) if n == 1 else w for n, w in enumerate(layer._flat_weights)]
            x, *state = torch.lstm(x, state, weights, True, 1, 0.0, True, False, False)
            states.append(tuple(part.detach() for part in state))
            x = locked(x, cfg.dropout if i + 1 < len(self.layers) else cfg.decoder_dropout_out)
        self.states = states
        return F.linear(x, self.embedding.weight, self.bias)


def locked(x: Tensor, p: float) -> Tensor:
    """Dropout with one mask for all time steps."""
    return x * F.dropout(torch.ones_like(x[:1]), p)


def config_of(system: str, sizes: Mapping[str, int]) -> RecurrentLanguageModelConfig:
    return RecurrentLanguageModelConfig(**{**PRESETS[system].overrides, **sizes})


def updating(model: nn.Module, loss_of: Callable[[], Tensor]) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)

    def step() -> None:
        optimizer.zero_grad()
        loss_of().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIPPING)
        optimizer.step()

    return step


def training_steps(
    types: int, streams: int, window: int, device: str, sizes: Mapping[str, int]
) -> tuple[dict[str, Callable[[], None]], dict[str, int]]:
    """A step of each system, and the parameters of each."""
    generator = torch.Generator().manual_seed(1)
    text = torch.randint(4, types, (streams, window + 1), generator=generator).to(device)
    source, target = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    dictionary = Dictionary()
    for i in range(types - len(dictionary)):
        dictionary.add_symbol(f"w{i}")
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    criterion = CrossEntropyCriterion(task, sentence_avg=False)

    torch.manual_seed(1)
    plain = PlainLoop(config_of(SYSTEMS[0], sizes), types).to(device)
    steps = {PLAIN: updating(plain, lambda: F.cross_entropy(plain(source.t()).flatten(0, 1), target.t().flatten()))}
    models: dict[str, nn.Module] = {PLAIN: plain}
    for system in SYSTEMS:
        torch.manual_seed(1)
        models[system] = RecurrentLanguageModel.build_model(config_of(system, sizes), task).train().to(device)
        net_input = {"src_tokens": source, "carried": CarriedStates()}
        sample = {"net_input": net_input, "target": target, "ntokens": target.numel()}

        def loss_of(model: nn.Module = models[system], sample: dict = sample) -> Tensor:
            loss, tokens, _ = criterion(model, sample)
            return loss / tokens

        steps[system] = updating(models[system], loss_of)
    return steps, {name: sum(p.numel() for p in model.parameters()) for name, model in models.items()}


def compare(
    threads: int,
    device: str,
    repetitions: int,
    types: int | None,
    json: Path | None,
    streams: int = 20,
    window: int = 70,
    sizes: Mapping[str, int] | None = None,
) -> None:
    """Prints each system's speed, and its ratio to the plain loop's: above 1 is faster."""
    torch.set_num_threads(threads)
    environment = versions(device)
    print(", ".join(f"{name} {version}" for name, version in environment.items()) + f", {threads} threads, float32")
    steps, parameters = training_steps(types or TYPES, streams, window, device, sizes or {})
    timings = take_turns(steps, repetitions, device)
    rows = []
    print(f"\ntraining, {streams} streams, windows of {window} tokens; peer: {PLAIN}")
    for system, timing in timings.items():
        speed, ratio = streams * window / timing.median, timings[PLAIN].median / timing.median
        print(
            f"{system:28} {parameters[system]:>12,} parameters {speed:10.1f} tokens/s "
            f"± {timing.spread_percent:4.1f} %  {ratio:5.2f} x"
        )
        rows.append(
            {
                "work": "training",
                "arch": system,
                "parameters": parameters[system],
                "threads": threads,
                "speed": speed,
                "unit": "tokens/s",
                "spread_percent": timing.spread_percent,
                "peer": PLAIN,
                "ratio_to_peer": ratio,
            }
        )
    write_json(json, environment, rows)
