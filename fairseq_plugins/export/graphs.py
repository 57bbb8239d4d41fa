"""ONNX graphs out of PyTorch modules: PyTorch's exporter, loops, checks at other sizes, int8."""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper, numpy_helper
from torch import Tensor, nn

from ..errors import InputError
from .loops import LOOP, Loop, Row

OPSET = 20
"""Of ONNX's operators: every onnxruntime from 1.18 on has it."""
_DOMAIN, _, _LOOP = LOOP.partition("::")
_SIZES = (3, 5, 4, 6)
_OTHER_SIZES = ((2, 7, 2, 3), (1, 1, 1, 1), (5, 2, 3, 8))
_TOLERANCE = 1e-4
_LEAST_WIDTH = 4
"""Of a weight that is quantised."""


@dataclass(frozen=True)
class Input:
    """An input of a graph.

    Attributes:
        name: of it.
        sizes: of each dimension, or its name where it may be any.
        dtype: of its elements.
    """

    name: str
    sizes: tuple[int | str, ...]
    dtype: torch.dtype = torch.float32

    def example(self, sizes: Mapping[str, int], draw: torch.Generator) -> Tensor:
        """One of given sizes."""
        shape = [sizes[size] if isinstance(size, str) else size for size in self.sizes]
        if self.dtype.is_floating_point:
            return torch.randn(shape, generator=draw, dtype=self.dtype)
        return torch.ones(shape, dtype=self.dtype)


Example = Callable[[Mapping[str, int]], Sequence[Tensor]]
"""Named sizes -> what a graph reads."""


def exported_graph(
    module: nn.Module, inputs: Sequence[Input], outputs: Sequence[str], example: Example | None = None
) -> onnx.ModelProto:
    """The graph of a module, checked against it at several sizes.

    Args:
        module: in evaluation mode; its loops are :class:`.Loop`.
        inputs: what it reads.
        outputs: the names of what it returns, a tuple of tensors.
        example: makes what it reads, of given sizes; anything if None.

    Raises:
        GraphError: a dimension became a constant, or the graph computes something else.
    """
    names = sorted({size for part in inputs for size in part.sizes if isinstance(size, str)})
    draw = torch.Generator().manual_seed(1)

    def make(sizes: Mapping[str, int]) -> list[Tensor]:
        return [part.example(sizes, draw) for part in inputs] if example is None else list(example(sizes))

    sizes = dict(zip(names, _cycled(_SIZES, len(names)), strict=True))
    graph = _graph_of(module, inputs, outputs, make(sizes))
    check_dimensions(graph, inputs)
    others = [dict(zip(names, _cycled(numbers, len(names)), strict=True)) for numbers in _OTHER_SIZES]
    if "P" in names:  # what grows with the steps is empty before the first
        others[0]["P"] = 0
    check_graph(graph, module, [make(numbers) for numbers in [sizes, *others]])
    return graph


class GraphError(InputError):
    """A graph does not do what its module does; most likely of a model or a layer of the user's own."""


def check_graph(graph: onnx.ModelProto, module: nn.Module, examples: Iterable[Sequence[Tensor]]) -> None:
    """Runs a graph beside its module.

    Raises:
        GraphError: they differ, or the graph does not run.
    """
    session = session_of(graph)
    names = [part.name for part in session.get_inputs()]
    for example in examples:
        shapes = ", ".join(str(tuple(part.shape)) for part in example)
        with torch.no_grad():
            expected = module(*example)
        feed = {name: part.numpy() for name, part in zip(names, example, strict=True)}
        try:
            results = session.run(None, feed)
        except Exception as error:  # of onnxruntime's own kinds
            raise GraphError(f"the graph does not run with inputs of {shapes}: {error}") from None
        for part, result, right in zip(session.get_outputs(), results, expected, strict=True):
            if result.shape != tuple(right.shape):
                raise GraphError(f"{part.name} is {result.shape}, not {tuple(right.shape)}, for inputs of {shapes}")
            if difference := difference_of(result, right):
                raise GraphError(f"{part.name} differs by {difference:.2g}, for inputs of {shapes}")


def difference_of(result: np.ndarray, expected: Tensor) -> float:
    """The largest difference of two tensors; 0 where it may come from rounding."""
    right = expected.double().numpy()
    difference = np.abs(result.astype(np.float64) - right).max(initial=0)
    return 0.0 if difference <= _TOLERANCE * max(1, np.abs(right).max(initial=0)) else float(difference)


def check_form(result: Tensor, expected: Tensor) -> None:
    """Raises GraphError where the exported form of a model does not give what the model gives."""
    if difference := difference_of(result.numpy(), expected):
        raise GraphError(
            f"the exported form differs from the model by {difference:.2g}: most likely a layer of your own computes "
            "something else in its forward than in its step or stepper"
        )


def session_of(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """onnxruntime's, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes, those in loops included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g)


def quantized(graph: onnx.ModelProto) -> onnx.ModelProto:
    """The same with weights of products in int8, of one scale for each column; embeddings stay as they are.

    Of eight bits seven are used: without VNNI a CPU adds two products in 16 bits, which eight would overflow. Products
    with a vector or two stay as they are too: there is nothing to win.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder, _quiet():
        path = Path(folder) / "graph.onnx"
        onnx.save(graph, path)
        quantize_dynamic(
            path,
            path.with_suffix(".int8.onnx"),
            op_types_to_quantize=["MatMul"],
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
            nodes_to_exclude=_narrow_products(graph.graph),
            extra_options={"EnableSubgraph": True},
        )
        return onnx.load(path.with_suffix(".int8.onnx"))


def _narrow_products(graph: onnx.GraphProto) -> list[str]:
    """The names of products with a constant of few columns."""
    widths = {weight.name: min(weight.dims, default=0) for weight in graph.initializer}
    products = (node for node in nodes_of(graph) if node.op_type == "MatMul")
    return [node.name for node in products if widths.get(node.input[1], _LEAST_WIDTH) < _LEAST_WIDTH]


def _cycled(numbers: Sequence[int], count: int) -> list[int]:
    return [numbers[i % len(numbers)] for i in range(count)]


def _graph_of(
    module: nn.Module, inputs: Sequence[Input], outputs: Sequence[str], example: Sequence[Tensor]
) -> onnx.ModelProto:
    loops = {name: part for name, part in module.named_modules() if isinstance(part, Loop)}
    for name, loop in loops.items():
        loop.name = name
    with torch.no_grad():
        module(*example)  # loops remember what they read; what they do in an export is undone
    model = _traced(module, inputs, outputs, example)
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if (node.domain, node.op_type) == (_DOMAIN, _LOOP):
            name = onnx.helper.get_node_attr_value(node, "name").decode()
            scan, weights = _scan(loops[name], node)
            model.graph.initializer.extend(weights)
            nodes.append(scan)
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    imports = [(entry.domain, entry.version) for entry in model.opset_import if entry.domain != _DOMAIN]
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in imports)
    del model.graph.value_info[:]
    del model.metadata_props[:]
    onnx.checker.check_model(model)
    return model


def _traced(
    module: nn.Module, inputs: Sequence[Input], outputs: Sequence[str], example: Sequence[Tensor]
) -> onnx.ModelProto:
    """The graph, without its loops."""
    dimensions: dict[str, Any] = {}
    shapes = []
    for part in inputs:
        named = {place: size for place, size in enumerate(part.sizes) if isinstance(size, str)}
        shapes.append({place: dimensions.setdefault(size, torch.export.Dim(size)) for place, size in named.items()})
    wrapped = _Positional(module)
    with torch.no_grad(), _quiet():
        try:
            program = torch.onnx.export(
                wrapped,
                tuple(example),
                dynamo=True,
                dynamic_shapes=(tuple(shapes),),
                input_names=[part.name for part in inputs],
                output_names=list(outputs),
                opset_version=OPSET,
                verbose=False,
            )
        except (torch.onnx.OnnxExporterError, torch._dynamo.exc.UserError) as error:
            raise GraphError(f"{_kind(module)}: PyTorch cannot export it: {_reason(error)}") from error
    model = cast(torch.onnx.ONNXProgram, program).model_proto
    _fold(model.graph)
    return model


class _Positional(nn.Module):
    """A module of whatever inputs, as one of any number of them."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *tensors: Tensor) -> Any:
        return self.module(*tensors)


def _kind(module: nn.Module) -> str:
    return type(module).__name__


def _reason(error: BaseException) -> str:
    """The last of the reasons that an error has, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split())[:300]


def _scan(loop: Loop, node: onnx.NodeProto) -> tuple[onnx.NodeProto, list[onnx.TensorProto]]:
    """The ``Scan`` that a loop becomes, and its weights, which the outer graph holds."""
    rows = [*loop.states, *loop.reads, Row((1,), torch.bool)]
    names = [f"in_{i}" for i in range(len(rows))]
    inputs = [Input(name, ("B", *row.shape), row.dtype) for name, row in zip(names, rows, strict=True)]
    draw = torch.Generator().manual_seed(1)
    outputs = [f"out_{i}" for i in range(len(node.output))]
    body = _traced(loop.body(), inputs, outputs, [part.example({"B": 5}, draw) for part in inputs])
    check_dimensions(body, inputs)
    graph = body.graph
    prefix = f"{loop.name}."
    for part in nodes_of(graph):
        part.name = prefix + part.name
        part.input[:] = [prefix + name if name else "" for name in part.input]
        part.output[:] = [prefix + name if name else "" for name in part.output]
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = prefix + value.name
    weights = list(graph.initializer)
    step = helper.make_graph(list(graph.node), f"{prefix}step", list(graph.input), list(graph.output))
    reads = len(loop.reads) + 1
    scan = helper.make_node(
        "Scan", list(node.input), list(node.output), name=loop.name, body=step, num_scan_inputs=reads
    )
    if loop.is_backward:
        directions = {"scan_input_directions": reads, "scan_output_directions": len(outputs) - len(loop.states)}
        scan.attribute.extend(helper.make_attribute(name, [1] * count) for name, count in directions.items())
    return scan, weights


def _fold(graph: onnx.GraphProto) -> None:
    """Makes constants of weights that are turned, and plain products of ``Gemm``: quantisation knows no other."""
    weights = {weight.name: weight for weight in graph.initializer}
    nodes = []
    for node in graph.node:
        if node.op_type == "Transpose" and node.input[0] in weights:
            [order] = [list(attribute.ints) for attribute in node.attribute if attribute.name == "perm"]
            turned = np.ascontiguousarray(numpy_helper.to_array(weights[node.input[0]]).transpose(order))
            weights[node.output[0]] = numpy_helper.from_array(turned, node.output[0])
        elif node.op_type == "Gemm":
            nodes += _product(node, weights)
        else:
            nodes.append(node)
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    used = {part.name for part in graph.output} | {name for node in nodes_of(graph) for name in node.input}
    graph.initializer.extend(weight for name, weight in weights.items() if name in used)


def _product(node: onnx.NodeProto, weights: dict[str, onnx.TensorProto]) -> list[onnx.NodeProto]:
    """A ``Gemm`` of a matrix and a weight as a product and a sum."""
    options = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    plain = {name: value for name, value in options.items() if name != "transB"}
    if any(plain.get(name, default) != default for name, default in (("alpha", 1.0), ("beta", 1.0), ("transA", 0))):
        return [node]
    left, right, *bias = node.input
    if options.get("transB"):
        if right not in weights:
            return [node]
        turned = f"{right}.turned"
        if turned not in weights:
            weights[turned] = numpy_helper.from_array(
                np.ascontiguousarray(numpy_helper.to_array(weights[right]).T), turned
            )
        right = turned
    if not bias:
        return [helper.make_node("MatMul", [left, right], list(node.output), name=node.name)]
    between = f"{node.output[0]}.product"
    return [
        helper.make_node("MatMul", [left, right], [between], name=f"{node.name}.product"),
        helper.make_node("Add", [between, bias[0]], list(node.output), name=node.name),
    ]


def check_dimensions(graph: onnx.ModelProto, inputs: Sequence[Input]) -> None:
    """Raises GraphError where a dimension that may be any has become a constant."""
    parts = {part.name: part for part in graph.graph.input}
    for expected in inputs:
        if expected.name not in parts:
            raise GraphError(f"{expected.name} is no input of the graph: nothing in it reads it")
        dimensions = parts[expected.name].type.tensor_type.shape.dim
        for size, dimension in zip(expected.sizes, dimensions, strict=True):
            if isinstance(size, str) and not dimension.dim_param:
                raise GraphError(f"{expected.name}: the dimension {size} became the constant {dimension.dim_value}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter and onnxruntime tell."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
