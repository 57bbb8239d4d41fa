"""``results/<dataset>/<system>/seed_<N>….json``: a file for each recorded run; several runs make one figure.

``fairseq-plugins evaluate --record`` writes them. Everything that prints a figure of ours reads them. Beside a record,
``seed_<N>….npz`` has what its scores are sums of, sentence by sentence: whether two runs differ by chance can be told
without their outputs.
"""

from __future__ import annotations

import datetime
import functools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..files import locked, write_json
from ..package_files import CONFIGURATIONS, IS_CHECKOUT, ROOT
from ..scoring.metrics import metrics_of
from . import configuration as configurations
from . import provenance, sentence_statistics
from .configuration import Configuration
from .fairseq_commands import Options, options_of, share_of
from .run import Run
from .training_identity import WITHOUT_EFFECT
from .training_statistics import by_split, losses_of, read_statistics

VARIABLE = "FAIRSEQ_PLUGINS_RESULTS"
"""The environment variable that names another folder than ``results/``."""
FORMAT = 1
BEST = "best"
"""What ``checkpoint`` is unless several were averaged."""
VALIDATION_SET = "valid"
"""The set on which settings and checkpoints are chosen; no system is compared on it."""
# Options that say where and on what a command runs, and not what it computes. The seed has a key of its own.
_PLACES = {
    *("seed", "save-dir", "path", "gen-subset", "scoring", "distributed-world-size"),
    *(name.replace("_", "-") for name in WITHOUT_EFFECT),
}


@dataclass(frozen=True)
class Record:
    """One run.

    Attributes:
        dataset: the folder below ``configs/``
        system: :attr:`.Configuration.model`, or the name of what has no configuration
        configuration: its path below the checkout; None for what is not trained
        seed: of the training
        differs: section of the configuration (``train``, ``generate``) → option → its value in this run, or None where
            the run does without it; when it was recorded
        options: the same sections with every option of the run; empty where nobody kept them
        recipe: that was chosen in the place of the configuration's own; None where it is its own
        checkpoint: ``best``, or ``mean of the last N epochs``
        scores: set → the numbers of the metric, signatures beside them
        parameters, updates, train_seconds, train_tokens_per_second: of the training
        validation_loss: updates → loss on the validation set, as the training logged it: in bits where it is a
            cross-entropy; empty where nobody kept it
        held_out: of the quick start's translations ``translations``, of the sentences that were written by hand, and
            the checksums of ``corpus`` and ``configuration`` that they depend on; else empty
        decode_sentences_per_second: of the last set
        device: what the training computed on
        machine: ``processor``, ``cores`` and ``threads`` of the training; empty where nobody kept them
        revision: the commit that trained; ``-dirty`` where files were changed
        versions: of the packages that the results depend on
        date: when it was recorded, ``YYYY-MM-DD`` in UTC
        note: what else to know
        carried_over: where a figure was taken from that was written down before there were records
        format: of the file
        path: the file; None of what is not written
    """

    dataset: str
    system: str
    configuration: str | None = None
    seed: int | None = None
    differs: dict[str, dict[str, str | None]] = field(default_factory=dict)
    options: dict[str, Options] = field(default_factory=dict)
    recipe: str | None = None
    checkpoint: str = BEST
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    parameters: int | None = None
    updates: int | None = None
    train_seconds: float | None = None
    train_tokens_per_second: float | None = None
    validation_loss: dict[str, float] = field(default_factory=dict)
    held_out: dict[str, Any] = field(default_factory=dict)
    decode_sentences_per_second: float | None = None
    device: str | None = None
    machine: dict[str, Any] = field(default_factory=dict)
    revision: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    date: str | None = None
    note: str = ""
    carried_over: str = ""
    format: int = FORMAT
    path: Path | None = field(default=None, compare=False)

    @functools.cached_property
    def differences(self) -> dict[str, str | None]:
        """The options in which the run differs from its configuration as it is today, of all sections together."""
        sections = self.differs
        if self.configuration is not None and self.options:
            sections = _differing(self.options, configurations.load(ROOT / self.configuration, self.recipe))
        return {key: value for section in sections.values() for key, value in section.items()}

    def statistics(self, subset: str) -> np.ndarray | None:
        """The rows of :meth:`.Metric.statistics` of a set, (N, K); None where nobody kept them.

        Raises:
            InputError: the file that has them cannot be read.
        """
        return None if self.path is None else sentence_statistics.beside(self.path).get(subset)

    @property
    def name(self) -> str:
        """The beginning of its file's name."""
        parts = [] if self.seed is None else [f"seed_{self.seed}"]
        if self.checkpoint != BEST:
            parts.append("average_" + re.sub(r"\D", "", self.checkpoint))
        for section in self.differs.values():
            parts += [f"{key}_{value}" if value is not None else f"no_{key}" for key, value in section.items()]
        return re.sub(r"[^\w.-]+", "-", "_".join(parts) or "run")[:100]


def folder() -> Path:
    """Where records are: the checkout's, else below where the user stands."""
    return Path(os.environ.get(VARIABLE) or (ROOT if IS_CHECKOUT else Path()) / "results")


def load(path: Path) -> Record:
    """Reads a record.

    Raises:
        InputError: the file is none.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); record the run again") from None
    keys = {item.name for item in fields(Record)} - {"path"}
    if not isinstance(content, dict) or not {"dataset", "system", "scores"} <= set(content) <= keys:
        unknown = sorted(set(content) - keys) if isinstance(content, dict) else []
        raise InputError(
            f"{path}: not a record"
            + (f" (unknown: {', '.join(unknown)})" if unknown else "")
            + "; record the run again"
        )
    if content.get("format") != FORMAT:
        raise InputError(f"{path}: a record of format {content.get('format')}; this version reads format {FORMAT}")
    record = Record(**content, path=path)
    if record.configuration is not None and not (ROOT / record.configuration).is_file():
        raise InputError(f"{path}: there is no {record.configuration}; move the record together with the configuration")
    return record


def load_all(root: Path | None = None) -> list[Record]:
    """Every record, in the order of the files' names.

    Raises:
        InputError: a file is no record.
    """
    root = root or folder()
    return [load(path) for path in sorted(root.glob("*/*/*.json"), key=_natural)]


def checkpoint_name(average: int) -> str:
    """What a record calls the checkpoint that was evaluated."""
    return BEST if average == 0 else f"mean of the last {average} epochs"


def recordable(configuration: Configuration, run: Run, checkpoint: str | None) -> None:
    """Refuses what cannot be recorded, before anything is computed.

    Args:
        configuration: the experiment
        run: what was trained
        checkpoint: what the command line says of ``--checkpoint``

    Raises:
        InputError: it is not below the checkout's ``configs/``, for several data sets of which none is named, not
            trained in this work folder, the checkpoint is not the training's own, or its statistics are damaged.
    """
    configs = CONFIGURATIONS
    if not configuration.path.resolve().is_relative_to(configs.resolve()):
        raise InputError(
            f"--record: {configuration.path} is not below {configs}; a record names its configuration there"
        )
    if (named := configuration.data.get("folder")) is not None and "*" in named.text:
        raise InputError(f"--record: {named.place}: for several data sets; name one by --data, a folder {named.text}")
    if checkpoint is not None:
        raise InputError("--record: it takes the training's own checkpoint; leave out --checkpoint, or say --average N")
    trained = run.configuration_path
    if not run.is_trained or trained is None:
        raise InputError(
            f"--record: {run.folder / 'results.json'} tells of no training; run 'fairseq-plugins train' first"
        )
    if trained.resolve() != configuration.path.resolve():
        raise InputError(
            f"--record: {run.folder} was trained with {run.results['config']}, not with {configuration.path}"
        )
    if (recipe := run.results.get("recipe")) != configuration.recipe:
        remedy = "leave out --recipe" if recipe is None else f"say --recipe {recipe}"
        raise InputError(f"--record: {run.folder} was trained by another recipe; {remedy}")
    _validation_loss(run)  # what is damaged is said before hours of decoding


def record(
    configuration: Configuration,
    data: PreparedData,
    run: Run,
    average: int,
    name: str,
    scores: Mapping[str, Any],
    extra: Sequence[str] = (),
    note: str = "",
    statistics: np.ndarray | None = None,
) -> Path:
    """Writes the record of a run that was evaluated; that of the same run on the same machine is replaced.

    Args:
        configuration: the experiment
        data: what it was trained on
        run: what was trained and evaluated
        average: of how many epochs' checkpoints the evaluated one is the mean; 0 for the best one
        name: of the set
        scores: what the evaluation wrote
        extra: the evaluation's further options, which win over the configuration's
        note: what else to know
        statistics: of each sentence, (N, K), as the metric has them; None where there are none

    Returns:
        The file.

    Raises:
        InputError: see :func:`recordable`.
    """
    recordable(configuration, run, None)
    results = run.results
    places = _PLACES | (set(options_of(data.arguments())) - set(configuration.train))
    shared = options_of(share_of(configuration, (), int(run.options.get("distributed-world-size", 1))).options)
    # How several processes share a batch is no matter of the experiment.
    batch = {key: configuration.train[key].text for key in shared if key in configuration.train}
    options = {
        "train": {
            **{key: value for key, value in run.options.items() if key not in places},
            **(batch if shared.items() <= run.options.items() else {}),
        },
        "generate": {
            **{key: value.text for key, value in configuration.generate.items() if value.text != "false"},
            **options_of(extra, _PLACES),
        },
    }
    values = metric_values(scores)
    made = Record(
        dataset=configuration.dataset,
        system=configuration.model,
        configuration=str(configuration.path.resolve().relative_to(ROOT.resolve())),
        recipe=configuration.recipe,
        seed=results.get("seed"),
        differs=_differing(options, configuration),
        options=options,
        checkpoint=checkpoint_name(average),
        scores={name: values},
        validation_loss=_validation_loss(run),
        held_out=results.get("held_out", {}),
        decode_sentences_per_second=scores.get("decode_sentences_per_second"),
        revision=results.get("git_revision"),
        date=_today(),
        note=note,
        **{
            key: results[key]
            for key in ("parameters", "updates", "train_seconds", "train_tokens_per_second", "device", "versions")
            if results.get(key) is not None
        },
        machine=results.get("machine", {}),
    )
    return write(made, statistics=None if statistics is None else {name: statistics})


def record_baseline(
    dataset: str,
    system: str,
    scores: Mapping[str, Any],
    subset: str = "test",
    statistics: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Writes the record of what is not trained: the text of a rule, scored.

    Args:
        dataset: the folder below ``results/``
        system: what it is called there
        scores: as in ``results.json``
        subset: the set's own name
        statistics: set → a row for each sentence, (N, K)

    Returns:
        The file.
    """
    scored = {subset: metric_values(scores)}
    made = Record(dataset, system, scores=scored, revision=provenance.git_revision(), date=_today())
    return write(made, statistics=statistics)


def write(made: Record, root: Path | None = None, statistics: Mapping[str, np.ndarray] | None = None) -> Path:
    """Writes a record beside those of other runs, or in the place of the same run's.

    Args:
        made: the record
        root: of all records; :func:`folder` unless it is given
        statistics: set → a row for each sentence, (N, K)
    """
    place = (root or folder()) / made.dataset / made.system
    # Two sets of one training may be evaluated at once.
    with locked(place / ".lock", keep=False):
        return _write(made, place, statistics)


def _write(made: Record, place: Path, statistics: Mapping[str, np.ndarray] | None) -> Path:
    path, number = place / f"{made.name}.json", 1
    while path.exists() and not _takes_the_place(made, present := load(path)):
        number += 1
        path = place / f"{made.name}_machine_{number}.json"
    content = asdict(made)
    del content["path"]
    kept = dict(statistics or {})
    # Another set of the same training joins those that are there.
    if (
        path.exists()
        and not present.carried_over
        and (present.train_seconds, present.updates) == (made.train_seconds, made.updates)
    ):
        content["scores"] = {**present.scores, **made.scores}
        others = sentence_statistics.beside(path).items()
        kept = {**{name: rows for name, rows in others if name not in made.scores}, **kept}
    sentence_statistics.write(path, {})  # who is interrupted here leaves none, and not those of another run
    write_json(path, {key: value for key, value in content.items() if value not in (None, "", {})})
    sentence_statistics.write(path, kept)
    return path


def _takes_the_place(made: Record, present: Record) -> bool:
    """Whether a record is of the same run on the same machine; what was carried over gives way to every run."""
    if present.carried_over and not made.carried_over:
        return True
    keys = ("dataset", "system", "seed", "differs", "checkpoint", "machine", "device")
    return all(getattr(made, key) == getattr(present, key) for key in keys)


def metric_values(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a metric and their signatures, out of ``results.json``."""
    columns = [column for metric in metrics_of(scores) for column in metric.columns]
    keys = dict.fromkeys(key for column in columns for key in (column.key, column.signature))
    return {key: scores[key] for key in keys if key in scores}


def _validation_loss(run: Run) -> dict[str, float]:
    if not run.statistics.is_file():
        return {}
    points = losses_of(by_split(read_statistics(run.statistics)).get(VALIDATION_SET, []))
    return {str(int(updates)): loss for updates, loss in points}


def _differing(options: Mapping[str, Options], configuration: Configuration) -> dict[str, dict[str, str | None]]:
    """Section → option → value, where a run's options are not those of its configuration."""
    differing = {}
    for name, chosen in options.items():
        section = getattr(configuration, name)
        said = {key: value.text for key, value in section.items() if value.text != "false"}
        keys = sorted({*chosen, *said} - _PLACES)
        changed = {key: chosen.get(key) for key in keys if _compared(chosen, key) != _compared(said, key)}
        if changed:
            differing[name] = changed
    return differing


def _compared(options: Options, key: str) -> str | bool | None:
    """A value, but for what says where a model lies that the training starts from: seeds start from their own."""
    return key in options if key == "finetune-from-model" else options.get(key)


def _natural(path: Path) -> list[Any]:
    """Sorts ``seed_10`` after ``seed_9``."""
    parts = re.split(r"(\d+)", f"{path.parent.parent.name}/{path.parent.name}/{path.name}")
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
