"""A configuration → fairseq's exact commands, their options checked by fairseq's own parsers."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import math
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

from .. import register
from ..decoding.prepared_data import PreparedData
from ..errors import InputError, nearest, nearest_or_all
from .configuration import Configuration, Section

# Set by the scripts' own arguments: in a configuration they would tie an experiment to one place. And what would undo
# subwords or tokens that the preparation undoes: done twice, words run together.
RESERVED = {
    "user-dir": "it is always this package",
    "save-dir": "say --work DIR to 'fairseq-plugins train'",
    "path": "say --checkpoint FILE to 'fairseq-plugins evaluate'",
    "results-path": "say --work DIR to 'fairseq-plugins evaluate'",
    "gen-subset": "say --subset NAME to 'fairseq-plugins evaluate'",
    "log-format": "its lines are read as JSON, and train.jsonl keeps them",
    "source-lang": "the prepared data says it",
    "target-lang": "the prepared data says it",
    **dict.fromkeys(
        ("post-process", "remove-bpe", "bpe", "tokenizer"), "the preparation of the data undoes its subwords"
    ),
}
RESERVED_IN = {"validate": {"valid-subset": "say --subset NAME to 'fairseq-plugins evaluate'"}}
"""What else the scripts say themselves, in one of fairseq's commands."""
SOMETHING_ELSE = {
    "score-reference": "the references themselves would be scored; for their probabilities take fairseq-generate",
    "prefix-size": "the references' first words would be scored as the model's; to go on from them take "
    "fairseq-generate",
    "constraints": "a line is text alone here, without constraints; take fairseq-interactive",
    **dict.fromkeys(
        ("quiet", "print-alignment", "print-step", "retain-iter-history"),
        "it is about what fairseq-generate prints; take that command",
    ),
    "scoring": "the configuration names the metric (evaluate: metric)",
    **dict.fromkeys(
        ("num-shards", "shard-id", "distributed-world-size", "distributed-rank", "skip-invalid-size-inputs-valid-test"),
        "a part of the sentences would be left out; for less memory take a smaller --max-tokens",
    ),
    **dict.fromkeys(
        ("checkpoint-suffix", "checkpoint-shard-count"),
        "another file than the checkpoint would be read; give that file as the checkpoint",
    ),
}
"""Options of decoding with which outputs are not the model's own, of all sentences and of their text alone."""


class TrainCommand(NamedTuple):
    """A fairseq-train command.

    Attributes:
        words: program and arguments
        options: what fairseq's parser makes of them
    """

    words: list[str]
    options: argparse.Namespace


def train_command(
    configuration: Configuration,
    data: PreparedData,
    work: Path,
    gpus: int | None,
    extra: Sequence[str],
    processes: int | None = None,
) -> TrainCommand:
    """The fairseq-train command of a configuration.

    Args:
        configuration: the experiment
        data: the prepared data
        work: the work folder; checkpoints go to ``checkpoints`` below it
        gpus: how many GPUs of this machine, 0 for the CPU, None for all there are
        extra: further options; they win over the configuration's
        processes: how many on the CPU; of GPUs each has one

    Raises:
        InputError: an option or a value that fairseq's parser does not know, more GPUs than there are, another number
            of processes, or data of a kind that is not read.
    """
    task = option(extra, "--task")
    if task is None and "task" in configuration.train:
        task = configuration.train["task"].text
    data.check_model(architecture(configuration, extra), task)
    options = option_arguments("train", configuration.train, extra)
    check_board([*options, *extra])
    command = [executable("fairseq-train"), *data.arguments(), "--save-dir", str(work / "checkpoints")]
    command += ["--log-format", "json", *options]
    available = available_gpus()
    if gpus is None:
        gpus = 0 if "--cpu" in [*options, *extra] else available
    if gpus > available:
        there = f"{available} here; ask for at most as many" if available else "no GPU here"
        raise InputError(
            f"--gpus {gpus}: PyTorch sees {there}; --gpus 0 is the CPU, with --processes {gpus} in {gpus} processes"
        )
    if gpus and processes not in (None, gpus):
        raise InputError(
            f"--processes {processes}: each of the {gpus} GPUs has one process; say --gpus {processes}, or --gpus 0 "
            f"for processes on the CPU"
        )
    # Said even for one process: fairseq's default is as many as there are GPUs, with --cpu too.
    command += ["--distributed-world-size", str(gpus or processes or 1), *(["--cpu"] if gpus == 0 else [])]
    share = share_of(configuration, extra, process_count(command, extra))
    further = [*extra, *share.options]
    return TrainCommand([*command, *further], check("train", command[1:], configuration.train, further))


def check_board(options: Sequence[str]) -> None:
    """Raises InputError if nothing here can write what ``--tensorboard-logdir`` asks for; fairseq would go on."""
    writers = ("tensorboard", "tensorboardX")
    if option(options, "--tensorboard-logdir") and not any(map(importlib.util.find_spec, writers)):
        raise InputError(
            f"--tensorboard-logdir has no effect without the package tensorboard: run {sys.executable} -m pip install "
            "tensorboard, or leave it out"
        )


def process_count(command: Sequence[str], extra: Sequence[str] = ()) -> int:
    """In how many processes a fairseq-train command with these further options trains."""
    number = option([*command, *extra], "--distributed-world-size")
    return int(number) if number is not None and number.isdecimal() else 1


class Share(NamedTuple):
    """What each of several processes does of a batch.

    Attributes:
        options: of fairseq-train, by which all of them together take the batch that the experiment says
        note: what to tell the user; empty for one process
    """

    options: list[str]
    note: str


def share_of(configuration: Configuration, extra: Sequence[str], number: int) -> Share:
    """How ``number`` processes share the batch of an experiment, which fairseq would multiply by their number.

    Batches before an update (``--update-freq``) are shared out first, then the batch itself.
    """
    values = {key: value.text for key, value in configuration.train.items()}
    names = {
        "update-freq": ["--update-freq"],
        "max-tokens": ["--max-tokens"],
        "batch-size": ["--batch-size", "--max-sentences"],
    }
    sizes_by_key = {key: option(extra, *spellings) or values.get(key) for key, spellings in names.items()}
    frequencies = (sizes_by_key.pop("update-freq") or "1").split(",")
    sizes = {key: value for key, value in sizes_by_key.items() if value is not None}
    if number < 2 or not all(text.isdecimal() for text in (*frequencies, *sizes.values())):
        return Share([], "")
    common = math.gcd(number, *map(int, frequencies))
    rest = number // common
    if any(int(size) % rest for size in sizes.values()) or (rest > 1 and not sizes):
        whole = " and ".join(
            f"{'/'.join(f'{number * int(size) * int(times):,}' for times in frequencies)} ({key})"
            for key, size in sizes.items()
        )
        return Share([], f"{number} processes: a batch is {number} times what the experiment says: {whole}")
    options = []
    if common > 1:
        options += ["--update-freq", ",".join(str(int(text) // common) for text in frequencies)]
    if rest > 1:
        options += [part for key, size in sizes.items() for part in (f"--{key}", str(int(size) // rest))]
    return Share(options, f"{number} processes share a batch: each has {' '.join(options)}")


def decoding_options(
    kind: str, data: PreparedData, section: Section, extra: Sequence[str]
) -> tuple[argparse.Namespace, list[str]]:
    """How a set or text is decoded, as fairseq's parser reads it.

    Args:
        kind: ``generate``, or ``validate`` for what writes no text
        data: the prepared data
        section: of a configuration
        extra: further options, which win over the section's

    Returns:
        Every option, and the arguments that say something of the decoding.

    Raises:
        InputError: an option or a value that fairseq's parser does not know, or by which something else would be
            scored.
    """
    arguments = option_arguments(kind, section, extra) if section else []
    parsed = check(kind, [*data.arguments(), *arguments], section, extra)
    arguments += extra
    if option(arguments, "--num-workers") is None:
        parsed.num_workers = 0  # what is read takes less time than another process that reads it
    return parsed, arguments


def device_of(gpus: int | None) -> str:
    """Where decoding computes: on the CPU where ``gpus`` is 0, or None and there is none.

    Raises:
        InputError: more GPUs are asked for than there are.
    """
    if gpus and gpus > available_gpus():
        raise InputError(f"--gpus {gpus}: PyTorch sees {available_gpus() or 'no'} GPU here; --gpus 0 is the CPU")
    return "cpu" if gpus == 0 or available_gpus() == 0 else "cuda"


def option(arguments: Sequence[str], *names: str) -> str | None:
    """The value of an option among arguments; the last one counts; None where it is not there."""
    value = None
    for argument, following in itertools.zip_longest(arguments, arguments[1:], fillvalue=""):
        name, equals, attached = argument.partition("=")
        if name in names:
            value = attached if equals else following
    return value


Options = dict[str, str]
"""Options of a command, without dashes, and their values; ``true`` for a flag."""


def options_of(command: Sequence[str], places: Iterable[str] = ()) -> Options:
    """The options of a command, without dashes, and their values; ``true`` for a flag. The last of several counts.

    Args:
        command: the command; what comes before the first option is left out
        places: options that are left out
    """
    options: Options = {}
    key = None
    for argument in command:
        if re.match(r"--?[a-zA-Z]", argument):
            key, equals, value = argument.lstrip("-").partition("=")
            options[key] = value if equals else "true"
            fresh = not equals
        elif key is not None:
            options[key] = argument if fresh else f"{options[key]} {argument}"
            fresh = False
    return {key: value for key, value in options.items() if key not in set(places)}


def architecture(configuration: Configuration, extra: Sequence[str] = ()) -> str:
    """The architecture that is trained.

    Raises:
        InputError: neither the configuration nor the further options name one.
    """
    chosen = option(extra, "--arch", "-a")
    if chosen is None and "arch" not in configuration.train:
        raise InputError(f"{configuration.path}: train: arch is missing; name an architecture")
    return chosen or configuration.train["arch"].text


def executable(name: str) -> str:
    """fairseq's command ``name`` of the environment that runs this, or of the folder that fairseq was installed to.

    Raises:
        InputError: it is not installed there.
    """
    path = Path(sysconfig.get_path("scripts")) / name
    if path.exists():
        return str(path)
    # What ``pip install --target`` makes: packages, and ``bin`` beside them.
    fairseq = importlib.util.find_spec("fairseq")
    beside = Path(fairseq.origin).parents[1] / "bin" / name if fairseq and fairseq.origin else path
    if not beside.exists():
        raise InputError(f"{path} is not there; install fairseq into this environment with scripts/install.sh")
    return str(beside)


def available_gpus() -> int:
    """How many GPUs PyTorch sees."""
    import torch

    return torch.cuda.device_count()


def option_arguments(kind: str, section: Section, extra: Sequence[str] = ()) -> list[str]:
    """A section of a configuration as command-line arguments, in the order of the file.

    Args:
        kind: ``train``, ``generate`` or ``validate``, whose options these are
        section: the options; a flag is ``true`` or ``false`` (the same as leaving it out)
        extra: the command line's further options, which may choose another architecture, with options of its own

    Raises:
        InputError: fairseq's parser does not know an option or a choice; the message names the nearest, file and line.
    """
    options = _options(kind, section, extra)
    arguments = []
    for key, value in section.items():
        if key in RESERVED:
            raise InputError(f"{value.place}: '{key}' cannot be in a configuration: {RESERVED[key]}")
        action = options.get(f"--{key}")
        if action is None:
            names = [option[2:] for option in options if option.startswith("--")]
            raise InputError(f"{value.place}: fairseq-{kind} has no option '{key}'{_nearest_option(kind, key, names)}")
        if action.nargs == 0:
            if value.text not in ("true", "false"):
                raise InputError(f"{value.place}: {key} is a flag: write true or false, not '{value.text}'")
            arguments += [f"--{key}"] if value.text == "true" else []
        elif value.text.startswith("-") and not re.fullmatch(r"-\d*\.?\d+", value.text):
            arguments.append(f"--{key}={value.text}")
        else:
            arguments += [f"--{key}", value.text]
    return arguments


def check(kind: str, arguments: Sequence[str], section: Section, extra: Sequence[str]) -> argparse.Namespace:
    """Has fairseq's own parser read a command's arguments, and further ones after them.

    Raises:
        InputError: the parser refuses it, or its outputs would not be what is scored or shown; where the configuration
            is the reason, the message names file and line.
    """
    register()
    from fairseq import options as fairseq_options

    _check_reserved(kind, extra)
    parser = _parser(kind, section, extra)
    parsed, unknown = fairseq_options.parse_args_and_arch(parser, input_args=[*arguments, *extra], parse_known=True)
    if unknown:
        names = [option for option in parser._option_string_actions if option.startswith("--")]
        hint = _nearest_option(kind, unknown[0].split("=")[0], names)
        raise InputError(f"fairseq-{kind} has no option '{unknown[0]}'{hint}")

    def place(key: str) -> str:
        value = section.get(key) if option(extra, f"--{key}") is None else None
        return value.place if value else f"fairseq-{kind}"

    if getattr(parsed, "beam", 1) < 1:
        raise InputError(f"{place('beam')}: --beam {parsed.beam}: at least 1 hypothesis has to be kept")
    for side in "source", "target":
        if (longest := getattr(parsed, f"max_{side}_positions", None)) is not None and longest < 1:
            raise InputError(
                f"{place(f'max-{side}-positions')}: --max-{side}-positions {longest}: a sentence has at least 1 token"
            )
    if kind == "train":
        _check_validation_bleu(parsed, place("eval-bleu-args"))
        if parsed.best_checkpoint_metric == "bleu" and not getattr(parsed, "eval_bleu", False):
            raise InputError(
                f"{place('best-checkpoint-metric')}: --best-checkpoint-metric bleu: no BLEU is computed in training; "
                f"add --eval-bleu"
            )
        return parsed
    for key, reason in SOMETHING_ELSE.items():
        name = key.replace("-", "_")
        if getattr(parsed, name, None) != parser.get_default(name):
            raise InputError(f"{place(key)}: --{key}: {reason}")
    return parsed


def _check_reserved(kind: str, extra: Sequence[str]) -> None:
    """Raises InputError where further options have one that the scripts set."""
    reserved = {f"--{key}": remedy for key, remedy in {**RESERVED, **RESERVED_IN.get(kind, {})}.items()}
    # Short options, whose value may follow at once (-sde).
    reserved |= {"-s": RESERVED["source-lang"], "-t": RESERVED["target-lang"]}
    for argument in extra:
        name = argument.partition("=")[0] if argument.startswith("--") else argument[:2]
        if name in reserved:
            raise InputError(f"{name} cannot be passed on to fairseq-{kind}: {reserved[name]}")


def _check_validation_bleu(parsed: argparse.Namespace, place: str) -> None:
    """Raises InputError where the references themselves would be what ``--eval-bleu`` scores."""
    try:
        arguments = json.loads(getattr(parsed, "eval_bleu_args", None) or "{}")
    except ValueError as error:
        raise InputError(f"{place}: --eval-bleu-args is no JSON: {error}") from None
    if isinstance(arguments, dict) and arguments.get("score_reference"):
        raise InputError(f"{place}: --eval-bleu-args: score_reference: the references themselves would be scored")


def resolved_options(parsed: argparse.Namespace) -> dict[str, Any]:
    """Every option that was parsed in fairseq's groups (``common``, ``model``, …), with all defaults."""
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from omegaconf import OmegaConf

    with warnings.catch_warnings():
        # fairseq asks Hydra as it was asked years ago.
        warnings.simplefilter("ignore")
        configuration = convert_namespace_to_omegaconf(parsed)
        groups = cast("dict[str, Any]", OmegaConf.to_container(configuration, resolve=True, enum_to_str=True))
    # Models and tasks in the older style have all options in one Namespace.
    return {
        name: vars(group) | {"_name": getattr(parsed, "arch" if name == "model" else name, None)}
        if isinstance(group, argparse.Namespace)
        else group
        for name, group in groups.items()
    }


def _parser(kind: str, section: Section, extra: Sequence[str] = ()) -> argparse.ArgumentParser:
    """fairseq's parser; what it refuses becomes an InputError, which names the file unless ``extra`` has the option."""
    register()
    from fairseq import options as fairseq_options

    parser = {
        "train": fairseq_options.get_training_parser,
        "generate": fairseq_options.get_generation_parser,
        "validate": fairseq_options.get_validation_parser,
    }[kind]()

    def error(message: str) -> NoReturn:
        match = re.match(r"argument (?:-\w/)?--([\w-]+)", message)
        if choice := re.fullmatch(r"(argument .*): invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
            choices = [name.strip("' ") for name in choice[3].split(",")]
            key = match[1] if match else ""
            message = f"{choice[1]}: there is no '{choice[2]}'{_choices(key, choice[2], choices)}"
        # What fairseq reads a value with has no name that says anything.
        message = message.replace("invalid <lambda> value", "invalid value")
        value = section.get(match[1]) if match and option(extra, f"--{match[1]}") is None else None
        raise InputError(f"{value.place}: {message}" if value else f"fairseq-{kind}: {message}")

    parser.error = error
    return parser


def _nearest_option(kind: str, name: str, options: Iterable[str]) -> str:
    return nearest(name, options) or f"; 'fairseq-{kind} --help' lists them"


def _choices(key: str, name: str, choices: Iterable[str]) -> str:
    """What can be chosen by an option instead of a ``name`` that it does not know."""
    if key == "arch":
        # Of which fairseq has too many.
        return f"{nearest(name, choices, 3)}; 'fairseq-plugins options' lists ours"
    return nearest_or_all(name, choices, 3)


def _options(kind: str, section: Section, extra: Sequence[str]) -> dict[str, argparse.Action]:
    """Every option of fairseq's parser, with those that the chosen architecture, task, optimizer … bring along."""
    from fairseq import options as fairseq_options

    parser = _parser(kind, section, extra)
    choices = []
    for key, value in section.items():
        action = parser._option_string_actions.get(f"--{key}")
        if action is not None and action.choices is not None:
            if value.text not in action.choices:
                hint = _choices(key, value.text, map(str, action.choices))
                raise InputError(f"{value.place}: {key}: fairseq knows no '{value.text}'{hint}")
            choices += [f"--{key}", value.text]
    # Parsing is what makes fairseq add the options of the architecture and the other choices to the parser.
    fairseq_options.parse_args_and_arch(parser, input_args=["data", *choices, *extra], parse_known=True)
    return parser._option_string_actions
