"""The registry of paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from fairseq_plugins.modules import PATH_KINDS, PathKind, option, register_path


@dataclass(frozen=True)
class OwnOptions:
    own_layers: int = option(1, "layers")


@dataclass(frozen=True)
class Undocumented:
    own_layers: int = 1


@dataclass(frozen=True)
class OfAFlag:
    own_flag: bool = option(False, "a flag")


@pytest.fixture
def own() -> Iterator[PathKind]:
    """A kind that can be registered."""
    cnn = PATH_KINDS["cnn"]
    yield PathKind("own", "o", "a path of one's own", OwnOptions, cnn.make_encoder, cnn.make_decoder)
    PATH_KINDS.pop("own", None)


def test_a_path_is_added_at_the_end(own: PathKind) -> None:
    register_path(own)
    assert list(PATH_KINDS) == ["cnn", "san", "rnn", "own"]


@pytest.mark.parametrize(
    "differs, error, message",
    [
        ({"name": "cnn"}, ValueError, "there is a path 'cnn' with the letter 'c' already"),
        ({"letter": "a"}, ValueError, "there is a path 'san' with the letter 'a' already"),
        ({"options": PATH_KINDS["cnn"].options}, ValueError, "the paths cnn and own have both an option 'cnn_layers'"),
        ({"options": Undocumented}, TypeError, "the option 'own_layers' of 'own' needs a default and a help text"),
        ({"options": OfAFlag}, TypeError, "the option 'own_flag' of 'own' must be an int, a float or a string"),
    ],
)
def test_what_is_refused(own: PathKind, differs: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        register_path(replace(own, **differs))
    assert list(PATH_KINDS) == ["cnn", "san", "rnn"]
