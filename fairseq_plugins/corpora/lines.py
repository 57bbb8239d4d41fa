"""Text files whose lines belong together: a sentence and its translation, a text and its label."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

from fairseq_plugins.corpora.segments import are_test_sets, read_test_set
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines

Item = TypeVar("Item")
Result = TypeVar("Result")

_BLOCK = 1 << 14
_HEAD = 50
"""Lines in which a file's first tag is."""

_worker_function: Callable[[Any], Any]


def side_files(prefix: str | os.PathLike[str], sides: tuple[str, str]) -> tuple[Path, Path]:
    """The files ``prefix.de`` and ``prefix.en`` of the sides ``de`` and ``en``, or ``prefix.de.gz`` and so on.

    Test sets may be ``prefix.de.xml`` (IWSLT's), ``prefix-src.de.sgm`` and ``prefix-ref.en.sgm`` (WMT's).

    Raises:
        InputError: there is neither.
    """

    def file_of(side: str) -> Path:
        plain, packed = Path(f"{prefix}.{side}"), Path(f"{prefix}.{side}.gz")
        role = "src" if side == sides[0] else "ref"
        marked_up = [Path(f"{prefix}{part}.{side}.{kind}") for part in ("", f"-{role}") for kind in ("sgm", "xml")]
        # A pipe too: what reads it has a sentence for it.
        paths = [path for path in (plain, packed, *marked_up) if path.exists() and not path.is_dir()]
        if not paths:
            for end in (f".{other}{packing}" for other in sides for packing in ("", ".gz")):
                if str(prefix).endswith(end) and Path(prefix).is_file():
                    short = str(prefix).removesuffix(end)
                    files = " and ".join(f"{short}.{other}" for other in sides)
                    raise InputError(f"{prefix}: a prefix is meant: {short}, which stands for {files}")
            raise InputError(f"{plain}: no such file, nor {packed.name}")
        return paths[0]

    source, target = sides
    return file_of(source), file_of(target)


def read_aligned(paths: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """Line n of every file, for each n.

    Raises:
        InputError: a file is empty, has the line ends of classic Mac, or they differ in length; the message names both
            counts.
    """
    counts = [0] * len(paths)
    for lines in itertools.zip_longest(*map(read_sentences, paths)):
        for side, line in enumerate(lines):
            counts[side] += line is not None
        if None not in lines:
            yield lines
    for path, count in zip(paths, counts, strict=True):
        if count == 0:
            raise InputError(f"{path} is empty")
        if count != counts[0]:
            raise InputError(
                f"{paths[0]} has {counts[0]:,} lines and {path} has {count:,}: line n of one must belong to line n of "
                f"the other"
            )


def read_pairs(paths: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """As :func:`read_aligned`; of files that are test sets in SGML or XML their segments.

    Raises:
        InputError: as there, one file is such a set and another is none, or a file is markup of another kind.
    """
    heads = ["\n".join(itertools.islice(read_lines(path), _HEAD)) for path in paths]
    if not are_test_sets(paths, heads):
        yield from read_aligned(paths)
        return
    yield from read_test_set(paths, ["\n".join(read_sentences(path)) for path in paths])


def read_sentences(path: Path, errors: str = "strict") -> Iterator[str]:
    """What :func:`.read_lines` reads. Carriage returns within lines are warned of.

    Raises:
        InputError: they end most of the lines.
    """
    number = returns = first = 0
    for number, line in enumerate(read_lines(path, errors), 1):
        if "\r" in line:
            returns += line.count("\r")
            first = first or number
        yield line
    if returns >= max(1, number):
        raise InputError(
            f"{path}, line {first}: carriage returns within the lines, as if they ended them; convert the file with "
            f"tr '\\r' '\\n'"
        )
    if returns:
        print(
            f"warning: {path}, line {first}: a carriage return within the line ({returns:,} in all), taken for a space"
        )


def text_writer(path: Path) -> TextIO:
    """A text file of lines that end in ``\\n`` alone."""
    return open(path, "w", encoding="utf-8", newline="\n")


@dataclasses.dataclass(frozen=True)
class EachSide:
    """One function for each side of a line of the corpus. Worker processes receive it whole."""

    functions: tuple[Callable[[str], str], ...]

    def __call__(self, sides: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(function(side) for function, side in zip(self.functions, sides, strict=True))


def map_lines(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int, description: str, unit: str = "lines"
) -> Iterator[tuple[Item, Result]]:
    """Yields each item with what the function makes of it, in order. Shows a progress bar on a terminal."""
    # Not at the head of the file: a list of data sets needs none.
    from tqdm import tqdm

    items = iter(items)
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(tqdm(desc=description, unit=f" {unit}", disable=None))
        if workers > 1:
            pool = stack.enter_context(multiprocessing.Pool(workers, _set_worker_function, (function,)))
        # In blocks, so that a corpus of any size fits into memory and only this thread reads the files.
        while block := list(itertools.islice(items, _BLOCK)):
            results = pool.map(_call_worker_function, block, _BLOCK // 32) if workers > 1 else map(function, block)
            for item, result in zip(block, results, strict=True):
                yield item, result
                progress.update()
        if workers > 1:
            # A signal is lost that reaches a worker while it is being forked; then ``terminate`` would wait for ever.
            pool.close()
            pool.join()


def _set_worker_function(function: Callable[[Any], Any]) -> None:
    # Ctrl-C reaches all processes of a terminal; the parent ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    global _worker_function
    _worker_function = function


def _call_worker_function(item: Any) -> Any:
    return _worker_function(item)
