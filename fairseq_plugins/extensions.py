"""Files of a user's own, which add metrics, recurrent layers or paths. Standard library only.

A configuration names them (``extensions: [my_metric.py]``), or the variable FAIRSEQ_PLUGINS_EXTENSIONS does, paths
between colons (``os.pathsep``). A configuration's are put into the variable, so that fairseq's commands find them too:
:func:`fairseq_plugins.register` imports them there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import InputError

VARIABLE = "FAIRSEQ_PLUGINS_EXTENSIONS"

# Where the options that models have of each layer and path are, once they are imported.
_OPTIONS = f"{__package__}.models.options"
# And the registries of these, in which an extension may be the first to look: what is in them, module and name.
_REGISTRIES = {
    "recurrent layers": (f"{__package__}.modules.recurrent.registry", "RECURRENT_KINDS"),
    "paths": (f"{__package__}.modules.multi_path.registry", "PATH_KINDS"),
}


def load() -> None:
    """Imports the files that the environment names, each once.

    Raises:
        InputError: one is missing, cannot be imported, or comes too late.
    """
    for path in _named():
        if not path.is_file():
            raise InputError(f"{path}: no such file; {VARIABLE} or a configuration names it as an extension")
        _import(path)


def add(paths: Iterable[Path]) -> None:
    """Imports files, and has the commands that this process starts import them too.

    Raises:
        InputError: one is missing, cannot be imported, or comes too late.
    """
    named = dict.fromkeys([*_named(), *(path.resolve() for path in paths)])
    if named:
        os.environ[VARIABLE] = os.pathsep.join(map(str, named))
        load()


def _named() -> list[Path]:
    return [Path(part).resolve() for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]


def _import(path: Path) -> None:
    # Two files of one name are two modules.
    name = f"fairseq_plugins_extension_{path.stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"
    if name in sys.modules:
        return
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise InputError(f"{path}: an extension is a Python file; give its name the ending .py")
    module = importlib.util.module_from_spec(specification)
    models_are_made = _OPTIONS in sys.modules
    before = {what: set(_registry(what)) for what in _REGISTRIES}
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"{_place(path, error)}: this extension cannot be imported: {_cause(error)}") from error
    late = {what: [kind for kind in _registry(what) if kind not in before[what]] for what in _REGISTRIES}
    if any(late.values()) and models_are_made:
        del sys.modules[name]
        for what, kinds in late.items():
            for kind in kinds:
                del _registry(what)[kind]
        named = " and ".join(f"{what} ({', '.join(kinds)})" for what, kinds in late.items() if kinds)
        raise InputError(
            f"{path}: its {named} come after the models, whose options are made already; "
            f"name the file in {VARIABLE} before Python starts"
        )


def _registry(what: str) -> dict[str, Any]:
    module, name = _REGISTRIES[what]
    kinds: dict[str, Any] = getattr(sys.modules.get(module), name, {})
    return kinds


def _place(path: Path, error: Exception) -> str:
    """The line of the file that an error comes from: one that cannot be parsed says it itself."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}, line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}, line {lines[-1]}" if lines else str(path)


def _cause(error: Exception) -> str:
    message = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
