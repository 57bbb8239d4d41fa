"""Arrows between the rooms of the house run downward only."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.commands import run_command

PACKAGE = Path(__file__).resolve().parent.parent / "fairseq_plugins"

FORBIDDEN = {
    "errors.py": ("fairseq", "torch"),
    "files.py": ("fairseq", "torch"),
    "versions.py": ("fairseq", "torch"),
    "kernels": ("fairseq", "fairseq_plugins.modules", "fairseq_plugins.models", "fairseq_plugins.corpora"),
    "modules": ("fairseq", "fairseq_plugins.models", "fairseq_plugins.corpora", "fairseq_plugins.experiments"),
    "corpora": ("fairseq", "torch", "fairseq_plugins.modules", "fairseq_plugins.models", "fairseq_plugins.experiments"),
    "scoring": ("fairseq_plugins.models", "fairseq_plugins.modules", "fairseq_plugins.experiments"),
    "models": ("fairseq_plugins.corpora", "fairseq_plugins.experiments"),
    "tasks": ("fairseq_plugins.experiments",),
    "optim": ("fairseq_plugins.corpora", "fairseq_plugins.experiments", "fairseq_plugins.models"),
    "extensions.py": ("fairseq", "torch"),
    "terminal.py": ("fairseq", "torch"),
    "samples.py": ("fairseq", "torch"),
    "limits.py": ("fairseq", "torch"),
    "fairseq_program.py": ("fairseq", "torch"),
    "startup.py": ("fairseq", "torch"),
    "languages.py": ("fairseq", "torch"),
}

# What of ours a room may import, beside what is in it.
OURS = {
    "errors.py": (),
    "files.py": ("errors",),
    "versions.py": (),
    "startup.py": ("errors",),
    "corpora": ("errors", "files", "versions", "fairseq_program", "languages"),
    "fairseq_program.py": (),
    "languages.py": (),
    "extensions.py": ("errors",),
    "terminal.py": (),
    "samples.py": (),
    "kernels": ("errors", "files"),
    "modules": ("kernels",),
    "models": ("errors", "files", "register", "modules", "kernels"),
    "criterions": ("errors", "files", "register", "modules", "kernels", "scoring"),
    "checkpoints.py": ("errors", "files", "versions", "register"),
    "limits.py": (),
    "patches": ("errors", "files", "limits", "startup", "register", "modules", "optim", "kernels"),
    "scoring": ("errors", "files", "languages"),
    "experiments": (
        *("errors", "files", "versions", "extensions", "terminal", "checkpoints", "limits", "register", "__path__"),
        *("samples", "fairseq_program", "startup"),
        *("corpora", "scoring", "kernels"),
    ),
    "trained.py": ("errors", "checkpoints", "patches", "corpora", "experiments"),
    "installation.py": ("errors", "terminal", "versions", "register", "modules", "kernels"),
    "tasks": ("errors", "files", "register", "patches", "corpora", "models"),
    "optim": ("errors", "register"),
    "language_models": ("errors", "files", "checkpoints", "corpora", "models", "modules"),
    "analysis": (
        *("errors", "files", "terminal", "samples", "trained", "checkpoints", "register"),
        *("corpora", "scoring", "kernels", "modules", "models", "experiments"),
    ),
    "report": ("errors", "files", "terminal", "samples", "corpora", "scoring", "experiments", "analysis"),
    "tables": ("errors", "files", "versions", "fairseq_program", "scoring", "experiments", "analysis", "report"),
    "documentation": (
        *("errors", "files", "terminal", "register"),
        *("scoring", "kernels", "modules", "models", "experiments", "report", "tables"),
    ),
}


def imported_modules(path: Path) -> set[str]:
    """The absolute names of what a file of the package imports, at any depth of its code."""
    package = ("fairseq_plugins", *path.relative_to(PACKAGE).with_suffix("").parts[:-1])
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def module_name(path: Path) -> str:
    """What a file of the package is imported as."""
    return ".".join(["fairseq_plugins", *path.relative_to(PACKAGE).with_suffix("").parts])


def is_in(name: str, forbidden: str) -> bool:
    return name == forbidden or name.startswith(forbidden + ".")


def imports_of(room: str) -> list[tuple[Path, str]]:
    """Each file of a room with each name that it imports."""
    root = PACKAGE / room
    # A command puts rooms together, and nobody imports it: it is above all of them.
    files = [root] if root.is_file() else [path for path in sorted(root.rglob("*.py")) if path.name != "__main__.py"]
    assert files
    return [(path.relative_to(PACKAGE), name) for path in files for name in sorted(imported_modules(path))]


@pytest.mark.parametrize("room", FORBIDDEN)
def test_imports_run_downward(room: str) -> None:
    wrong = [
        f"{path} imports {name}"
        for path, name in imports_of(room)
        if any(is_in(name, forbidden) for forbidden in FORBIDDEN[room])
    ]
    assert not wrong


@pytest.mark.parametrize("room", OURS)
def test_rooms_import_of_ours_only_what_they_may(room: str) -> None:
    allowed = [f"fairseq_plugins.{name}" for name in (*OURS[room], room.removesuffix(".py"))]
    wrong = [
        f"{path} imports {name}"
        for path, name in imports_of(room)
        if is_in(name, "fairseq_plugins") and not any(is_in(name, other) for other in allowed)
    ]
    assert not wrong


def test_rooms_are_in_no_circle() -> None:
    rooms = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()]
    files = [path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")]
    assert len(rooms) > 8 and len(files) > 4
    arrows = {
        room.removesuffix(".py"): {
            name.split(".")[1] for _, name in imports_of(room) if name.startswith("fairseq_plugins.")
        }
        - {room.removesuffix(".py")}
        for room in (*rooms, *files)
    }
    # A circle raises CycleError.
    assert set(TopologicalSorter(arrows).static_order()) >= set(arrows)


def test_files_inside_a_room_are_in_no_circle() -> None:
    """A package and its files count as one where the package only hands out what is in them."""
    files = {path: module_name(path) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"}
    names = set(files.values())
    arrows = {
        name: {own for imported in imported_modules(path) for own in (imported, imported.rpartition(".")[0])}
        & names - {name}
        for path, name in files.items()
    }
    # A circle raises CycleError.
    assert set(TopologicalSorter(arrows).static_order()) >= set(arrows)


def test_sources_are_short() -> None:
    sources = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".cpp", ".h", ".jinja")]
    assert len(sources) > 100
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in sources}
    assert not {str(path): length for path, length in lengths.items() if length > 500}


def test_nobody_imports_a_command() -> None:
    assert not [path for path, name in imports_of(".") if ".__main__" in name]


@pytest.mark.parametrize(
    ("room", "missing"),
    [
        ("kernels", ("fairseq",)),
        ("modules", ("fairseq",)),
        ("corpora", ("fairseq", "torch")),
        ("experiments", ("fairseq", "torch")),
    ],
)
def test_rooms_work_without(room: str, missing: tuple[str, ...]) -> None:
    """Every file of the room is imported in a process where fairseq (and PyTorch) cannot be."""
    program = f"""
import importlib, pkgutil, sys
sys.modules |= dict.fromkeys({missing!r})  # as if they were not installed
room = importlib.import_module("fairseq_plugins.{room}")
for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] != "triton":  # only GPUs need it
            raise
    print(module.name)
"""
    finished = run_command(["python", "-c", program])
    assert f"fairseq_plugins.{room}." in finished.stdout
