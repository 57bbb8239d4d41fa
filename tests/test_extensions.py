"""Files of a user's own: imported once, and one sentence where that cannot be."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fairseq_plugins import extensions
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import evaluate, train
from fairseq_plugins.modules.multi_path import registry as path_registry
from fairseq_plugins.modules.recurrent import registry
from tests.commands import run_command


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(extensions.VARIABLE, "")


def test_files_are_imported_once_and_told_to_commands(tmp_path: Path) -> None:
    for folder in "a", "b":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(
            f"import sys\nsys.modules.setdefault('imported', []).append('{folder}')\n"
        )
    sys.modules.pop("imported", None)
    files = [tmp_path / "a" / "mine.py", tmp_path / "b" / ".." / "b" / "mine.py"]
    extensions.add(files)
    extensions.add(files[:1])
    extensions.load()
    assert sys.modules.pop("imported") == ["a", "b"], "two files of one name are two"
    assert os.environ[extensions.VARIABLE].split(os.pathsep) == [str(file.resolve()) for file in files]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1\n1 / 0\n", "line 2: this extension cannot be imported: ZeroDivisionError: division by zero"),
        ("import nothing_of_this_name\n", "line 1: .* ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("a = 1\nb = = 2\n", "line 2: this extension cannot be imported: SyntaxError: invalid syntax"),
    ],
)
def test_what_cannot_be_imported(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(content)
    for _ in range(2):
        with pytest.raises(InputError, match=f"{path}, {message}") as raised:
            extensions.add([path])
        assert "\n" not in str(raised.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing.py: no such file; FAIRSEQ_PLUGINS_EXTENSIONS or a configuration"):
        extensions.add([tmp_path / "missing.py"])
    (tmp_path / "mine.yaml").write_text("")
    os.environ[extensions.VARIABLE] = str(tmp_path / "mine.yaml")
    with pytest.raises(InputError, match="mine.yaml: an extension is a Python file"):
        extensions.load()


OWN_KINDS = {
    "recurrent layers": "from fairseq_plugins.modules import register_recurrent_kind\n"
    "register_recurrent_kind('mine', Options, '')(print)\n",
    "paths": "from fairseq_plugins.modules import PathKind, register_path\n"
    "register_path(PathKind('mine', 'm', '', Options, print, print))\n",
}


@pytest.mark.parametrize("what", OWN_KINDS)
def test_kinds_that_come_after_the_models_are_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the refusal a checkpoint's options of such a layer would be dropped."""
    path = tmp_path / "mine.py"
    options = "from dataclasses import dataclass\n@dataclass\nclass Options:\n    pass\n"
    path.write_text(options + OWN_KINDS[what])
    module, name = (registry, "RECURRENT_KINDS") if what == "recurrent layers" else (path_registry, "PATH_KINDS")
    kinds = dict(getattr(module, name))
    monkeypatch.setattr(module, name, kinds)
    monkeypatch.setitem(sys.modules, "fairseq_plugins.models.options", ModuleType("options"))
    for _ in range(2):
        with pytest.raises(InputError, match=rf"mine.py: its {what} \(mine\) come after the models, .*before"):
            extensions.add([path])
        assert "mine" not in kinds
    monkeypatch.delitem(sys.modules, "fairseq_plugins.models.options")
    extensions.load()
    assert "mine" in kinds


@pytest.mark.system
def test_registering_imports_them(tmp_path: Path) -> None:
    """Before the models, which have the options of its layers, whatever is imported first."""
    (tmp_path / "mine.py").write_text(
        "from dataclasses import make_dataclass\n"
        "from fairseq.models import register_model_architecture\n"
        "from fairseq_plugins.modules import option, register_recurrent_kind\n"
        "options = make_dataclass('Options', [('of_mine', int, option(3, ''))], frozen=True)\n"
        "register_recurrent_kind('mine', options, '')(print)\n"
        "from fairseq_plugins.models import double_path\n"
        "@register_model_architecture('double_path', 'dpn_of_mine')\n"
        "def dpn_of_mine(args):\n"
        "    args.dropout = 0.3\n"
    )
    program = """
from fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqConfig
from fairseq.models import ARCH_MODEL_REGISTRY
print("dpn_of_mine" in ARCH_MODEL_REGISTRY, "of_mine" in RecurrentSeq2SeqConfig.__dataclass_fields__)
"""
    finished = run_command(["python", "-c", program], FAIRSEQ_PLUGINS_EXTENSIONS=str(tmp_path / "mine.py"))
    assert finished.stdout == "True True\n"


KIND = """
import dataclasses
from fairseq_plugins.corpora.preparation import Preparation

@dataclasses.dataclass(kw_only=True)
class NumbersPreparation(Preparation):
    kind = "numbers_of_an_extension"
    largest: int
    metric: str = "bleu"

    def dictionaries(self):
        return []

if __name__ == "__main__":
    NumbersPreparation(largest=9).save("numbers")
"""


@pytest.mark.parametrize(
    ("command", "next_step"), [(train, "fairseq_commands.train_command"), (evaluate, "chosen_metrics")]
)
def test_a_kind_of_corpus(command: ModuleType, next_step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "number_lines.py").write_text(KIND)
    run_command(["python", tmp_path / "number_lines.py"], cwd=tmp_path)
    (tmp_path / "own.yaml").write_text("extensions: [number_lines.py]\ntrain: {arch: rnnsearch}\n")

    def reached(*arguments: object) -> None:
        [data] = [argument for argument in arguments if isinstance(argument, PreparedData)]
        raise InputError(type(data.preparation).__name__)

    monkeypatch.setattr(f"{command.__name__}.{next_step}", reached)
    with pytest.raises(InputError, match="NumbersPreparation"):
        command.main(
            [str(tmp_path / "own.yaml"), "--data", str(tmp_path / "numbers"), "--work", str(tmp_path / "work")]
        )
