"""Reports: an experiment, or a table of several, as one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from ..decoding.flows import FLOWS
from ..files import atomic_file

NUMBER = re.compile(r"(p\s*)?[<>=≈]?\s*[+\-−]?\d[\d\s.,:/±×%()+\-−–Mk]*")


@dataclass(frozen=True)
class WordAttention:
    """What the words of one hypothesis attended to.

    Attributes:
        source: S words
        target: T words, those of the hypothesis
        flows: the name of a flow of attention, ``mean`` first → T rows of S weights from 0 to 1

    Raises:
        ValueError: there is no flow, or one has not a row for each target word and a weight for each source word.
    """

    source: list[str]
    target: list[str]
    flows: dict[str, list[list[float]]]

    def __post_init__(self) -> None:
        if not self.flows:
            raise ValueError("an alignment needs at least one flow of attention")
        for name, rows in self.flows.items():
            if len(rows) != len(self.target) or any(len(row) != len(self.source) for row in rows):
                raise ValueError(
                    f"flow {name!r}: {len(rows)} rows of {sorted({len(row) for row in rows})} weights "
                    f"for {len(self.target)} target and {len(self.source)} source words"
                )


@dataclass(frozen=True)
class Sample:
    """A sentence and what was made of it.

    Attributes:
        source: the text that was translated
        reference: its translation by a human
        hypotheses: system → its translation
        alignments: system → what it attended to; not every system needs one. The words of an alignment are shown
            instead of the text.
    """

    source: str
    reference: str
    hypotheses: dict[str, str]
    alignments: dict[str, WordAttention]


@dataclass(frozen=True)
class Drawing:
    """A figure; ``svg`` is an ``<svg>`` element, as :func:`.style.inline_svg` makes it."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class ReportTable:
    """A table of text; its first column names the rows. Columns of numbers are set to the right."""

    heading: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]


@dataclass(frozen=True)
class Experiment:
    """What is needed to do an experiment again.

    Attributes:
        name: what the report calls it
        configuration: YAML; may be empty
        commands: what a command is for, such as ``training`` → the command
        environment: such as ``Device`` → ``CPU, 1 thread``
    """

    name: str
    configuration: str
    commands: dict[str, str]
    environment: dict[str, str]


@dataclass(frozen=True)
class Report:
    """What a report says, in its order; an empty part is left out."""

    title: str
    subtitle: str
    notice: str | None
    tables: list[ReportTable]
    figures: list[Drawing]
    samples: list[Sample]
    experiments: list[Experiment]


def render(report: Report) -> str:
    """The report as an HTML page that loads nothing. Everything but the figures' SVG is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    samples = [_Shown.of(sample) for sample in report.samples]
    return environment.get_template("page.html.jinja").render(
        report=report,
        numeric=[[_is_numeric(column) for column in zip(*table.rows, strict=True)] for table in report.tables],
        samples=samples,
        weights=[[_rounded(alignment.flows) for alignment in shown.alignments] for shown in samples],
        has_alignments=any(shown.alignments for shown in samples),
        has_flows=any(set(FLOWS) & set(alignment.flows) for shown in samples for alignment in shown.alignments),
        flow_labels=FLOWS,
    )


def write(report: Report, path: Path) -> None:
    """Writes the page; ``path`` holds either all of it or what it held before."""
    page = render(report)
    with atomic_file(path) as stream:
        stream.write(page)


@dataclass(frozen=True)
class _Shown:
    """A sample as it is laid out: systems that cut the source into the same words share one line for it."""

    sample: Sample
    groups: list[tuple[list[str], list[str]]]
    """Source words, and the systems that read them."""
    alignments: list[WordAttention]
    """Of the groups' systems, in the order of the page."""

    @classmethod
    def of(cls, sample: Sample) -> _Shown:
        groups: dict[tuple[str, ...], list[str]] = {}
        for system in sample.hypotheses:
            if system in sample.alignments:
                groups.setdefault(tuple(sample.alignments[system].source), []).append(system)
        ordered = [sample.alignments[system] for systems in groups.values() for system in systems]
        return cls(sample, [(list(words), systems) for words, systems in groups.items()], ordered)


def _rounded(flows: Mapping[str, list[list[float]]]) -> dict[str, list[list[float]]]:
    """More digits nobody sees, and they are most of the file."""
    return {name: [[round(float(weight), 4) for weight in row] for row in rows] for name, rows in flows.items()}


def _is_numeric(cells: Sequence[str]) -> bool:
    """Whether at least half of a column's cells that are not empty are numbers: 'not run yet' may be among them."""
    filled = [cell for cell in cells if cell.strip(" -–—")]
    return bool(filled) and 2 * sum(NUMBER.fullmatch(cell) is not None for cell in filled) >= len(filled)
