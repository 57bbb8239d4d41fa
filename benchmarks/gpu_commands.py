"""The parts ``tests``, ``precisions`` and ``training`` of ``gpu.py``: what is measured by running whole commands."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from gpu_cells import Cell, Figure, Plan

from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration as configurations
from fairseq_plugins.experiments import evaluate, fairseq_commands, train, training_statistics
from fairseq_plugins.experiments.builtin_corpora import builtin_corpus
from fairseq_plugins.experiments.run import STATISTICS
from fairseq_plugins.scoring.bleu import SACREBLEU, TOKENIZED

CHECKOUT = Path(__file__).resolve().parents[1]
CONFIGURATIONS = {
    "MC-RNN-3": "iwslt14_sample/mc_rnn_3",
    "RNNSearch": "iwslt14_sample/rnnsearch",
    "DPN-S2S": "iwslt14_sample/dpn",
    "transformer": "iwslt14_sample/transformer",
}
TESTS = {
    "tests of graphs": ["tests/kernels/multi_channel/test_cuda_graph.py", "-k", "not under_the_interpreter"],
    "tests of the scan": ["tests/kernels/test_forget_scan.py", "-k", "not under_the_interpreter"],
    "tests of the decoder's loop": ["tests/kernels/test_decoder_loop.py"],
    "tests of models": ["tests/models/test_on_gpu.py"],
}
DRY_TESTS = {
    "tests of the dispatch": ["tests/kernels/test_dispatch.py", "-k", "named_backend"],
    "tests of models": ["tests/models/test_on_gpu.py", "-k", "translation or rmsprop"],
}
UPDATES = 500
# Of the two processes on one GPU.
UPDATES_OF_TWO, SENTENCES_OF_BOTH = 20, 64
# Of a batch: a CPU's are half as large, but here it is launches that take the time.
TOKENS = 4000
# So small that a CPU trains it in seconds, and so fast that ten updates show.
TINY_MODEL = ["--encoder-embed-dim", "8", "--encoder-hidden-size", "8", "--decoder-embed-dim", "8"]
TINY_MODEL += ["--decoder-hidden-size", "8", "--lr", "1e-2", "--dropout", "0"]
# What a training needs beside its updates: start, validation and checkpoint; and then decoding of the test set.
START_SECONDS, EVALUATION_SECONDS = 90, 110


def test_cells(plan: Plan) -> Iterator[Cell]:
    """The tests of what runs on GPUs alone."""
    for name, arguments in (DRY_TESTS if plan.dry else TESTS).items():
        yield Cell("tests", name, "", "", "", functools.partial(tests, name, arguments, plan), seconds=300)


def tests(name: str, arguments: Sequence[str], plan: Plan) -> list[Figure]:
    """How many tests passed.

    Raises:
        RuntimeError: one failed, or none ran.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    status, output = run(command, plan, 290, FAIRSEQ_PLUGINS_TEST_DEVICE=plan.device)
    plan.write_log(name, output)
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed|errors?|skipped)", output)}
    if status or not counts.get("passed"):
        failures = re.findall(r"^(?:FAILED|ERROR) .*", output, flags=re.MULTILINE)
        summary = ", ".join(f"{count} {what}" for what, count in counts.items())
        raise RuntimeError(f"{summary or f'status {status}'}: {failures[0] if failures else _last_line(output)}")
    return [Figure(what, count, "tests") for what, count in counts.items()]


def precision_cells(plan: Plan) -> Iterator[Cell]:
    """Trainings in half precision, and two processes on one GPU."""
    for precision in ("bf16",) if plan.dry else ("bf16", "fp16"):
        for system in plan.trained:
            measure = functools.partial(half_precision, system, precision, plan)
            updates = 10 if plan.dry else UPDATES
            yield Cell("precisions", system, f"{updates} updates", precision, plan.backend or "", measure, seconds=150)
    measure = functools.partial(two_processes, plan)
    yield Cell("precisions", "MC-RNN-3, two processes", "one device", "fp32", plan.backend or "", measure, seconds=120)


def half_precision(system: str, precision: str, plan: Plan) -> list[Figure]:
    """Trains with ``--bf16`` or ``--fp16``.

    Raises:
        RuntimeError: a loss was not a number, or the loss did not fall.
    """
    updates = 10 if plan.dry else UPDATES
    options = [f"--{precision}", "--max-update", updates, "--max-epoch", 0, "--log-interval", updates // 10]
    options += ["--disable-validation", "--no-epoch-checkpoints", "--save-interval", 1000]
    name = f"{system}, {precision}"
    work = _train(system, name, _data(plan), options, plan, 140)
    losses = logged_losses(work)
    if not losses or not all(map(math.isfinite, losses)):
        raise RuntimeError(f"the loss was not a number: {losses}")
    first, last = statistics.mean(losses[:2]), statistics.mean(losses[-2:])
    if last >= first:
        raise RuntimeError(f"the loss did not fall: {first:.3f} at first, {last:.3f} in the end")
    results = json.loads((work / "results.json").read_text(encoding="utf-8"))
    return [
        Figure("loss of the first fifth", first, "bits"),
        Figure("loss of the last fifth", last, "bits"),
        Figure("updates", results["updates"]),
        Figure("training", results["train_tokens_per_second"], "tokens/s"),
    ]


def logged_losses(work: Path) -> list[float]:
    """The training losses of ``train.jsonl``, in its order."""
    statistics = training_statistics.read_statistics(work / STATISTICS)
    return [entry["loss"] for entry in statistics if entry["split"] == "train_inner"]


def two_processes(plan: Plan) -> list[Figure]:
    """Two processes on one device, which talk through gloo, and one process with twice the batch: their losses.

    Raises:
        RuntimeError: they differ.
    """
    configuration = configurations.load(_configuration("MC-RNN-3"))
    data = PreparedData.load(_data(plan))
    updates, sentences = (2, 16) if plan.dry else (UPDATES_OF_TWO, SENTENCES_OF_BOTH)
    common = ["--max-update", str(updates), "--batch-size", str(sentences), "--log-interval", "1", "--dropout", "0"]
    # In the order of their lengths two batches beside each other are one of twice the size.
    common += ["--curriculum", "1000"]
    common += ["--disable-validation", "--no-save", "--max-tokens", "100000"]
    common += ["--num-workers", "0", *(TINY_MODEL if plan.dry else [])]
    gpus = _gpus(plan)

    def command(*options: str) -> list[str]:
        # Several processes share the batch.
        return fairseq_commands.train_command(
            configuration, data, plan.work / "processes", gpus, [*common, *options]
        ).words

    address = f"tcp://127.0.0.1:{_free_port()}"
    of_two = [
        command(
            *["--distributed-world-size", "2", "--distributed-rank", str(rank), "--distributed-no-spawn"],
            *["--distributed-init-method", address, "--distributed-backend", "gloo", "--device-id", "0"],
        )
        for rank in range(2)
    ]
    [together, _], [alone] = (_losses_of(commands, plan) for commands in (of_two, [command()]))
    if len(together) != len(alone) or not alone:
        raise RuntimeError(f"two processes made {len(together)} updates, one made {len(alone)}")
    difference = max(abs(two - one) / one for two, one in zip(together, alone, strict=True))
    if not difference < 1e-3:
        raise RuntimeError(f"losses differ by up to {difference:.2g} of their size")
    return [Figure("updates", len(alone)), Figure("largest relative difference of losses", difference)]


def _losses_of(commands: Sequence[list[str]], plan: Plan) -> list[list[float]]:
    """The losses that fairseq-train commands log, which run at the same time."""
    environment = {**os.environ, "PYTHONPATH": _python_path(), "PYTHONWARNINGS": "ignore"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with contextlib.ExitStack() as stack:
        processes = []
        for command in commands:
            process = subprocess.Popen(command, env=environment, **pipes)
            # Whatever becomes of the other one.
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes.append(process)
        outputs = [process.communicate(timeout=None if plan.dry else 50)[0] for process in processes]
    losses = []
    for process, output in zip(processes, outputs, strict=True):
        plan.write_log("two processes", output)
        if process.returncode:
            raise RuntimeError(_last_line(output))
        numbers = re.findall(r'\| INFO \| train_inner \| \{.*"loss": "([^"]+)"', output)
        losses.append([float(loss) for loss in numbers])
    return losses


def training_cells(plan: Plan) -> Iterator[Cell]:
    """Trainings on the data that was given, as far as the time goes."""
    for system in plan.trained:
        measure = functools.partial(training, system, plan)
        size = "10 updates" if plan.dry else f"{plan.training_seconds:g} seconds"
        seconds = plan.training_seconds + START_SECONDS + EVALUATION_SECONDS
        yield Cell("training", system, size, "bf16", plan.backend or "", measure, seconds=seconds)


def training(system: str, plan: Plan) -> list[Figure]:
    """Trains in bfloat16 until the time is up, translates the test set and scores it.

    Raises:
        InputError: no data was given.
    """
    if plan.data is None and not plan.dry:
        raise InputError("no data to train on: give a folder that scripts/prepare_*.sh has written with --data")
    limit = ["--max-update", 10] if plan.dry else ["--stop-time-hours", plan.training_seconds / 3600]
    name = f"{system}, training"
    options = ["--bf16", *limit, "--max-tokens", TOKENS, "--max-epoch", 0, "--no-epoch-checkpoints"]
    options += ["--log-interval", 5 if plan.dry else 50]
    work = _train(system, name, _data(plan), options, plan, plan.training_seconds + START_SECONDS)
    arguments = [_configuration(system), "--data", _data(plan), "--work", work, "--gpus", _gpus(plan)]
    if not plan.dry:
        arguments.append("--record")
    _script("evaluate", arguments, name, plan, EVALUATION_SECONDS)
    results = json.loads((work / "results.json").read_text(encoding="utf-8"))
    losses = logged_losses(work)
    shutil.rmtree(work)
    return [
        Figure("updates", results["updates"]),
        Figure("training", results["train_tokens_per_second"], "tokens/s"),
        Figure("last training loss", losses[-1], "bits"),
        *(Figure(column.label, results[column.key]) for column in (TOKENIZED, SACREBLEU)),
        Figure("decoding", results["decode_sentences_per_second"], "sentences/s"),
    ]


def _train(system: str, name: str, data: Path, options: Sequence[object], plan: Plan, seconds: float) -> Path:
    """Trains in a new work folder, which is returned."""
    work = plan.work / re.sub(r"\W+", "_", name)
    shutil.rmtree(work, ignore_errors=True)
    small = [*TINY_MODEL, "--num-workers", 0] if plan.dry else []
    arguments = [_configuration(system), "--data", data, "--work", work, "--gpus", _gpus(plan), *options, *small]
    _script("train", arguments, name, plan, seconds)
    return work


def _script(script: str, arguments: Sequence[object], title: str, plan: Plan, seconds: float) -> None:
    """Runs ``scripts/<script>.sh``; on a CPU what it runs, in this process, which saves an import.

    Raises:
        RuntimeError: it failed; the message is its own.
    """
    arguments = list(map(str, arguments))
    if plan.dry:
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                {"train": train, "evaluate": evaluate}[script].main(arguments)
        except SystemExit as error:
            raise RuntimeError(_last_line(f"{output.getvalue()}\n{error}")) from None
        finally:
            plan.write_log(title, output.getvalue())
        return
    command = [str(CHECKOUT / "scripts" / f"{script}.sh"), *arguments]
    records = plan.log.resolve().parent / "results"
    status, output = run(command, plan, seconds, FAIRSEQ_PLUGINS_RESULTS=str(records))
    plan.write_log(title, output)
    if status:
        raise RuntimeError(_last_line(output))


def run(command: Sequence[str], plan: Plan, seconds: float, **env: str) -> tuple[int, str]:
    """Exit status and output of a command, which is stopped after so many seconds; a dry run waits for it.

    Raises:
        RuntimeError: it was.
    """
    environment = {**os.environ, "PYTHONPATH": _python_path(), "PYTHON": sys.executable, **env}
    process = subprocess.Popen(
        command, env=environment, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        output, _ = process.communicate(timeout=None if plan.dry else seconds)
    except subprocess.TimeoutExpired:
        # Not killed at once: a script stops what it has started.
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            plan.write_log(f"stopped: {Path(command[0]).name}", process.communicate(timeout=15)[0])
        raise RuntimeError(f"{Path(command[0]).name} was stopped after {seconds:.0f} seconds") from None
    finally:
        process.kill()
    return process.returncode, output


def _data(plan: Plan) -> Path:
    """The data that was given, or else built-in sentences, prepared once."""
    if plan.data is not None:
        return plan.data
    data = plan.work / "data"
    if not (data / "preparation.json").is_file():
        text = plan.work / "text"
        write, prepare = builtin_corpus("translation", text, data, ["--bpe-size", 300 if plan.dry else 3000])
        _run_or_raise(write, plan)
        if plan.dry:
            for file in text.iterdir():
                lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
                file.write_text("".join(lines[: 200 if file.stem == "train" else 10]), encoding="utf-8")
        _run_or_raise(prepare, plan)
    return data


def _run_or_raise(command: Sequence[object], plan: Plan) -> None:
    status, output = run(list(map(str, command)), plan, 100)
    plan.write_log("data", output)
    if status:
        raise RuntimeError(_last_line(output))


def _configuration(system: str) -> Path:
    return CHECKOUT / "configs" / f"{CONFIGURATIONS[system]}.yaml"


def _gpus(plan: Plan) -> int:
    return 0 if torch.device(plan.device).type == "cpu" else 1


def _python_path() -> str:
    return os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def _last_line(output: str) -> str:
    """What a command said of its failure: its last exception, or else its last line that is an error, or any line."""
    lines = [line for line in output.splitlines() if line.strip()]
    for pattern in (r"[\w.]*(Error|Exception)\b", "error:", ""):
        if matching := [line for line in lines if re.match(pattern, line)]:
            return matching[-1]
    return "it said nothing"
