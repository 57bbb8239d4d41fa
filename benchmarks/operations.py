"""Times what models are made of, beside their recurrent layers, against PyTorch's own operations in the same run.

    python benchmarks/operations.py [--threads 1 2] [--repetitions 15] [--tiny] [--json FILE]

Forward and backward together: linear maps of the sizes of RNNSearch and DPN-S2S on IWSLT'14, the output layer with its
label-smoothed cross-entropy (4,000 tokens, 8,000 types), dropout, and 25 steps of additive attention (176 sentences of
25 tokens). The candidates take turns within each repetition; printed are medians, their spread (half the distance
between the quartiles, in percent) and the ratio to PyTorch's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from timing import REPETITIONS, at_least, take_turns, versions, write_json
from torch import Tensor

from fairseq_plugins.kernels.additive_attention import additive_attention
from fairseq_plugins.kernels.additive_attention import eager as attention_of_torch
from fairseq_plugins.kernels.dropout import dropout
from fairseq_plugins.kernels.linear import linear
from fairseq_plugins.kernels.output_cross_entropy import output_cross_entropy

PYTORCH, OURS = "PyTorch", "ours"
PADDING, LABEL_SMOOTHING = 1, 0.1
Candidates = dict[str, Callable[[], Tensor]]


def parameters(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(*shape).requires_grad_() for shape in shapes]


def linear_map(rows: int, inputs: int, outputs: int) -> tuple[list[Tensor], Candidates]:
    tensors = parameters((rows, inputs), (outputs, inputs), (outputs,))
    return tensors, {PYTORCH: lambda: F.linear(*tensors).sum(), OURS: lambda: linear(*tensors).sum()}


def dropped(rows: int, features: int) -> tuple[list[Tensor], Candidates]:
    """The candidates do not drop the same."""
    tensors = parameters((rows, features))
    return tensors, {PYTORCH: lambda: F.dropout(*tensors, 0.1).sum(), OURS: lambda: dropout(*tensors, 0.1).sum()}


def output_layer(tokens: int, features: int, types: int) -> tuple[list[Tensor], Candidates]:
    tensors = parameters((tokens, features), (types, features), (types,))
    target = torch.randint(4, types, (tokens,))

    def apart() -> Tensor:
        log_probabilities = F.log_softmax(F.linear(*tensors), dim=-1)
        return label_smoothed_nll_loss(log_probabilities, target, LABEL_SMOOTHING, PADDING)[0]

    return tensors, {
        PYTORCH: apart,
        OURS: lambda: output_cross_entropy(*tensors, target, PADDING, LABEL_SMOOTHING)[0],
    }


def attention(sentences: int, steps: int, sources: int, features: int) -> tuple[list[Tensor], Candidates]:
    tensors = parameters((sentences, 1, features), (sentences, sources, features), (sentences, sources, 2 * features))
    tensors += parameters((features,))
    mask = torch.arange(sources) >= torch.randint(1, sources + 1, (sentences, 1))

    def summed(attend: Callable[..., tuple[Tensor, Tensor]]) -> Tensor:
        return torch.stack([attend(*tensors, mask)[0].sum() for _ in range(steps)]).sum()

    return tensors, {
        PYTORCH: lambda: summed(attention_of_torch.additive_attention),
        OURS: lambda: summed(additive_attention),
    }


def operations(is_tiny: bool) -> dict[str, tuple[list[Tensor], Candidates]]:
    """Of each operation what it reads, and the candidates."""
    if is_tiny:
        sizes, output, steps = [(8, 4, 6)], (9, 4, 12), (2, 2, 3, 4)
    else:
        sizes = [(4400, 512, 1024), (4400, 768, 512), (3960, 256, 256), (176, 1024, 1024)]
        output, steps = (3960, 256, 8000), (176, 25, 25, 256)
    candidates = {
        f"linear map, {rows} x {inputs} -> {outputs}": linear_map(rows, inputs, outputs)
        for rows, inputs, outputs in sizes
    }
    candidates["dropout"] = dropped(*sizes[0][:2])
    candidates["output layer and loss"] = output_layer(*output)
    candidates["additive attention"] = attention(*steps)
    return candidates


def training_pass(tensors: list[Tensor], run: Callable[[], Tensor]) -> Callable[[], object]:
    return lambda: torch.autograd.grad(run(), tensors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=at_least(1), nargs="+", default=[1, 2])
    parser.add_argument("--repetitions", type=REPETITIONS, default=15)
    parser.add_argument("--tiny", action="store_true", help="sizes that show nothing but that it runs")
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    args = parser.parse_args()
    environment = versions()
    print(", ".join(f"{name} {version}" for name, version in environment.items()) + ", float32")
    rows = []
    for threads in args.threads:
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        print(f"\nforward and backward, {threads} threads")
        for name, (tensors, candidates) in operations(args.tiny).items():
            runs = {candidate: training_pass(tensors, run) for candidate, run in candidates.items()}
            timings = take_turns(runs, args.repetitions)
            for candidate, timing in timings.items():
                ratio = timing.median / timings[PYTORCH].median
                print(
                    f"{name:34} {candidate:8} {1000 * timing.median:9.1f} ms ± {timing.spread_percent:4.1f} %  "
                    f"{ratio:5.2f} x"
                )
                rows.append(
                    {
                        "operation": name,
                        "candidate": candidate,
                        "threads": threads,
                        "median_ms": 1000 * timing.median,
                        "spread_percent": timing.spread_percent,
                        "ratio_to_pytorch": ratio,
                    }
                )
    write_json(args.json, environment, rows)


if __name__ == "__main__":
    main()
