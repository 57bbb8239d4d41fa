"""Which kind of prepared data a model reads, and a metric scores: another kind is refused before anything is trained.

Models, tasks and kinds of a user's own are not known here, and not refused.
"""

from __future__ import annotations

from .. import register
from ..errors import InputError
from ..scoring.metrics import Metric
from .prepared_data import PreparedData

KINDS = {
    "pairs": "pairs of texts",
    "running_text": "running text",
    "labelled_texts": "labelled texts",
    "generated_sequences": "generated sequences",
}
"""Kind in ``preparation.json`` → what it is called."""

OF_TASKS = {
    "translation": "pairs",
    "streaming_language_modeling": "running_text",
    "language_modeling": "running_text",
    "sequence_classification": "labelled_texts",
    "sequence_ranking": "labelled_texts",
    "long_memory": "generated_sequences",
}
"""Task → the kind that it reads."""

OF_MODELS = {
    "sequence_classifier": "labelled_texts",
    "sequence_pair_classifier": "labelled_texts",
    "sequence_ranker": "labelled_texts",
    "long_memory_network": "generated_sequences",
}
"""Model → the kind that it reads, where its class does not say it."""

OF_DECODINGS = {
    "generate": ("pairs",),
    "classification": ("labelled_texts", "generated_sequences"),
    "text": ("running_text",),
}
"""``Metric.decoding`` → the kinds of which there is something to score."""


def check_model(data: PreparedData, arch: str, task: str | None) -> None:
    """Looks before a training whether the data is of the kind that is read.

    Args:
        data: the prepared data
        arch: the architecture
        task: fairseq's, where the experiment names one

    Raises:
        InputError: it is of another kind.
    """
    kind = data.preparation.kind
    if kind not in KINDS or (task is not None and task not in OF_TASKS):
        return
    needs = {f"--task {task}": OF_TASKS.get(task or ""), f"--arch {arch}": _kind_of_model(arch)}
    for reader, needed in needs.items():
        if needed is not None and needed != kind:
            raise InputError(
                f"{data.folder}: a corpus of {KINDS[kind]}, but {reader} reads {KINDS[needed]}; name other data by "
                f"--data, or another configuration"
            )


def check_metric(data: PreparedData, metric: Metric) -> None:
    """Looks before a training whether what a metric scores can be made of the data.

    Raises:
        InputError: the data is of a kind of which nothing is made that the metric scores.
    """
    kind, needed = data.preparation.kind, OF_DECODINGS[metric.decoding]
    if kind in KINDS and kind not in needed:
        raise InputError(
            f"{data.folder}: a corpus of {KINDS[kind]}, but the metric '{metric.name}' scores what is made of "
            f"{' or '.join(map(KINDS.__getitem__, needed))}; name another metric in the configuration "
            f"(evaluate: metric), or prepare the data for it"
        )


def _kind_of_model(arch: str) -> str | None:
    """The kind that an architecture's model reads; None where nobody knows."""
    register()
    from fairseq.models import (
        ARCH_MODEL_NAME_REGISTRY,
        ARCH_MODEL_REGISTRY,
        FairseqEncoderDecoderModel,
        FairseqLanguageModel,
    )

    model = ARCH_MODEL_REGISTRY.get(arch, object)
    if issubclass(model, FairseqEncoderDecoderModel):
        return "pairs"
    if issubclass(model, FairseqLanguageModel):
        return "running_text"
    return OF_MODELS.get(ARCH_MODEL_NAME_REGISTRY.get(arch, arch))
