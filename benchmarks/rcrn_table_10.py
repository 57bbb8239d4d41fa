"""RCRN's Table 10: seconds of an epoch over IMDb's 25,000 reviews, cut to 16 … 256 words, by its six systems.

    python benchmarks/rcrn_table_10.py [--threads 1] [--steps 16 32 64 128 256] [--repetitions 5] [--device cpu]

The models are the classifiers of ``--arch rcrn_classifier`` and its peers with word vectors and hidden size 200, in
batches of 32 (Section 4.4). The word vectors are not trained, as in the paper: their update would take the same time
for all. A training step is forward, backward and Adam; an epoch is 782 of the median step.
Candidates take turns within each repetition, so that ratios hold on a machine that changes its speed.

What cuDNN is to the paper is torch's LSTM here: cuDNN's on a GPU, oneDNN's on a CPU. 'by steps' has neither: a loop of
torch's cells. RCRN 'without its kernel' has torch's LSTM, and Eq. 15 as a loop of torch's operations.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from fairseq.data import Dictionary
from timing import REPETITIONS, at_least, device_here, take_turns, versions, write_json
from torch import Tensor, nn

import fairseq_plugins
from fairseq_plugins.kernels.dispatch import BACKEND_VARIABLE
from fairseq_plugins.modules.recurrent import torch_layers

REVIEWS, BATCH, SIZE, WORDS = 25_000, 32, 200, 20_000
REFERENCE, ONE_LAYER = "3-layer BiLSTM", "BiLSTM"
BY_STEPS, WITHOUT_KERNEL = ", by steps", "RCRN, without its kernel"
ARCHITECTURES = {
    REFERENCE + BY_STEPS: "bilstm_3_classifier",
    ONE_LAYER + BY_STEPS: "bilstm_classifier",
    ONE_LAYER: "bilstm_classifier",
    REFERENCE: "bilstm_3_classifier",
    WITHOUT_KERNEL: "rcrn_classifier",
    "RCRN": "rcrn_classifier",
}
# Seconds of an epoch in the paper, in the order of its rows; lengths 16, 32, 64, 128, 256.
PAPER = {
    REFERENCE + BY_STEPS: {"training": (29, 50, 113, 244, 503), "inference": (12, 20, 38, 72, 150)},
    ONE_LAYER + BY_STEPS: {"training": (18, 30, 63, 131, 272), "inference": (9, 15, 28, 52, 104)},
    ONE_LAYER: {"training": (5, 6, 9, 14, 26), "inference": (2, 3, 4, 6, 10)},
    REFERENCE: {"training": (10, 14, 23, 42, 80), "inference": (4, 5, 9, 16, 32)},
    WITHOUT_KERNEL: {"training": (19, 29, 53, 101, 219), "inference": (8, 12, 23, 41, 78)},
    "RCRN": {"training": (10, 13, 21, 40, 78), "inference": (4, 5, 8, 15, 29)},
}
LENGTHS = (16, 32, 64, 128, 256)


def classifiers(device: torch.device) -> dict[str, nn.Module]:
    """The model of each system."""
    from fairseq_plugins.models.sequence_classifier import SequenceClassifier, SequenceClassifierConfig
    from fairseq_plugins.models.sequence_presets import SEQUENCE_PRESETS

    dictionary = Dictionary()
    for number in range(WORDS):
        dictionary.add_symbol(f"w{number}")
    task = SimpleNamespace(source_dictionary=dictionary, tag_dictionary=None, labels=["neg", "pos"], inputs=["input0"])
    sizes: dict[str, Any] = {"embed_dim": SIZE, "hidden_size": SIZE}
    models = {
        name: SequenceClassifier.build_model(
            SequenceClassifierConfig(**sizes, **SEQUENCE_PRESETS[architecture].overrides), task
        ).to(device)
        for name, architecture in ARCHITECTURES.items()
    }
    for model in models.values():
        for table in (module for module in model.modules() if isinstance(module, nn.Embedding)):
            table.requires_grad_(False)
    return models


def trained_parameters(model: nn.Module) -> list[nn.Parameter]:
    """All but the word vectors."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def lstm_by_steps(
    rnn: nn.RNNBase, x: Tensor, padding: Tensor | None, hidden: Tensor, cell_state: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`torch_layers._run` as a loop of torch's cells, for batches without padding."""
    outputs, last = [], []
    for direction, suffix in enumerate(["", "_reverse"][: len(hidden)]):
        weights = [getattr(rnn, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        state = hidden[direction], cell_state[direction]
        steps = []
        for token in x.flip(0) if suffix else x:
            state = torch.lstm_cell(token, state, *weights)
            steps.append(state[0])
        outputs.append(torch.stack(steps[::-1] if suffix else steps))
        last.append(state)
    return torch.cat(outputs, -1), *map(torch.stack, zip(*last, strict=True))


@contextlib.contextmanager
def kernels_of(name: str) -> Iterator[None]:
    """What a system runs on."""
    with contextlib.ExitStack() as stack:
        if name.endswith(BY_STEPS):
            stack.enter_context(mock.patch.object(torch_layers, "_run", lstm_by_steps))
        if name == WITHOUT_KERNEL:
            stack.enter_context(mock.patch.dict(os.environ, {BACKEND_VARIABLE: "eager"}))
        yield


def step(name: str, model: nn.Module, length: int, is_training: bool, device: torch.device) -> Callable[[], None]:
    """One batch: a training step, or an inference."""
    tokens = torch.randint(4, WORDS, (BATCH, length), device=device)
    lengths = torch.full((BATCH,), length, device=device)
    labels = torch.randint(0, 2, (BATCH,), device=device)
    optimizer = torch.optim.Adam(trained_parameters(model), lr=1e-3)

    def train() -> None:
        model.train()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens, lengths), labels).backward()
        optimizer.step()

    def infer() -> None:
        model.eval()
        with torch.no_grad():
            model(tokens, lengths)

    def run() -> None:
        with kernels_of(name):
            (train if is_training else infer)()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=at_least(1), default=1)
    parser.add_argument("--steps", type=at_least(1), nargs="+", default=list(LENGTHS), help="words of a review")
    parser.add_argument("--repetitions", type=REPETITIONS, default=5)
    parser.add_argument("--device", type=device_here, default="cpu")
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    args = parser.parse_args()
    fairseq_plugins.register()
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    environment = versions(device)
    print(", ".join(f"{name} {version}" for name, version in environment.items()) + f", {args.threads} threads")
    models = classifiers(device)
    parameters = {name: sum(each.numel() for each in trained_parameters(model)) for name, model in models.items()}
    print("trained parameters: " + ", ".join(f"{name} {count:,}" for name, count in parameters.items()))
    batches = math.ceil(REVIEWS / BATCH)
    rows = []
    print(f"{'':10} {'words':>5}  {'':24} {'epoch, s':>9}  {'spread':>7}  {'ratio':>5}  {'paper':>5}")
    for length in args.steps:
        for phase in "training", "inference":
            runs = {name: step(name, model, length, phase == "training", device) for name, model in models.items()}
            timings = take_turns(runs, args.repetitions, device)
            for name, timing in timings.items():
                ratio = timing.median / timings[REFERENCE].median
                place = LENGTHS.index(length) if length in LENGTHS else None
                paper = None if place is None else PAPER[name][phase][place] / PAPER[REFERENCE][phase][place]
                rows.append(
                    {
                        "phase": phase,
                        "words": length,
                        "model": name,
                        "parameters": parameters[name],
                        "epoch_seconds": batches * timing.median,
                        "spread_percent": timing.spread_percent,
                        "ratio": ratio,
                        "paper_ratio": paper,
                    }
                )
                shown = "-" if paper is None else f"{paper:.2f}"
                print(
                    f"{phase:10} {length:5}  {name:24} {batches * timing.median:9.1f}  "
                    f"± {timing.spread_percent:3.0f} %  {ratio:5.2f}  {shown:>5}",
                    flush=True,
                )
    write_json(args.json, environment, rows)


if __name__ == "__main__":
    main()
