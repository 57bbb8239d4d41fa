"""The options of ``export``, and those that ``translate`` has for an exported folder."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.export import command
from fairseq_plugins.exported import graphs
from fairseq_plugins.exported.beam_search import SearchOptions
from fairseq_plugins.exported.command_line import search_options
from fairseq_plugins.exported.graphs import Graph


def test_options_of_beam_search() -> None:
    given = "--lenpen 0.5 --no-repeat-ngram-size 2 --max-len-a 0 --max-len-b 7 --min-len 3 --unkpen 2 --replace-unk"
    assert search_options(4, given.split()) == (SearchOptions(4, 0.5, 2, 0.0, 7, 3, 2.0), True)
    assert search_options(5, []) == (SearchOptions(), False)
    with pytest.raises(InputError, match="beam is 0: give a whole number from 1 on"):
        search_options(0, [])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"beam": 2.5}, "beam is 2.5: give a whole number from 1 on"),
        ({"beam": True}, "beam is True: give a whole number from 1 on"),
        ({"no_repeat_ngram_size": -1}, "no-repeat-ngram-size is -1: give a whole number from 0 on"),
        ({"length_penalty": math.nan}, "length-penalty is nan: give a number from -10 to 10"),
        ({"length_penalty": 1000}, "length-penalty is 1000: give a number from -10 to 10"),
        ({"length_penalty": -1000}, "length-penalty is -1000: give a number from -10 to 10"),
        ({"max_len_a": math.nan}, "max-len-a is nan: give a number from 0 to 1000"),
        ({"max_len_a": math.inf}, "max-len-a is inf: give a number from 0 to 1000"),
        ({"max_len_b": -1}, "max-len-b is -1: give a whole number from 0 on"),
        ({"min_len": 14}, "min-len is 14, but a translation of one word has 13 tokens at most; raise max-len-b"),
        ({"unknown_penalty": math.nan}, "unknown-penalty is nan: give a number from -1000 on"),
        ({"unknown_penalty": -math.inf}, "unknown-penalty is -inf: give a number from -1000 on"),
    ],
)
def test_numbers_that_cannot_be(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{sentence}$"):
        SearchOptions(**options)


class Model:
    """What :func:`command.export` asks of a model."""

    architectures, models, paths = ["rnnsearch"], [], []

    def __init__(self, folder: Path) -> None:
        (folder / "bin").mkdir(parents=True)
        for language in "de", "en":
            (folder / "bin" / f"dict.{language}.txt").write_text("a 1\n", encoding="utf-8")
        self.preparation = PairsPreparation("de", "en", bpe="none")
        self.preparation.save(folder)
        self.data = PreparedData(folder, self.preparation)


def graph() -> onnx.ModelProto:
    """x times a weight of 8 by 8."""
    weight = helper.make_tensor("weight", TensorProto.FLOAT, [8, 8], [0.5] * 64)
    value = helper.make_tensor_value_info
    made = helper.make_graph(
        [helper.make_node("MatMul", ["x", "weight"], ["y"], name="product")],
        "product",
        [value("x", TensorProto.FLOAT, ["B", 8])],
        [value("y", TensorProto.FLOAT, ["B", 8])],
        [weight],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def test_threads_are_those_that_the_process_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(graph(), tmp_path / "graph.onnx")
    monkeypatch.setattr(graphs, "available_cpus", lambda: 3)

    def threads(given: int | None = None) -> int:
        return Graph(tmp_path / "graph.onnx", given)._session.get_session_options().intra_op_num_threads

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert (threads(), threads(1)) == (2, 1)


@pytest.mark.parametrize("is_int8", [False, True])
def test_options_of_export(
    is_int8: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--output, --license, --int8: without what takes a minute, the tracing."""
    (tmp_path / "checkpoint.pt").touch()
    monkeypatch.setattr(command, "_loaded", lambda paths, data: Model(tmp_path / "data"))
    monkeypatch.setattr(command, "_graphs_of", lambda model: ({"step": graph()}, {"kind": "translation"}))
    scores = iter([{"bleu": 20.5}, {"bleu": 20.25}])
    monkeypatch.setattr(command, "_development_scores", lambda folder, model: next(scores))
    output = tmp_path / "exported"
    arguments = [str(tmp_path / "checkpoint.pt"), "--output", str(output), "--license", "CC BY 4.0"]
    command.main([*arguments, *["--int8"] * is_int8])
    card = json.loads((output / "model.json").read_text(encoding="utf-8"))
    assert (card["license"], card["weights"]) == ("CC BY 4.0", "int8" if is_int8 else "float32")
    operators = {node.op_type for node in onnx.load(output / "step.onnx").graph.node}
    assert ("MatMulInteger" in operators, "MatMul" in operators) == (is_int8, not is_int8)
    shown = capsys.readouterr().out
    assert ("; on the development set float32 20.5, int8 20.25" in shown) == is_int8
    assert card.get("development_set") == ({"float32": {"bleu": 20.5}, "int8": {"bleu": 20.25}} if is_int8 else None)
    text = sorted(path.relative_to(output / "text").as_posix() for path in (output / "text").rglob("*.*"))
    assert text == ["bin/dict.de.txt", "bin/dict.en.txt", "preparation.json"]


def test_an_output_that_is_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is there already, and is no exported model; name another --output"):
        command.check_output(tmp_path)
    with pytest.raises(InputError, match="is a file; name a folder"):
        command.check_output(tmp_path / "file")
    command.check_output(tmp_path / "new")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match="is the folder that you are in, or around it; name another --output"):
        command.check_output(Path())


def test_only_an_exported_model_is_replaced(tmp_path: Path) -> None:
    model, output = Model(tmp_path / "data"), tmp_path / "exported"
    (tmp_path / "link").symlink_to(output)

    def export(path: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(command, "_graphs_of", lambda model: ({"step": graph()}, {"kind": "translation"}))
            command.export(model, path)  # type: ignore[arg-type]

    export(tmp_path / "link")
    export(tmp_path / "link")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "exported", "link"]
    own = output / "text" / "own"
    for make in (lambda: own.write_text("mine"), lambda: own.symlink_to(tmp_path), own.mkdir):
        make()
        is_folder = own.is_dir() and not own.is_symlink()
        if is_folder:
            (own / "file").touch()
        with pytest.raises(InputError, match="own.*: not of the exported model, which is replaced as a whole; name"):
            export(output)
        if is_folder:
            (own / "file").unlink()
            own.rmdir()
        else:
            own.unlink()
    card = json.loads((output / "model.json").read_text(encoding="utf-8"))
    for change in {"format": "pt"}, {"kind": None}, {"files": {"step.onnx": "x"}}:
        (output / "model.json").write_text(json.dumps({**card, **change}), encoding="utf-8")
        with pytest.raises(InputError, match="exported: is there already, and is no exported model"):
            export(output)


def test_an_old_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.__version__", "2.7.1+cpu")
    with pytest.raises(InputError, match=r"PyTorch 2.7.1\+cpu cannot export these models: install 2.8 or later"):
        command.check_pytorch()
    monkeypatch.setattr("torch.__version__", "2.10.0")
    command.check_pytorch()
