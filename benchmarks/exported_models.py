"""How fast exported models translate, beside the checkpoint that they were made of.

    python -m benchmarks.exported_models work/quickstart/rnnsearch work/exported work/exported_int8 \\
        --text work/quickstart/text/test.de

All take their turns in each round, in one process, on the same number of threads. Seconds are those of the processor,
since others may use the machine; text is read and put together in all. Of the rounds the fastest counts.

A process of its own says how long it takes from the start of Python to the first translation, and how much memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import fairseq_plugins
from fairseq_plugins.exported.translation import ExportedTranslationModel
from fairseq_plugins.files import read_lines
from fairseq_plugins.terminal import table

Translate = Callable[[Sequence[str]], list[str]]


def seconds(function: Callable[[], object]) -> float:
    """Of the processor."""
    start = time.process_time()
    function()
    return time.process_time() - start


_FIRST_TRANSLATION = r"""
import json, re, resource, sys
from fairseq_plugins import exported
exported.load(sys.argv[1], threads=int(sys.argv[2])).translate([sys.argv[3]])
used = resource.getrusage(resource.RUSAGE_SELF)
# Not ru_maxrss: it may be that of the process that started this one.
held = int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1])
print(json.dumps([used.ru_utime + used.ru_stime, held * 1024 / 1e6]))
"""


def first_translation(folder: str, threads: int, line: str) -> tuple[float, float]:
    """Seconds of the processor and megabytes, at most at once, of a process that translates one line."""
    command = [sys.executable, "-c", _FIRST_TRANSLATION, folder, str(threads), line]
    spent, held = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return spent, held


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="a work folder, or a checkpoint")
    parser.add_argument("exported", nargs="+", help="folders that were exported")
    parser.add_argument("--text", type=Path, required=True, help="source text, a sentence a line")
    parser.add_argument("--sentences", type=int, default=400, help="that are taken of it (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="sentences together (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    lines = sorted(list(read_lines(options.text))[: options.sentences], key=len)
    batches = [lines[i : i + options.batch] for i in range(0, len(lines), options.batch)]
    single = lines[:: max(1, len(lines) // 40)]
    models: dict[str, Translate] = {options.checkpoint: fairseq_plugins.load(options.checkpoint).translate}
    for folder in options.exported:
        models[folder] = ExportedTranslationModel.load(folder, options.threads).translate
    translations = {
        name: [line for batch in batches for line in translate(batch)] for name, translate in models.items()
    }
    fastest = {name: [float("inf")] * 2 for name in models}
    for _ in range(options.rounds):
        for name, translate in models.items():
            together = seconds(lambda translate=translate: [translate(batch) for batch in batches])
            alone = seconds(lambda translate=translate: [translate([line]) for line in single])
            fastest[name] = [min(pair) for pair in zip(fastest[name], (together, alone), strict=True)]
    first = fastest[options.checkpoint]
    rows = []
    for name, (together, alone) in fastest.items():
        spent = held = None
        if name in options.exported:
            spent, held = min(first_translation(name, options.threads, lines[0]) for _ in range(options.rounds))
        same = sum(a == b for a, b in zip(translations[name], translations[options.checkpoint], strict=True))
        rows.append(
            {
                "": name,
                f"sentences/s, {options.batch} together": round(len(lines) / together),
                "times": round(first[0] / together, 2),
                "ms, one alone": round(1000 * alone / len(single), 1),
                "times as fast": round(first[1] / alone, 2),
                "same translations": f"{same} of {len(lines)}",
                "s to the first": None if spent is None else round(spent, 2),
                "MB": None if held is None else round(held),
            }
        )
    print(table(rows))


if __name__ == "__main__":
    main()
