"""README's part about the quick start: its models' translations of hand-written sentences, and their scores."""

from __future__ import annotations

from collections.abc import Sequence

from ..corpora.builtin import held_out
from ..experiments import configuration as configurations
from ..experiments.groups_of_runs import group_of
from ..experiments.quickstart import SYSTEMS, TASKS, held_out_lines, preset
from ..experiments.recorded_runs import Record
from ..scoring.metrics import metric_named
from ..tables.writing import markdown

SAMPLES = 3
"""How many of the sentences are shown."""
SEED = 1
"""Of the runs that they are of: the quick start's own."""


def part(records: Sequence[Record]) -> str:
    """The sentences and the scores, from the recorded runs."""
    groups = {name: group_of(configurations.load(preset(TASKS["translation"], name)), records) for name in SYSTEMS}
    runs = {name: group.records for name, group in groups.items() if group is not None}
    translations = {
        name: next((run.held_out["translations"] for run in recorded if run.held_out and run.seed == SEED), None)
        for name, recorded in runs.items()
    }
    shown = {name: texts for name, texts in translations.items() if texts is not None}
    column = metric_named("bleu").main
    scores = {name: group.figure(column.key) for name, group in groups.items() if group is not None}
    columns = {
        "model": list(scores),
        column.label: [f"{figure.text(column.form)} ({figure.runs})" if figure else "" for figure in scores.values()],
        "parameters": [f"{recorded[0].parameters:,}" for recorded in runs.values()],
    }
    if not shown:
        return "No run is recorded."
    system, texts = next(iter(shown.items()))
    command = f'echo "{held_out()[0].source}" | scripts/translate.sh work/quickstart/{SYSTEMS[system]}   # {texts[0]}'
    return "\n".join(
        [
            "```",
            *held_out_lines(shown, SAMPLES),
            "```",
            "",
            *markdown(columns),
            "",
            "A sentence of your own, and what comes out:",
            "",
            "```bash",
            command,
            "```",
        ]
    )
