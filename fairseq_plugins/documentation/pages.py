"""What is generated, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..experiments import configuration as configurations
from ..experiments import quickstart
from ..experiments.configuration import CHECKOUT
from ..experiments.records import Record, group_of
from ..scoring.metrics import metric_named
from ..tables.writing import markdown
from ..terminal import table
from . import options_page, picture, results_page
from .blocks import filled

WITH_PARTS = ("README.md",)
"""Pages with generated parts."""

FAMILIES = (
    ("MC-RNN", "mc_rnn_table_2", "MC-RNN-3", "iwslt14_de_en/mc_rnn_3.yaml"),
    ("RNNSearch, its baseline", "mc_rnn_table_2", "Baseline-RNN", "iwslt14_de_en/rnnsearch.yaml"),
    ("HO-RNN", "mc_rnn_table_2", "HO-RNN", "iwslt14_de_en/ho_rnn.yaml"),
    ("HM-RNN", "mc_rnn_table_2", "HM-RNN", "iwslt14_de_en/hm_rnn.yaml"),
    ("RCRN", None, None, "iwslt14_de_en/rcrn.yaml"),
    ("DilatedRNN", None, None, "iwslt14_de_en/dilated_rnn.yaml"),
    ("DPN-S2S", "dpn_table_1", "DPN-S2S", "iwslt14_de_en_10k/dpn.yaml"),
    ("fairseq's `fconv`, its baseline", "dpn_table_1", "Deeper CNN", "iwslt14_de_en_10k/cnn_deeper.yaml"),
    ("fairseq's `transformer`, its baseline", "dpn_table_1", "Deeper SAN", "iwslt14_de_en_10k/san_deeper.yaml"),
)
"""README's rows: family, the paper's table and row where it has one, configuration."""


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
    makers = parts(records)
    for name in WITH_PARTS:
        path = checkout / name
        pages[path] = filled(path.read_text(encoding="utf-8"), makers, name)
    return pages


def parts(records: Sequence[Record]) -> Mapping[str, Callable[[], str]]:
    """Name → what makes this part of a page."""
    return {"quickstart-output": lambda: quickstart_output(records), "families": lambda: families(records)}


def families(records: Sequence[Record]) -> str:
    """A row for each family of architectures: the paper's score, ours, and how to train it."""
    known = {each.name: each for each in results_page.tables()}
    rows: list[tuple[str, ...]] = []
    for family, name, system, path in FAMILIES:
        paper = results_page.NOTHING
        if name is not None:
            (row,) = (row for row in known[name].rows if row.system == system)
            paper = results_page.paper_figures(known[name], row)
        group = group_of(configurations.load(CHECKOUT / "configs" / path), records)
        figure = group and group.figure(metric_named("bleu").main.key)
        ours = f"{figure.text('.2f')} ({figure.runs})" if figure else results_page.NOT_RECORDED
        rows.append((family, paper, ours, f"`scripts/train.sh configs/{path}`"))
    headings = ("family", "the paper, IWSLT'14 tokenised BLEU", "ours", "command")
    return "\n".join(markdown(dict(zip(headings, map(list, zip(*rows, strict=True)), strict=True))))


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
    if not all(found.values()):
        return f"{results_page.NOT_RECORDED.capitalize()}: `scripts/quickstart.sh --record` records these scores."
    rows = [
        {
            "system": name,
            "parameters": record.parameters,
            "updates": record.updates,
            "training seconds": record.train_seconds,
            **{column.label: record.scores["test"].get(column.key) for column in metric.columns},
        }
        for name, record in found.items()
    ]
    notes = quickstart.add_recorded(rows, task, metric, True, records)
    explained = metric.explanations(found[baseline].scores["test"])
    return "\n".join(["```", "== Scores on the test set ==", table(rows), *explained, *notes, "```"])
