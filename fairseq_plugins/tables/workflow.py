"""``fairseq-plugins reproduce``: every training of a table, and the table, by the Snakefile beside this file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import util
from pathlib import Path

from ..command_parser import CommandParser
from ..cpus import available_cpus
from ..errors import InputError
from ..experiments.command_line import gpu_count, started, work_folder
from ..experiments.fairseq_commands import available_gpus, option
from ..experiments.processes import only_one, shown
from ..fairseq_program import environment
from ..missing import remedy
from .tables import BENCHMARKS, SCALES, load_table, trainable, training_options
from .writing import FILES

SNAKEFILE = Path(__file__).with_name("Snakefile")


_DESCRIPTION = """\
Reproduces a table of the papers: trains and evaluates every row, and writes the table with the paper's figures beside
ours as Markdown, CSV and JSON, and a report.html. It goes on where it was interrupted."""
_NOTES = """\
Further options go to Snakemake: on a cluster with SLURM, --profile configs/slurm. It needs the extra "workflow", and
Python 3.11 or later.

What comes after -- goes to every training, and is noted beside the table: -- --cross-memory plain. Such runs and such
tables are in folders of their own."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "reproduce",
        _DESCRIPTION,
        (
            "mc_rnn_table_2 --dry-run",
            "dpn_table_4 --scale small",
            "mc_rnn_table_2 --seeds 1 2 3",
            "dpn_table_5 -- --cross-memory plain",
            "rcrn_table_5 --tune",
        ),
        _NOTES,
        passes_on_to="snakemake",
    )
    options.add_argument(
        "table",
        metavar="TABLE",
        help="mc_rnn_table_2, _3, _4, _5, dpn_table_1, _2, _3, _4, _5, rcrn_table_1 … _9, dilated_rnn_table_1, _2, _3 "
        "or dilated_rnn_figure_3 … _6 (configs/tables); rcrn_table_10 times models, with the options of "
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
        help="train every row by this recipe in the place of its own: paper is what the paper prints",
    )
    options.add_argument(
        "--tune",
        action="store_true",
        help="each row chooses what its table names, such as the learning rate, on the validation set, first seed",
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
    """Runs Snakemake on a table."""
    if (timed := next((word for word in arguments if word in BENCHMARKS), None)) is not None:
        time_models(timed, [word for word in arguments if word != timed])
        return
    remaining, of_training = training_options(arguments)
    options, extra = parser().parse_known_args(remaining)
    table = load_table(options.table, options.recipe, of_training, options.tune)
    data = None if options.data is None else Path(os.path.abspath(options.data))
    if options.scale == "paper" and not options.dry_run:
        for note in dict.fromkeys(row.missing for row in trainable(table, data).rows if row not in table.rows):
            print(note, file=sys.stderr)
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

    config = {"table": table.name, "scale": options.scale, "seeds": options.seeds, "gpus": gpus, "work": str(work)}
    config |= {
        "options": list(table.options) or None,
        "recipe": options.recipe,
        "data": data and str(data),
        "max_update": options.max_update,
    }
    # Snakemake changes into the folder that it works in, and data are seen from where the user stands.
    # Snakemake reads 'false' as a word: what is false is not said.
    config |= {"dry_run": options.dry_run or None, "is_tuned": options.tune or None, "start": os.getcwd()}
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE)]
    command += [
        "--config",
        *(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in config.items() if value is not None),
    ]
    # Our own lock goes with the process that has it; Snakemake's stays after a kill.
    command += ["--nolock", "--rerun-incomplete", "--keep-going", "--printshellcmds", "--show-failed-logs"]
    # A profile has its own numbers of jobs and resources.
    cores = options.cores or available_cpus()
    command += [] if profile else ["--cores", str(cores), "--resources", f"gpu={gpus}"]
    if gpus == 0:
        # One thread for each training; more would only get into each other's way.
        os.environ["OMP_NUM_THREADS"] = "1"
    if options.dry_run:
        with tempfile.TemporaryDirectory() as empty:
            status = run([*command, "--dry-run", "--directory", str(work) if work.exists() else empty, *extra])
    else:
        with only_one(work, "a workflow") as descriptors:
            status = run([*command, "--directory", str(work), *extra], pass_fds=descriptors)
    if status != 0:
        sys.exit(
            f"error: the workflow ended with exit status {status}: see above, and the logs that are named there; "
            f"start it again to go on"
        )
    if not options.dry_run:
        folder = work / "tables" / table.folder
        print((folder / FILES[0]).read_text(encoding="utf-8"))
        print("\n".join(str(folder / name) for name in FILES))


def time_models(table: str, arguments: Sequence[str]) -> None:
    """Runs the benchmark that makes a table of seconds, or prints its command.

    Args:
        table: of :data:`.tables.BENCHMARKS`
        arguments: ``--scale small`` times few and short sequences; the others are the benchmark's

    Raises:
        InputError: this is no checkout, which alone has the benchmarks.
    """
    benchmark = BENCHMARKS[table]
    if not benchmark.is_file():
        raise InputError(f"{table} is timed by benchmarks/{benchmark.name}, which a checkout has: run it there")
    options = CommandParser(f"reproduce {table}", "Times models.", ("--scale small",), passes_on_to="benchmark")
    options.add_argument("--scale", choices=SCALES, default="paper", help="small: few and short sequences")
    options.add_argument("--dry-run", action="store_true", help="print the command")
    chosen, extra = options.parse_known_args(arguments)
    small = ["--steps", "16", "32", "--repetitions", "2"] if chosen.scale == "small" else []
    command = [sys.executable, str(benchmark), *small, *extra]
    if chosen.dry_run:
        print(shown(command))
    elif (status := subprocess.run(command, env=environment()).returncode) != 0:
        sys.exit(status)


def run(command: Sequence[str], pass_fds: Sequence[int] = ()) -> int:
    """Runs Snakemake, which inherits our lock, and stops it when we are stopped; returns its exit status."""
    process = subprocess.Popen(command, pass_fds=pass_fds, env=environment())
    try:
        return process.wait()
    except KeyboardInterrupt:
        # Snakemake ends its jobs on SIGINT, and waits for them on SIGTERM.
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
