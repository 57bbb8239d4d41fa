"""Untrained models of any architecture, without data: for what measures or tests models alone."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_CONFIG_REGISTRY, BaseFairseqModel, build_model
from omegaconf import DictConfig

import fairseq_plugins

if TYPE_CHECKING:
    from fairseq_plugins.exported.translation import ExportedTranslationModel

fairseq_plugins.register()


def make_task(source_types: int, target_types: int | None = None, **cfg: Any) -> SimpleNamespace:
    """A translation task as far as models look at it.

    Args:
        source_types: of the dictionary, fairseq's four special symbols included; its words are ``w0``, ``w1``, ….
        target_types: of the target's own dictionary; None for one dictionary for both.
        cfg: the task's options.
    """
    source = _dictionary(source_types)
    target = source if target_types is None else _dictionary(target_types)
    return SimpleNamespace(source_dictionary=source, target_dictionary=target, cfg=SimpleNamespace(**cfg))


def make_configuration(architecture: str, **options: Any) -> DictConfig:
    """The whole configuration of a training, as ``fairseq-train --arch`` makes it.

    Args:
        architecture: the name that ``--arch`` would have.
        options: those of the model that a user would give.
    """
    args = Namespace(
        # max_*_positions: what the translation task adds by default.
        **{"max_source_positions": 1024, "max_target_positions": 1024, **options},
        arch=architecture,
        task="translation",
        criterion="cross_entropy",
        optimizer="adam",
        lr_scheduler="fixed",
        data="",
    )
    ARCH_CONFIG_REGISTRY[architecture](args)
    return convert_namespace_to_omegaconf(args)


def build_architecture(architecture: str, task: SimpleNamespace, **options: Any) -> BaseFairseqModel:
    """A model with random parameters; arguments as of :func:`make_configuration` and out of :func:`make_task`."""
    return build_model(make_configuration(architecture, **options).model, task)


def exported(
    model: BaseFairseqModel, architecture: str, task: SimpleNamespace, threads: int
) -> ExportedTranslationModel:
    """A translation model of one dictionary, as ``fairseq-plugins export`` writes it; its text is words."""
    # Of an extra of their own.
    import onnx

    from fairseq_plugins.corpora.pairs import PairsPreparation
    from fairseq_plugins.export.translation import exported_models, graphs_of
    from fairseq_plugins.exported.folder import TEXT, write_card
    from fairseq_plugins.exported.translation import TRANSLATION, ExportedTranslationModel

    dictionary = task.target_dictionary
    graphs = graphs_of(exported_models([model], [architecture]), dictionary.pad(), dictionary.eos(), len(dictionary))
    preparation = PairsPreparation("xx", "yy", given="tokens", bpe="none", joined_words=True)
    longest_source, longest_target = model.max_positions()
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / TEXT
        text.mkdir()
        preparation.save(text)
        for name in preparation.dictionaries():
            dictionary.save(str(text / name))
        for name, graph in {"encoder": graphs.encoder, "step": graphs.step}.items():
            onnx.save(graph, Path(folder) / f"{name}.onnx")
        limits = {"source_tokens": longest_source, "target_tokens": longest_target}
        write_card(Path(folder), {"kind": TRANSLATION, "limits": limits})
        return ExportedTranslationModel.load(folder, threads)


def _dictionary(types: int) -> Dictionary:
    made = Dictionary()
    for i in range(types - len(made)):
        made.add_symbol(f"w{i}")
    return made
