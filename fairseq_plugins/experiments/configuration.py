"""A configuration: one YAML file for each experiment, which says what differs from the file named by its ``base``.

The sections ``train`` and ``generate`` hold options of fairseq-train and fairseq-generate under their own names;
fairseq's own parsers check them (:mod:`.fairseq_commands`). ``recipes`` holds options of fairseq-train that go
together, under a name, and ``recipe`` says which of them hold, unless the command line does (``--recipe``); what
``train`` says wins. Nothing unknown is accepted anywhere.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from .. import extensions
from ..decoding.prepared_data import PreparedData
from ..errors import InputError, nearest, nearest_or_all
from ..files import read_lines
from ..package_files import CONFIGURATIONS

TOKENIZE_OPTIONS = ("rouge-tokenize", "sacrebleu-tokenize")
"""Of metrics: what cuts text into tokens; ``evaluate`` has them too."""
# The keys that are ours; those of train and generate are fairseq's.
KEYS = {
    "data": ("folder",),
    "evaluate": ("average", "metric", *TOKENIZE_OPTIONS, "cache-window", "cache-theta", "cache-weight"),
    "paper": ("table", "row"),
}
SECTIONS = ("base", "extensions", "recipe", "recipes", "data", "train", "generate", "evaluate", "paper")
# Numbers in evaluate: what reads one, which are accepted, and what these are called.
_NUMBERS: dict[str, tuple[type, Callable[[float], bool], str]] = {
    "average": (int, lambda number: number >= 0, "a number of checkpoints"),
    "cache-window": (int, lambda number: number > 0, "a number of words above 0"),
    "cache-theta": (float, lambda number: number >= 0, "a number from 0 on"),
    "cache-weight": (float, lambda number: 0 < number < 1, "a number between 0 and 1"),
}
# What is in a table's row beside the paper's figures.
_NOT_FIGURES = ("config", "data", "missing", "bring", "baseline")
# Sections that a configuration keeps; of the others it keeps what comes of them.
_KEPT = ("data", "train", "generate", "evaluate", "paper")


class Value(NamedTuple):
    """A scalar as it is spelt in the file (``1e-3`` stays ``1e-3``), and where it is."""

    text: str
    file: Path
    line: int

    @property
    def place(self) -> str:
        """``FILE, line N``."""
        return f"{self.file}, line {self.line}"


Section = dict[str, Value]


@dataclass(frozen=True)
class Configuration:
    """What a configuration file and its bases say together.

    Attributes:
        path: the file
        data: ``folder``, the prepared data; for several data sets with ``*`` in the place of the name
        train: options of fairseq-train, without the leading dashes
        generate: options of fairseq-generate
        evaluate: ``average``, the number of last epochs' checkpoints to average; ``metric``, what is scored by it where
            that is not what the data is prepared for; :data:`TOKENIZE_OPTIONS`, where the language does not decide;
            ``cache-window``, ``cache-theta``, ``cache-weight``: a language model's continuous cache, where no search is
            to choose it
        paper: ``table`` and ``row``, where the paper's figures are in ``configs/tables/``
        extensions: files of the user's own with metrics or layers, those of the bases first
        recipe: that was chosen in the place of the file's own; None where it is the file's own
        data_name: of several data sets the one that was chosen; None where there is one, or none was
    """

    path: Path
    data: Section = field(default_factory=dict)
    train: Section = field(default_factory=dict)
    generate: Section = field(default_factory=dict)
    evaluate: Section = field(default_factory=dict)
    paper: Section = field(default_factory=dict)
    extensions: tuple[Path, ...] = ()
    recipe: str | None = None
    data_name: str | None = None

    @property
    def dataset(self) -> str:
        """The name of the folder that the file is in."""
        return self.path.resolve().parent.name

    @property
    def model(self) -> str:
        """The file's name without its ending, and what was chosen: ``dpn_paper`` (recipe), ``rcrn_books`` (data)."""
        return "_".join(filter(None, (self.path.stem, self.data_name, self.recipe)))

    @property
    def default_work(self) -> Path:
        """Where this experiment's checkpoints and results go unless the user says otherwise: below where he stands."""
        return Path("work") / self.dataset / self.model

    @property
    def data_folder(self) -> Path:
        """The prepared data: ``data: folder:`` or ``work/<dataset>/data``, seen from where the user stands.

        Raises:
            InputError: the configuration is for several data sets, and none was chosen.
        """
        folder = self.data.get("folder")
        if folder and "*" in folder.text:
            raise InputError(
                f"{folder.place}: for several data sets; choose one by --data {folder.text.replace('*', 'NAME')}"
            )
        return Path(folder.text if folder else f"work/{self.dataset}/data").absolute()

    @property
    def average(self) -> int:
        """How many of the last epochs' checkpoints evaluation averages; 0 takes the best checkpoint as it is."""
        value = self.evaluate.get("average")
        return 0 if value is None else int(value.text)

    @property
    def metric(self) -> str | None:
        """The name of the metric that is scored by; None for that of the data."""
        value = self.evaluate.get("metric")
        return value.text if value else None

    def prepared_data(self, folder: Path | None = None) -> PreparedData:
        """The prepared data of this experiment.

        Args:
            folder: in the place of the data that the configuration names

        Raises:
            InputError: it is not prepared.
        """
        if folder is None and not self.data_folder.exists():
            heads = self.path.with_name("_base.yaml"), self.path
            told = next(
                (path for path in heads if path.is_file() and "fairseq-plugins prepare" in path.read_text()), None
            )
            how = f"as the head of {told} says" if told else "by 'fairseq-plugins prepare' (docs/data.md)"
            raise InputError(
                f"{self.data_folder}: no such folder; prepare the data {how}, or name another folder by --data"
            )
        return PreparedData.load(folder or self.data_folder)

    def load_extensions(self) -> None:
        """Imports the extensions, here and in the commands that are started from here.

        Raises:
            InputError: one cannot be imported.
        """
        extensions.add(self.extensions)

    def paper_row(self) -> dict[str, float | str] | None:
        """The paper's figures for this experiment; None where the configuration names none, or is for several data sets
        and none of the paper's was chosen."""
        if not self.paper:
            return None
        for key in KEYS["paper"]:
            if key not in self.paper:
                raise InputError(f"{self.path}: paper: {key} is missing; write paper: {{table: NAME, row: NAME}}")
        table, row = self.paper["table"], self.paper["row"]
        tables = CONFIGURATIONS / "tables"
        path = tables / f"{table.text}.yaml"
        if not path.is_file():
            hint = nearest_or_all(table.text, [file.stem for file in tables.glob("*.yaml")])
            raise InputError(f"{table.place}: there is no table {path}{hint}")
        if "*" in row.text:
            return None
        rows = _rows_of_table(path)
        # A data set's name is that of a folder, and has no capitals.
        name = next((name for name in rows if name.casefold() == row.text.casefold()), None)
        if name is None and self.data_name is not None:
            return None
        if name is None:
            raise InputError(f"{row.place}: {path} has no row '{row.text}'{nearest_or_all(row.text, rows)}")
        return {key: value for key, value in rows[name].items() if key not in _NOT_FIGURES}

    def resolved(self) -> str:
        """The YAML of what the file and its bases say together, every value as it is spelt there."""
        resolver = yaml.resolver.Resolver()

        def scalar(text: str) -> yaml.Node:
            tag = resolver.resolve(yaml.ScalarNode, text, (True, False))
            # Quoted, what looks like no value at all is text.
            return yaml.ScalarNode("tag:yaml.org,2002:str" if tag == "tag:yaml.org,2002:null" else tag, text)

        def mapping(entries: Iterable[tuple[str, yaml.Node]]) -> yaml.Node:
            pairs = [(scalar(key), node) for key, node in entries]
            return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=False)

        sections = ((name, getattr(self, name)) for name in _KEPT)
        entries = [
            (name, mapping((key, scalar(value.text)) for key, value in section.items()))
            for name, section in sections
            if section
        ]
        if self.extensions:
            files = [scalar(str(path)) for path in self.extensions]
            entries.insert(0, ("extensions", yaml.SequenceNode("tag:yaml.org,2002:seq", files, flow_style=False)))
        root = mapping(entries)
        return yaml.serialize(root, Dumper=yaml.SafeDumper, allow_unicode=True)


@cache
def _rows_of_table(path: Path) -> dict[str, dict[str, float | str]]:
    """A table's rows by their systems."""
    return {entry["system"]: entry for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["rows"]}


def load(path: str | Path, recipe: str | None = None, data: str | Path | None = None) -> Configuration:
    """Reads a configuration and, recursively, its bases.

    Args:
        path: of the file, or a name that :func:`located` finds
        recipe: one of its recipes, in the place of its own
        data: prepared data; of a configuration for several data sets the folder's name says which one it is

    Raises:
        InputError: a file is missing, is no YAML, or holds an unknown section or key, or in ``evaluate`` what is not a
            number, or has no such recipe; the message names file and line. Options of fairseq and the metric are not
            looked at here.
    """
    path = located(path)
    if not path.is_file() and not path.is_absolute() and path.suffix != ".yaml":
        ours = [file.relative_to(CONFIGURATIONS).with_suffix("").as_posix() for file in CONFIGURATIONS.glob("*/*.yaml")]
        raise InputError(f"{path}: no such file, and no configuration of this project{nearest(str(path), ours)}")
    content = _merged(path, ())
    chosen_recipe = content.recipe
    recipes = {name: options for name, options in content.recipes.items() if options is not None}
    name = recipe if chosen_recipe is None or recipe is not None else chosen_recipe.text
    if name is not None:
        if name not in recipes:
            place = (
                f"{path}: --recipe" if chosen_recipe is None or recipe is not None else f"{chosen_recipe.place}: recipe"
            )
            there = f"there are {', '.join(recipes)}" if recipes else "the configuration has none"
            raise InputError(f"{place}: there is no recipe '{name}'{nearest(name, recipes)}; {there}")
        content.sections["train"] = {**recipes[name], **content.sections.get("train", {})}
    extension_files = tuple(dict.fromkeys(content.extensions))
    chosen = None if chosen_recipe is not None and chosen_recipe.text == recipe else recipe
    data_name = None if data is None else _chosen_data(content.sections, data)
    configuration = Configuration(
        path, **content.sections, extensions=extension_files, recipe=chosen, data_name=data_name
    )
    configuration.paper_row()
    _check_numbers(configuration.evaluate)
    return configuration


def _chosen_data(sections: dict[str, Section], data: str | Path) -> str | None:
    """Puts the name of one of several data sets in the place of ``*``: what stands there in ``data``, if it fits."""
    folder = sections.get("data", {}).get("folder")
    if folder is None or "*" not in folder.text:
        return None
    parts = itertools.dropwhile(lambda part: "*" not in part, Path(folder.text).parts)
    pattern = "/".join(re.escape(part).replace(r"\*", "([^/]+)", 1) for part in parts)
    match = re.fullmatch(f".*/{pattern}", os.path.abspath(data))
    if match is None:
        return None
    for section, key in (("data", "folder"), ("paper", "row")):
        if (value := sections.get(section, {}).get(key)) is not None:
            sections[section][key] = value._replace(text=value.text.replace("*", match[1]))
    return match[1]


def located(name: str | Path) -> Path:
    """The file of a configuration: the user's own, else one of this project, ``multi30k_de_en/mc_rnn_3``.

    Args:
        name: a path from where the user stands; or a file below this project's ``configs/``, which may come first, as
            the ending ``.yaml`` may come last
    """
    path = Path(name)
    if path.is_file() or path.is_absolute():
        return path
    parts = path.parts[1:] if path.parts[:1] == (CONFIGURATIONS.name,) else path.parts
    below = CONFIGURATIONS.joinpath(*parts)
    file = below if below.suffix == ".yaml" else below.with_name(f"{below.name}.yaml")
    return file if file.is_file() else path


def _check_numbers(evaluate: Section) -> None:
    for key, (number, accepts, what) in _NUMBERS.items():
        if (value := evaluate.get(key)) is None:
            continue
        try:
            is_accepted = accepts(number(value.text))
        except ValueError:
            is_accepted = False
        if not is_accepted:
            raise InputError(f"{value.place}: {key}: '{value.text}' is not {what}")


_NULL = "tag:yaml.org,2002:null"


class _Content(NamedTuple):
    """What a file says, or a file and its bases."""

    base: Value | None
    recipe: Value | None
    recipes: dict[str, Section | None]  # None takes a recipe of a base away
    sections: dict[str, Section]
    extensions: list[Path]


def _merged(path: Path, descendants: tuple[Path, ...]) -> _Content:
    if path.resolve() in descendants:
        chain = " -> ".join(str(file) for file in (*descendants, path.resolve()))
        raise InputError(f"{path}: a configuration cannot be its own base ({chain})")
    content = _read(path)
    if content.base is None:
        return content
    base_path = path.parent / content.base.text
    if not base_path.is_file():
        raise InputError(
            f"{content.base.place}: base: there is no file {base_path} (its place is beside the configuration)"
        )
    base = _merged(base_path, (*descendants, path.resolve()))
    for name, section in content.sections.items():
        base.sections[name] = {**base.sections.get(name, {}), **section}
    for name, options in content.recipes.items():
        base.recipes[name] = None if options is None else {**(base.recipes.get(name) or {}), **options}
    return base._replace(recipe=content.recipe or base.recipe, extensions=[*base.extensions, *content.extensions])


def _read(path: Path) -> _Content:
    """One file."""
    # Nodes instead of plain values: they know their lines, and keep a number as it is spelt.
    try:
        root = _composed("\n".join(read_lines(path)))
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", "it cannot be read")
        raise InputError(f"{path}, line {mark.line + 1 if mark else 1}: not valid YAML: {problem}") from None
    if root is None:
        raise InputError(f"{path}: the file is empty; it needs a section 'train' with an 'arch'")
    content = _Content(None, None, {}, {}, [])
    for name, node in _entries(root, path, SECTIONS, "section"):
        if name == "base":
            content = content._replace(base=_value(node, path, name))
        elif name == "recipe":
            content = content._replace(recipe=_value(node, path, name))
        elif name == "recipes":
            for recipe, options in _entries(node, path, None, "recipe"):
                content.recipes[recipe] = None if options.tag == _NULL else _section(options, path, None)
        elif name == "extensions":
            content.extensions.extend(_files(node, path))
        else:
            content.sections[name] = _section(node, path, KEYS.get(name))
    return content


# Hundreds of configurations share a few bases.
@cache
def _composed(text: str) -> yaml.Node | None:
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _section(node: yaml.Node, path: Path, names: Iterable[str] | None) -> Section:
    return {key: _value(value, path, key) for key, value in _entries(node, path, names, "key")}


def _files(node: yaml.Node, path: Path) -> list[Path]:
    """The files of ``extensions``, whose paths are seen from the configuration."""
    if not isinstance(node, yaml.SequenceNode):
        line = node.start_mark.line + 1
        raise InputError(f"{path}, line {line}: extensions: a list of files was expected, such as [my_metric.py]")
    values = [_value(item, path, "extensions") for item in node.value]
    files = [(path.parent / value.text).resolve() for value in values]
    for value, file in zip(values, files, strict=True):
        if not file.is_file():
            raise InputError(f"{value.place}: extensions: there is no file {file}")
    return files


def _entries(node: yaml.Node, path: Path, names: Iterable[str] | None, kind: str) -> list[tuple[str, yaml.Node]]:
    """The items of a mapping, each key once and, unless ``names`` is None, one of ``names``."""
    if not isinstance(node, yaml.MappingNode):
        raise InputError(f"{path}, line {node.start_mark.line + 1}: 'name: value' was expected here")
    entries: dict[str, yaml.Node] = {}
    for key, value in node.value:
        place = f"{path}, line {key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise InputError(f"{place}: the name of a {kind} was expected here")
        if names is not None and key.value not in names:
            raise InputError(f"{place}: unknown {kind} '{key.value}'{nearest_or_all(key.value, names)}")
        if key.value in entries:
            raise InputError(f"{place}: {kind} '{key.value}' is here for the second time")
        entries[key.value] = value
    return list(entries.items())


def _value(node: yaml.Node, path: Path, key: str) -> Value:
    place = f"{path}, line {node.start_mark.line + 1}"
    if not isinstance(node, yaml.ScalarNode):
        raise InputError(f"{place}: {key}: one value was expected; write a list as fairseq does, such as '1e-3,5e-4'")
    if node.tag == _NULL:
        raise InputError(f"{place}: {key}: the value is missing")
    return Value(node.value, path, node.start_mark.line + 1)
