"""The README says nothing that the project does not have."""

from __future__ import annotations

import re
from pathlib import Path

from fairseq import options as fairseq_options
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks.translation import TranslationTask

from fairseq_plugins.analysis.__main__ import COMMANDS
from fairseq_plugins.models.double_path import DoublePathConfig
from fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqConfig
from tests.models import test_double_path, test_recurrent_seq2seq

CHECKOUT = Path(__file__).resolve().parent.parent
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def test_files_that_it_names_exist() -> None:
    named = set(
        re.findall(r"\b(?:scripts|configs|benchmarks|fairseq_plugins)/[\w./-]+\.(?:sh|py|yaml|md|png|json)", README)
    )
    assert len(named) > 10
    assert not [path for path in sorted(named) if not (CHECKOUT / path).is_file()]


def test_table_of_architectures() -> None:
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\| ([\d,]+) \|", README, flags=re.MULTILINE)
    assert {name: int(count.replace(",", "")) for name, count in rows} == {
        **test_recurrent_seq2seq.PARAMETERS,
        **test_double_path.PARAMETERS,
    }


def test_architectures_that_it_names_are_registered() -> None:
    named = set(re.findall(r"--arch (\w+)", README))
    assert named
    assert not named - set(ARCH_MODEL_REGISTRY)


def test_nothing_is_left_to_fill_in() -> None:
    assert not re.findall(r"\b[A-Z]+_[A-Z_]+\b(?<!FAIRSEQ_PLUGINS_BACKEND)(?<!FAIRSEQ_PLUGINS_CACHE)", README)


def test_options_that_it_names_exist() -> None:
    named = set(re.findall(r"`(--[a-z][a-z0-9-]+)", README))
    assert len(named) > 10
    ours = CHECKOUT / "fairseq_plugins"
    scripts = [*CHECKOUT.glob("scripts/*.sh"), *CHECKOUT.glob("benchmarks/*.py")]
    sources = [
        *scripts,
        *(path for room in ("analysis", "corpora", "experiments") for path in ours.glob(f"{room}/**/*.py")),
    ]
    of_scripts = set(re.findall(r"--[a-z][a-z0-9-]+", "".join(path.read_text(encoding="utf-8") for path in sources)))
    parser = fairseq_options.get_training_parser()
    TranslationTask.add_args(parser)
    generation = fairseq_options.get_generation_parser()
    of_fairseq = {*parser._option_string_actions, *generation._option_string_actions, "--rouge-stemmer"}
    fields = {*RecurrentSeq2SeqConfig.__dataclass_fields__, *DoublePathConfig.__dataclass_fields__}
    of_models = {f"--{name.replace('_', '-')}" for name in fields}
    assert not named - of_scripts - of_fairseq - of_models


def test_the_analyses_are_those_that_there_are() -> None:
    table = README.split("| `python -m fairseq_plugins.analysis` |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `([a-z-]+) ", table, re.MULTILINE)) == set(COMMANDS)


def test_the_tables_that_can_be_reproduced() -> None:
    named = set(re.findall(r"`((?:mc_rnn|dpn)_table_\d)`", README))
    tables = {path.stem for path in (CHECKOUT / "configs" / "tables").glob("*.yaml")}
    assert named <= tables and {"mc_rnn_table_2", "mc_rnn_table_3", "mc_rnn_table_5"} <= named
