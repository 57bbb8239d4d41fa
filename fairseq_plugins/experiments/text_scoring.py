"""How language models are run over a set: the probability of each token, in one stream, perhaps with a cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..corpora.running_text import RunningTextPreparation
from ..errors import InputError
from ..files import atomic_file, read_lines
from ..scoring.metrics import Outputs, References, read_numbers
from .configuration import Configuration
from .prepared_data import PreparedData
from .processes import own_command


class TextScoring:
    """``fairseq-plugins score``: the logarithm of each token's probability."""

    def command(
        self,
        configuration: Configuration,
        data: PreparedData,
        checkpoint: str,
        subset: str,
        gpus: int | None,
        extra: Sequence[str],
    ) -> list[str]:
        self._preparation(data)
        command = [*own_command("score"), checkpoint]
        command += ["--data", str(data.folder), "--subset", subset]
        if self.variant(extra):
            cache = {key: value for key, value in configuration.evaluate.items() if key.startswith("cache-")}
            command += [part for key, value in cache.items() for part in (f"--{key}", value.text)]
        return [*command, *([] if gpus is None else ["--gpus", str(gpus)]), *extra]

    def is_sentence(self, line: str) -> bool:
        return line.startswith("P-")

    def outputs(self, log: Path, data: PreparedData, count: int) -> Outputs:
        found = {}
        for line in read_lines(log):
            if match := re.match(r"P-(\d+)\t(.*)", line):
                found[int(match[1])] = [float(text) for text in match[2].split()]
        if sorted(found) != list(range(count)):
            raise InputError(f"{log}: {len(found):,} lines were read, but there are {count:,}")
        return Outputs([""] * count, [""] * count, [found[number] for number in range(count)])

    def references(self, data: PreparedData, subset: str) -> References:
        """The tokens of each line."""
        self._preparation(data)
        path = data.folder / "tokens" / f"{subset}.txt"
        if not path.is_file():
            known = sorted(file.stem for file in path.parent.glob("*.txt"))
            raise InputError(f"{path}: no such file; the prepared sets are {', '.join(known)}")
        lines = [list(read_lines(path))]
        return References(lines, lines)

    def write(self, outputs: Outputs, folder: Path, data: PreparedData, subset: str) -> None:
        """The logarithm of each token's probability, a line for each line."""
        with atomic_file(self._file(folder, subset)) as stream:
            for line in outputs.log_probabilities or ():
                stream.write(" ".join(f"{number:.6f}" for number in line) + "\n")

    def read(self, folder: Path, data: PreparedData, subset: str) -> Outputs:
        numbers = read_numbers(self._file(folder, subset))
        return Outputs([""] * len(numbers), [""] * len(numbers), numbers)

    def speed(self, log: Path) -> float | None:
        """Lines per second."""
        for line in read_lines(log):
            if found := re.match(r"Read .* lines in .* \(([\d.]+) lines/s", line):
                return float(found[1])
        return None

    def variant(self, extra: Sequence[str]) -> str:
        return "cache" if any(option.startswith("--cache") for option in extra) else ""

    def _file(self, folder: Path, subset: str) -> Path:
        return folder / f"{subset}.log_probabilities.txt"

    def _preparation(self, data: PreparedData) -> RunningTextPreparation:
        if not isinstance(data.preparation, RunningTextPreparation):
            raise InputError(
                f"{data.folder}: a corpus of the kind '{data.preparation.kind}', but what is done here needs "
                f"running text ('fairseq-plugins prepare text')"
            )
        return data.preparation
