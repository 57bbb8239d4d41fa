"""fairseq's checkpoints: reading them safely, averaging them, and finding the one to go on from.

PyTorch is imported where one is read: what can be said without waits for nothing.

    fairseq-plugins average --inputs a.pt b.pt c.pt --output average.pt
    fairseq-plugins average --inputs checkpoints --last 5 --output average.pt
    fairseq-plugins average --inputs checkpoints --epochs 8 9 10 --output average.pt

(fairseq's own scripts/average_checkpoints.py is not installed with it.)
"""

from __future__ import annotations

import argparse
import json
import logging
import pickle
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import extensions, register
from .command_parser import CommandParser
from .corpora.dictionary import dictionary_symbols
from .errors import InputError, nearest
from .exported.folder import use_of
from .files import atomic_file, checksum_of_lines
from .symbols import SPECIAL_SYMBOLS

logger = logging.getLogger(__name__)

_EMBEDDINGS = ("encoder", "decoder")


def checkpoint_of(path: str | Path) -> Path:
    """The checkpoint that is meant: the best one of a training's work folder, else the path itself."""
    path = Path(path)
    return path / "checkpoints" / "checkpoint_best.pt" if path.is_dir() else path


def checkpoints_of(path: str | Path) -> list[Path]:
    """The checkpoint that is meant, or several for an ensemble, ``a.pt:b.pt``."""
    return [checkpoint_of(path)] if Path(path).is_dir() else list(map(checkpoint_of, str(path).split(":")))


def require_checkpoint(path: Path) -> None:
    """Raises InputError where there is no such file: a training that was not validated has no best checkpoint, and an
    exported model has none at all."""
    if path.is_file():
        return
    folder = path.parent.parent
    if path == checkpoint_of(folder) and (use := use_of(folder)) is not None:
        raise InputError(f"{folder}: an exported model, and no checkpoint; {use}")
    last = path.with_name("checkpoint_last.pt")
    has_last = path.name == "checkpoint_best.pt" and last.is_file()
    hint = f"; there is none where no epoch was validated: name {last}" if has_last else ""
    raise InputError(f"{path}: no such checkpoint{hint}")


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """What fairseq saved in ``path``, with its tensors on the CPU; they are read from the file when they are used.

    Raises:
        InputError: there is no such file, it is truncated, or it is not a checkpoint of fairseq's.
    """
    path = Path(path)
    require_checkpoint(path)
    register()  # tells PyTorch which types are in them
    import torch

    try:
        # Only files in PyTorch's present form can be mapped. They end with their table of contents, so that a missing
        # end shows without reading all of the file.
        with open(path, "rb") as stream:
            present_form = stream.read(4) == b"PK\x03\x04"
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=present_form)
    except Exception as error:  # damaged bytes end in any of Python's exceptions
        if isinstance(error, pickle.UnpicklingError) and "unsupported global" in str(error).lower():
            raise InputError(
                f"{path}: refused, because it holds objects that could run code when they are loaded; "
                f"use only checkpoints that fairseq-train wrote"
            ) from None
        raise InputError(f"{path}: truncated, or not a checkpoint") from None
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise InputError(f"{path}: not a checkpoint of fairseq: it holds no model")
    return state


def stored_options(state: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    """The options of the ``model`` or the ``task`` of a checkpoint that was read; empty where it does not say.

    Checkpoints of older versions of fairseq have all options in one; models and tasks in the older style have theirs as
    a Namespace.
    """
    values = state["cfg"][part] if state.get("cfg") else state.get("args")
    return values if isinstance(values, dict) else vars(values) if isinstance(values, argparse.Namespace) else {}


def architecture(state: Mapping[str, Any]) -> str | None:
    """The ``--arch`` of a checkpoint that was read, or the model's name; None where it says neither."""
    values = stored_options(state, "model")
    return values.get("arch") or values.get("_name")


def updates(state: dict[str, Any]) -> int:
    """The number of updates after which a checkpoint that was read was saved."""
    history = state.get("optimizer_history") or [{}]
    return history[-1].get("num_updates", 0)


def checked_checkpoint(path: str | Path, expected: str | None = None) -> dict[str, Any]:
    """Reads a checkpoint whose architecture is the expected one, or (None) any that fairseq knows.

    Raises:
        InputError: it is missing, truncated, or of another architecture.
    """
    checkpoint = read_checkpoint(path)
    from fairseq.models import ARCH_MODEL_REGISTRY

    name = str(architecture(checkpoint))
    if expected is not None and name != expected:
        raise InputError(f"{path}: a checkpoint of '{name}', but '{expected}' was asked for; give another --work")
    if name not in ARCH_MODEL_REGISTRY:
        raise InputError(
            f"{path}: a checkpoint of '{name}', which fairseq does not know{nearest(name, ARCH_MODEL_REGISTRY)}"
        )
    return checkpoint


def load_extensions_of(checkpoints: Iterable[str | Path]) -> None:
    """Imports the extensions that checkpoints were trained with, where their work folder has its ``results.json``.

    Raises:
        InputError: one is missing, or cannot be imported.
    """
    for checkpoint in checkpoints:
        path = Path(checkpoint).absolute().parent.parent / "results.json"
        try:
            named = list(map(Path, json.loads(path.read_text(encoding="utf-8")).get("extensions", ())))
        except (OSError, ValueError, AttributeError, TypeError):
            # A checkpoint may lie anywhere, beside anybody's results.json.
            continue
        extensions.add(named)


def trained_on(checkpoint: dict[str, Any], name: str) -> Path:
    """The prepared data that a checkpoint, called ``name`` in errors, was trained on: it knows the ``bin`` in it.

    Raises:
        InputError: the data is no longer there, or the checkpoint does not say.
    """
    data = stored_options(checkpoint, "task").get("data")
    if data is None:
        raise InputError(f"{name}: it does not say what it was trained on; name the prepared data with --data")
    binarized = Path(data)
    if not binarized.is_dir():
        if not binarized.is_absolute():
            raise InputError(
                f"{name}: its training data {data}, seen from where the training was started, is not in {Path.cwd()}; "
                "name it with --data"
            )
        raise InputError(f"{name}: its training data {data} is not there any more; name it with --data")
    return binarized.parent


def check_dictionaries(
    checkpoint: dict[str, Any], name: str, dictionaries: Sequence[Path], by_side: bool = True
) -> None:
    """Refuses data whose dictionaries are not those that a model was trained with.

    Checkpoints of plain fairseq do not say it; then sizes have to agree where the model shows them.

    Args:
        checkpoint: as it was read, called ``name`` in errors
        dictionaries: fairseq's files: the source's and the target's, or all that there are
        by_side: whether they are the source's and the target's

    Raises:
        InputError: they are others.
    """
    symbols = [dictionary_symbols(path) for path in dictionaries]
    if not symbols:
        return
    trained = checkpoint.get("dictionaries")
    if trained is not None:
        checksums = [checksum_of_lines(lines) for lines in symbols]
        if by_side:
            sides = zip(dictionaries, checksums, trained.values(), strict=False)
            wrong = [path for path, checksum, expected in sides if checksum != expected]
        else:
            wrong = [] if {*trained.values()} <= {*checksums} else list(dictionaries)
        if wrong:
            raise InputError(
                f"{wrong[0]}: not the dictionary that {name} was trained with; give the prepared data of its training"
            )
        return
    for side, place in zip(_EMBEDDINGS, (0, -1), strict=True):
        path, lines = dictionaries[place], symbols[place]
        table = checkpoint["model"].get(f"{side}.embed_tokens.weight")
        if table is not None and len(table) != len(lines) + SPECIAL_SYMBOLS:
            raise InputError(
                f"{path}: {len(lines) + SPECIAL_SYMBOLS:,} words with fairseq's own, but {name} knows {len(table):,}: "
                f"the dictionaries are of another size; give its own data"
            )


def newest_readable_checkpoint(folder: str | Path) -> Path | None:
    """The checkpoint to go on from: ``checkpoint_last.pt``, or the furthest one beside it if that one is damaged.

    A kill can leave ``checkpoint_last.pt`` and ``checkpoint_best.pt`` truncated: fairseq writes them as plain copies.
    Each damaged checkpoint is named in a warning.

    Returns:
        the path; None if the folder has no checkpoint that can be read.
    """
    readable: list[tuple[int, bool, Path]] = []
    last = Path(folder) / "checkpoint_last.pt"
    for path in sorted(Path(folder).glob("checkpoint*.pt"), key=lambda path: path != last):
        try:
            state = read_checkpoint(path)
        except InputError as error:
            logger.warning(f"{error}; it is not used")
            continue
        if path == last:
            return path
        if "averaged" not in state:  # which no training goes on from
            readable.append((updates(state), state.get("last_optimizer_state") is not None, path))
    return max(readable)[-1] if readable else None


def epoch_checkpoints(folder: str | Path) -> dict[int, Path]:
    """The checkpoints ``checkpoint<epoch>.pt`` of a folder by epoch, in ascending order."""
    matches = ((re.fullmatch(r"checkpoint(\d+)\.pt", path.name), path) for path in Path(folder).glob("checkpoint*.pt"))
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


def last_checkpoints(folder: str | Path, count: int) -> list[Path]:
    """The checkpoints of the last ``count`` epochs, the earliest first.

    Raises:
        InputError: the folder has fewer; fairseq-train keeps none with ``--no-epoch-checkpoints``.
    """
    checkpoints = list(epoch_checkpoints(folder).values())
    if count < 1:
        raise InputError(f"{count} checkpoints cannot be averaged; ask for 1 or more")
    if len(checkpoints) < count:
        raise InputError(
            f"{folder}: {len(checkpoints)} checkpoints of epochs (checkpoint<epoch>.pt), but {count} are wanted; "
            f"train without --no-epoch-checkpoints and with --keep-last-epochs {count} or more"
        )
    return checkpoints[-count:]


def average_checkpoints(paths: Sequence[str | Path], output: str | Path) -> None:
    """Writes a checkpoint whose parameters are the mean of those in ``paths``; the rest is that of the last one.

    The optimiser's state is left out, since it belongs to none of them: decode with the average, or start another
    training from it (``--finetune-from-model``). The mean is taken in float64.

    Raises:
        InputError: a checkpoint cannot be read, or is of another model than the first.
    """
    if not paths:
        raise InputError("no checkpoints were given to be averaged")
    states = [read_checkpoint(path) for path in paths]
    import torch

    for path, state in zip(paths[1:], states[1:], strict=True):
        _check_same_model(paths[0], states[0], path, state)
    average = dict(states[-1])
    average.pop("last_optimizer_state", None)
    average["averaged"] = [Path(path).name for path in paths]
    average["model"] = {}
    for name, value in states[-1]["model"].items():
        if torch.is_tensor(value) and value.is_floating_point():
            total = torch.zeros_like(value, dtype=torch.float64)
            for state in states:
                total += state["model"][name]
            value = (total / len(states)).to(value.dtype)
        average["model"][name] = value
    with atomic_file(output, "wb") as stream:
        torch.save(average, stream)


def _check_same_model(first_path: str | Path, first: dict[str, Any], path: str | Path, state: dict[str, Any]) -> None:
    remedy = "average checkpoints of one training"
    if architecture(state) != architecture(first):
        raise InputError(
            f"{path} is a checkpoint of '{architecture(state)}', but {first_path} of '{architecture(first)}'; {remedy}"
        )
    dictionaries = [checkpoint.get("dictionaries") for checkpoint in (first, state)]
    if None not in dictionaries and dictionaries[0] != dictionaries[1]:
        raise InputError(f"{path} and {first_path} were trained with different dictionaries; {remedy}")
    for name in {**first["model"], **state["model"]}:
        shapes = [tuple(model[name].shape) if name in model else None for model in (first["model"], state["model"])]
        if shapes[0] != shapes[1]:
            there, here = ("no such parameter" if shape is None else f"shape {shape}" for shape in shapes)
            raise InputError(f"{path}: {name} has {here}, but in {first_path} {there}; {remedy}")


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "average",
        "Averages the parameters of checkpoints of one training.",
        ("--inputs work/mine/checkpoints --last 5 --output average.pt",),
    )
    options.add_argument(
        "--inputs", nargs="+", required=True, metavar="PATH", help="checkpoints, or one folder of them"
    )
    options.add_argument("--output", required=True, metavar="FILE", help="where the average is written")
    which = options.add_mutually_exclusive_group()
    which.add_argument("--last", type=int, metavar="N", help="of the folder: the last N epochs")
    which.add_argument("--epochs", type=int, nargs="+", metavar="EPOCH", help="of the folder: these epochs")
    return options


def main(arguments: Sequence[str]) -> None:
    """Averages checkpoints."""
    args = parser().parse_args(arguments)
    paths = _chosen([Path(path) for path in args.inputs], args.last, args.epochs)
    average_checkpoints(paths, args.output)
    print(f"{args.output}: the average of {', '.join(str(path) for path in paths)}")


def _chosen(inputs: list[Path], last: int | None, epochs: list[int] | None) -> list[Path]:
    if last is None and epochs is None:
        for path in inputs:
            if path.is_dir():
                raise InputError(f"{path} is a folder: say which of its checkpoints with --last or --epochs")
        return inputs
    if len(inputs) != 1 or not inputs[0].is_dir():
        raise InputError("--last and --epochs choose from one folder of checkpoints: give that as --inputs")
    if last is not None:
        return last_checkpoints(inputs[0], last)
    by_epoch = epoch_checkpoints(inputs[0])
    chosen: list[Path] = []
    for epoch in epochs or ():
        if epoch not in by_epoch:
            epochs_there = ", ".join(map(str, by_epoch)) or "(none)"
            raise InputError(f"{inputs[0]}: no checkpoint{epoch}.pt; there are those of epochs {epochs_there}")
        chosen.append(by_epoch[epoch])
    return chosen
