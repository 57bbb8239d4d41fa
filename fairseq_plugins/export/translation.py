"""The graphs of translation models: one of the encoder, one of a step of the decoder.

A step reads a token of each hypothesis, N sentences of K hypotheses, what the encoder knows of the sentences (the
memory, N rows), and the states that earlier steps left, in any order: ``rows`` says which state each hypothesis goes on
from. So beam search never copies a state.

Symbols: N sentences, K hypotheses of each, R rows of the states, S source tokens, P target tokens so far, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import onnx
import torch
from fairseq.models import BaseFairseqModel
from onnx import TensorProto, helper
from torch import Tensor, nn

from ..errors import InputError
from ..models.double_path import DoublePathModel
from ..models.recurrent_seq2seq import RecurrentSeq2SeqModel
from .contract import Encoded, ExportedModel, Named, Stepped
from .double_path import ExportedDoublePath
from .graphs import Input, check_form, exported_graph
from .recurrent_seq2seq import ExportedRecurrentSeq2Seq


class ExportedEnsemble(ExportedModel):
    """One model, or the mean of the probabilities of several."""

    def __init__(self, models: Sequence[ExportedModel]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self.has_positions = any(model.has_positions for model in models)

    def encode(self, tokens: Tensor) -> Encoded:
        memory: Named = {}
        states: Named = {}
        for number, model in enumerate(self._models):
            encoded = model.encode(tokens)
            memory |= {f"{number}.{name}": part for name, part in encoded.memory.items()}
            states |= {f"{number}.{name}": part for name, part in encoded.states.items()}
        return Encoded(memory, states)

    def step(self, tokens: Tensor, position: Tensor | None, memory: Named, states: Named) -> Stepped:
        results = []
        after: Named = {}
        for number, model in enumerate(self._models):
            of_model = [
                {name.partition(".")[2]: part for name, part in parts.items() if name.split(".", 1)[0] == str(number)}
                for parts in (memory, states)
            ]
            result = model.step(tokens, position if model.has_positions else None, *of_model)
            results.append(result)
            after |= {f"{number}.{name}": part for name, part in result.states.items()}
        if len(results) == 1:
            return Stepped(results[0].log_probabilities, results[0].attention, after)
        mean = torch.logsumexp(torch.stack([result.log_probabilities for result in results]), dim=0)
        attention = torch.stack([result.attention for result in results]).mean(0)
        return Stepped(mean - math.log(len(results)), attention, after)

    @property
    def _models(self) -> list[ExportedModel]:
        return cast("list[ExportedModel]", list(self.models))


_MODEL_FORMS: dict[type[BaseFairseqModel], Any] = {
    RecurrentSeq2SeqModel: ExportedRecurrentSeq2Seq,
    DoublePathModel: ExportedDoublePath,
}


def exported_models(models: Sequence[BaseFairseqModel], architectures: Sequence[str]) -> ExportedEnsemble:
    """The exported form of a model, or of an ensemble of several.

    Raises:
        InputError: a model has none.
    """
    forms = []
    for model, architecture in zip(models, architectures, strict=True):
        # One that is derived from ours may compute anything.
        if type(model) not in _MODEL_FORMS:
            raise InputError(
                f"'{architecture}' has no exported form: export a recurrent_seq2seq or a double_path model"
            )
        forms.append(_MODEL_FORMS[type(model)](model))
    return ExportedEnsemble(forms).eval()


@torch.no_grad()
def check_models(
    exported: ExportedEnsemble, models: Sequence[BaseFairseqModel], padding: int, end: int, types: Sequence[int]
) -> None:
    """Compares log-probabilities of random translations with those of the models themselves.

    Args:
        exported: the exported form of the models.
        models: in evaluation mode.
        padding: its token.
        end: the token of the end of a sentence.
        types: of the source's dictionary, and of the target's.

    Raises:
        GraphError: they differ.
    """
    draw = torch.Generator().manual_seed(1)
    sources, targets = (torch.randint(4, size, (3, 6), generator=draw) for size in types)
    sources[0, 2:], sources[1:, -1], sources[0, 2], targets[:, 0] = padding, end, end, end
    for form, model in zip(exported._models, models, strict=True):
        logits = model(sources, sources.ne(padding).sum(1), targets)
        expected = model.get_normalized_probs(logits, log_probs=True)
        memory, states = form.encode(sources)
        for place in range(targets.size(1)):
            position = torch.tensor(place) if form.has_positions else None
            result = form.step(targets[:, place, None], position, memory, states)
            check_form(result.log_probabilities[:, 0], expected[:, place])
            states = result.states


class TranslationGraphs(NamedTuple):
    """What an exported translation model is made of.

    Attributes:
        encoder: ``tokens`` (N, S) -> the memory and the first states.
        step: see :func:`graphs_of`.
        memory: names of the memory's parts.
        states: names of the states.
    """

    encoder: onnx.ModelProto
    step: onnx.ModelProto
    memory: list[str]
    states: list[str]


def graphs_of(model: ExportedEnsemble, padding: int, end: int, types: int) -> TranslationGraphs:
    """The graphs of a model, checked.

    The step reads ``tokens`` (N, K) and ``rows`` (N, K), where a model has positions ``position`` (), the memory
    ``memory.…`` and the states ``state.…`` (R, …); ``changed`` (M, 2) names rows of N K and tokens, to whose
    log-probabilities ``changes`` (M,) are added; and ``candidates`` (1,), how many are wanted of each hypothesis. It
    gives ``scores`` and ``candidate_tokens`` (N, K, candidates), best first; ``end_scores`` (N, K), of the end of the
    sentence, unchanged; ``attention`` (N, K, S); and the next states ``next.…`` (N K, …).

    Args:
        model: in evaluation mode.
        padding: its token.
        end: the token of the end of a sentence.
        types: of the source's dictionary.

    Raises:
        GraphError: a graph depends on the sizes of its example, or does not compute what the model computes.
    """
    draw = torch.Generator().manual_seed(1)

    def tokens_of(sizes: Mapping[str, int]) -> list[Tensor]:
        tokens = torch.randint(4, types, (sizes["N"], sizes["S"]), generator=draw)
        lengths = torch.randint(1, sizes["S"] + 1, (sizes["N"], 1), generator=draw)
        lengths[0] = sizes["S"]
        return [tokens.masked_fill(torch.arange(sizes["S"]) >= lengths, padding)]

    with torch.no_grad():
        encoded = model.encode(*tokens_of({"N": 3, "S": 4}))
    memory = [_memory_input(name, part) for name, part in encoded.memory.items()]
    states = [_state_input(name, part) for name, part in encoded.states.items()]
    encoder = exported_graph(
        _Encoder(model),
        [Input("tokens", ("N", "S"), torch.int64)],
        [part.name for part in (*memory, *states)],
        tokens_of,
    )

    inputs = [Input("tokens", ("N", "K"), torch.int64), Input("rows", ("N", "K"), torch.int64)]
    inputs += [Input("position", (), torch.int64)] * model.has_positions

    def step_of(sizes: Mapping[str, int]) -> list[Tensor]:
        shape = (sizes["N"], sizes["K"])
        first = [torch.randint(4, 7, shape, generator=draw), torch.randint(sizes["R"], shape, generator=draw)]
        first += [torch.tensor(sizes.get("P", 3))] * model.has_positions
        with torch.no_grad():
            of_encoder = model.encode(*tokens_of(sizes)).memory
        parts = [part.example(sizes, draw) * 0.5 for part in states]
        return [*first, *of_encoder.values(), *parts]

    names = [part.name.removeprefix("state.") for part in states]
    step = exported_graph(
        _Step(model, list(encoded.memory), list(encoded.states)),
        [*inputs, *memory, *states],
        ["log_probabilities", "attention", *(f"next.{name}" for name in names)],
        step_of,
    )
    _choose(step, end)
    return TranslationGraphs(encoder, step, list(encoded.memory), list(encoded.states))


class _Encoder(nn.Module):
    def __init__(self, model: ExportedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        encoded = self.model.encode(tokens)
        return (*encoded.memory.values(), *encoded.states.values())


class _Step(nn.Module):
    def __init__(self, model: ExportedModel, memory: Sequence[str], states: Sequence[str]) -> None:
        super().__init__()
        self.model, self.memory, self.states = model, memory, states

    def forward(self, tokens: Tensor, rows: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        position, others = (others[0], others[1:]) if self.model.has_positions else (None, others)
        memory = dict(zip(self.memory, others, strict=False))
        chosen = rows.flatten()
        before = {
            name: state.index_select(0, chosen) for name, state in zip(self.states, others[len(memory) :], strict=True)
        }
        result = self.model.step(tokens, position, memory, before)
        after = [result.states[name] for name in self.states]
        return (result.log_probabilities, result.attention, *after)


def _choose(graph: onnx.ModelProto, end: int) -> None:
    """Has a step's graph give the best candidates of each hypothesis in the place of all log-probabilities."""
    part = graph.graph
    value = helper.make_tensor_value_info
    kept = [output for output in part.output if output.name != "log_probabilities"]
    types = next(output for output in part.output if output.name == "log_probabilities").type.tensor_type.shape.dim[-1]
    constants = {"choose.end": [end], "choose.flat": [-1, types.dim_value], "choose.last": [2]}
    part.initializer.extend(
        helper.make_tensor(name, TensorProto.INT64, [len(numbers)], numbers) for name, numbers in constants.items()
    )
    part.node.extend(
        [
            helper.make_node("Gather", ["log_probabilities", "choose.end"], ["choose.ends"], axis=2),
            helper.make_node("Squeeze", ["choose.ends", "choose.last"], ["end_scores"]),
            helper.make_node("Shape", ["log_probabilities"], ["choose.shape"]),
            helper.make_node("Reshape", ["log_probabilities", "choose.flat"], ["choose.rows"]),
            helper.make_node("ScatterND", ["choose.rows", "changed", "changes"], ["choose.changed"], reduction="add"),
            helper.make_node("Reshape", ["choose.changed", "choose.shape"], ["choose.all"]),
            helper.make_node("TopK", ["choose.all", "candidates"], ["scores", "candidate_tokens"], axis=2),
        ]
    )
    part.input.extend(
        [
            value("changed", TensorProto.INT64, ["M", 2]),
            value("changes", TensorProto.FLOAT, ["M"]),
            value("candidates", TensorProto.INT64, [1]),
        ]
    )
    del part.output[:]
    part.output.extend(
        [
            value("scores", TensorProto.FLOAT, ["N", "K", "candidates"]),
            value("candidate_tokens", TensorProto.INT64, ["N", "K", "candidates"]),
            value("end_scores", TensorProto.FLOAT, ["N", "K"]),
            *kept,
        ]
    )
    onnx.checker.check_model(graph)


def _memory_input(name: str, part: Tensor) -> Input:
    """(N, S, …), or (N, heads, S, …) of the attention of several heads."""
    sizes: list[int | str] = ["N", *map(int, part.shape[1:])]
    sizes[2 if part.dim() == 4 else 1] = "S"
    return Input(f"memory.{name}", tuple(sizes), part.dtype)


def _state_input(name: str, part: Tensor) -> Input:
    """(R, …); what is empty before the first step grows with each."""
    sizes = ("R", *("P" if size == 0 else int(size) for size in part.shape[1:]))
    return Input(f"state.{name}", sizes, part.dtype)
