"""Graphs are checked at other sizes than their example's, and loops are standard operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

from fairseq_plugins.export.graphs import (
    GraphError,
    Input,
    check_dimensions,
    check_graph,
    exported_graph,
    nodes_of,
)
from fairseq_plugins.export.recurrences import with_exported_layers
from fairseq_plugins.modules import RecurrentStack
from tests.export.test_recurrences import OPTIONS, make


class Encoder(nn.Module):
    """x (T, B, D) and lengths (B,) -> the output, and what a decoder starts from."""

    def __init__(self, stack: RecurrentStack) -> None:
        super().__init__()
        self.stack = stack

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        result = self.stack(x, lengths)
        return (result.output, *self.stack.summaries(result, lengths))


def example(sizes: Mapping[str, int]) -> list[Tensor]:
    lengths = torch.randint(sizes["T"] + 1, (sizes["B"],), generator=torch.Generator().manual_seed(2))
    return [torch.randn(sizes["T"], sizes["B"], 6), lengths]


def graph_of(kind: str, options: dict[str, Any]) -> tuple[onnx.ModelProto, Encoder]:
    # PyTorch takes seconds to export each loop: one in each direction, but where layers are not one above the other.
    layers = 2 if kind in ("lstm", "hm_rnn") else 1
    encoder = Encoder(make(kind, options, is_bidirectional=True, layers=layers)).eval()
    outputs = ["output", *(f"summary_{i}" for i in range(len(encoder.stack.summary_sizes)))]
    inputs = [Input("x", ("T", "B", 6)), Input("lengths", ("B",), torch.int64)]
    return exported_graph(with_exported_layers(encoder), inputs, outputs, example), encoder


@pytest.mark.slow  # an export in tests/exported has an MC-RNN; this is about all kinds
@pytest.mark.parametrize(("kind", "options"), OPTIONS)
def test_a_graph_is_the_layers_at_any_length_and_batch(kind: str, options: dict[str, Any]) -> None:
    graph, encoder = graph_of(kind, options)
    examples = [example({"T": steps, "B": rows}) for steps, rows in ((1, 1), (2, 9), (23, 4))]
    check_graph(graph, encoder, examples)
    assert {part.domain for part in graph.opset_import} == {""}
    assert [node.op_type for node in nodes_of(graph.graph)].count("Scan") >= {"lstm": 4, "hm_rnn": 1}.get(kind, 2)


def graph_with_a_constant() -> onnx.ModelProto:
    """y = x, but by way of an array of five rows."""
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [5, 3])
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "constant",
        [value("x", TensorProto.FLOAT, ["B", 3])],
        [value("y", TensorProto.FLOAT, None)],
        [shape],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


class Identity(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor]:
        return (x,)


def test_a_dimension_that_became_a_constant_is_an_error() -> None:
    graph = graph_with_a_constant()
    check_graph(graph, Identity(), [[torch.ones(5, 3)]])
    with pytest.raises(GraphError, match=r"the graph does not run with inputs of \(4, 3\)"):
        check_graph(graph, Identity(), [[torch.ones(5, 3)], [torch.ones(4, 3)]])
    graph.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 5
    with pytest.raises(GraphError, match="x: the dimension B became the constant 5"):
        check_dimensions(graph, [Input("x", ("B", 3))])


def test_a_graph_that_computes_something_else_is_an_error() -> None:
    class Doubled(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor]:
            return (2 * x,)

    with pytest.raises(GraphError, match=r"y differs by 1, for inputs of \(5, 3\)"):
        check_graph(graph_with_a_constant(), Doubled(), [[torch.ones(5, 3)]])


@pytest.mark.system
def test_what_pytorch_cannot_export_is_an_error() -> None:
    class Unrolled(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor]:
            return (torch.stack(x.unbind(0)),)

    class Undecided(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor]:
            return (x if x.sum() > 0 else -x,)

    with pytest.raises(GraphError, match="x: the dimension B became the constant 3"):  # PyTorch says nothing of it
        exported_graph(Unrolled(), [Input("x", ("B", 3))], ["y"])
    with pytest.raises(GraphError, match="Undecided: PyTorch cannot export it: "):
        exported_graph(Undecided(), [Input("x", ("B", 3))], ["y"])
