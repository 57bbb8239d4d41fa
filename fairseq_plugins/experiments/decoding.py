"""How trained models are run over a prepared set: in this process, or divided over several.

A metric names the way in which what it scores is made (``Metric.decoding``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from .. import register
from ..command_parser import CommandParser
from ..corpora.reading_comprehension import read_references, references_of
from ..corpora.running_text import RunningTextPreparation
from ..cpus import available_cpus, named_threads
from ..decoding.prepared_data import PreparedData, title_of
from ..errors import InputError, nearest
from ..files import atomic_file, read_lines
from ..scoring import predictions
from ..scoring.metrics import Metric, Outputs, References, metric_named, metrics_named, read_numbers
from . import fairseq_commands
from .command_line import add_cache_arguments, begin_decoding
from .configuration import TOKENIZE_OPTIONS, Configuration


@dataclass(frozen=True)
class Request:
    """What is to be decoded; other processes get it too.

    Attributes:
        decoding: of :data:`DECODINGS`
        checkpoints: one, or those of an ensemble
        data: the prepared data's folder
        subset: a split of it
        options: what :meth:`Decoding.options` made of the command line
        device: ``cpu`` or ``cuda``
    """

    decoding: str
    checkpoints: tuple[str, ...]
    data: Path
    subset: str
    options: Any
    device: str


@dataclass
class Decoded:
    """What a model made of a set, or of a share of it.

    Attributes:
        hypotheses: number of a sentence → what became of it, and logarithms of probabilities; see
            :class:`..decoding.trained_model.Hypothesis`
        seconds: the model's alone
        warnings: what the user has to know
    """

    hypotheses: dict[int, tuple[str, list[float]]] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)


class Decoding(Protocol):
    """One way to do it."""

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of data of which there is something to score."""

    @property
    def is_divisible(self) -> bool:
        """Whether several processes can share a set."""

    def options(self, configuration: Configuration, data: PreparedData, extra: Sequence[str]) -> Any:
        """What the configuration and further options say of it.

        Raises:
            InputError: an option or a value that is not known, or by which something else would be scored.
        """

    def decode(self, request: Request, number: int, count: int, progress: Callable[[], object]) -> Decoded:
        """Runs the model over the share ``number`` of ``count``; ``progress`` is called after each sentence."""

    def references(self, data: PreparedData, subset: str) -> References:
        """What a set should become.

        Raises:
            InputError: there is no such set.
        """

    def outputs(self, hypotheses: Sequence[tuple[str, list[float]]], data: PreparedData) -> Outputs:
        """What the model made of a set, as it is scored."""

    def write(self, outputs: Outputs, folder: Path, data: PreparedData, subset: str) -> None:
        """Writes the outputs of a subset into a folder."""

    def read(self, folder: Path, data: PreparedData, subset: str) -> Outputs:
        """What :meth:`write` wrote.

        Raises:
            InputError: nothing is there.
        """

    def variant(self, extra: Sequence[str]) -> str:
        """What sets results with these further options apart from those without: ``cache``; empty for nothing."""


class Generation:
    """Beam search, a hypothesis for each sentence."""

    kinds = ("pairs",)
    is_divisible = True

    def options(self, configuration: Configuration, data: PreparedData, extra: Sequence[str]) -> Any:
        register()  # before anything imports fairseq's parts
        from ..decoding.translation import GenerationOptions

        parsed, arguments = fairseq_commands.decoding_options("generate", data, configuration.generate, extra)
        return GenerationOptions.of(parsed, arguments)

    def decode(self, request: Request, number: int, count: int, progress: Callable[[], object]) -> Decoded:
        from ..decoding.trained_model import Share
        from ..decoding.translation import Generated, TranslationModel
        from ..patches.unknown_words import unknown_words_left

        options = request.options
        model = TranslationModel.load(request.checkpoints, request.data, request.device, options.overrides)
        generated = Generated()
        decoded = Decoded()
        dataset = model.dataset(request.subset, options.task)
        for sentence, hypothesis in model.generate(dataset, options, generated, Share(number, count)):
            decoded.hypotheses[sentence] = hypothesis
            progress()
        decoded.seconds = generated.stopwatch.seconds
        if generated.unknown:
            decoded.warnings.append(f"--replace-unk: {unknown_words_left(generated.unknown)}")
        return decoded

    def references(self, data: PreparedData, subset: str) -> References:
        """One or several for each sentence; where only tokens were given, the text is made of them."""
        language, splits = data.pairs.target_lang, data.preparation.splits
        count = splits.get(subset, {}).get("references", 1)
        names = [f"{subset}.{language}", *(f"{subset}.ref{number}.{language}" for number in range(1, count))]
        folder = data.folder / "tokens"
        if not (folder / names[0]).is_file():
            prepared = sorted(path.stem for path in folder.glob(f"*.{language}") if ".ref" not in path.stem)
            names_there = ", ".join(splits.get(split, {}).get("name", split) for split in prepared)
            raise InputError(f"{folder / names[0]}: no such file; the prepared sets are {names_there}")
        tokens = [list(read_lines(folder / name)) for name in names]
        if (data.folder / "raw" / names[0]).is_file():
            text = [list(read_lines(data.folder / "raw" / name)) for name in names]
        else:
            text = [[data.pairs.detokenize_target(line) for line in lines] for lines in tokens]
        return References(tokens, text, data.pairs.lowercase, language)

    def outputs(self, hypotheses: Sequence[tuple[str, list[float]]], data: PreparedData) -> Outputs:
        tokens = [data.pairs.decode_target(pieces) for pieces, _ in hypotheses]
        text = [data.pairs.detokenize_target(line) for line in tokens]
        return Outputs(tokens, text, [numbers for _, numbers in hypotheses])

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

    def variant(self, extra: Sequence[str]) -> str:
        return ""

    def _files(self, folder: Path, data: PreparedData, subset: str) -> list[Path]:
        language = data.pairs.target_lang
        return [folder / f"{subset}{kind}.{language}" for kind in (".tok", "", ".log_probabilities")]


class Classification:
    """A class, or a score, for each example."""

    kinds: Sequence[str] = ("labelled_texts", "labelled_audio", "generated_sequences")
    is_divisible = True

    def options(self, configuration: Configuration, data: PreparedData, extra: Sequence[str]) -> Any:
        register()  # before anything imports fairseq's parts
        from ..decoding.trained_model import BatchOptions, model_overrides, named_options

        parsed, arguments = fairseq_commands.decoding_options("validate", data, {}, extra)
        return BatchOptions.of(parsed), named_options(parsed, arguments), model_overrides(parsed)

    def decode(self, request: Request, number: int, count: int, progress: Callable[[], object]) -> Decoded:
        from ..decoding.classification import ClassificationModel
        from ..decoding.trained_model import Share, Stopwatch

        if len(request.checkpoints) > 1:
            raise InputError(f"{':'.join(request.checkpoints)}: one model predicts classes; give one checkpoint")
        (batches, of_task, overrides), stopwatch, decoded = request.options, Stopwatch(), Decoded()
        model = ClassificationModel.load(request.checkpoints, request.data, request.device, overrides)
        dataset = model.dataset(request.subset, of_task)
        for example, hypothesis in model.predict(dataset, batches, stopwatch, Share(number, count)):
            decoded.hypotheses[example] = hypothesis
            progress()
        decoded.seconds = stopwatch.seconds
        return decoded

    def references(self, data: PreparedData, subset: str) -> References:
        """The labels; where candidates are ranked, ``QUESTION LABEL``."""
        path = data.folder / "raw" / f"{subset}.label"
        if not path.is_file():
            prepared = ", ".join(data.preparation.splits)
            raise InputError(f"{path}: no such file; the prepared sets are {prepared}")
        labels = list(read_lines(path))
        if path.with_suffix(".group").is_file():
            questions = read_lines(path.with_suffix(".group"))
            labels = [f"{question} {label}" for question, label in zip(questions, labels, strict=True)]
        return References([labels], [labels])

    def outputs(self, hypotheses: Sequence[tuple[str, list[float]]], data: PreparedData) -> Outputs:
        classes = [predicted for predicted, _ in hypotheses]
        return Outputs(classes, classes, [numbers for _, numbers in hypotheses])

    def write(self, outputs: Outputs, folder: Path, data: PreparedData, subset: str) -> None:
        """See :mod:`..scoring.predictions`; the numbers are those of the classes, where there are some."""
        predictions.write_predictions(self._file(folder, subset), outputs, getattr(data.preparation, "labels", []))

    def read(self, folder: Path, data: PreparedData, subset: str) -> Outputs:
        return predictions.read_predictions(self._file(folder, subset))

    def variant(self, extra: Sequence[str]) -> str:
        return ""

    def _file(self, folder: Path, subset: str) -> Path:
        return folder / f"{subset}.predicted.tsv"


class TextScoring:
    """The logarithm of each token's probability to a language model, in one stream, perhaps with a cache."""

    kinds = ("running_text",)
    is_divisible = False

    def options(self, configuration: Configuration, data: PreparedData, extra: Sequence[str]) -> Any:
        data.prepared_as(RunningTextPreparation)
        parser = CommandParser("evaluate", "Scores a language model.")
        add_cache_arguments(parser)
        settings = configuration.evaluate if self.variant(extra) else {}
        of_configuration = [
            part for key, value in settings.items() if key.startswith("cache-") for part in (f"--{key}", value.text)
        ]
        return parser.parse_args([*of_configuration, *extra])

    def decode(self, request: Request, number: int, count: int, progress: Callable[[], object]) -> Decoded:
        from ..decoding.cache import chosen_settings, log_probabilities
        from ..decoding.language_model import LanguageModel, by_line
        from ..decoding.trained_model import Stopwatch

        if len(request.checkpoints) > 1:
            raise InputError(f"{':'.join(request.checkpoints)}: one language model reads a text; give one checkpoint")
        model = LanguageModel.load(request.checkpoints, request.data, request.device)
        lines = model.lines_of(request.subset)
        tokens, settings = model.numbers(lines), chosen_settings(model, request.options)
        if settings is not None:
            print(settings.note(len(tokens)))
        stopwatch = Stopwatch()
        with stopwatch:
            values = log_probabilities(model, tokens, settings)
        numbers = by_line(values, lines)
        for _ in lines:
            progress()
        return Decoded({place: ("", line) for place, line in enumerate(numbers)}, stopwatch.seconds)

    def references(self, data: PreparedData, subset: str) -> References:
        """The tokens of each line."""
        data.prepared_as(RunningTextPreparation)
        path = data.folder / "tokens" / f"{subset}.txt"
        if not path.is_file():
            prepared = sorted(file.stem for file in path.parent.glob("*.txt"))
            raise InputError(f"{path}: no such file; the prepared sets are {', '.join(prepared)}")
        lines = [list(read_lines(path))]
        return References(lines, lines)

    def outputs(self, hypotheses: Sequence[tuple[str, list[float]]], data: PreparedData) -> Outputs:
        nothing = [""] * len(hypotheses)
        return Outputs(nothing, nothing, [numbers for _, numbers in hypotheses])

    def write(self, outputs: Outputs, folder: Path, data: PreparedData, subset: str) -> None:
        """The logarithm of each token's probability, a line for each line."""
        with atomic_file(self._file(folder, subset)) as stream:
            for line in outputs.log_probabilities or ():
                stream.write(" ".join(f"{number:.6f}" for number in line) + "\n")

    def read(self, folder: Path, data: PreparedData, subset: str) -> Outputs:
        numbers = read_numbers(self._file(folder, subset))
        return Outputs([""] * len(numbers), [""] * len(numbers), numbers)

    def variant(self, extra: Sequence[str]) -> str:
        return "cache" if any(option.startswith("--cache") for option in extra) else ""

    def _file(self, folder: Path, subset: str) -> Path:
        return folder / f"{subset}.log_probabilities.txt"


class Answering(Classification):
    """An answer to each question, with its place in the passage."""

    kinds = ("reading_comprehension",)

    def references(self, data: PreparedData, subset: str) -> References:
        """All answers of each question."""
        path = data.folder / "raw" / f"{subset}.answers"
        if not path.is_file():
            raise InputError(f"{path}: no such file; the prepared sets are {', '.join(data.preparation.splits)}")
        return references_of(read_references(path))

    def decode(self, request: Request, number: int, count: int, progress: Callable[[], object]) -> Decoded:
        from ..decoding.answers import in_passages

        decoded = super().decode(request, number, count, progress)
        decoded.hypotheses = in_passages(decoded.hypotheses, PreparedData.load(request.data), request.subset)
        return decoded

    def outputs(self, hypotheses: Sequence[tuple[str, list[float]]], data: PreparedData) -> Outputs:
        return predictions.outputs_of_answers(hypotheses)

    def write(self, outputs: Outputs, folder: Path, data: PreparedData, subset: str) -> None:
        predictions.write_answers(self._file(folder, subset), outputs)

    def read(self, folder: Path, data: PreparedData, subset: str) -> Outputs:
        return predictions.read_answers(self._file(folder, subset))

    def _file(self, folder: Path, subset: str) -> Path:
        return folder / f"{subset}.answers.tsv"


DECODINGS: dict[str, Decoding] = {
    "generate": Generation(),
    "classification": Classification(),
    "answers": Answering(),
    "text": TextScoring(),
}
"""What a metric may name."""


def decode(request: Request, processes: int = 1, progress: Callable[[], object] = lambda: None) -> Decoded:
    """Runs a model over a set, and joins what several processes make of it.

    Args:
        request: what is to be decoded
        processes: among how many its batches are divided; on GPUs each has one of its own
        progress: called after each sentence

    Raises:
        InputError: the model cannot do it, or a language model is to be divided.
    """
    if processes == 1:
        return DECODINGS[request.decoding].decode(request, 0, 1, progress)
    if not DECODINGS[request.decoding].is_divisible:
        raise InputError(f"--processes {processes}: a language model reads a set as one stream; leave it out")
    joined = Decoded()
    # Not forked: PyTorch's threads and GPUs do not survive that.
    with ProcessPoolExecutor(processes, get_context("spawn")) as executor:
        shares = [executor.submit(_decode_share, request, number, processes) for number in range(processes)]
        for share in as_completed(shares):
            decoded = share.result()
            joined.hypotheses |= decoded.hypotheses
            joined.seconds = max(joined.seconds, decoded.seconds)
            joined.warnings += [warning for warning in decoded.warnings if warning not in joined.warnings]
            for _ in decoded.hypotheses:
                progress()
    return joined


def _decode_share(request: Request, number: int, count: int) -> Decoded:
    """In a process of its own."""
    begin_decoding([])
    import torch

    if request.device == "cpu":
        torch.set_num_threads(max(1, (named_threads() or available_cpus()) // count))
    else:
        torch.cuda.set_device(number)
    return DECODINGS[request.decoding].decode(request, number, count, lambda: None)


def in_order(decoded: Decoded, count: int, data: PreparedData, subset: str) -> list[tuple[str, list[float]]]:
    """What became of each of ``count`` sentences, in the order of the set.

    Raises:
        InputError: some are missing: a score of the others would be wrong.
    """
    missing = [number for number in range(count) if number not in decoded.hypotheses]
    if missing or len(decoded.hypotheses) != count:
        which = f"; the first missing is number {missing[0] + 1}" if missing else ""
        raise InputError(
            f"{data.folder}: {len(decoded.hypotheses):,} sentences of '{subset}' were decoded, but there are "
            f"{count:,}{which}"
        )
    return [decoded.hypotheses[number] for number in range(count)]


def chosen_metrics(names: str, configuration: Configuration, data: PreparedData) -> list[Metric]:
    """Those of :func:`..scoring.metrics.metrics_named`; of an empty list that of :func:`metric_of`.

    What a configuration says of its metric's tokenizer holds where that metric is among them.

    Raises:
        InputError: there is no such metric, or two of them do not score the same outputs.
    """
    if not names:
        return [metric_of(configuration, data)]
    metrics = metrics_named(names, "--metrics")
    check_metric(data, metrics[0])
    values = [configuration.evaluate.get(metric.tokenize_option or "") for metric in metrics]
    return [
        metric.tokenized_by(None if value is None else value.text)
        for metric, value in zip(metrics, values, strict=True)
    ]


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
                [metric] = tokenized_by([metric], option, value.text)
            except InputError as error:
                raise InputError(f"{value.place}: {error}") from None
    return metric


def tokenized_by(metrics: Sequence[Metric], option: str, tokenizer: str) -> list[Metric]:
    """Metrics as one of :data:`TOKENIZE_OPTIONS` wants those that it is of.

    Raises:
        InputError: the option is another metric's, or names no tokenizer.
    """
    if option not in [metric.tokenize_option for metric in metrics]:
        labels = " and ".join(metric.label for metric in metrics)
        raise InputError(f"{option} is not for {labels}, which the scores are of: leave it out")
    return [metric.tokenized_by(tokenizer) if metric.tokenize_option == option else metric for metric in metrics]


def check_evaluation(configuration: Configuration, data: PreparedData) -> None:
    """Looks before a training at what its configuration says of the evaluation.

    Raises:
        InputError: there is no such metric, it scores nothing that is made of this data, or fairseq's parser refuses
            what is in ``generate``.
    """
    metric = metric_of(configuration, data)
    check_metric(data, metric)
    if configuration.generate:
        DECODINGS["generate"].options(configuration, data, [])


def check_metric(data: PreparedData, metric: Metric) -> None:
    """Looks before a training whether what a metric scores can be made of the data.

    Raises:
        InputError: the data is of a kind of which nothing is made that the metric scores.
    """
    kinds = decoding_of(metric).kinds
    if data.preparation.kind in {kind for decoding in DECODINGS.values() for kind in decoding.kinds} - {*kinds}:
        raise InputError(
            f"{data.folder}: a corpus of {data.preparation.title}, but the metric '{metric.name}' scores what is made "
            f"of {' or '.join(map(title_of, kinds))}; name another metric in the configuration (evaluate: metric), or "
            f"prepare the data for it"
        )


def decoding_of(metric: Metric) -> Decoding:
    """How what a metric scores is made.

    Raises:
        InputError: the metric names a way of decoding that does not exist.
    """
    if metric.decoding not in DECODINGS:
        raise InputError(
            f"the metric '{metric.name}' wants outputs of '{metric.decoding}'{nearest(metric.decoding, DECODINGS)}; "
            f"there are {', '.join(DECODINGS)}"
        )
    return DECODINGS[metric.decoding]
