"""Times recurrent layers against ``torch.nn.LSTM`` of the same size in the same run.

    python benchmarks/recurrent_layers.py [--threads 1 2] [--sizes translation language_model] [--bfloat16]
    python benchmarks/recurrent_layers.py --device cuda --backends eager cuda_graph [--tf32]

For each size and number of threads: the forward pass without gradients, and forward and backward together. The
candidates take turns within each repetition, so that a machine that changes its speed changes it for all. Printed are
the median, the spread (half the distance between the quartiles, in percent of the median), and the ratio of the
medians to one layer of ``torch.nn.LSTM`` in float32 (on a GPU that is cuDNN's). ``--tf32`` lets all products round to
TF32, cuDNN's and ours; without it none does. With the backend ``cuda_graph`` the graphs captured are counted.

The peer ``per-channel loop`` is the MC-RNN as one would write it first: loops over time, channels and predecessors
around ``torch.nn.LSTMCell``.
"""

from __future__ import annotations

import argparse
import copy
import os
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from timing import REPETITIONS, at_least, device_here, take_turns, versions, write_json
from torch import Tensor, nn

from fairseq_plugins import kernels
from fairseq_plugins.modules import HigherOrderRNN, MultiChannelRNN

SIZES = {
    "translation": {"batch": 160, "steps": 25, "input": 256, "hidden": 256},
    "language_model": {"batch": 64, "steps": 70, "input": 400, "hidden": 1150},
    "language_model_20": {"batch": 20, "steps": 70, "input": 400, "hidden": 1150},
    "tiny": {"batch": 2, "steps": 3, "input": 4, "hidden": 4},
}
REFERENCE = "torch.nn.LSTM"


class PerChannelLoop(nn.Module):
    """MC-RNN by loops over t, k and j around ``torch.nn.LSTMCell``, with a :class:`MultiChannelRNN`'s parameters."""

    def __init__(self, layer: MultiChannelRNN) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(layer.input_size, layer.hidden_size, device=layer.weight_ih.device)
        for name, parameter in self.cell.named_parameters():
            parameter.data.copy_(getattr(layer, name))
        self.weight_connection = layer.weight_connection
        self.attention_v, self.attention_r = layer.attention_v, layer.attention_r

    def forward(self, x: Tensor) -> Tensor:
        """x (T, B, D) -> (T, B, H)."""
        channels, hidden_size, _ = self.weight_connection.shape
        zero = x.new_zeros(x.size(1), hidden_size)
        h: dict[tuple[int, int], Tensor] = {}
        memory = [zero] * channels
        outputs = []
        for t, x_t in enumerate(x.unbind(0), start=1):
            current = []
            for k in range(1, channels + 1):
                m = kernels.in_degree(t, k, channels)
                s = sum(F.linear(h.get((t - j, k), zero), self.weight_connection[j - 1]) for j in range(1, m + 1)) / m
                h[t, k], memory[k - 1] = self.cell(x_t, (s, memory[k - 1]))
                current.append(h[t, k])
            scores = [
                torch.tanh(F.linear(torch.cat([y, x_t], -1), self.attention_v)) @ self.attention_r for y in current
            ]
            weights = torch.softmax(torch.stack(scores), dim=0)
            outputs.append(sum(weights[k].unsqueeze(-1) * current[k] for k in range(channels)))
        return torch.stack(outputs)


def on_backend(layer: nn.Module, backend: str) -> Callable[[Tensor], Tensor]:
    dtype = layer.weight_ih.dtype

    def run(x: Tensor) -> Tensor:
        os.environ[kernels.BACKEND_VARIABLE] = backend
        return layer(x.to(dtype)).output.to(x.dtype)

    return run


def candidates(
    input_size: int, hidden_size: int, backends: list[str], device: str, bfloat16: bool
) -> dict[str, Callable[[Tensor], Tensor]]:
    """What is timed, each a function from x (T, B, D) to (T, B, H)."""
    lstm = nn.LSTM(input_size, hidden_size, device=device)
    deep = nn.LSTM(input_size, hidden_size, 3, device=device)
    made: dict[str, Callable[[Tensor], Tensor]] = {
        REFERENCE: lambda x: lstm(x)[0],
        f"{REFERENCE}, 3 layers": lambda x: deep(x)[0],
    }
    for channels in (2, 3, 4):
        layer = MultiChannelRNN(input_size, hidden_size, channels).to(device)
        if channels == 3:
            made["MC-RNN-3, per-channel loop"] = PerChannelLoop(layer)
        for backend in backends:
            made[f"MC-RNN-{channels}, {backend}"] = on_backend(layer, backend)
        if bfloat16:
            made[f"MC-RNN-{channels}, {backends[0]}, bfloat16"] = on_backend(
                copy.deepcopy(layer).bfloat16(), backends[0]
            )
    made[f"HO-RNN-3, {backends[0]}"] = on_backend(HigherOrderRNN(input_size, hidden_size).to(device), backends[0])
    return made


def one_pass(run: Callable[[Tensor], Tensor], x: Tensor, gradient: Tensor | None) -> Callable[[], None]:
    """One pass over x; with ``gradient`` forward and backward, else forward alone."""

    def once() -> None:
        if gradient is None:
            with torch.no_grad():
                run(x)
        else:
            x.grad = None
            run(x).backward(gradient)

    return once


def measure(
    size: dict[str, int],
    threads: int,
    repetitions: int,
    backends: list[str],
    device: str,
    bfloat16: bool,
    only: list[str],
) -> list[dict[str, object]]:
    """A row for each candidate and pass: median, spread, ratio."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    x = torch.randn(size["steps"], size["batch"], size["input"], device=device, requires_grad=True)
    gradient = torch.randn(size["steps"], size["batch"], size["hidden"], device=device)
    layers = candidates(size["input"], size["hidden"], backends, device, bfloat16)
    if unknown := [name for name in only if name not in layers]:
        raise SystemExit(f"error: --layers {unknown[0]!r}: there are {', '.join(map(repr, layers))}")
    layers = {name: run for name, run in layers.items() if not only or name in (REFERENCE, *only)}
    rows = []
    for name, upstream in (("forward", None), ("forward+backward", gradient)):
        runs = {layer: one_pass(run, x, upstream) for layer, run in layers.items()}
        timings = take_turns(runs, repetitions, device)
        for layer, timing in timings.items():
            rows.append(
                {
                    "pass": name,
                    "layer": layer,
                    "threads": threads,
                    **size,
                    "median_ms": 1000 * timing.median,
                    "spread_percent": timing.spread_percent,
                    "ratio_to_lstm": timing.median / timings[REFERENCE].median,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=at_least(1), nargs="+", default=[1, 2])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["translation"])
    parser.add_argument("--backends", nargs="+", default=["cpp", "eager"])
    parser.add_argument("--bfloat16", action="store_true", help="the first backend also with parameters in bfloat16")
    parser.add_argument(
        "--layers", nargs="+", default=[], metavar="NAME", help="these alone, called as they are printed"
    )
    parser.add_argument("--device", type=device_here, default="cpu")
    parser.add_argument("--tf32", action="store_true", help="let products of float32 round to TF32 on a GPU")
    parser.add_argument("--repetitions", type=REPETITIONS, default=15)
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32
    environment = versions(args.device)
    if args.device != "cpu":
        environment["TF32"] = "on" if args.tf32 else "off"
    print(", ".join(f"{name} {version}" for name, version in environment.items()))

    rows = []
    for size_name in args.sizes:
        size = SIZES[size_name]
        for threads in args.threads:
            measured = measure(size, threads, args.repetitions, args.backends, args.device, args.bfloat16, args.layers)
            rows += measured
            print(f"\n{size_name}: " + ", ".join(f"{k} {v}" for k, v in size.items()) + f", {threads} threads, float32")
            for row in measured:
                print(
                    f"{row['pass']:17} {row['layer']:28} {row['median_ms']:9.1f} ms "
                    f"± {row['spread_percent']:4.1f} %  {row['ratio_to_lstm']:5.2f} x"
                )
            step = {row["layer"]: row["median_ms"] for row in measured if row["pass"] == "forward+backward"}
            for backend in args.backends:
                names = "MC-RNN-3, per-channel loop", f"MC-RNN-3, {backend}"
                if not step.keys() >= set(names):
                    continue
                ratio = step[names[0]] / step[names[1]]
                print(f"MC-RNN-3 training step, {backend}: {ratio:.2f} times as fast as the per-channel loop")
    if "cuda_graph" in args.backends:
        from fairseq_plugins.kernels.multi_channel import cuda_graph

        print(f"graphs captured: {cuda_graph.captures()}")
    write_json(args.json, environment, rows)


if __name__ == "__main__":
    main()
