"""``fairseq-plugins reproduce``: every experiment of a paper's table, and the table, as a Snakemake workflow.

This plans the commands, which are those that a user would type; the Snakefile beside this file runs them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import util
from pathlib import Path
from typing import Any

from ..command_parser import CommandParser
from ..errors import InputError
from ..experiments import configuration as configurations
from ..experiments.builtin_corpora import builtin_corpus
from ..experiments.command_line import gpu_count, started, work_folder
from ..experiments.fairseq_commands import available_gpus, option
from ..experiments.processes import only_one, own_command, shown
from ..fairseq_program import environment
from ..files import write_json
from ..missing import remedy
from ..package_files import ROOT
from .tables import BENCHMARKS, SCALES, Table, load_small_scale, load_table, with_data

SNAKEFILE = Path(__file__).with_name("Snakefile")
PLAN = ".plan.json"
TABLE_FILES = ("table.md", "table.csv", "table.json", "report.html")


_DESCRIPTION = """\
Reproduces a table of the papers: trains and evaluates every row, and writes the table with the paper's figures beside
ours as Markdown, CSV and JSON, and a report.html. It goes on where it was interrupted."""
_NOTES = """\
Further options go to Snakemake: on a cluster with SLURM, --profile configs/slurm. It needs the extra "workflow", and
Python 3.11 or later."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "reproduce",
        _DESCRIPTION,
        ("mc_rnn_table_2 --dry-run", "dpn_table_4 --scale small", "mc_rnn_table_2 --seeds 1 2 3"),
        _NOTES,
        passes_on_to="snakemake",
    )
    options.add_argument(
        "table",
        metavar="TABLE",
        help="mc_rnn_table_2, _3, _4, _5, dpn_table_1, _2, _3, _4, _5, rcrn_table_1 … _8, dilated_rnn_table_1, _2 or "
        "dilated_rnn_figure_3 … _6 (configs/tables); rcrn_table_10 times models, with the options of "
        "benchmarks/rcrn_table_10.py",
    )
    options.add_argument(
        "--scale",
        choices=SCALES,
        default="paper",
        help="small: built-in sentences and small models, half an hour on 2 CPU cores, and not the paper's setting. "
        "paper (the default) needs the prepared data (docs/data.md) and GPUs for hours or days",
    )
    options.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        default=[1],
        metavar="N",
        help="of each row's training (default: 1); several give a mean and a deviation",
    )
    options.add_argument(
        "--recipe",
        metavar="NAME",
        help="train every row by another recipe: paper is the DPN-S2S paper's own, configs/*/*_paper.yaml",
    )
    options.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        help="where everything goes (default: work/reproduce/<scale>); tables share their experiments",
    )
    options.add_argument(
        "--data", type=Path, metavar="DIR", help="prepared data for every row, instead of what the configurations say"
    )
    options.add_argument("--max-update", type=int, metavar="N", help="the same number of updates for every row")
    options.add_argument(
        "--gpus",
        type=gpu_count,
        metavar="N",
        help="of this machine, one for each row at a time; 0 for the CPU (default: all that there are)",
    )
    options.add_argument(
        "--cores", type=int, metavar="N", help="how many steps run at the same time (default: one for each CPU core)"
    )
    options.add_argument("--dry-run", action="store_true", help="print every command that is left to run, run none")
    return options


def main(arguments: Sequence[str]) -> None:
    """Plans a table and runs Snakemake."""
    options, extra = parser().parse_known_args(arguments)
    if options.table in BENCHMARKS:
        of_trainings = ("seeds", "recipe", "work", "data", "max_update", "gpus", "cores")
        superfluous = [
            f"--{name}".replace("_", "-")
            for name in of_trainings
            if getattr(options, name) != parser().get_default(name)
        ]
        time_models(options.table, options.scale, options.dry_run, superfluous, extra)
        return
    # Snakemake runs the commands in another folder.
    data = None if options.data is None else Path(os.path.abspath(options.data))
    table = with_data(load_table(options.table, options.recipe), options.scale, data)
    if not table.configurations:
        notes = "; ".join(dict.fromkeys(row.missing for row in table.rows if row.missing))
        raise InputError(f"{table.name}: nothing of it can be trained here: {notes}; or try --scale small")
    if util.find_spec("snakemake") is None:
        raise InputError(f"snakemake is not installed: {remedy('workflow')} (Python 3.11 or later)")
    if len(set(options.seeds)) < len(options.seeds):
        raise InputError(f"--seeds {' '.join(map(str, options.seeds))}: a seed is there twice")
    if options.scale == "small" and data is not None:
        raise InputError("--data goes with --scale paper: the small scale makes its own corpus")
    if options.max_update is not None and options.max_update < 1:
        raise InputError(f"--max-update is {options.max_update}; it must be at least 1")
    started(options.table)
    profile = option(extra, "--profile", "--workflow-profile") is not None
    gpus = options.gpus
    if gpus is None:
        # On a cluster the GPUs are the nodes'.
        gpus = 0 if options.scale == "small" else 1 if profile else available_gpus()
    if not profile and gpus > available_gpus():
        raise InputError(f"--gpus {gpus}: PyTorch sees {available_gpus()} GPUs here; 0 is the CPU")
    work = work_folder(options.work or Path("work") / "reproduce" / options.scale)
    plan = plan_of(table, work, options.scale, options.seeds, gpus, data, options.max_update)
    if not options.dry_run:
        check_data(plan)

    cores = options.cores or os.cpu_count() or 1
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE)]
    command += ["--rerun-incomplete", "--keep-going", "--printshellcmds", "--show-failed-logs"]
    # A profile has its own numbers of jobs and resources.
    command += [] if profile else ["--cores", str(cores), "--resources", f"gpu={gpus}"]
    command += ["--dry-run"] if options.dry_run else []
    if gpus == 0:
        # One thread for each training; more would only get into each other's way.
        os.environ["OMP_NUM_THREADS"] = "1"
    with workflow_folder(work, options.dry_run) as (folder, descriptors):
        place = folder / "tables" / f"{table.folder}{PLAN}"
        write_json(place, plan)
        command += ["--directory", str(folder), "--config", f"plan={place}"]
        status = run([*command, *extra], folder, descriptors)
    if status != 0:
        sys.exit(
            f"error: the workflow ended with exit status {status}: see above, and the logs that are named there; "
            f"start it again to go on"
        )
    if not options.dry_run:
        print((work / plan["table"]["outputs"][0]).read_text(encoding="utf-8"))
        print("\n".join(str(work / path) for path in plan["table"]["outputs"]))


def time_models(table: str, scale: str, dry_run: bool, superfluous: Sequence[str], extra: Sequence[str]) -> None:
    """Runs the benchmark that makes a table of seconds, or prints its command.

    Args:
        table: of :data:`.tables.BENCHMARKS`
        scale: ``small`` times few and short sequences
        dry_run: whether the command is printed alone
        superfluous: the options of trainings that the user gave
        extra: options of the benchmark

    Raises:
        InputError: an option of trainings was given.
    """
    benchmark = BENCHMARKS[table]
    if superfluous:
        raise InputError(
            f"{table} trains nothing: leave out {', '.join(superfluous)}; its options are those of "
            f"{benchmark.relative_to(ROOT)}"
        )
    small = ["--steps", "16", "32", "--repetitions", "2"] if scale == "small" else []
    command = [sys.executable, str(benchmark), *small, *extra]
    if dry_run:
        print(shown(command))
    elif (status := subprocess.run(command, env=environment()).returncode) != 0:
        sys.exit(status)


def plan_of(
    table: Table,
    work: Path,
    scale: str,
    seeds: Sequence[int],
    gpus: int,
    data: Path | None,
    max_update: int | None,
) -> dict[str, Any]:
    """The commands of a table.

    Args:
        table: what is reproduced
        work: where everything goes
        scale: ``paper`` or ``small``
        seeds: of each row's experiments
        gpus: how many experiments run at the same time with a GPU each; 0 for the CPU
        data: prepared data for all rows, instead of that of their configurations
        max_update: the same number of updates for all rows, instead of what their configurations say

    Returns:
        ``corpora``: name → command; ``experiments``: folder → command, the files that it requires, and the prepared
        data; ``analyses``: file of numbers → command, for a table of them; ``table``: command and outputs;
        ``gpus_of_an_experiment``. Files are relative to ``work``.
    """
    corpora: dict[str, str] = {}
    experiments: dict[str, dict[str, Any]] = {}
    analyses: dict[str, str] = {}
    for path in table.configurations:
        configuration = configurations.load(path)
        train: dict[str, Any] = {}
        generate: dict[str, Any] = {}
        requires = []
        if scale == "small":
            small = load_small_scale(configuration.dataset)
            train |= small.train_options(configuration.model)
            generate |= small.generate
            corpus = small.name or small.corpus
            text, prepared = (work / "corpora" / corpus / part for part in ("text", "data"))
            corpora[corpus] = in_turn(builtin_corpus(small.corpus, text, prepared, as_arguments(small.preparation)))
            requires = [f"corpora/{corpus}/data/preparation.json"]
        else:
            prepared = data or configuration.data_folder
        if max_update is not None:
            train["max-update"] = max_update
        for seed in seeds:
            folder = f"{configuration.dataset}/{configuration.model}/seed_{seed}"
            place = ["--work", work / folder, "--data", prepared, "--gpus", min(gpus, 1)]
            steps = [[*own_command("train"), path, *place, *as_arguments({**train, "seed": seed})]]
            sets = ("test",) if scale == "small" else table.measure.sets
            for variant in dict.fromkeys(row.variant for row in table.rows if row.config == path):
                options = [*as_arguments(generate), *([f"--{variant}"] if variant else [])]
                steps += [[*own_command("evaluate"), path, *place, "--subset", name, *options] for name in sets]
            command = in_turn(steps)
            if gpus > 0:
                slot = [sys.executable, "-m", "fairseq_plugins.tables.gpu_slots", "--", "bash", "-c", command]
                command = shown(slot)
            if (name := table.measure.analysis) is not None:
                checkpoint = work / folder / "checkpoints" / "checkpoint_best.pt"
                analysis = [*own_command("analysis", name), checkpoint, "--data", prepared]
                analyses[f"{folder}/analysis/{name}.json"] = in_turn(
                    [[*analysis, "--output", work / folder / "analysis" / name]]
                )
            experiments[folder] = {"command": command, "requires": requires, "data": str(prepared)}
    made = [sys.executable, "-m", "fairseq_plugins.tables.writing", table.name, "--scale", scale]
    made += [] if table.recipe is None else ["--recipe", table.recipe]
    made += [] if data is None else ["--data", str(data)]
    made += ["--work", str(work), "--seeds", *map(str, seeds)]
    return {
        "corpora": corpora,
        "experiments": experiments,
        "analyses": analyses,
        "table": {
            "command": shown(made),
            "outputs": [f"tables/{table.folder}/{name}" for name in TABLE_FILES],
        },
        "gpus_of_an_experiment": min(gpus, 1),
    }


def in_turn(steps: Iterable[Sequence[object]]) -> str:
    """Commands that run one after the other, each if those before it have not failed."""
    return " && ".join(shown([str(part) for part in step]) for step in steps)


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options as they are written on a command line; a flag is True."""
    arguments = []
    for name, value in options.items():
        arguments += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return arguments


def check_data(plan: Mapping[str, Any]) -> None:
    """Looks for the prepared data before anything is trained.

    Raises:
        InputError: it is not there, and nothing of the plan makes it.
    """
    for folder, experiment in plan["experiments"].items():
        data = Path(experiment["data"])
        if not experiment["requires"] and not (data / "preparation.json").is_file():
            base = Path("configs") / folder.split("/")[0]
            raise InputError(
                f"{data} is not there: prepare it as {base}/_base*.yaml says, name other data with --data, "
                f"or try --scale small"
            )


@contextlib.contextmanager
def workflow_folder(work: Path, dry_run: bool) -> Iterator[tuple[Path, list[int]]]:
    """The folder that Snakemake works in, and what it inherits of our lock; a dry run changes nothing in ``work``.

    Raises:
        InputError: another workflow is at work there.
    """
    if dry_run:
        with tempfile.TemporaryDirectory() as folder:
            # What is done already is not shown again, unless it was done by another command than now.
            for done in [*work.glob("*"), *work.glob("tables/*")]:
                if done.name not in ("tables", ".snakemake", ".lock") and not done.name.endswith(PLAN):
                    copy = Path(folder) / done.relative_to(work)
                    copy.parent.mkdir(exist_ok=True)
                    copy.symlink_to(done)
            for record in "metadata", "incomplete":
                # A workflow may be at work, whose jobs come and go.
                with contextlib.suppress(FileNotFoundError, shutil.Error):
                    shutil.copytree(work / ".snakemake" / record, Path(folder) / ".snakemake" / record)
            yield Path(folder), []
        return
    with only_one(work, "a workflow") as descriptors:
        yield work, descriptors


def run(command: Sequence[str], folder: Path, descriptors: Sequence[int]) -> int:
    """Runs Snakemake, which inherits our lock, and stops it when we are stopped; returns its exit status."""
    if any((folder / ".snakemake" / "locks").glob("*")):
        # We hold the lock: what an earlier run left there is of nobody who is still at work.
        unlock = [*command, "--unlock"]
        subprocess.run(unlock, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    process = subprocess.Popen(command, pass_fds=descriptors, env=environment())
    try:
        return process.wait()
    except KeyboardInterrupt:
        # Snakemake ends its jobs on SIGINT, and waits for them on SIGTERM.
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
