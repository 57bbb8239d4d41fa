"""A configuration → fairseq's exact commands, their options checked by fairseq's own parsers; and how to run them."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import itertools
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from .. import __path__ as package_path
from .. import register
from ..corpora.builtin import SUFFIXES
from ..corpora.parallel import Preparation
from ..errors import InputError, nearest, report_input_errors
from .config import CHECKOUT, Configuration, Section

# Set by the scripts' own arguments: in a configuration they would tie an experiment to one place.
RESERVED = {
    "user-dir": "it is always this package",
    "save-dir": "say --work DIR to scripts/train.sh",
    "path": "say --checkpoint FILE to scripts/evaluate.sh",
    "results-path": "say --work DIR to scripts/evaluate.sh",
    "gen-subset": "say --subset NAME to scripts/evaluate.sh",
    "source-lang": "the prepared data says it",
    "target-lang": "the prepared data says it",
}
USER_DIR = str(Path(package_path[0]).resolve())


@dataclass(frozen=True)
class PreparedData:
    """A folder that a ``scripts/prepare_*.sh`` wrote."""

    folder: Path
    preparation: Preparation

    @classmethod
    def load(cls, folder: Path) -> PreparedData:
        """Checks that the folder holds what fairseq needs.

        Raises:
            InputError: it is not prepared, or a dictionary is missing.
        """
        folder = Path(os.path.abspath(folder))  # checkpoints keep it, and are used from anywhere
        preparation = Preparation.load(folder)
        for language in preparation.source_lang, preparation.target_lang:
            dictionary = folder / "bin" / f"dict.{language}.txt"
            if not dictionary.is_file():
                raise InputError(f"{dictionary}: the dictionary is missing; delete {folder} and prepare the data again")
        return cls(folder, preparation)

    def arguments(self) -> list[str]:
        """What every fairseq command that reads the data begins with."""
        languages = ["--source-lang", self.preparation.source_lang, "--target-lang", self.preparation.target_lang]
        return [str(self.folder / "bin"), "--user-dir", USER_DIR, *languages]


def train_command(
    configuration: Configuration, data: PreparedData, work: Path, gpus: int | None, extra: Sequence[str]
) -> list[str]:
    """The fairseq-train command of a configuration.

    Args:
        configuration: the experiment
        data: the prepared data
        work: the work folder; checkpoints go to ``checkpoints`` below it
        gpus: how many GPUs of this machine, 0 for the CPU, None for all there are
        extra: further options; they win over the configuration's

    Raises:
        InputError: an option or a value that fairseq's parser does not know, or more GPUs than there are.
    """
    architecture(configuration, extra)
    options = option_arguments("train", configuration.train, extra)
    command = [executable("fairseq-train"), *data.arguments(), "--save-dir", str(work / "checkpoints")]
    command += options
    available = available_gpus()
    if gpus is None:
        gpus = 0 if "--cpu" in [*options, *extra] else available
    if gpus > available:
        raise InputError(f"--gpus {gpus}: PyTorch sees {available} GPUs here; ask for at most as many, 0 is the CPU")
    # Said even for one process: fairseq's default is as many as there are GPUs, with --cpu too.
    command += ["--distributed-world-size", str(max(1, gpus)), *(["--cpu"] if gpus == 0 else [])]
    return check("train", command, configuration.train, extra)


def generate_command(
    configuration: Configuration,
    data: PreparedData,
    checkpoint: str,
    subset: str,
    gpus: int | None,
    extra: Sequence[str],
) -> list[str]:
    """The fairseq-generate command by which ``checkpoint`` (or several, ``a.pt:b.pt``) translates a subset."""
    options = option_arguments("generate", configuration.generate, extra)
    command = [executable("fairseq-generate"), *data.arguments(), "--path", checkpoint, "--gen-subset", subset]
    command += [*data.preparation.fairseq_bpe_arguments(), *options, *_decoding_device(gpus)]
    return check("generate", command, configuration.generate, extra)


def interactive_command(
    data: PreparedData, checkpoint: str, source: Path, gpus: int | None, extra: Sequence[str]
) -> list[str]:
    """The fairseq-interactive command that translates the sentences, in BPE, of the file ``source``."""
    command = [executable("fairseq-interactive"), *data.arguments(), "--path", checkpoint, "--input", str(source)]
    # Sentences of similar length are batched within a buffer.
    command += ["--buffer-size", "1024", "--batch-size", "32", *data.preparation.fairseq_bpe_arguments()]
    return check("interactive", [*command, *_decoding_device(gpus)], {}, extra)


def _decoding_device(gpus: int | None) -> list[str]:
    return ["--cpu"] if gpus == 0 or available_gpus() == 0 else []


def option(arguments: Sequence[str], *names: str) -> str | None:
    """The value of an option among arguments; the last one counts; None where it is not there."""
    value = None
    for argument, following in itertools.zip_longest(arguments, arguments[1:], fillvalue=""):
        name, equals, attached = argument.partition("=")
        if name in names:
            value = attached if equals else following
    return value


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
    """fairseq's command ``name`` of the environment that runs this.

    Raises:
        InputError: it is not installed there.
    """
    path = Path(sysconfig.get_path("scripts")) / name
    if not path.exists():
        raise InputError(f"{path} is not there; install fairseq into this environment with scripts/install.sh")
    return str(path)


def script(name: str) -> str:
    """The path of one of the checkout's scripts."""
    return str(CHECKOUT / "scripts" / f"{name}.sh")


def builtin_corpus(
    task: str, text: Path, data: Path, preparation: Sequence[object]
) -> tuple[list[object], list[object]]:
    """The commands that write a built-in corpus to ``text``, and prepare it in ``data``."""
    source, target = SUFFIXES[task]
    generate = [sys.executable, "-m", "fairseq_plugins.corpora.builtin", "--task", task, "--output", text, "--seed", 1]
    files = [part for split in ("train", "valid", "test") for part in (f"--{split}", text / split)]
    prepare = [script("prepare_parallel"), "--src-lang", source, "--tgt-lang", target, *files, *preparation]
    return generate, [*prepare, "--output", data]


def available_gpus() -> int:
    """How many GPUs PyTorch sees."""
    import torch

    return torch.cuda.device_count()


def option_arguments(kind: str, section: Section, extra: Sequence[str] = ()) -> list[str]:
    """A section of a configuration as command-line arguments, in the order of the file.

    Args:
        kind: ``train`` or ``generate``, whose options these are
        section: the options; a flag is ``true`` or ``false`` (the same as leaving it out)
        extra: the command line's further options, which may choose another architecture, with options of its own

    Raises:
        InputError: fairseq's parser does not know an option or a choice; the message names the nearest, file and line.
    """
    options = _options(kind, section, extra)
    arguments = []
    for key, value in section.items():
        if key in RESERVED:
            raise InputError(f"{value.place}: '{key}' cannot stand in a configuration: {RESERVED[key]}")
        action = options.get(f"--{key}")
        if action is None:
            known = [option[2:] for option in options if option.startswith("--")]
            raise InputError(f"{value.place}: fairseq-{kind} has no option '{key}'{nearest(key, known)}")
        if action.nargs == 0:
            if value.text not in ("true", "false"):
                raise InputError(f"{value.place}: {key} is a flag: write true or false, not '{value.text}'")
            arguments += [f"--{key}"] if value.text == "true" else []
        elif value.text.startswith("-") and not re.fullmatch(r"-\d*\.?\d+", value.text):
            arguments.append(f"--{key}={value.text}")
        else:
            arguments += [f"--{key}", value.text]
    return arguments


def check(kind: str, command: Sequence[str], section: Section, extra: Sequence[str]) -> list[str]:
    """A whole command, the command line's further options at its end, after fairseq's own parser has read it.

    Raises:
        InputError: the parser refuses it; where the configuration is the reason, the message names file and line.
    """
    from fairseq import options as fairseq_options

    for key, remedy in RESERVED.items():
        if option(extra, f"--{key}") is not None:
            raise InputError(f"--{key} cannot be passed on to fairseq-{kind}: {remedy}")
    command = [*command, *extra]
    parser = _parser(kind, section)
    _, unknown = fairseq_options.parse_args_and_arch(parser, input_args=command[1:], parse_known=True)
    if unknown:
        known = [option for option in parser._option_string_actions if option.startswith("--")]
        raise InputError(f"fairseq-{kind} has no option '{unknown[0]}'{nearest(unknown[0].split('=')[0], known)}")
    return command


def _parser(kind: str, section: Section) -> argparse.ArgumentParser:
    """fairseq's parser; what it refuses becomes an InputError."""
    register()
    from fairseq import options as fairseq_options

    parser = {
        "train": fairseq_options.get_training_parser,
        "generate": fairseq_options.get_generation_parser,
        "interactive": fairseq_options.get_interactive_generation_parser,
    }[kind]()

    def error(message: str) -> NoReturn:
        found = re.match(r"argument (?:-\w/)?--([\w-]+)", message)
        value = section.get(found[1]) if found else None
        raise InputError(f"{value.place}: {message}" if value else f"fairseq-{kind}: {message}")

    parser.error = error
    return parser


def _options(kind: str, section: Section, extra: Sequence[str]) -> dict[str, argparse.Action]:
    """Every option of fairseq's parser, with those that the chosen architecture, task, optimizer … bring along."""
    from fairseq import options as fairseq_options

    parser = _parser(kind, section)
    choices = []
    for key, value in section.items():
        action = parser._option_string_actions.get(f"--{key}")
        if action is not None and action.choices is not None:
            if value.text not in action.choices:
                hint = nearest(value.text, map(str, action.choices))
                raise InputError(f"{value.place}: {key}: fairseq knows no '{value.text}'{hint}")
            choices += [f"--{key}", value.text]
    # Parsing is what makes fairseq add the options of the architecture and the other choices to the parser.
    fairseq_options.parse_args_and_arch(parser, input_args=["data", *choices, *extra], parse_known=True)
    return parser._option_string_actions


def shown(command: Sequence[str]) -> str:
    """A command as it can be pasted into a shell."""
    return shlex.join(command)


def run(
    command: Sequence[str],
    on_line: Callable[[str], object],
    stderr: int | None = None,
    pass_fds: Sequence[int] = (),
) -> int:
    """Runs a command, hands over each line of its standard output, and returns its exit status.

    The command does not outlive us: it is stopped when we are.

    Args:
        command: program and arguments
        on_line: called with each line, its line end included
        stderr: None, our own, so that fairseq sees the terminal and draws its progress bar there; or
            ``subprocess.STDOUT``, which makes its lines part of the output
        pass_fds: file descriptors that the command inherits
    """
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        encoding="utf-8",
        errors="replace",
        pass_fds=pass_fds,
        # Today's libraries write a page of deprecation warnings about fairseq 0.12, in which an error would get lost.
        env={"PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1", **os.environ},
    )
    try:
        for line in process.stdout:
            on_line(line)
        return process.wait()
    except BaseException:
        # Not SIGINT: a shell that starts us in the background has us and the command ignore it.
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise


@contextlib.contextmanager
def only_one(folder: Path, what: str = "a training") -> Iterator[int]:
    """Keeps a second training out of a work folder; yields the lock's file descriptor, for the command to inherit.

    Inherited, the lock stays while the command runs, even when only its parent was killed.

    Raises:
        InputError: another process holds the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: {what} is at work there; wait for it, or give another --work") from None
        yield lock.fileno()


def main_of(main: Callable[[list[str]], None]) -> None:
    """Runs an entry point. Bad input is one sentence and status 1; Ctrl-C and SIGTERM stop it, with status 130."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    # fairseq's parsers report at INFO that a user dir is imported and that optional packages are missing.
    logging.disable(logging.INFO)
    try:
        report_input_errors(lambda: main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
