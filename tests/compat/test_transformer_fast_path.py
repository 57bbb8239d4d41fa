"""fairseq 0.12.2's transformer, as far as the repair looks at it."""

from __future__ import annotations

from fairseq_plugins.compat.transformer_fast_path import avoid_transformer_fast_path


def test_the_transformers_fast_path_is_not_taken() -> None:
    class Layer:  # as in fairseq 0.12.2
        def __init__(self, size: int, normalize_before: bool = False) -> None:
            self.size = size
            self.can_use_fastpath = not normalize_before

    avoid_transformer_fast_path(Layer)
    assert Layer(3).can_use_fastpath is False and Layer(3).size == 3
    init = Layer.__init__
    avoid_transformer_fast_path(Layer)
    assert Layer.__init__ is init


def test_layers_without_a_fast_path_are_left_alone() -> None:
    class Layer:
        def __init__(self) -> None:
            self.size = 3

    init = Layer.__init__
    avoid_transformer_fast_path(Layer)
    assert Layer.__init__ is init
