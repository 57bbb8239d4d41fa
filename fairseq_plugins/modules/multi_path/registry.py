"""The kinds of paths, by name: what each can be asked for, and how its encoder and its decoder are made.

A path registers itself where it is defined, in a file of this folder or of a user's own (FAIRSEQ_PLUGINS_EXTENSIONS):

    @dataclass(frozen=True)
    class PoolingOptions:
        pooling_layers: int = option(2, "layers of the pooling path", minimum=1)

    register_path(PathKind("pool", "p", "pooling", PoolingOptions, make_encoder, make_decoder))

The options of fairseq's models are made from these dataclasses (``models/double_path_options.py``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..recurrent.registry import check_options
from .contract import EMBEDDING_SCALE, DecoderPath, EncoderPath, Fusion


@dataclass(frozen=True)
class PathSizes:
    """What a path is made for, beside its options.

    Attributes:
        size: d.
        dropout: probability of dropout in its layers.
        recurrent_layer: the kind of its recurrent layers and their options, where the path has some.
    """

    size: int
    dropout: float = 0.0
    recurrent_layer: tuple[str, Any] = ("lstm", None)


@dataclass(frozen=True)
class PathKind:
    """A kind of path.

    Attributes:
        name: what ``--encoder-paths`` and ``--decoder-paths`` call it.
        letter: stands for it in the names of attention flows.
        description: a few words for help texts.
        options: a dataclass; each field has a default and was made by :func:`.option`. The encoder and the decoder have
            each their own (``--encoder-cnn-layers``).
        make_encoder: makes the encoder's path out of an instance of ``options`` and its sizes.
        make_decoder: makes the decoder's out of the same and what it reads.
        shared_options: those of ``options`` that encoder and decoder have in common (``--san-input-scale``).
        is_normalized: its outputs have been through a layer norm, so that their scale is 1 and not that of the
            embeddings.
        has_recurrent_layers: it is made of recurrent layers of any kind (:attr:`PathSizes.recurrent_layer`).
    """

    name: str
    letter: str
    description: str
    options: type
    make_encoder: Callable[[Any, PathSizes], EncoderPath]
    make_decoder: Callable[[Any, PathSizes, Fusion], DecoderPath[Any]]
    shared_options: tuple[str, ...] = ()
    is_normalized: bool = False
    has_recurrent_layers: bool = False


PATH_KINDS: dict[str, PathKind] = {}
"""All kinds that have been registered, by name. Paths are in this order everywhere."""


def register_path(kind: PathKind) -> None:
    """Adds a kind.

    Raises:
        ValueError: there is a kind of this name or letter, or one with an option of this name.
        TypeError: the options are no dataclass of fields that :func:`.option` made.
    """
    for other in PATH_KINDS.values():
        if kind.name == other.name or kind.letter == other.letter:
            raise ValueError(f"there is a path {other.name!r} with the letter {other.letter!r} already")
        common = {setting.name for setting in dataclasses.fields(kind.options)}
        common &= {setting.name for setting in dataclasses.fields(other.options)}
        if common:
            raise ValueError(f"the paths {other.name} and {kind.name} have both an option {min(common)!r}; rename one")
    check_options(kind.name, kind.options)
    PATH_KINDS[kind.name] = kind


def has_scale_of(path: str, other: str) -> bool:
    """Whether the outputs of two kinds are of one scale."""
    return PATH_KINDS[path].is_normalized == PATH_KINDS[other].is_normalized


def memory_scale(reader: str, path: str, fusion: Fusion) -> float:
    """What a decoder path of the embeddings' scale, called ``reader``, multiplies an encoder path's memory by."""
    return EMBEDDING_SCALE if fusion.matches_memory and not has_scale_of(reader, path) else 1.0
