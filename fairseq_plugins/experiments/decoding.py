"""How trained models are run over a set: fairseq's command, and what its output says.

A metric names the way in which what it scores is made (``Metric.decoding``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..checkpoints import read_checkpoint
from ..errors import InputError, nearest
from ..files import atomic_file, read_lines
from ..scoring.metrics import Metric, Outputs, References, metric_named, read_numbers
from . import fairseq_commands
from .classification import Classification
from .configuration import TOKENIZE_OPTIONS, Configuration
from .data_kinds import check_metric
from .prepared_data import PreparedData
from .text_scoring import TextScoring


class Decoding(Protocol):
    """One way to do it; a ``log`` is a file with the command's output."""

    def command(
        self,
        configuration: Configuration,
        data: PreparedData,
        checkpoint: str,
        subset: str,
        gpus: int | None,
        extra: Sequence[str],
    ) -> list[str]:
        """fairseq's command that runs ``checkpoint`` (or several, ``a.pt:b.pt``) over a subset.

        Raises:
            InputError: an option or a value that fairseq's parser does not know.
        """

    def is_sentence(self, line: str) -> bool:
        """Whether a line of the command's output says that one more sentence is done."""

    def outputs(self, log: Path, data: PreparedData, count: int) -> Outputs:
        """What the model made of ``count`` sentences, by the command's output.

        Raises:
            InputError: it is not all of them.
        """

    def references(self, data: PreparedData, subset: str) -> References:
        """What a set should become.

        Raises:
            InputError: there is no such set.
        """

    def write(self, outputs: Outputs, folder: Path, data: PreparedData, subset: str) -> None:
        """Writes the outputs of a subset into a folder."""

    def read(self, folder: Path, data: PreparedData, subset: str) -> Outputs:
        """What :meth:`write` wrote.

        Raises:
            InputError: nothing is there.
        """

    def speed(self, log: Path) -> float | None:
        """Sentences per second, by the command's output; None where it does not say."""

    def variant(self, extra: Sequence[str]) -> str:
        """What sets results with these further options apart from those without: ``cache``; empty for nothing."""


class Generation:
    """fairseq-generate: beam search, a hypothesis for each sentence."""

    def command(
        self,
        configuration: Configuration,
        data: PreparedData,
        checkpoint: str,
        subset: str,
        gpus: int | None,
        extra: Sequence[str],
    ) -> list[str]:
        if "--replace-unk" in extra and fairseq_commands.option(extra, "--print-alignment") is None:
            # Without it fairseq asks the model for no attention to copy by.
            extra = [*extra, "--print-alignment", "hard"]
        limits = fairseq_commands.position_limits([read_checkpoint(path) for path in checkpoint.split(":")])
        return fairseq_commands.generate_command(configuration, data, checkpoint, subset, gpus, extra, limits)

    def is_sentence(self, line: str) -> bool:
        return line.startswith("S-")

    def outputs(self, log: Path, data: PreparedData, count: int) -> Outputs:
        found = hypotheses(read_lines(log), count, log)
        tokens = [data.pairs.decode_target(hypothesis.pieces) for hypothesis in found]
        text = [data.pairs.detokenize_target(line) for line in tokens]
        return Outputs(tokens, text, [hypothesis.log_probabilities for hypothesis in found])

    def references(self, data: PreparedData, subset: str) -> References:
        """One or several for each sentence; where only tokens were given, the text is made of them."""
        language, splits = data.pairs.target_lang, data.preparation.splits
        count = splits.get(subset, {}).get("references", 1)
        names = [f"{subset}.{language}", *(f"{subset}.ref{number}.{language}" for number in range(1, count))]
        folder = data.folder / "tokens"
        if not (folder / names[0]).is_file():
            prepared = sorted(path.stem for path in folder.glob(f"*.{language}") if ".ref" not in path.stem)
            known = ", ".join(splits.get(split, {}).get("name", split) for split in prepared)
            raise InputError(f"{folder / names[0]}: no such file; the prepared sets are {known}")
        tokens = [list(read_lines(folder / name)) for name in names]
        if (data.folder / "raw" / names[0]).is_file():
            text = [list(read_lines(data.folder / "raw" / name)) for name in names]
        else:
            text = [[data.pairs.detokenize_target(line) for line in lines] for lines in tokens]
        return References(tokens, text, data.pairs.lowercase, language)

    def write(self, outputs: Outputs, folder: Path, data: PreparedData, subset: str) -> None:
        """Tokens, text, and the logarithm of each token's probability, a line for each sentence."""
        files = self._files(folder, data, subset)
        probabilities = (" ".join(f"{number:.6f}" for number in line) for line in outputs.log_probabilities or ())
        for path, lines in zip(files, (outputs.tokens, outputs.text, probabilities), strict=True):
            with atomic_file(path) as stream:
                stream.writelines(line + "\n" for line in lines)

    def read(self, folder: Path, data: PreparedData, subset: str) -> Outputs:
        tokens, text, probabilities = self._files(folder, data, subset)
        return Outputs(list(read_lines(tokens)), list(read_lines(text)), read_numbers(probabilities))

    def speed(self, log: Path) -> float | None:
        """Of beam search alone."""
        for line in read_lines(log):
            if found := re.search(r"Translated .* sentences .* \(([\d.]+) sentences/s", line):
                return float(found[1])
        return None

    def variant(self, extra: Sequence[str]) -> str:
        return ""

    def _files(self, folder: Path, data: PreparedData, subset: str) -> list[Path]:
        language = data.pairs.target_lang
        return [folder / f"{subset}{kind}.{language}" for kind in (".tok", "", ".log_probabilities")]


DECODINGS: dict[str, Decoding] = {
    "generate": Generation(),
    "classification": Classification(),
    "text": TextScoring(),
}
"""What a metric may name."""


def metric_of(configuration: Configuration, data: PreparedData) -> Metric:
    """What an experiment is scored by: ``evaluate: metric:`` of its configuration, or what its data is made for.

    Raises:
        InputError: there is no such metric, or what is to cut its text into tokens is not there or not the metric's.
    """
    value = configuration.evaluate.get("metric")
    try:
        metric = metric_named(data.preparation.metric if value is None else value.text)
    except InputError as error:
        raise error if value is None else InputError(f"{value.place}: metric: {error}") from None
    for option in TOKENIZE_OPTIONS:
        if (value := configuration.evaluate.get(option)) is not None:
            try:
                metric = tokenized_by(metric, option, value.text)
            except InputError as error:
                raise InputError(f"{value.place}: {error}") from None
    return metric


def tokenized_by(metric: Metric, option: str, tokenizer: str) -> Metric:
    """A metric as one of :data:`TOKENIZE_OPTIONS` wants it.

    Raises:
        InputError: the option is another metric's, or names no tokenizer.
    """
    if option != metric.tokenize_option:
        raise InputError(f"{option} is not for {metric.label}, which the scores are of: leave it out")
    return metric.tokenized_by(tokenizer)


def check_evaluation(configuration: Configuration, data: PreparedData) -> None:
    """Looks before a training at what its configuration says of the evaluation.

    Raises:
        InputError: there is no such metric, it scores nothing that is made of this data, or fairseq's parser refuses
            what is in ``generate``.
    """
    metric = metric_of(configuration, data)
    decoding_of(metric)
    check_metric(data, metric)
    if configuration.generate:
        fairseq_commands.generate_command(configuration, data, "checkpoint_best.pt", "test", None, [])


def decoding_of(metric: Metric) -> Decoding:
    """How what a metric scores is made.

    Raises:
        InputError: the metric names a way that there is not.
    """
    if metric.decoding not in DECODINGS:
        raise InputError(
            f"the metric '{metric.name}' wants outputs of '{metric.decoding}'{nearest(metric.decoding, DECODINGS)}; "
            f"there are {', '.join(DECODINGS)}"
        )
    return DECODINGS[metric.decoding]


@dataclass(frozen=True)
class Hypothesis:
    """A sentence that fairseq-generate or fairseq-interactive wrote.

    Attributes:
        pieces: subwords, separated by spaces
        log_probabilities: natural logarithms, of each subword and of the end of the sentence
    """

    pieces: str
    log_probabilities: list[float]


def hypotheses(output: Iterable[str], count: int, name: str | Path) -> list[Hypothesis]:
    """The best hypothesis of each sentence in fairseq-generate's output, in the order of the set.

    Raises:
        InputError: the sentences are not exactly 0 … ``count`` - 1: a score of some of them would be wrong.
    """
    best: dict[int, str] = {}
    numbers: dict[int, list[float]] = {}
    for line in output:
        # D-<number> TAB <score> TAB <pieces>; of --nbest hypotheses the first is the best.
        if found := re.match(r"D-(\d+)\t[^\t]*\t(.*)", line):
            best.setdefault(int(found[1]), found[2])
        elif found := re.match(r"P-(\d+)\t(.*)", line):
            # fairseq writes them to the base 2.
            numbers.setdefault(int(found[1]), [float(text) * math.log(2) for text in found[2].split()])
    missing = [number for number in range(count) if number not in best]
    if missing or len(best) != count:
        which = f"; the first missing is sentence {missing[0] + 1}" if missing else ""
        raise InputError(f"{name}: {len(best):,} sentences were translated, but there are {count:,}{which}")
    return [Hypothesis(best[number], numbers.get(number, [])) for number in range(count)]
