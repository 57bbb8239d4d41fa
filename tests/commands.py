"""Runs whole commands as a user would: fairseq's own, ours and Python's, each in a process of its own."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fairseq_plugins
from fairseq_plugins.errors import InputError

from .preloaded import PYTHON, stub_of

if TYPE_CHECKING:
    import omegaconf

CHECKOUT = Path(__file__).resolve().parent.parent
USER_DIR = str(CHECKOUT / "fairseq_plugins")


def run_command(
    args: Sequence[str | os.PathLike[str]],
    *,
    status: int | None = 0,
    stdin: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float = 1200,
    is_fresh: bool = False,
    **env: str,
) -> subprocess.CompletedProcess[str]:
    """Runs ``args`` and returns the finished process with ``stdout`` and ``stderr`` as text.

    ``args[0]`` is ``python`` (the one that runs the tests), a command installed beside it (``fairseq-train``), or
    anything on the PATH. Further keywords are environment variables. This checkout comes first on PYTHONPATH.

    Our own commands, and what they start, are forks of a process that has imported PyTorch and fairseq
    (``preloaded.py``), unless ``is_fresh``: then each is a process of its own, as it is to a user.

    Raises:
        AssertionError: the exit status is not ``status`` (None: any); the message holds the end of the output.
    """
    command = [os.fspath(arg) for arg in args]
    installed = Path(sysconfig.get_path("scripts")) / command[0]
    is_of_fairseq = installed.exists() and command[0].startswith("fairseq-")
    is_preloaded = not is_fresh and (is_of_fairseq or is_our_own(command))
    python = str(stub_of(CHECKOUT)) if is_preloaded else PYTHON
    if is_preloaded:
        env = {"PYTHON": python, **env}
    if command[0] == "python":
        command[0] = python
    elif is_of_fairseq and is_preloaded:
        command[:1] = [python, str(CHECKOUT / "fairseq_plugins" / "fairseq_program.py"), str(installed)]
    elif installed.exists():
        command[0] = str(installed)
    search_path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
    finished = subprocess.run(
        command,
        input=stdin if stdin is not None else "",
        cwd=cwd,
        timeout=timeout,
        text=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": search_path, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", **env},
        check=False,
    )
    if status is not None and finished.returncode != status:
        raise AssertionError(
            f"{' '.join(command)}\nended with exit status {finished.returncode}, not {status}\n"
            f"--- stdout\n{finished.stdout[-4000:]}\n--- stderr\n{finished.stderr[-6000:]}"
        )
    return finished


def run_script(name: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a script of the project by its name without the ending, as :func:`run_command` does."""
    return run_command([CHECKOUT / "scripts" / f"{name}.sh", *map(str, arguments)], **options)


def is_our_own(command: Sequence[str]) -> bool:
    """Whether it is a command of this project, one of its scripts, or a benchmark."""
    program, *arguments = command
    if program == "python":
        return arguments[:2] == ["-m", "fairseq_plugins"] or arguments[0].startswith(f"{CHECKOUT}/benchmarks/")
    return program.startswith(f"{CHECKOUT}/scripts/")


def run_in_process(
    main: Callable[[list[str]], object], *arguments: object, status: int = 0
) -> subprocess.CompletedProcess[str]:
    """Runs a script's entry point (``evaluate.main``) as :func:`run_command` runs the script, but in this process,
    which saves the seconds in which PyTorch and fairseq start. It has no standard input.

    Raises:
        AssertionError: the exit status would not be ``status``.
    """
    args, ended = list(map(str, arguments)), 0
    logging.disable(logging.INFO)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as stdout, contextlib.redirect_stderr(io.StringIO()) as stderr:
            try:
                main(args)
            except InputError as error:
                print(f"error: {error}", file=sys.stderr)
                ended = 1
    finally:
        logging.disable(logging.NOTSET)
    assert ended == status, stderr.getvalue()
    return subprocess.CompletedProcess(args, ended, stdout.getvalue(), stderr.getvalue())


def path_without(program: str, folder: Path) -> str:
    """A PATH on which everything of ours is but ``program``: links in ``folder``, which is made."""
    folder.mkdir()
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        for path in place.iterdir() if place.is_dir() else ():
            if path.name != program and not os.path.lexists(folder / path.name):
                (folder / path.name).symlink_to(path)
    return str(folder)


def output_lines(stdout: str, kind: str) -> dict[int, str]:
    """The lines of one kind (``S T H D P A``) in the output of fairseq-generate or -interactive, by sentence number.

    Of several hypotheses of a sentence (``--nbest``) the first, which is the best, stays. The text is what follows
    the first tab; for H and D that is ``<score>\\t<sentence>``.
    """
    lines: dict[int, str] = {}
    for line in stdout.splitlines():
        label, tab, text = line.partition("\t")
        if tab and label.startswith(f"{kind}-") and label[2:].isdigit():
            lines.setdefault(int(label[2:]), text)
    return lines


def train_in_process(*options: str | os.PathLike[str]) -> None:
    """``fairseq-train`` with these options in this process, which saves its start-up time."""
    fairseq_plugins.register()
    from fairseq import checkpoint_utils
    from fairseq import options as fairseq_options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq_cli import train

    # Worker processes that outlive the call would have pytest wait for them.
    args = [os.fspath(option) for option in options] + ["--num-workers", "0"]
    parsed = fairseq_options.parse_args_and_arch(fairseq_options.get_training_parser(), args)
    try:
        train.main(convert_namespace_to_omegaconf(parsed))
    finally:
        # fairseq keeps the best score of a run on its functions, where the next run in this process would find it.
        for function in checkpoint_utils.save_checkpoint, train.should_stop_early:
            vars(function).pop("best", None)


def command_configuration(processes: int = 1) -> omegaconf.DictConfig:
    """What fairseq's ``call_main`` takes, for a command on CPUs."""
    import omegaconf
    from fairseq.dataclass.configs import FairseqConfig

    defaults = omegaconf.OmegaConf.structured(FairseqConfig)
    cfg = omegaconf.OmegaConf.create(omegaconf.OmegaConf.to_container(defaults, enum_to_str=True))
    cfg.model, cfg.common.cpu, cfg.distributed_training.distributed_world_size = None, True, processes
    return cfg
