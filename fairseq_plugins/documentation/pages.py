"""What is generated, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ..experiments import configuration as configurations
from ..experiments import quickstart
from ..experiments.record_groups import group_of, has_own_budget
from ..experiments.records import Record
from ..scoring.metrics import metric_named
from ..tables.writing import markdown
from ..terminal import table
from . import (
    cache_gains,
    comparisons,
    copy_memory,
    families,
    notes,
    options_page,
    picture,
    rcrn_times,
    results_page,
    trials,
)
from .blocks import filled

NOTES = (
    "starting_scales",
    "sequence_tasks",
    "language_models",
    "multi30k",
    "iwslt14_sample",
    "gigaword_sample",
    "mc_rnn",
    "dpn",
    "rcrn",
)
WITH_PARTS = (
    "README.md",
    "docs/classification.md",
    "docs/language_models.md",
    *(f"docs/notes/{name}.md" for name in NOTES),
)
"""Pages with generated parts."""

RECORDED = (
    "quickstart_classification",
    "quickstart_language_model",
    "trec",
    "sst_2",
    "sst_5",
    "reviews",
    "wikiqa",
    "copy_memory_500",
    "copy_memory_1000",
    "pixel_mnist",
    "ptb",
    "ptb_small",
    "multi30k_de_en",
    "iwslt14_sample",
    "gigaword_sample",
)
"""Data sets whose recorded runs are on a page."""

Compared = tuple[str, Sequence[comparisons.Pair], Sequence[int]]
"""A data set, systems that are compared over their seeds, and of how many epochs' checkpoints."""

COMPARED: Mapping[str, Compared] = {
    "quickstart": ("quickstart", [("rnnsearch", "mc_rnn_3")], [0]),
    **{name: (name, [("bilstm", "rcrn"), ("bilstm_3", "rcrn")], [0]) for name in ("trec", "sst_2", "sst_5", "wikiqa")},
    "wikiqa-word_overlap": ("wikiqa", [("word_overlap", name) for name in ("bilstm", "bilstm_3", "rcrn")], [0]),
    "reviews": (
        "reviews",
        [(f"{kind}_{name}", f"rcrn_{name}") for name in ("mr", "apparel", "books") for kind in ("bilstm", "bilstm_3")],
        [0],
    ),
    "pixel_mnist": (
        "pixel_mnist",
        [("gru", "dilated_gru"), ("gru", "dilated_rnn"), ("dilated_rnn", "dilated_gru")],
        [0],
    ),
    "ptb_small": (
        "ptb_small",
        [
            ("lstm", "mc_rnn_3"),
            ("lstm_large", "mc_rnn_3"),
            ("lstm", "lstm_large"),
            ("lstm", "mc_rnn_3_slow"),
            ("lstm_large", "mc_rnn_3_slow"),
        ],
        [0],
    ),
    "multi30k-mc_rnn": (
        "multi30k_de_en",
        [
            ("rnnsearch", "mc_rnn_3"),
            ("rnnsearch_large", "mc_rnn_3"),
            ("rnnsearch", "rnnsearch_large"),
            ("rnnsearch", "mc_rnn_3_gate"),
            ("mc_rnn_3", "mc_rnn_3_gate"),
            ("rnnsearch", "ho_rnn"),
            ("lstm", "rnnsearch"),
        ],
        [0, 5],
    ),
    "multi30k-dpn": (
        "multi30k_de_en",
        [("dpn_m1", "dpn"), ("dpn_m5", "dpn"), ("transformer_larger", "dpn"), ("fconv", "dpn")],
        [0, 5],
    ),
    "iwslt14_sample": ("iwslt14_sample", [("rnnsearch", "mc_rnn_3"), ("transformer", "dpn")], [0, 5]),
}
"""Part of a page → what it compares."""

DIFFERENCES: Mapping[str, Compared] = {
    "multi30k-mc_rnn": ("multi30k_de_en", [("rnnsearch", "mc_rnn_3"), ("rnnsearch_large", "mc_rnn_3")], [0, 5]),
    "multi30k-dpn": COMPARED["multi30k-dpn"],
}
"""The same for parts that show the differences alone."""


def generated(checkout: Path, records: Sequence[Record]) -> dict[Path, str]:
    """Every page that is generated or has a generated part, with the text that it should have.

    Args:
        checkout: whose pages they are
        records: of its runs
    """
    docs = checkout / "docs"
    pages = {
        docs / "results.md": results_page.page(records).rstrip() + "\n",
        docs / "options.md": options_page.page().rstrip() + "\n",
        docs / "pictures" / "models.svg": picture.picture(),
    }
    drawn = docs / "pictures" / "copy_memory.svg"
    pages[drawn] = copy_memory.picture(records, drawn.read_text(encoding="utf-8") if drawn.exists() else "")
    makers = parts(records)
    for name in WITH_PARTS:
        path = checkout / name
        pages[path] = filled(path.read_text(encoding="utf-8"), makers, name)
    return pages


def parts(records: Sequence[Record]) -> Mapping[str, Callable[[], str]]:
    """Name → what makes this part of a page."""
    return {
        "quickstart-output": lambda: quickstart_output(records),
        "families": lambda: families.table(records),
        "first-updates": notes.first_updates,
        "ten-epochs": notes.epochs,
        "iwslt14-losses": lambda: notes.validation_losses(records, "iwslt14_sample"),
        **{f"overlong-{name}": partial(notes.overlong, records, name) for name in ("multi30k_de_en", "iwslt14_sample")},
        "epochs-ptb_small": lambda: notes.validation_perplexities(records, "ptb_small", (1, 2, 3, 4, 5, 10, 15, 20)),
        "ho-rnn-epochs": lambda: notes.epochs(notes.DATA / "ho_rnn_ten_epochs_multi30k.json"),
        **{f"recorded-{name}": partial(recorded, records, name) for name in RECORDED},
        **{f"compared-{name}": partial(comparisons.comparisons, records, *what) for name, what in COMPARED.items()},
        **{
            f"differences-{name}": partial(comparisons.comparisons, records, *what, brief=True)
            for name, what in DIFFERENCES.items()
        },
        "compared-ptb_small-cache": partial(
            comparisons.comparisons, records, *COMPARED["ptb_small"], differences=cache_gains.OPTIONS
        ),
        **{f"cache-{name}": partial(cache_gains.table, records, name) for name in ("ptb", "ptb_small")},
        "trials-ptb_small": partial(
            trials.table, records, "ptb_small", {"dropout": "dropout", "learning rate": "lr"}, epochs=5
        ),
        "first-epochs": lambda: notes.first_epochs(256),
        "first-epochs-small": lambda: notes.first_epochs(128),
        "dpn-first-epochs": lambda: notes.first_epochs(256, notes.DATA / "dpn_first_epochs_multi30k.json", digits=2),
        "peers-first-epochs": lambda: notes.first_epochs(
            256, notes.DATA / "peers_first_epochs_multi30k.json", digits=2
        ),
        "dpn-table-4-small": notes.small_table,
        "rcrn-table-10": rcrn_times.table,
        "rcrn-table-10-parameters": rcrn_times.parameters,
        "rcrn-table-10-range": rcrn_times.times_as_long,
        "copy-memory-500": lambda: copy_memory.table(records, 500),
        "copy-memory-1000": lambda: copy_memory.table(records, 1000),
    }


def recorded(records: Sequence[Record], dataset: str) -> str:
    """The recorded runs of a data set with their configurations' options of today or a budget of their own, on its test
    set."""
    own = [record for record in records if record.dataset == dataset and "test" in record.scores]
    own = [record for record in own if not record.carried_over]
    own = [record for record in own if not record.differences or has_own_budget(record)]
    if not own:
        return f"{results_page.NOT_RECORDED.capitalize()}."
    return "\n".join(markdown(results_page.recorded_rows(own, "test")))


def quickstart_output(records: Sequence[Record]) -> str:
    """The scores as scripts/quickstart.sh prints them, of the recorded run with the lowest seed."""
    task = quickstart.TASKS["translation"]
    metric = metric_named("bleu")
    baseline = task.names[1]
    found: dict[str, Record | None] = {baseline: None}
    for record in records:
        if (record.dataset, record.system) == (task.configurations, baseline.replace(" ", "_")):
            found[baseline] = record
    for name in quickstart.SYSTEMS:
        group = group_of(configurations.load(quickstart.preset(task, name)), records)
        found[name] = min(group.records, key=lambda record: record.seed or 0) if group else None
    recorded = {name: record for name, record in found.items() if record is not None}
    if len(recorded) < len(found):
        return f"{results_page.NOT_RECORDED.capitalize()}: `scripts/quickstart.sh --record` records these scores."
    rows = [
        {
            "system": name,
            "parameters": record.parameters,
            "updates": record.updates,
            "training seconds": record.train_seconds,
            **{column.label: record.scores["test"].get(column.key) for column in metric.columns},
        }
        for name, record in recorded.items()
    ]
    notes = quickstart.add_recorded(rows, task, metric, True, records)
    explained = metric.explanations(recorded[baseline].scores["test"])
    return "\n".join(["```", "== Scores on the test set ==", table(rows), *explained, *notes, "```"])
