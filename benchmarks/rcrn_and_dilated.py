"""Times RCRN and DilatedRNN against torch's own layers in the same run.

    python benchmarks/rcrn_and_dilated.py [--threads 1 2] [--networks rcrn dilated] [--cells lstm gru rnn]
                                          [--repetitions 15]
    python benchmarks/rcrn_and_dilated.py --networks waveform [--samples 8000]

RCRN against a 3-layer bidirectional LSTM (RCRN, Table 10: D = H = 200, 32 rows, 16 to 256 steps); DilatedRNN of each
dilation against one plain layer of the same cell, and the stack of nine against nine plain layers (50 features, 32
rows, 1,024 steps). Over a waveform, half a second of 16 kHz in 8 rows, DilatedRNN's Table 3: dilated GRUs of 50 with
dilations from 8 and from 32 to 1,024, and as many plain GRU layers; only the last output is read.
The candidates take turns within each repetition; printed are medians, their spread and the ratio to the reference.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from timing import REPETITIONS, at_least, take_turns, versions, write_json
from torch import Tensor, nn

from fairseq_plugins.modules import DilatedRNN, DilatedRNNStack, RecurrentlyControlledRNN

DILATIONS = [2**i for i in range(9)]
CELLS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


class Comparison(NamedTuple):
    """Candidates that read the same x (T, B, D) and return (T, B, H); ratios are to the first."""

    title: str
    shape: tuple[int, int, int]
    candidates: dict[str, Callable[[Tensor], Tensor]]


def rcrn(lengths: list[int], batch: int = 32, size: int = 200) -> Iterator[Comparison]:
    """RCRN and a bidirectional LSTM of three layers."""
    deep, layer = nn.LSTM(size, size, 3, bidirectional=True), RecurrentlyControlledRNN(size, size)
    for steps in lengths:
        candidates = {"3-layer BiLSTM": lambda x: deep(x)[0], "RCRN": lambda x: layer(x).output}
        yield Comparison(f"RCRN, {steps} steps", (steps, batch, size), candidates)


def dilated(dilations: list[int], cell: str, size: int, steps: int = 1024, batch: int = 32) -> Iterator[Comparison]:
    """A DilatedRNN of each dilation and a plain layer; the whole stack and as many plain layers."""
    plain, deep = CELLS[cell](size, size), CELLS[cell](size, size, len(dilations))
    layers = {f"DilatedRNN, dilation {dilation}": DilatedRNN(size, size, dilation, cell) for dilation in dilations}
    stack = DilatedRNNStack(size, [size] * len(dilations), dilations, cell)
    shape, name = (steps, batch, size), f"torch.nn.{CELLS[cell].__name__}"
    single = {name: (lambda x, layer=layer: layer(x).output) for name, layer in layers.items()}
    yield Comparison("DilatedRNN, one layer", shape, {name: lambda x: plain(x)[0], **single})
    both = {f"{name}, {len(dilations)} layers": lambda x: deep(x)[0], "DilatedRNNStack": lambda x: stack(x).output}
    yield Comparison(f"DilatedRNN, {len(dilations)} layers", shape, both)


def waveform(samples: int, batch: int = 8, size: int = 50) -> Iterator[Comparison]:
    """Raw dilated GRUs (DilatedRNN, Section 4.4), and ``torch.nn.GRU`` over the same samples."""
    for first, layers in ((8, 8), (32, 6)):
        plain = nn.GRU(1, size, layers)
        stack = DilatedRNNStack(1, [size] * layers, [first * 2**layer for layer in range(layers)], "gru")
        stack.layers[-1].fused_steps = 1
        candidates = {
            f"torch.nn.GRU, {layers} layers": lambda x, plain=plain: plain(x)[0][-1:],
            f"dilations {first} to 1,024": lambda x, stack=stack: stack(x).output[-1:],
        }
        yield Comparison(f"a waveform, {layers} layers", (samples, batch, 1), candidates)


def one_pass(run: Callable[[Tensor], Tensor], x: Tensor, is_training: bool) -> Callable[[], None]:
    """One pass over x: forward and backward, or forward without gradients."""
    with torch.no_grad():
        gradient = torch.randn_like(run(x))

    def once() -> None:
        if is_training:
            x.grad = None
            run(x).backward(gradient)
        else:
            with torch.no_grad():
                run(x)

    return once


def measure(comparison: Comparison, threads: int, repetitions: int) -> list[dict[str, object]]:
    """A row for each candidate and pass: median, spread, ratio to the first."""
    torch.set_num_threads(threads)
    x = torch.randn(comparison.shape, requires_grad=True)
    rows = []
    for name, is_training in (("forward", False), ("forward+backward", True)):
        runs = {layer: one_pass(run, x, is_training) for layer, run in comparison.candidates.items()}
        timings = take_turns(runs, repetitions)
        reference = next(iter(timings.values()))
        rows += [
            {
                "comparison": comparison.title,
                "pass": name,
                "layer": layer,
                "threads": threads,
                "median_ms": 1000 * timing.median,
                "spread_percent": timing.spread_percent,
                "ratio": timing.median / reference.median,
            }
            for layer, timing in timings.items()
        ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=at_least(1), nargs="+", default=[1, 2])
    parser.add_argument("--networks", nargs="+", choices=("rcrn", "dilated", "waveform"), default=["rcrn", "dilated"])
    parser.add_argument(
        "--steps", type=at_least(1), nargs="+", default=[16, 32, 64, 128, 256], help="of RCRN's sequences"
    )
    parser.add_argument("--dilations", type=at_least(1), nargs="+", default=DILATIONS, help="of DilatedRNN's layers")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=["lstm"], help="inside DilatedRNN's layers")
    parser.add_argument("--samples", type=at_least(1), default=8_000, help="of the waveform")
    parser.add_argument("--features", type=at_least(1), default=50, help="of DilatedRNN's layers")
    parser.add_argument("--repetitions", type=REPETITIONS, default=15)
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    args = parser.parse_args()
    environment = versions()
    print(", ".join(f"{name} {version}" for name, version in environment.items()))
    torch.manual_seed(1)
    rows = []
    comparisons = list(rcrn(args.steps)) if "rcrn" in args.networks else []
    for cell in args.cells if "dilated" in args.networks else ():
        comparisons += dilated(args.dilations, cell, args.features)
    comparisons += waveform(args.samples) if "waveform" in args.networks else []
    for comparison in comparisons:
        for threads in args.threads:
            print(f"\n{comparison.title}, {threads} threads, float32")
            for row in measure(comparison, threads, args.repetitions):
                rows.append(row)
                print(
                    f"{row['pass']:17} {row['layer']:28} {row['median_ms']:9.1f} ms "
                    f"± {row['spread_percent']:4.1f} %  {row['ratio']:5.2f} x"
                )
    write_json(args.json, environment, rows)


if __name__ == "__main__":
    main()
