"""How the time of a training step of a layer grows with time steps, channels, features and batch, one at a time.

    python benchmarks/scaling.py [--threads 2] [--output benchmarks/results]

Around 25 steps, 3 channels, 256 features, batch 32: forward and backward of MC-RNN beside ``torch.nn.LSTM``, which take
turns within each repetition. Writes ``scaling_<device>.json``, a plot ``scaling_<device>.svg`` and a report
``scaling_<device>.md``, which is printed too: the medians, and the exponent p with which time grows with the number of
steps (time ~ T^p, fitted to all of them by least squares; linear is 1).

    python benchmarks/scaling.py --models [--threads 1] [--budget 30]

does whole models, in training and in beam search (``scaling_models.py``), and writes ``scaling_models_cpu.*``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import scaling_models
import torch
from recurrent_layers import one_pass
from timing import REPETITIONS, at_least, device_here, exponent, take_turns, versions, write_json
from torch import nn

from fairseq_plugins.files import atomic_file
from fairseq_plugins.modules import MultiChannelRNN

CENTRE = {"steps": 25, "channels": 3, "hidden": 256, "batch": 32}
AXES = {
    "steps": [16, 32, 64, 128, 256, 512, 1024],
    "channels": [1, 2, 3, 4, 5, 6, 7, 8],
    "hidden": [128, 256, 512, 1024],
    "batch": [1, 4, 16, 64, 128, 256, 512],
}
TINY_AXES = {"steps": [2, 4], "channels": [1, 2], "hidden": [4, 8], "batch": [1, 2]}
LABELS = {"steps": "time steps T", "channels": "channels C", "hidden": "hidden size H", "batch": "batch B"}


def measure(size: dict[str, int], repetitions: int, device: str) -> dict[str, float]:
    """Median milliseconds of forward and backward."""
    torch.manual_seed(1)
    hidden = size["hidden"]
    x = torch.randn(size["steps"], size["batch"], hidden, device=device, requires_grad=True)
    gradient = torch.randn_like(x)
    lstm = nn.LSTM(hidden, hidden, device=device)
    layer = MultiChannelRNN(hidden, hidden, size["channels"]).to(device)
    runs = {
        "torch.nn.LSTM": one_pass(lambda x: lstm(x)[0], x, gradient),
        "MC-RNN": one_pass(lambda x: layer(x).output, x, gradient),
    }
    return {name: 1000 * timing.median for name, timing in take_turns(runs, repetitions, device).items()}


def report(rows: list[dict[str, Any]], machine: str) -> str:
    lines = ["# Time of a training step by size", "", f"{machine}.", ""]
    lines.append("Forward and backward, float32, medians; " + ", ".join(f"{k} {v}" for k, v in CENTRE.items()) + " but")
    lines.append("for what is named.")
    for axis in AXES:
        lines += ["", f"| {LABELS[axis]} | torch.nn.LSTM | MC-RNN | ratio |", "|---|---|---|---|"]
        for row in rows:
            if row["axis"] == axis:
                lstm, ours = row["torch.nn.LSTM"], row["MC-RNN"]
                lines.append(f"| {row[axis]} | {lstm:.1f} ms | {ours:.1f} ms | {ours / lstm:.2f} |")
    of_steps = [row for row in rows if row["axis"] == "steps"]
    powers = {
        layer: exponent([(row["steps"], row[layer]) for row in of_steps]) for layer in ("torch.nn.LSTM", "MC-RNN")
    }
    shown = ", ".join(f"{layer} p = {power:.2f}" for layer, power in powers.items())
    verdict = "is" if abs(powers["MC-RNN"] - 1) < 0.1 else "is NOT"
    lines += ["", f"Time grows with the number of steps as T^p: {shown}. That of MC-RNN {verdict} linear in T."]
    return "\n".join(lines) + "\n"


def draw(rows: list[dict[str, Any]], machine: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, plots = pyplot.subplots(1, len(AXES), figsize=(16, 4), layout="constrained")
    for axis, plot in zip(AXES, plots, strict=True):
        of_axis = [row for row in rows if row["axis"] == axis]
        for layer, marker in (("torch.nn.LSTM", "o"), ("MC-RNN", "s")):
            plot.plot([row[axis] for row in of_axis], [row[layer] for row in of_axis], marker=marker, label=layer)
        if axis != "channels":
            plot.set_xscale("log", base=2)
            plot.set_yscale("log")
        else:
            plot.set_ylim(bottom=0)
        plot.set_xlabel(LABELS[axis])
        plot.grid(alpha=0.3)
    plots[0].set_ylabel("forward and backward, ms")
    plots[0].legend()
    figure.suptitle(machine, fontsize=9)
    with atomic_file(path, "wb") as stream:
        figure.savefig(stream, format="svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=at_least(1), default=2)
    parser.add_argument("--device", type=device_here, default="cpu")
    parser.add_argument("--repetitions", type=REPETITIONS, default=5)
    parser.add_argument("--tiny", action="store_true", help="so small that it says nothing: to see that it works")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("results"))
    parser.add_argument("--models", action="store_true", help="whole models, on the CPU")
    parser.add_argument("--budget", type=at_least(1), default=30, help="seconds of a point of --models")
    args = parser.parse_args()
    if args.models:
        args.output.mkdir(parents=True, exist_ok=True)
        scaling_models.compare(args.tiny, args.threads, args.budget, versions(), args.output)
        return
    torch.set_num_threads(args.threads)
    environment = versions(args.device)
    machine = ", ".join(f"{name} {version}" for name, version in environment.items()) + f", {args.threads} threads"
    rows = []
    for axis, values in (TINY_AXES if args.tiny else AXES).items():
        for value in values:
            size = {**CENTRE, axis: value}
            rows.append({"axis": axis, **size, **measure(size, args.repetitions, args.device)})
            print(f"{axis} {value}: " + ", ".join(f"{k} {rows[-1][k]:.1f} ms" for k in ("torch.nn.LSTM", "MC-RNN")))
    args.output.mkdir(parents=True, exist_ok=True)
    name = f"scaling_{torch.device(args.device).type}"
    write_json(args.output / f"{name}.json", environment, rows)
    text = report(rows, machine)
    with atomic_file(args.output / f"{name}.md") as stream:
        stream.write(text)
    print("\n" + text)
    draw(rows, machine, args.output / f"{name}.svg")


if __name__ == "__main__":
    main()
