"""The recorded runs: a page in ``docs/results/`` for each data set, with a row for each system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..experiments.groups_of_runs import Group, groups, has_own_budget
from ..experiments.recorded_runs import VALIDATION_SET, Record
from ..scoring.metrics import Column, metrics_of
from ..tables.writing import markdown

NOTHING = "–"
VARIANT = "cache"
"""The option of an evaluation that gives its sets other names."""
TITLES = {
    "copy_memory": "Copy memory: ten symbols after T blank steps",
    "fairytale_qa": "FairytaleQA, answers from stories",
    "generated_passages": "Generated passages with questions",
    "gigaword_sample": "Gigaword headlines, a sample",
    "iwslt14_sample": "IWSLT'14 German-English, a sample",
    "multi30k_de_en": "Multi30k German-English",
    "pixel_mnist": "MNIST, pixel by pixel",
    "ptb": "Penn Treebank, words",
    "ptb_small": "Penn Treebank, words, small networks",
    "quickstart": "The quick start: translation",
    "quickstart_classification": "The quick start: classification",
    "quickstart_language_model": "The quick start: language models",
    "quickstart_summarization": "The quick start: headlines",
    "reviews": "Reviews",
    "spoken_digits": "Spoken digits: who speaks",
    "sst_2": "SST-2, two classes",
    "sst_5": "SST-5, five classes",
    "trec": "TREC, six classes of questions",
    "wikiqa": "WikiQA, ranking of answers",
}
"""The data sets' names for people; another one has the name of its folder."""
REMARKS = {
    "copy_memory": "A name ends with T, the number of blank steps.",
    "fairytale_qa": "If every place were found: BLEU-1 92.55, BLEU-4 88.03, METEOR 79.42, ROUGE-L 87.22.",
    "multi30k_de_en": "The sets are of Flickr: `test` of 2016, `test1` of 2017, `test2` of 2018.",
    "reviews": "A name ends with the set of reviews.",
}
"""What a reader of a data set's page has to know first."""


def pages(records: Sequence[Record]) -> dict[str, str]:
    """The name of each data set that has records → its page."""
    names = dict.fromkeys(record.dataset for record in records)
    return {name: page(name, [record for record in records if record.dataset == name]) for name in names}


def page(dataset: str, records: Sequence[Record]) -> str:
    """The page of a data set. What was scored on the validation set alone, to choose settings, is not on it.

    Args:
        dataset: the folder below ``configs/`` and ``results/``
        records: of this data set
    """
    sets = list(dict.fromkeys(name for record in records for name in record.scores if name != VALIDATION_SET))
    tested = [record for record in records if record.scores.keys() & set(sets)]
    systems = with_variants(groups(tested))
    current = [group for group in systems if is_current(group)]
    others = [group for group in systems if not is_current(group)]
    lines = [
        f"# {title(dataset)}",
        "",
        f"The recorded runs of [`configs/{dataset}`](../../configs/{dataset}).",
        "[How to read them](README.md#how-to-read-them).",
        *([REMARKS[dataset]] if dataset in REMARKS else []),
        "",
        *(markdown(rows(current, sets)) if current else ["None with the options of today yet."]),
        "",
    ]
    if others:
        lines += ["## With other options", ""]
        lines += ["These runs have other options than their configurations have today. Some are older.", ""]
        lines += [*markdown(rows(others, sets)), ""]
    lines += ["## What to know of them", "", *(f"- {note}" for note in notes(tested, sets))]
    if trials := len(records) - len(tested):
        place = f"`results/{dataset}`"
        lines.append(f"- {place} has {trials} more: they chose settings, and were scored on the validation set alone.")
    return "\n".join([*lines, ""])


def title(dataset: str) -> str:
    """The name of a data set for people."""
    return TITLES.get(dataset, dataset)


def is_current(group: Group) -> bool:
    """Whether runs have their configurations' options of today, but for how long they trained."""
    first = group.records[0]
    return not first.carried_over and (not group.differences or has_own_budget(first))


def with_variants(shown: Sequence[Group]) -> list[Group]:
    """The groups, where what was evaluated with the cache is with the same runs without it: its sets have names of
    their own (``test with cache``)."""
    merged: dict[tuple[object, ...], Group] = {}
    for group in shown:
        differences = {key: value for key, value in group.differences.items() if key != VARIANT}
        key = (group.system, group.checkpoint, group.records[0].carried_over, *differences.items())
        before = merged[key].records if key in merged else ()
        merged[key] = Group((*before, *group.records), differences)
    return list(merged.values())


def rows(shown: Sequence[Group], sets: Sequence[str]) -> dict[str, list[str]]:
    """A table: heading → a cell for each group.

    Args:
        shown: the rows
        sets: of the first there is every number, of each further one the main number
    """
    records = [record for group in shown for record in group.records]
    scores: dict[str, list[str]] = {}
    for place, subset in enumerate(sets):
        for column in columns_of(records, subset)[: None if place == 0 else 1]:
            heading = column.label if len(sets) == 1 else f"{subset}: {column.label}"
            scores[heading] = [cell(group, column, subset) for group in shown]
    table = {
        "system": [system(group) for group in shown],
        "options": [differing(group.differences) for group in shown],
        "checkpoint": [group.checkpoint if group.configuration else "" for group in shown],
        **scores,
        "runs": [str(max(count(group, subset) for subset in sets)) for group in shown],
        "parameters": [extremes([record.parameters for record in group.records]) for group in shown],
        "updates": [extremes([record.updates for record in group.records]) for group in shown],
        "note": [origin(group) for group in shown],
    }
    return {heading: cells for heading, cells in table.items() if any(text not in ("", NOTHING) for text in cells)}


def system(group: Group) -> str:
    """The name of a group's configuration, and of its recipe where another than its own was chosen."""
    return (
        f"`{group.system}`"
        if group.recipe is None
        else f"`{group.system.removesuffix(f'_{group.recipe}')}`, recipe `{group.recipe}`"
    )


def origin(group: Group) -> str:
    """Where the figures of runs come from that were not recorded as they ended; empty for all others."""
    if not group.records[0].carried_over:
        return ""
    return "carried over" if group.recipe is None else "carried over, by an earlier recipe"


def count(group: Group, subset: str) -> int:
    """How many runs of a group have scores of a set."""
    return sum(subset in record.scores for record in group.records)


def columns_of(records: Sequence[Record], subset: str) -> list[Column]:
    """The numbers that records have of a set."""
    keys = {key for record in records for key in record.scores.get(subset, {})}
    return [column for metric in metrics_of(keys) for column in metric.columns if column.key in keys]


def cell(group: Group, column: Column, subset: str) -> str:
    """A number of a group."""
    figure = group.figure(column.key, subset)
    return NOTHING if figure is None else figure.text(column.form)


def differing(options: Mapping[str, str | None]) -> str:
    """Options as a command line would have them."""
    shown = (f"`--{key} {value}`" if value is not None else f"without `--{key}`" for key, value in options.items())
    return ", ".join(shown)


def extremes(numbers: Sequence[float | None]) -> str:
    """The lowest and the highest of the numbers that are known; early stopping makes trainings differ."""
    counts = [number for number in numbers if number is not None]
    return " to ".join(dict.fromkeys(f"{end(counts):,.0f}" for end in (min, max))) if counts else NOTHING


def notes(records: Sequence[Record], shown: Sequence[str]) -> list[str]:
    """What to know of the runs of a data set: the signatures of the sets that are shown, what single records say."""
    sets_of: dict[str, dict[str, dict[str, None]]] = {}
    said: dict[str, None] = {}
    for record in records:
        for subset in (name for name in shown if name in record.scores):
            scores = record.scores[subset]
            for metric in metrics_of(scores):
                for key, label in metric.signature_labels.items():
                    if key in scores:
                        sets_of.setdefault(label, {}).setdefault(scores[key], {})[subset] = None
        if record.note:
            said[record.note] = None
        if record.carried_over:
            said[f"Carried over: {record.carried_over}"] = None
    lines = []
    for label, signatures in sets_of.items():
        for signature, sets in signatures.items():
            of = f" on {', '.join(sets)}" if len(signatures) > 1 else ""
            lines.append(f"{label} was computed so{of}: `{signature}`.")
    return [*lines, *said]
