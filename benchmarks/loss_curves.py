"""Trains the same model with and without each fast operation, and prints how far the losses of the updates differ.

    python benchmarks/loss_curves.py [--updates 200] [--without NAME ...] [--json FILE] DATA FAIRSEQ-TRAIN OPTIONS...

DATA and the options are those of fairseq-train (``scripts/train.sh`` prints its command), such as

    python benchmarks/loss_curves.py work/multi30k_de_en/data/bin --task translation --arch rnnsearch_iwslt_de_en \
        --criterion output_cross_entropy --optimizer adam --lr 3e-3 --clip-norm 1 --dropout 0.3 --max-tokens 1000

Each training is a process of its own with the same seed, and so with the same batches and dropout. ``rounding`` is the
training as it is, from weights that differ in their last bit (each by a factor of 1 ± 2^-23 at random): what float32's
rounding alone does to a curve. The others do without one fast operation: without the first backend of
``kernels/dispatch.py`` that would run, or with fairseq's own Adam. The operation ``dropout`` is not among them, since
its backends draw other random numbers. Printed is the difference to the training as it is, in bits of loss: the largest
of all updates, and the mean over the last tenth of them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.optim.adam import Adam
from fairseq.trainer import Trainer
from fairseq_cli.train import cli_main
from timing import at_least, versions, write_json

import fairseq_plugins
from fairseq_plugins.kernels.dispatch import OPERATIONS

CHECKOUT = Path(__file__).resolve().parents[1]
AS_IT_IS, ROUNDING, ADAM = "as it is", "rounding", "adam"
OTHER_NUMBERS = "dropout"
WITHOUT = [*(name for name in OPERATIONS if name != OTHER_NUMBERS), ADAM]


def main() -> None:
    what, _, usage, *_ = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(description=what, usage=usage.strip())
    parser.add_argument("--updates", type=at_least(1), default=200)
    parser.add_argument("--without", nargs="+", choices=WITHOUT, default=WITHOUT)
    parser.add_argument("--json", type=Path, help="write all losses to this file as well")
    parser.add_argument("data")
    options, fairseq_options = parser.parse_known_args()
    command = [options.data, *fairseq_options, "--max-update", str(options.updates)]
    print(", ".join(f"{name} {value}" for name, value in versions().items()))
    as_it_is = losses(AS_IT_IS, command)
    print(f"{len(as_it_is)} updates, loss {as_it_is[0]:.3f} to {as_it_is[-1]:.3f} bits; differences to it:")
    rows = [{"training": AS_IT_IS, "losses": as_it_is}]
    for name in ROUNDING, *options.without:
        curve = losses(name, command)
        rows.append({"training": name, "losses": curve})
        differences = [abs(ours - theirs) for ours, theirs in zip(curve, as_it_is, strict=True)]
        last = differences[-max(1, len(differences) // 10) :]
        what = name if name == ROUNDING else f"without {name}"
        print(f"{what:<30} largest {max(differences):.2e}   end {sum(last) / len(last):.2e} bits", flush=True)
    write_json(options.json, versions(), rows)


def losses(name: str, command: Sequence[str]) -> list[float]:
    """Bits a token (or whatever the criterion divides by) at each update of one training.

    Raises:
        SystemExit: the training failed; its last words are printed before.
    """
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "losses.json"
        finished = subprocess.run(
            [sys.executable, __file__, "train", name, str(written), *command, "--save-dir", folder],
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if finished.returncode:
            raise SystemExit(f"{finished.stdout[-3000:]}\nfairseq-train failed ({name})")
        return json.loads(written.read_text())


def disturb(model: torch.nn.Module) -> None:
    """Moves each weight by the last of its bits, up or down at random, with a seed."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            signs = torch.randint(0, 2, parameter.shape, generator=generator) * 2 - 1
            parameter.mul_(1 + signs * torch.finfo(torch.float32).eps)


def withdraw(name: str) -> None:
    """Lets this process, where the plugin is registered, do without a fast operation."""
    if name == ADAM:
        Adam.step = Adam.step.__wrapped__
    else:
        first = next(backend for backend in OPERATIONS[name] if not backend.is_measured)
        OPERATIONS[name] = tuple(backend for backend in OPERATIONS[name] if backend != first)


def train(name: str, written: Path, arguments: Sequence[str]) -> None:
    """fairseq-train in this process, with the change of this name; writes the losses of its updates."""
    fairseq_plugins.register()  # fairseq skips a user folder whose package is imported already
    curve: list[float] = []
    build, step = Trainer.__init__, Trainer.train_step

    def recorded(self: Trainer, *arguments: Any, **named: Any) -> Any:
        # fairseq's own log rounds to three digits.
        batches: list[tuple[float, float]] = []
        forward = self.task.train_step

        def remembered(*arguments: Any, **named: Any) -> tuple:
            loss, sample_size, logged = forward(*arguments, **named)
            batches.append((float(loss), float(sample_size)))
            return loss, sample_size, logged

        self.task.train_step = remembered
        try:
            return step(self, *arguments, **named)
        finally:
            self.task.train_step = forward
            total, size = map(sum, zip(*batches, strict=True))
            curve.append(total / size / math.log(2))

    def disturbed(self: Trainer, cfg: Any, task: Any, model: torch.nn.Module, *rest: Any) -> None:
        disturb(model)
        build(self, cfg, task, model, *rest)

    Trainer.train_step = recorded
    if name == ROUNDING:
        Trainer.__init__ = disturbed
    elif name != AS_IT_IS:
        withdraw(name)
    always = ["--user-dir", str(CHECKOUT / "fairseq_plugins"), "--cpu", "--no-save", "--disable-validation"]
    sys.argv = ["fairseq-train", *arguments, *always]
    cli_main()
    written.write_text(json.dumps(curve))


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
    else:
        main()
