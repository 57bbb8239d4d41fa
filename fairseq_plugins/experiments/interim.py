"""Until fairseq_plugins.checkpoints lands."""
import argparse
import re
from pathlib import Path

import torch

from ..files import InputError, atomic_file

torch.serialization.add_safe_globals([argparse.Namespace])


def read_checkpoint(path):
    if not Path(path).is_file():
        raise InputError(f"{path}: no such checkpoint")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise InputError(f"{path}: not a readable checkpoint ({str(error).splitlines()[0]})") from None


def newest_readable_checkpoint(folder):
    for path in sorted(Path(folder).glob("checkpoint*.pt"), key=lambda path: (path.stat().st_mtime, path.name), reverse=True):
        try:
            read_checkpoint(path)
            return path
        except InputError:
            continue
    return None


def last_checkpoints(folder, count):
    paths = sorted(Path(folder).glob("checkpoint*.pt"), key=lambda p: int(re.sub(r"\D", "", p.stem) or 0))
    paths = [path for path in paths if re.fullmatch(r"checkpoint\d+", path.stem)]
    if len(paths) < count:
        raise InputError(f"{folder}: {len(paths)} epochs' checkpoints, {count} are to be averaged")
    return paths[-count:]


def average_checkpoints(paths, output):
    states = [read_checkpoint(path) for path in paths]
    mean = states[-1]
    for key, value in mean["model"].items():
        mean["model"][key] = sum(state["model"][key].double() for state in states).div(len(states)).to(value.dtype)
    with atomic_file(output, "wb") as stream:
        torch.save(mean, stream)
