"""``fairseq-plugins export``: a trained model as a folder that runs without PyTorch and fairseq."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..checkpoints import architecture, checked_checkpoint, checkpoint_of, load_extensions_of, require_checkpoint
from ..command_parser import CommandParser
from ..corpora.pairs import PairsPreparation
from ..corpora.preparation import PREPARATION
from ..errors import InputError
from ..exported.classification import CLASSIFIER
from ..exported.folder import CARD, TEXT, check_replaceable, write_card
from ..exported.language_model import LANGUAGE_MODEL
from ..exported.translation import TRANSLATION
from ..files import atomic_directory
from ..versions import versions

if TYPE_CHECKING:
    import onnx

    from ..decoding.prepared_data import PreparedData
    from ..decoding.trained_model import TrainedModel
    from ..decoding.translation import TranslationModel

LEAST_PYTORCH = (2, 8)
"""The first with ``torch.onnx.ops.symbolic_multi_out``."""
_PACKAGES = (
    "fairseq-plugins",
    "torch",
    "onnx",
    "onnxscript",
    "onnxruntime",
    "sentencepiece",
    "subword-nmt",
    "sacremoses",
)
_LICENSE = "not stated; the licences of the training data, and whoever trained the model, decide"
_NOTES = """\
The folder has the graphs (ONNX), the dictionaries, what the text goes through, and model.json, the card of the model.
It needs neither PyTorch nor fairseq, nor the prepared data:

  pip install "fairseq_plugins-VERSION-py3-none-any.whl[runtime]"   (the wheel: docs/installation.md)
  fairseq-plugins translate DIR < text
  python -c 'import fairseq_plugins.exported as e; print(e.load("DIR").translate(["…"]))'"""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "export",
        "Exports a trained model to a folder that runs without PyTorch and fairseq.",
        ("work/quickstart/mc_rnn_3 --output work/exported", "a.pt:b.pt --output work/ensemble --int8"),
        _NOTES,
    )
    options.add_argument(
        "checkpoint",
        metavar="RUN_OR_CHECKPOINT",
        help="a work folder for its best, or a file; FILE:FILE is an ensemble",
    )
    options.add_argument("--output", type=Path, required=True, metavar="DIR", help="the folder that is written")
    options.add_argument("--int8", action="store_true", help="weights of products as 8-bit integers")
    options.add_argument(
        "--data", type=Path, metavar="DIR", help="the prepared data (default: what the checkpoint was trained on)"
    )
    options.add_argument("--license", default=_LICENSE, metavar="TEXT", help="the model's, a line of its card")
    return options


def main(arguments: Sequence[str]) -> None:
    """Exports a model."""
    options = parser().parse_args(arguments)
    paths = [checkpoint_of(path) for path in options.checkpoint.split(":")]
    for path in paths:
        require_checkpoint(path)
    check_output(options.output)
    check_pytorch()
    model = _loaded(paths, options.data)
    print(f"exporting {', '.join(model.architectures)}; this takes about a minute", flush=True)
    export(model, options.output, options.int8, options.license)
    size = sum(file.stat().st_size for file in options.output.rglob("*") if file.is_file())
    print(f"{options.output}: {size / 1e6:.1f} MB{_compared(options.output)}")


def _compared(folder: Path) -> str:
    """What the card says of the development set, where it says something."""
    scores = json.loads((folder / CARD).read_text(encoding="utf-8")).get("development_set") or {}
    if not all(scores.values()):
        return ""
    shown = ", ".join(
        f"{name} " + " / ".join(f"{value:g}" for value in of_weights.values() if isinstance(value, (int, float)))
        for name, of_weights in scores.items()
    )
    return f"; on the development set {shown}" if shown else ""


def check_output(folder: Path) -> None:
    """Raises InputError for a folder that holds something else than an exported model, or that cannot be replaced."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder")
    if Path.cwd().is_relative_to(folder.resolve()):
        raise InputError(f"{folder}: is the folder that you are in, or around it; name another --output")
    if folder.is_dir() and any(folder.iterdir()):
        check_replaceable(folder)


def check_pytorch() -> None:
    """Raises InputError for a PyTorch that cannot export these models."""
    import torch

    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < LEAST_PYTORCH:
        least = ".".join(map(str, LEAST_PYTORCH))
        raise InputError(f"PyTorch {torch.__version__} cannot export these models: install {least} or later")


def _loaded(paths: Sequence[Path], data: Path | None) -> TrainedModel:
    """The model that checkpoints hold, of whatever kind."""
    load_extensions_of(paths)
    name = str(architecture(checked_checkpoint(paths[0])))
    from fairseq.models import FairseqEncoderDecoderModel

    from ..decoding.classification import ClassificationModel
    from ..decoding.language_model import LanguageModel
    from ..decoding.trained_model import class_of
    from ..decoding.translation import TranslationModel
    from ..models.recurrent_language_model import RecurrentLanguageModel

    if issubclass(class_of(name), FairseqEncoderDecoderModel):
        return TranslationModel.load(paths, data)
    if len(paths) > 1:
        raise InputError(f"'{name}' translates nothing: ensembles are of translation models")
    if issubclass(class_of(name), RecurrentLanguageModel):
        return LanguageModel.load(paths, data)
    return ClassificationModel.load(paths, data)


def export(model: TrainedModel, output: Path, is_int8: bool = False, license: str = _LICENSE) -> None:
    """Writes a model's folder, whole or not at all.

    Args:
        model: one, or an ensemble of translation models.
        output: the folder.
        is_int8: whether weights of products are 8-bit integers.
        license: a line of the card.

    Raises:
        InputError: the model has no exported form, or the folder holds something else.
        GraphError: a graph does not compute what the model computes.
    """
    from .graphs import quantized

    check_output(output)
    graphs, facts = _graphs_of(model)
    with atomic_directory(output.resolve()) as folder:  # not a link to it
        _write_text(model.data, folder / TEXT)
        card = {**facts, **_card(model), "license": license, "weights": "float32"}
        _write_graphs(folder, graphs, card)
        if is_int8:
            scores = {"float32": _development_scores(folder, model)}
            card["weights"] = "int8"
            _write_graphs(folder, {name: quantized(graph) for name, graph in graphs.items()}, card)
            scores["int8"] = _development_scores(folder, model)
            _write_graphs(folder, {}, {**card, "development_set": scores})


def _graphs_of(model: TrainedModel) -> tuple[dict[str, onnx.ModelProto], dict[str, Any]]:
    """The graphs of a model, and what the card says of its kind."""
    from ..decoding.language_model import LanguageModel
    from ..decoding.translation import TranslationModel

    dictionary = model.source_dictionary
    if isinstance(model, TranslationModel):
        from .translation import check_models, exported_models, graphs_of

        exported = exported_models(model.models, model.architectures)
        target = model.target_dictionary
        check_models(exported, model.models, target.pad(), target.eos(), [len(dictionary), len(target)])
        made = graphs_of(exported, target.pad(), target.eos(), len(dictionary))
        return {"encoder": made.encoder, "step": made.step}, _facts_of_translation(model)
    if isinstance(model, LanguageModel):
        from .language_model import language_model_graph

        return {LANGUAGE_MODEL: language_model_graph(model.models[0], len(dictionary))}, {"kind": LANGUAGE_MODEL}
    from .classifier import classifier_graph

    # What reads no texts has no dictionary of them.
    labels = model.data.labelled_texts.labels
    graph = classifier_graph(model.model, model.architecture, dictionary.pad(), len(dictionary))
    return {CLASSIFIER: graph}, {"kind": CLASSIFIER, "labels": labels}


def _development_scores(folder: Path, model: TrainedModel) -> dict[str, Any] | None:
    from ..decoding.translation import TranslationModel
    from .scores import development_scores

    return development_scores(folder, model.preparation) if isinstance(model, TranslationModel) else None


def _write_graphs(folder: Path, graphs: Mapping[str, onnx.ModelProto], card: Mapping[str, Any]) -> None:
    import onnx

    for name, graph in graphs.items():
        onnx.save(graph, folder / f"{name}.onnx")
    write_card(folder, card)


def _write_text(data: PreparedData, folder: Path) -> None:
    """What the text goes through: the preparation, its dictionaries and subword models."""
    preparation = data.preparation
    models = preparation.bpe_models.values() if isinstance(preparation, PairsPreparation) else ()
    for name in sorted({PREPARATION, *preparation.dictionaries(), *models}):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(data.folder / name, folder / name)


def _facts_of_translation(model: TranslationModel) -> dict[str, Any]:
    preparation = model.preparation
    return {
        "kind": TRANSLATION,
        "source_language": preparation.source_lang,
        "target_language": preparation.target_lang,
        "is_lowercase": preparation.lowercase,
        "limits": {
            "source_tokens": model.longest_source(),
            "target_tokens": int(min(one.max_decoder_positions() for one in model.models)),
        },
    }


def _card(model: TrainedModel) -> dict[str, Any]:
    return {
        "architectures": model.architectures,
        "parameters": [sum(parameter.numel() for parameter in one.parameters()) for one in model.models],
        "data": model.data.training_checksums(),
        "results": [_results_of(path) for path in model.paths],
        "versions": versions(_PACKAGES),
    }


def _results_of(checkpoint: Path) -> Mapping[str, Any]:
    """What ``results.json`` says of a checkpoint's training; nothing where there is none."""
    try:
        results = json.loads((checkpoint.absolute().parent.parent / "results.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    is_path = {"checkpoint", "generate_command", "command"}
    return {name: value for name, value in results.items() if name not in is_path} if isinstance(results, dict) else {}
