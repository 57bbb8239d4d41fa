"""``fairseq-plugins evaluate``: runs a trained model over a set and scores every one of its sentences.

What it is scored by is the metric that the configuration or the preparation of the corpus names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..checkpoints import average_checkpoints, checked_checkpoint, last_checkpoints
from ..command_parser import CommandParser
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..files import locked
from ..scoring.metrics import BUILT_IN, Metric, metrics_of
from ..terminal import table
from . import configuration as configurations
from . import fairseq_commands, recorded_runs
from .command_line import begin_decoding, gpu_count, process_count, started, work_folder
from .configuration import TOKENIZE_OPTIONS, Configuration
from .decoding import Request, chosen_metrics, decode, decoding_of, in_order, tokenized_by
from .processes import own_command, shown
from .run import Run

_NOTES = """\
Further options are fairseq-generate's, and win over the configuration; those of classifiers and rankers are
fairseq-validate's, and generate/<subset>.predicted.tsv says what they predict.

Writes generate/<subset>.tok.<language> (tokens), generate/<subset>.<language> (text) and
generate/<subset>.log_probabilities.<language> (natural logarithms, one for each subword and the sentence's end), all in
the order of the set, and the scores to results.json.

Several GPUs, or --processes on a CPU, divide the set; the result is the same.

Of a language model (docs/language_models.md) each token's probability is written,
generate/<subset>.log_probabilities.txt. --cache reads the set with the continuous cache, and keeps those results apart
("test with cache")."""

_TOKENIZE_HELP = {
    "sacrebleu-tokenize": "what cuts text for sacreBLEU: 13a, zh, ja-mecab, ko-mecab, intl, char ... (default: what "
    "the target language wants)",
    "rouge-tokenize": "what ROUGE counts: rouge-score (runs of a-z and 0-9) or unicode (words of all letters; default: "
    "what the target language wants)",
}


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "evaluate",
        "Translates a test set with the model that 'train' trained, and scores it by the metric that the data is "
        "prepared for, or that the configuration names (evaluate: {metric: NAME}).",
        ("multi30k_de_en/mc_rnn_3", "multi30k_de_en/mc_rnn_3 --subset valid --beam 10"),
        _NOTES,
        passes_on_to="fairseq-generate",
    )
    options.add_argument("configuration", metavar="CONFIG", help="what was given to 'train'")
    options.add_argument(
        "--work", type=Path, metavar="DIR", help="that was given to 'train' (default: work/<dataset>/<model>)"
    )
    options.add_argument("--data", type=Path, metavar="DIR", help="the prepared data (default: work/<dataset>/data)")
    options.add_argument("--recipe", metavar="NAME", help="that was given to 'train'")
    options.add_argument("--checkpoint", metavar="FILE", help="instead of the best one; FILE:FILE is an ensemble")
    options.add_argument(
        "--average", type=int, metavar="N", help="the mean of the last N epochs' checkpoints instead of one"
    )
    options.add_argument(
        "--subset",
        default="test",
        metavar="NAME",
        help="which of the prepared sets: test (the default), valid, test1 ..., or by its own name: nist05",
    )
    options.add_argument(
        "--gpus", type=gpu_count, metavar="N", help="0 for the CPU (default: one GPU where there is one)"
    )
    options.add_argument(
        "--processes", type=process_count, metavar="N", help="that divide the set (default: one for each GPU)"
    )
    options.add_argument(
        "--metrics",
        default="",
        metavar="NAME[,NAME]",
        help=f"what the outputs are scored by instead, of those that fit the data: {', '.join(BUILT_IN)}",
    )
    options.add_argument(
        "--record",
        action="store_true",
        help="also write the run to results/<dataset>/<model>/, or below FAIRSEQ_PLUGINS_RESULTS, for the tables in "
        "docs/results/; what the scores are sums of, sentence by sentence, goes into a .npz file beside it",
    )
    for option, help_text in _TOKENIZE_HELP.items():
        options.add_argument(f"--{option}", metavar="NAME", help=help_text)
    return options


def main(arguments: Sequence[str]) -> None:
    """Translates and scores, and writes the evaluation's part of ``results.json``."""
    options, extra = parser().parse_and_pass_on(arguments)
    if options.record and options.metrics:
        raise InputError(
            "--metrics with --record: recorded runs have the experiment's own metric; leave one of them out"
        )
    path = options.configuration
    configuration = configurations.load(path, options.recipe, options.data)
    run = Run(work_folder(options.work or configuration.default_work))  # what is damaged is said before minutes of work
    configuration.load_extensions()  # the kind of the data may be one of theirs
    data = configuration.prepared_data(options.data)
    started(path)
    begin_decoding([])
    if options.record:
        recorded_runs.recordable(configuration, run, options.checkpoint)
    subset = data.preparation.split_of(options.subset)
    name = data.preparation.splits.get(subset, {}).get("name", subset)
    metrics = chosen_metrics(options.metrics, configuration, data)
    said = {option: getattr(options, option.replace("-", "_")) for option in TOKENIZE_OPTIONS}
    tokenizers = {option: tokenizer for option, tokenizer in said.items() if tokenizer is not None}
    for option, tokenizer in tokenizers.items():
        metrics = tokenized_by(metrics, option, tokenizer)
    metric = metrics[0]
    decoding = decoding_of(metric)
    references = decoding.references(data, subset)
    count = len(references.tokens[0])
    # What is not installed is said before minutes of decoding.
    remarks = [remark for scored in metrics for remark in scored.remarks(references)]
    average = configuration.average if options.average is None else options.average
    data.verify(subset)
    device = fairseq_commands.device_of(options.gpus)
    request_options = decoding.options(configuration, data, extra)
    checkpoint = options.checkpoint or own_checkpoint(run.checkpoints, average)
    for part in checkpoint.split(":"):
        expected = None if options.checkpoint else fairseq_commands.architecture(configuration)
        data.check_trained_on(checked_checkpoint(part, expected), part)

    variant = decoding.variant(extra)
    stem = f"{subset}.{variant}" if variant else subset
    name = f"{name} with {variant}" if variant else name
    folder = run.outputs_folder
    refusal = f"{folder / stem}: another evaluation of this set is at work; wait for it, or give another --work"
    with locked(folder / f".{stem}.lock", refusal):
        request = Request(metric.decoding, tuple(checkpoint.split(":")), data.folder, subset, request_options, device)
        with tqdm(total=count, unit=" sentences", disable=None) as bar:
            decoded = decode(request, options.processes or max(1, options.gpus or 1), bar.update)
        outputs = decoding.outputs(in_order(decoded, count, data, subset), data)
        scores = {
            **{key: value for scored in metrics for key, value in scored.scores(outputs, references).items()},
            "tokenizer": metric.tokenizer,
            "decode_sentences_per_second": round(count / max(decoded.seconds, 1e-9), 2),
            "checkpoint": checkpoint,
            "evaluate_command": shown([*own_command("evaluate"), *arguments]),
        }
        make_room(run, stem)
        decoding.write(outputs, folder, data, stem)
        keep(run, configuration, stem, name, scores)
    row = {"system": f"{configuration.dataset}/{configuration.model}", "set": name, "sentences": count}
    row |= {column.label: scores[column.key] for scored in metrics for column in scored.columns}
    # A table's figures are of its test sets.
    if subset.startswith("test") and (paper := configuration.paper_row()) is not None:
        row["paper"] = paper_cell(metric, paper, name)
    print(table([{**row, "sentences/s": scores["decode_sentences_per_second"]}]))
    print("\n".join([*(line for scored in metrics for line in explanations(scored, scores)), *remarks]))
    attention = attention_over_development_set(checkpoint, data)
    # The report shows it beside the scores of the test set.
    if attention is not None and (stem == "test" or "checkpoint" not in run.results):
        run.update(attention=attention)
    for warning in [*decoded.warnings, *(attention["warnings"] if attention is not None else ())]:
        print(f"warning: {warning}")
    print(f"outputs: {folder}; scores: {run.folder / 'results.json'}")
    if options.record:
        rows = metric.statistics(outputs, references)
        extra += [f"--{option}={tokenizer}" for option, tokenizer in tokenizers.items()]
        written = recorded_runs.record(configuration, data, run, average, name, scores, extra, statistics=rows)
        print(f"record: {written}")


def attention_over_development_set(checkpoint: str, data: PreparedData) -> dict[str, Any] | None:
    """Where a model with several attention flows, or gates, looks in the development set.

    Args:
        checkpoint: of the model; several of them (``a.pt:b.pt``) are looked at no further
        data: the prepared data

    Returns:
        ``entropy`` of each flow and ``uniform``, that of looking everywhere alike, in nats; ``gates``, the mean of each
        layer's; ``warnings``, a sentence each. None where the model has one attention only, or cannot read the set;
        then it is said why.
    """
    from ..decoding.attention import focus_over_set  # not before begin_decoding

    if ":" in checkpoint:
        return None
    try:
        focus = focus_over_set(checkpoint, data, "valid")
    except InputError as error:
        print(f"note: where the model looks is not known: {error}")
        return None
    return None if focus is None else {"checkpoint": str(Path(checkpoint)), **focus.numbers}


def make_room(run: Run, stem: str) -> None:
    """Before the outputs of an earlier evaluation are replaced: its scores do not count any more.

    Args:
        run: as it was before the decoding
        stem: of the outputs' names

    Raises:
        InputError: a training has gone on meanwhile.
    """
    trained = run.results.get("updates")
    with run.changing() as present:
        if present.get("updates") != trained:
            raise InputError(f"{run.folder}: the training has gone on meanwhile; evaluate again")
        if stem == "test" and present.pop("checkpoint", None) is not None:
            present.pop("attention", None)
            for metric in metrics_of(present):
                for key in metric.keys_of_scores:
                    present.pop(key, None)
            run.write(present)


def keep(run: Run, configuration: Configuration, stem: str, name: str, scores: dict[str, Any]) -> None:
    """Puts the scores of a set into ``results.json``."""
    values = {"extensions": list(map(str, configuration.extensions))} if configuration.extensions else {}
    # The top level is the test set's: another set must not overwrite what tables are made of.
    run.update(**values, **(scores if stem == "test" else {"subsets": {name: scores}}))


def own_checkpoint(checkpoints: Path, average: int) -> str:
    """The best checkpoint of a training, or the mean of its last ``average`` epochs' (written beside them)."""
    if average == 0:
        return str(checkpoints / "checkpoint_best.pt")
    output = checkpoints / f"checkpoint_average_{average}.pt"
    average_checkpoints(last_checkpoints(checkpoints, average), output)
    return str(output)


def paper_cell(metric: Metric, paper: dict[str, Any], subset: str) -> str | None:
    """The paper's figures for a set, as they are beside ours; None where it has none."""
    figures = metric.paper_figures(paper, subset)
    return " / ".join(f"{figures[c.key]:{c.form}}" for c in metric.columns if c.key in figures) or None


def explanations(metric: Metric, scores: dict[str, Any]) -> list[str]:
    """How scores were computed, and their intervals where they have some."""
    intervals = {column.label: metric.interval(scores, column) for column in metric.columns}
    shown_intervals = [f"{label} {ends[0]:.2f}-{ends[1]:.2f}" for label, ends in intervals.items() if ends]
    return [
        *metric.explanations(scores),
        *([f"95 % intervals: {', '.join(shown_intervals)}"] if shown_intervals else []),
    ]
