"""RCRN's Table 10: seconds of an epoch over IMDb's 25,000 reviews, cut to 16 … 256 words, by RCRN and its baselines.

    python benchmarks/rcrn_table_10.py [--threads 1] [--steps 16 32 64 128 256] [--repetitions 5] [--device cpu]

The models are the classifiers of ``--arch rcrn_classifier`` and its peers with word vectors and hidden size 200, in
batches of 32 (Section 4.4). The word vectors are not trained, as in the paper: their update would take the same time
for all. A training step is forward, backward and Adam; an epoch is 782 of the median step.
Candidates take turns within each repetition, so that ratios hold on a machine that changes its speed; the paper's
ratios are those of its cuDNN rows.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from timing import REPETITIONS, at_least, device_here, take_turns, versions, write_json
from torch import nn

import fairseq_plugins

REVIEWS, BATCH, SIZE, WORDS = 25_000, 32, 200, 20_000
REFERENCE = "3-layer BiLSTM"
ARCHITECTURES = {REFERENCE: "bilstm_3_classifier", "BiLSTM": "bilstm_classifier", "RCRN": "rcrn_classifier"}
# Seconds of an epoch in the paper, of its cuDNN rows, RCRN's with its own kernel; lengths 16, 32, 64, 128, 256.
PAPER = {
    REFERENCE: {"training": (10, 14, 23, 42, 80), "inference": (4, 5, 9, 16, 32)},
    "BiLSTM": {"training": (5, 6, 9, 14, 26), "inference": (2, 3, 4, 6, 10)},
    "RCRN": {"training": (10, 13, 21, 40, 78), "inference": (4, 5, 8, 15, 29)},
}
LENGTHS = (16, 32, 64, 128, 256)


def classifiers(device: torch.device) -> dict[str, nn.Module]:
    """The three models."""
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


def step(model: nn.Module, length: int, is_training: bool, device: torch.device) -> Callable[[], None]:
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

    return train if is_training else infer


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
    found = versions(device)
    print(", ".join(f"{name} {version}" for name, version in found.items()) + f", {args.threads} threads")
    models = classifiers(device)
    parameters = {name: sum(each.numel() for each in trained_parameters(model)) for name, model in models.items()}
    print("trained parameters: " + ", ".join(f"{name} {count:,}" for name, count in parameters.items()))
    batches = math.ceil(REVIEWS / BATCH)
    rows = []
    print(f"{'':10} {'words':>5}  {'':15} {'epoch, s':>9}  {'spread':>7}  {'ratio':>5}  {'paper':>5}")
    for length in args.steps:
        for phase in "training", "inference":
            runs = {name: step(model, length, phase == "training", device) for name, model in models.items()}
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
                    f"{phase:10} {length:5}  {name:15} {batches * timing.median:9.1f}  "
                    f"± {timing.spread_percent:3.0f} %  {ratio:5.2f}  {shown:>5}",
                    flush=True,
                )
    write_json(args.json, found, rows)


if __name__ == "__main__":
    main()
