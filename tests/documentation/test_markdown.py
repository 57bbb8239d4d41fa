"""README and docs say nothing that the project does not have: links, files, commands, options, names."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from fairseq import options as fairseq_options
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from fairseq.tasks.translation import TranslationTask

from fairseq_plugins.command_parser import PROGRAM
from fairseq_plugins.modules import RECURRENT_KINDS
from fairseq_plugins.report.analyses import COMMANDS
from tests.commands import CHECKOUT
from tests.documentation.markdown import PAGES, anchors, blocks, commands, name
from tests.models import test_double_path, test_recurrent_seq2seq

README = CHECKOUT / "README.md"
each_page = pytest.mark.parametrize("page", PAGES, ids=name)
# A reader makes these by what the pages say.
MADE = ("configs/mine/",)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def links_of(page: Path) -> list[str]:
    found = re.findall(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"", text_of(page))
    return [link for link in map("".join, found) if not link.startswith("https://")]


def test_links_lead_from_the_readme_to_every_page() -> None:
    reached, ahead = set[Path](), {README}
    while ahead:
        page = ahead.pop()
        reached.add(page)
        ahead |= {(page.parent / link.partition("#")[0]).resolve() for link in links_of(page)} & set(PAGES) - reached
    assert not set(PAGES) - reached


@each_page
def test_links_resolve(page: Path) -> None:
    wrong = []
    for link in links_of(page):
        path, _, anchor = link.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or not file.is_relative_to(CHECKOUT) or (anchor and anchor not in anchors(file)):
            wrong.append(link)
    assert not wrong


@each_page
def test_what_a_reader_is_told_to_save_is_found(page: Path) -> None:
    told = re.findall(r"save this as\s+`([^`]+)`", text_of(page), re.IGNORECASE)
    assert [block.file for block in blocks(page) if block.file is not None] == told


@each_page
def test_files_that_it_names_exist(page: Path) -> None:
    pattern = r"\b(?:scripts|configs|benchmarks|fairseq_plugins|tests|docs)/[\w./-]+\.(?:sh|py|yaml|md|svg|json)"
    # A link's path is seen from the page, and is tested above.
    named = set(re.findall(pattern, re.sub(r"\]\([^)]*\)", "", text_of(page))))
    assert not [path for path in sorted(named) if not path.startswith(MADE) and not (CHECKOUT / path).is_file()]


@each_page
def test_architectures_and_layers_that_it_names_exist(page: Path) -> None:
    said = " ".join(commands(page))
    assert not set(re.findall(r"--arch (\w+)", said)) - set(ARCH_MODEL_REGISTRY)
    rows = re.findall(r"^\s+arch: (\w+)", text_of(page), re.MULTILINE)
    assert not set(rows) - set(ARCH_MODEL_REGISTRY)


@each_page
def test_commands_have_the_options_that_it_names(page: Path) -> None:
    wrong = []
    for command in commands(page):
        words = shlex.split(command.split("|")[-1].split("<")[0])
        words = [word for word in words if "=" not in word or word.startswith("-")]
        if not words:
            continue
        own = options_of(words[0]) | {"--"}
        wrong += [f"{words[0]} {word}" for word in words if word.startswith("--") and word.split("=")[0] not in own]
    assert not wrong


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in ("CHANGELOG.md", "options.md")], ids=name)
def test_options_that_it_names_exist(page: Path) -> None:
    named = set(re.findall(r"`(--[a-z][a-z0-9-]+[a-z0-9])", text_of(page)))
    known = options_of("scripts/") | options_of("fairseq-train")
    # Extensions of docs/add_a_layer.md, and other layers' with their side before the name.
    known |= {"--leak", "--encoder-leak", "--decoder-leak", "--remove-bpe"}
    assert not named - known


@cache
def options_of(command: str) -> frozenset[str]:
    """Every option of a command, generously: scripts pass options on to fairseq's commands."""
    ours = CHECKOUT / "fairseq_plugins"
    rooms = ("analysis", "corpora", "documentation", "experiments", "export", "exported", "patches", "report")
    rooms += ("scoring", "serving", "tables")
    sources = [
        *CHECKOUT.glob("scripts/*.sh"),
        *CHECKOUT.glob("benchmarks/*.py"),
        *ours.glob("*.py"),
        *(path for room in rooms for path in ours.glob(f"{room}/**/*.py")),
    ]
    of_scripts = set(re.findall(r"--[a-z][a-z0-9-]+", "".join(path.read_text(encoding="utf-8") for path in sources)))
    training, generation = fairseq_options.get_training_parser(), fairseq_options.get_generation_parser()
    TranslationTask.add_args(training)
    of_fairseq = {*training._option_string_actions, *generation._option_string_actions, "--rouge-stemmer"}
    # fairseq adds those of models, tasks, optimizers and their kin when they are chosen.
    chosen = [MODEL_DATACLASS_REGISTRY, TASK_DATACLASS_REGISTRY]
    chosen += [registry["dataclass_registry"] for registry in REGISTRIES.values()]
    fields = {field for registry in chosen for found in registry.values() for field in found.__dataclass_fields__}
    for kind in RECURRENT_KINDS.values():
        names = kind.options.__dataclass_fields__
        fields |= {*names, *(f"{side}_{field}" for side in ("encoder", "decoder") for field in names)}
    of_models = {f"--{field.replace('_', '-')}" for field in fields}
    torchrun = {"--no-python", "--nnodes", "--nproc-per-node", "--rdzv-backend", "--rdzv-endpoint"}
    if command.startswith("fairseq-") and command != PROGRAM:
        return frozenset(of_fairseq | of_models)
    return frozenset(of_scripts | of_fairseq | of_models | torchrun)


def test_the_table_of_architectures_has_the_models_own_numbers() -> None:
    page = text_of(CHECKOUT / "docs" / "architectures.md")
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\| ([\d,]+) \|", page, flags=re.MULTILINE)
    assert len(rows) == len(dict(rows)), "each once"
    assert {row: int(count.replace(",", "")) for row, count in rows} == {
        **test_recurrent_seq2seq.PARAMETERS,
        **test_double_path.PARAMETERS,
    }


def test_the_analyses_are_those_that_there_are() -> None:
    page = text_of(CHECKOUT / "docs" / "analysis.md")
    table = page.split("| `fairseq-plugins analysis` |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `([a-z-]+) ", table, re.MULTILINE)) == set(COMMANDS)


@each_page
def test_tables_that_it_names_can_be_reproduced(page: Path) -> None:
    named = set(re.findall(r"\b((?:mc_rnn|dpn)_table_\d)\b", text_of(page)))
    assert named <= {path.stem for path in (CHECKOUT / "configs" / "tables").glob("*.yaml")}


@each_page
def test_nothing_is_left_to_fill_in(page: Path) -> None:
    assert not re.findall(r"\bTODO\b|\bFIXME\b|\bXXX\b|\?\?\?", text_of(page))


def test_the_sections_and_keys_of_a_configuration_are_all_described() -> None:
    from fairseq_plugins.experiments.configuration import KEYS, SECTIONS

    page = text_of(CHECKOUT / "docs" / "configurations.md")
    described = set(re.findall(r"`([a-z]+(?:: [a-z-]+)?)`", page.split("## Keys")[1].split("\n\nThe scripts")[0]))
    wanted = {f"{section}: {key}" for section, keys in KEYS.items() for key in keys}
    assert wanted | (set(SECTIONS) - set(KEYS)) <= described
