"""README's table of architectures: the paper's score of each, ours, and the command that trains it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import InputError
from ..experiments import configuration as configurations
from ..experiments.groups_of_runs import Group, group_of
from ..experiments.recorded_runs import BEST, Record
from ..package_files import ROOT
from ..tables.tables import Row, Table
from ..tables.writing import markdown
from . import paper_tables, results_pages


class Family(NamedTuple):
    """A row of README's table.

    Attributes:
        name: as it is shown
        table: the paper's
        row: the system there
        stand_in: the configuration whose runs are shown while the paper's data has none, below ``configs/``
    """

    name: str
    table: str
    row: str
    stand_in: str | None = None


FAMILIES = (
    Family("MC-RNN", "mc_rnn_table_2", "MC-RNN-3", "multi30k_de_en/mc_rnn_3"),
    Family("RNNSearch, its baseline", "mc_rnn_table_2", "Baseline-RNN", "multi30k_de_en/rnnsearch"),
    Family("HO-RNN", "mc_rnn_table_2", "HO-RNN", "multi30k_de_en/ho_rnn"),
    Family("HM-RNN", "mc_rnn_table_2", "HM-RNN", "quickstart/hm_rnn"),
    Family("DPN-S2S", "dpn_table_1", "DPN-S2S", "multi30k_de_en/dpn"),
    Family("fairseq's `fconv`, its baseline", "dpn_table_1", "Deeper CNN", "multi30k_de_en/fconv"),
    Family("fairseq's `transformer`, its baseline", "dpn_table_1", "Deeper SAN", "multi30k_de_en/transformer_larger"),
    Family("RCRN", "rcrn_table_5", "RCRN"),
    Family("R-NET with RCRN", "rcrn_table_9", "RCRN", "fairytale_qa/rnet_rcrn"),
    Family("DilatedRNN", "dilated_rnn_table_1", "Dilated Vanilla, 9 layers of 20, plain"),
    Family("DilatedRNN on waveforms", "dilated_rnn_table_3", "Raw Dilated GRU, from 8", "spoken_digits/dilated_gru"),
)

STAND_IN_DATA = {
    "multi30k_de_en": "Multi30k, test 2016",
    "fairytale_qa": "FairytaleQA",
    "spoken_digits": "speakers of spoken digits",
    "quickstart": "the quick start's corpus",
}
"""Data set of :attr:`Family.stand_in` → what it is called in the table."""


class Ours(NamedTuple):
    """What we have to show for a family.

    Attributes:
        score: the mean, its deviation and the number of runs
        data: what it was trained on and scored on
        configuration: that it is of, below the checkout
    """

    score: str
    data: str
    configuration: str


def table(records: Sequence[Record]) -> str:
    """The table, from the recorded runs."""
    by_name = {table_of_paper.name: table_of_paper for table_of_paper in paper_tables.tables()}
    headings = ("model", "the paper's score", "the paper's data", "our score", "our data", "to train it")
    columns: dict[str, list[str]] = {heading: [] for heading in headings}
    for family in FAMILIES:
        paper = by_name[family.table]
        (row,) = (row for row in paper.rows if row.system == family.row)
        ours = _ours(family, paper, row, records)
        cells = (
            family.name,
            f"{paper_tables.paper_figures(paper, row)} {paper.measure.heading}",
            paper.title.partition(": ")[2],
            ours.score,
            ours.data,
            f"`scripts/train.sh {ours.configuration}`",
        )
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
    return "\n".join(markdown(columns))


def _ours(family: Family, paper: Table, row: Row, records: Sequence[Record]) -> Ours:
    """On the paper's data if that is recorded, else on the stand-in's."""
    if row.configuration is None:
        raise InputError(f"{family.table}: {family.row} has no configuration that trains it; name another row")
    path = row.configuration.path.relative_to(ROOT).as_posix()
    figures = paper_tables.our_figures(paper, row, records)
    if figures != paper_tables.NOT_RECORDED:
        return Ours(figures, "the same" + (f", without {paper.without}" if paper.without else ""), path)
    if family.stand_in is not None:
        stand_in = f"configs/{family.stand_in}.yaml"
        group = group_of(configurations.load(ROOT / stand_in), records, BEST)
        if group is not None and not group.records[0].carried_over:
            return Ours(_score(group), STAND_IN_DATA[group.dataset], stand_in)
    return Ours(figures, results_pages.NOTHING, path)


def _score(group: Group) -> str:
    """The scores of a group on the test set, those that the paper's metric has."""
    columns = [column for column in results_pages.columns_of(group.records, "test") if column.paper is not None]
    found = [(column, figure) for column in columns if (figure := group.figure(column.key))]
    return f"{' / '.join(figure.text(column.form) for column, figure in found)} ({found[0][1].runs})"
