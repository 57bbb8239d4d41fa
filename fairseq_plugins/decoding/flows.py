"""What the attention flows and the gates of networks of several paths (DPN-S2S) are called: the one place that figures,
pages and tables ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..modules.multi_path.registry import PATH_KINDS

_LETTERS = {kind.letter: kind.name for kind in PATH_KINDS.values()}
FLOWS = {
    decoder + encoder: f"{_LETTERS[decoder].upper()} to {_LETTERS[encoder].upper()}"
    for decoder in _LETTERS
    for encoder in _LETTERS
}
"""Of each flow: the path of the decoder, then that of the encoder."""
OUTPUT = "output"
"""The gate that fuses the paths of the decoder, as the others are called by their decoder path."""


class Gate(NamedTuple):
    """One gate and what it fuses.

    Attributes:
        name: of the decoder path, or :data:`OUTPUT`
        layer: from 1
        shares: of each path that it fuses, the own one or the first at the beginning; they sum to 1
    """

    name: str
    layer: int
    shares: dict[str, float]

    @property
    def label(self) -> str:
        """Which gate it is."""
        if self.name == OUTPUT:
            return "gate of the output"
        return f"gates of the {self.name.upper()} path, layer {self.layer}"

    def label_of(self, path: str) -> str:
        """What a path is to it."""
        return f"the {path.upper()} {'path' if self.name == OUTPUT else 'encoder'}"


def gate_label(name: str) -> str:
    """What the shares ``cnn.san`` are: those of the SAN encoder in the gates of the CNN path."""
    gate, dot, path = name.partition(".")
    if not dot:
        return name
    if gate == OUTPUT:
        return f"gate of the output, share of the {path.upper()} path"
    return f"gates of the {gate.upper()} path, share of the {path.upper()} encoder, by layer"


def gates_of(flows: Sequence[str], shares: Mapping[str, Sequence[float]]) -> list[Gate]:
    """The gates of a model.

    Args:
        flows: the names of its attention flows
        shares: of each path but the own one in the layers' gates, as a model names them: ``cnn.san``, ``output.san``
    """
    decoders, encoders = (
        [_LETTERS.get(letter, letter) for letter in dict.fromkeys(flow[side] for flow in flows)] for side in (0, 1)
    )
    others: dict[str, dict[str, Sequence[float]]] = {}
    for name, values in shares.items():
        gate, _, path = name.partition(".")
        others.setdefault(gate, {})[path] = values
    gates = []
    for name, of_paths in others.items():
        reader = next(path for path in (decoders if name == OUTPUT else encoders) if path not in of_paths)
        for layer, values in enumerate(zip(*of_paths.values(), strict=True), 1):
            gates.append(Gate(name, layer, {reader: 1 - sum(values), **dict(zip(of_paths, values, strict=True))}))
    return gates
