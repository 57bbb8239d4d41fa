"""The part ``models`` of ``gpu.py``: whole models beside fairseq's own of the same size, and the memory they take."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import torch
from gpu_cells import PRECISIONS, Cell, Figure, Plan, set_precision
from models import LENGTHS, batch, beam_search, model_of, task_of, training_step
from timing import Timing, take_turns
from torch import nn

# Model, its peer, the backends that it is measured on.
PAIRS = (
    ("mc_rnn_iwslt_de_en", "lstm_as_rnnsearch", ("cuda_graph", "eager")),
    ("rnnsearch_iwslt_de_en", "lstm_as_rnnsearch", ("cuda_graph", "eager")),
    ("dpn_iwslt_de_en", "transformer_as_dpn", ("",)),
    ("dpn_iwslt_de_en", "fconv_as_dpn", ("",)),
)
TYPES = 8000
SENTENCES = {"training": 176, "beam search": 64}


def model_cells(plan: Plan) -> Iterator[Cell]:
    """A cell for each pair, precision and backend."""
    sentences = dict.fromkeys(SENTENCES, 2) if plan.dry else SENTENCES
    size = f"{sentences['training']} and {sentences['beam search']} sentences"
    for precision in PRECISIONS[:1] if plan.dry else PRECISIONS:
        for model, peer, backends in PAIRS:
            # What refuses GPUs' backends on a CPU is seen in the part ``layers``.
            for backend in backends[-1:] if plan.dry else backends:
                measure = functools.partial(pair, model, peer, sentences, precision, plan)
                yield Cell("models", f"{model} to {peer}", size, precision, backend, measure, seconds=90)


def pair(model_name: str, peer: str, sentences: dict[str, int], precision: str, plan: Plan) -> list[Figure]:
    """Speeds of a model and its peer in training and beam search, and the most memory that each work takes."""
    dtype = set_precision(precision)
    types, length = (50, 3) if plan.dry else (TYPES, LENGTHS[1])
    names = (model_name, peer)
    tasks = {name: task_of(name, types) for name in names}
    models = {name: model_of(name, tasks[name]).to(plan.device, dtype) for name in names}
    figures = []
    for work, amount, unit in (
        ("training", None, "tokens/s"),
        ("beam search", sentences["beam search"], "sentences/s"),
    ):
        samples = {name: batch(tasks[name], sentences[work], plan.device) for name in names}
        if work == "training":
            runs = {name: training_step(models[name], tasks[name], samples[name]) for name in names}
        else:
            for model in models.values():
                model.eval().make_generation_fast_(beamable_mm_beam_size=None, need_attn=False)
            runs = {name: beam_search(models[name], tasks[name], samples[name], length) for name in names}
        timings = take_turns(runs, plan.repetitions, plan.device)
        amounts = {name: amount or samples[name]["ntokens"] for name in names}
        figures += speeds(work, timings, amounts, unit)
        if torch.device(plan.device).type == "cuda":
            figures.append(memory(work, runs, list(models.values()), plan.device))
    return figures


def speeds(work: str, timings: dict[str, Timing], amounts: dict[str, int], unit: str) -> list[Figure]:
    """Speeds of the first and of its peer, the second."""
    (name, timing), (peer, other) = timings.items()
    own_speed, peer_speed = amounts[name] / timing.median, amounts[peer] / other.median
    return [
        Figure(work, own_speed, unit, timing.spread_percent, own_speed / peer_speed, peer),
        Figure(f"{work}, the peer", peer_speed, unit, other.spread_percent),
    ]


def memory(work: str, runs: dict[str, Callable[[], None]], models: list[nn.Module], device: str) -> Figure:
    """The most memory that tensors of the first take, as if it were alone there, beside that of its peer."""
    # Parameters; in training their gradients and momentum too, which the runs before have left there.
    copies = 3 if work == "training" else 1
    peaks = []
    for run, model in zip(runs.values(), models, strict=True):
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        torch.cuda.synchronize(device)
        model_bytes = copies * sum(parameter.nbytes for parameter in model.parameters())
        peaks.append((torch.cuda.max_memory_allocated(device) - before + model_bytes) / 2**20)
    return Figure(f"{work}, peak memory", peaks[0], "MiB", None, peaks[0] / peaks[1], list(runs)[1])
