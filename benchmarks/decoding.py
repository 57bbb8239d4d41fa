"""Times decoding: single steps of recurrent layers, and beam search of whole models by sentences and by length.

    python benchmarks/decoding.py [--systems ARCH ...] [--peer ARCH] [--threads 2] [--json FILE]

*Steps*: one time step of a layer of 256 features without gradients, weights prepared once as a decoder does it, for 5
rows (beam 5 of one sentence) and 320 (of 64); the ratio is of times to ``torch.nn.LSTMCell``. *Beam search*: beam 5
over random sentences of 20 to 25 tokens, decoded to 25 and to 100 tokens whatever the untrained models prefer, a
sentence at a time and 32 together; the ratio is of sentences/s to the peer, above 1 is faster. ``lstm_as_rnnsearch`` is
fairseq's ``lstm`` with the layers, sizes and directions of ``rnnsearch_iwslt_de_en``. Candidates take turns within each
repetition; printed are the median and the spread (half the distance between the quartiles, in percent).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from models import PRESETS, batch, beam_search, model_of, task_of
from timing import REPETITIONS, at_least, device_here, take_turns, versions, write_json
from torch import nn

from fairseq_plugins.modules import ConventionalRNN, HigherOrderRNN, MultiChannelRNN, RecurrentNetwork

HIDDEN = 256
ROWS = (5, 320)
# One step is too short to be timed alone.
STEPS = 20
CELL = "torch.nn.LSTMCell"


def layers(hidden: int) -> dict[str, RecurrentNetwork]:
    return {
        "LSTM, ours": ConventionalRNN(hidden, hidden),
        "MC-RNN-2": MultiChannelRNN(hidden, hidden, 2),
        "MC-RNN-3": MultiChannelRNN(hidden, hidden, 3),
        "MC-RNN-4": MultiChannelRNN(hidden, hidden, 4),
        "HO-RNN-3": HigherOrderRNN(hidden, hidden, 3),
    }


def cell_steps(hidden: int, rows: int, device: str, dtype: torch.dtype = torch.float32) -> Callable[[], None]:
    """A function that does ``STEPS`` steps of ``torch.nn.LSTMCell``."""
    x = torch.randn(rows, hidden, device=device, dtype=dtype)
    cell = nn.LSTMCell(hidden, hidden, device=device, dtype=dtype)

    @torch.no_grad()
    def run() -> None:
        state = None
        for _ in range(STEPS):
            state = cell(x, state)

    return run


@torch.no_grad()
def layer_steps(
    layer: RecurrentNetwork, rows: int, device: str, dtype: torch.dtype = torch.float32
) -> Callable[[], None]:
    """A function that does ``STEPS`` steps of a layer."""
    x = torch.randn(rows, layer.input_size, device=device, dtype=dtype)
    layer = layer.to(device, dtype)
    step = layer.stepper(rows)

    @torch.no_grad()
    def run() -> None:
        state = layer.initial_state(rows)
        for _ in range(STEPS):
            _, state = step(x, state)

    return run


def steps(hidden: int, rows: int, device: str) -> dict[str, Callable[[], None]]:
    """For each layer a function that does ``STEPS`` steps."""
    ours = {name: layer_steps(layer, rows, device) for name, layer in layers(hidden).items()}
    return {CELL: cell_steps(hidden, rows, device), **ours}


def measure_steps(args: argparse.Namespace) -> list[dict[str, Any]]:
    measured = []
    for rows in ROWS:
        timings = take_turns(steps(args.hidden_size, rows, args.device), 5 * args.repetitions, args.device)
        print(f"\none step, {rows} rows, hidden size {args.hidden_size}")
        for name, timing in timings.items():
            microseconds, ratio = 1e6 * timing.median / STEPS, timing.median / timings[CELL].median
            print(f"{name:28} {microseconds:9.1f} us ± {timing.spread_percent:4.1f} %  {ratio:5.2f} x")
            measured.append(
                {
                    "work": "step",
                    "layer": name,
                    "rows": rows,
                    "microseconds": microseconds,
                    "spread_percent": timing.spread_percent,
                    "ratio_to_cell": ratio,
                }
            )
    return measured


def measure_beam_search(args: argparse.Namespace) -> list[dict[str, Any]]:
    tasks = {arch: task_of(arch, args.types) for arch in args.systems}
    models = {arch: model_of(arch, tasks[arch]).to(args.device).eval() for arch in args.systems}
    for model in models.values():
        model.make_generation_fast_(beamable_mm_beam_size=None, need_attn=False)
    measured = []
    for sentences in args.sentences:
        for length in args.lengths:
            runs = {
                arch: beam_search(models[arch], tasks[arch], batch(tasks[arch], sentences, args.device), length)
                for arch in args.systems
            }
            timings = take_turns(runs, args.repetitions, args.device)
            print(f"\nbeam search, {sentences} sentences together, to {length} tokens; peer: {args.peer}")
            for arch, timing in timings.items():
                ratio = timings[args.peer].median / timing.median
                speed = sentences / timing.median
                print(f"{arch:28} {speed:9.1f} sentences/s ± {timing.spread_percent:4.1f} %  {ratio:5.2f} x")
                measured.append(
                    {
                        "work": "beam search",
                        "arch": arch,
                        "sentences": sentences,
                        "length": length,
                        "sentences_per_second": speed,
                        "spread_percent": timing.spread_percent,
                        "peer": args.peer,
                        "ratio_to_peer": ratio,
                    }
                )
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    systems = ["lstm_as_rnnsearch", "rnnsearch_iwslt_de_en", "mc_rnn_iwslt_de_en"]
    architectures = sorted({*ARCH_CONFIG_REGISTRY, *PRESETS})
    parser.add_argument("--systems", nargs="+", choices=architectures, default=systems, metavar="ARCH")
    parser.add_argument("--peer", default="lstm_as_rnnsearch", help="default: %(default)s")
    parser.add_argument(
        "--types", type=at_least(1), default=8000, help="size of the joined dictionary; default: %(default)s"
    )
    parser.add_argument("--hidden-size", type=at_least(1), default=HIDDEN, help="of the steps; default: %(default)s")
    parser.add_argument("--sentences", type=at_least(1), nargs="+", default=[1, 32], help="decoded together")
    parser.add_argument("--lengths", type=at_least(1), nargs="+", default=[25, 100], help="of the translations")
    parser.add_argument("--threads", type=at_least(1), default=2)
    parser.add_argument("--device", type=device_here, default="cpu")
    parser.add_argument("--repetitions", type=REPETITIONS, default=5)
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    args = parser.parse_args()
    if args.peer not in args.systems:
        parser.error(f"--peer {args.peer} is not among the --systems")
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    environment = versions(args.device)
    print(
        ", ".join(f"{name} {version}" for name, version in environment.items()) + f", {args.threads} threads, float32"
    )
    write_json(args.json, environment, measure_steps(args) + measure_beam_search(args))


if __name__ == "__main__":
    main()
