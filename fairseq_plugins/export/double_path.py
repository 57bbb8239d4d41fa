"""The exported form of ``double_path``, whatever its paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ..errors import InputError
from ..models.double_path import DoublePathModel
from ..modules.attention import Memory
from ..modules.linear import Linear
from ..modules.multi_path.contract import EncoderOutput
from ..modules.multi_path.convolutional import ConvolutionalDecoderPath, ConvolutionalLayerState
from ..modules.multi_path.gate import fuse
from ..modules.multi_path.recurrent import RecurrentDecoderPath, RecurrentEncoderPath, RecurrentPathState
from ..modules.multi_path.self_attention import SelfAttentionDecoderPath, SelfAttentionLayerState, _normalized
from .contract import Encoded, ExportedModel, Named, Stepped, by_beam, flat, nested
from .recurrences import with_exported_layers


class ExportedDoublePath(ExportedModel):
    """``double_path``."""

    model: Any

    has_positions = True

    def __init__(self, model: DoublePathModel) -> None:
        super().__init__()
        self.model = with_exported_layers(model)
        _set_weights(self.model)
        # Not while it is traced: the tracer puts other classes in the place of theirs.
        self._forms = {name: _path_form(path) for name, path in self.model.decoder.paths.items()}
        paths = self.model.encoder.paths
        for name, path in paths.items():
            if type(path) is RecurrentEncoderPath:
                paths[name] = _RightPaddedRecurrentPath(path)

    def encode(self, tokens: Tensor) -> Encoded:
        decoder = self.model.decoder
        encoded = self.model.encoder(tokens)
        source = encoded["encoder_padding_mask"][0].logical_not()
        memories = {path: Memory.of(encoded[path][0], source, encoded[path][1:]) for path in decoder.encoder_paths}
        memory: Named = {"source": source}
        states: Named = {}
        for name, path in decoder.paths.items():
            of_path = self._forms[name].encode(path, memories)
            memory |= {f"{name}.{key}": value for key, value in of_path.memory.items()}
            states |= {f"{name}.{key}": value for key, value in of_path.states.items()}
        if any(form.reads_outputs for form in self._forms.values()):
            memory |= {f"{path}.output": memories[path].output for path in decoder.encoder_paths}
        return Encoded(memory, states)

    def step(self, tokens: Tensor, position: Tensor | None, memory: Named, states: Named) -> Stepped:
        decoder = self.model.decoder
        first = decoder.padding_idx + 1
        place = F.embedding(cast(Tensor, position).view(1, 1) + first, decoder.embed_positions.weight)
        embedded = decoder.embed_tokens(tokens.reshape(-1, 1)) + place
        source = memory["source"]
        scale = source.sum(dim=1).to(embedded.dtype).sqrt().view(-1, 1, 1)
        memories = {
            path: Memory(memory.get(f"{path}.output", source), source[:, None, None, :], scale)
            for path in decoder.encoder_paths
        }
        outputs, flows = {}, []
        after: Named = {}
        for name, path in decoder.paths.items():
            form = self._forms[name]
            of_path = [
                {key.removeprefix(f"{name}."): value for key, value in parts.items() if key.startswith(f"{name}.")}
                for parts in (memory, states)
            ]
            result = path(embedded, memories, None, form.states(path, *of_path), True)
            outputs[name] = result.output
            flows += result.attention.values()
            after |= {f"{name}.{key}": value for key, value in form.flat(result.states).items()}
        output, _ = fuse(decoder.gate, outputs, reader=next(iter(outputs)))
        log_probabilities = F.log_softmax(decoder.output_layer(output), dim=-1)
        attention = torch.stack(flows).mean(0) if len(flows) > 1 else flows[0]
        return Stepped(by_beam(log_probabilities.squeeze(1), tokens), by_beam(attention.squeeze(1), tokens), after)


def _set_weights(model: nn.Module) -> None:
    """Replaces linear layers of normalised weights by plain ones.

    PyTorch's own function, ``remove_parametrizations``, takes them from the model too that this is a copy of.
    """
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, nn.Linear) and parametrize.is_parametrized(layer, "weight"):
                plain = Linear(layer.in_features, layer.out_features)
                plain.weight, plain.bias = nn.Parameter(layer.weight.detach()), layer.bias
                setattr(module, name, plain)


class _RightPaddedRecurrentPath(nn.Module):
    """The encoder's recurrent path, of sources that are padded on the right."""

    def __init__(self, path: RecurrentEncoderPath) -> None:
        super().__init__()
        self.stack, self.projection, self.input_scale = path.stack, path.projection, path.input_scale

    def forward(self, x: Tensor, real: Tensor) -> EncoderOutput:
        """As :meth:`.EncoderPath.forward`."""
        lengths = real.sum(dim=1)
        result = self.stack((self.input_scale * x).transpose(0, 1), lengths)
        output = self.projection(result.output.transpose(0, 1))
        return EncoderOutput(output, tuple(self.stack.summaries(result, lengths)))


class _ConvolutionalPath:
    """How the state of a decoder path goes in and out of a graph; the other classes do the same for other paths."""

    reads_outputs = True
    """Whether its attention reads the encoder paths' outputs as they are."""

    @staticmethod
    def encode(path: ConvolutionalDecoderPath, memories: Mapping[str, Memory]) -> Encoded:
        output = next(iter(memories.values())).output
        return Encoded(
            {},
            {
                f"{i}.inputs": output.new_zeros(output.size(0), layer.convolution.kernel_width - 1, output.size(2))
                for i, layer in enumerate(path.layers)
                if layer.convolution.kernel_width > 1
            },
        )

    @staticmethod
    def states(path: ConvolutionalDecoderPath, memory: Named, states: Named) -> list[Any]:
        rows = []
        for i, layer in enumerate(path.layers):
            projections = {name: attention.projection_weights() for name, attention in layer.attentions.items()}
            weight = layer.convolution.linear.weight
            inputs = states.get(f"{i}.inputs")
            rows.append(ConvolutionalLayerState(cast(Tensor, inputs), weight, projections))
        return rows

    @staticmethod
    def flat(states: Sequence[Any]) -> Named:
        return {f"{i}.inputs": state.inputs for i, state in enumerate(states)}


class _SelfAttentionPath:
    reads_outputs = False

    @staticmethod
    def encode(path: SelfAttentionDecoderPath, memories: Mapping[str, Memory]) -> Encoded:
        read = {
            name: _normalized(memory) if name in path.normalized_memories else memory
            for name, memory in memories.items()
        }
        memory: Named = {}
        states: Named = {}
        for i, layer in enumerate(path.layers):
            for name, attention in layer.attentions.items():
                memory[f"{i}.{name}.keys"], memory[f"{i}.{name}.values"] = attention.project_memory(read[name].output)
            heads, size = layer.self_attention.heads, layer.self_attention.size
            output = next(iter(memories.values())).output
            empty = output.new_zeros(output.size(0), heads, 0, size // heads)
            states |= {f"{i}.keys": empty, f"{i}.values": empty + 0}
        return Encoded(memory, states)

    @staticmethod
    def states(path: SelfAttentionDecoderPath, memory: Named, states: Named) -> list[Any]:
        return [
            SelfAttentionLayerState(
                states[f"{i}.keys"],
                states[f"{i}.values"],
                {name: (memory[f"{i}.{name}.keys"], memory[f"{i}.{name}.values"]) for name in layer.attentions},
            )
            for i, layer in enumerate(path.layers)
        ]

    @staticmethod
    def flat(states: Sequence[Any]) -> Named:
        return {f"{i}.{part}": getattr(state, part) for i, state in enumerate(states) for part in ("keys", "values")}


class _RecurrentPath:
    reads_outputs = True

    @staticmethod
    def encode(path: RecurrentDecoderPath, memories: Mapping[str, Memory]) -> Encoded:
        rows = next(iter(memories.values())).output.size(0)
        state = path._first_state(memories, rows)
        return Encoded({f"{name}.keys": keys for name, keys in state.keys.items()}, flat(state.layers))

    @staticmethod
    def states(path: RecurrentDecoderPath, memory: Named, states: Named) -> list[Any]:
        keys = {name: memory[f"{name}.keys"] for name in path.attentions}
        return [RecurrentPathState(nested(states, len(path.stack.layers)), keys, path.stack.stepper(0))]

    @staticmethod
    def flat(states: Sequence[Any]) -> Named:
        return flat(states[0].layers)


_PATH_FORMS: dict[type[nn.Module], Any] = {
    ConvolutionalDecoderPath: _ConvolutionalPath,
    SelfAttentionDecoderPath: _SelfAttentionPath,
    RecurrentDecoderPath: _RecurrentPath,
}


def _path_form(path: nn.Module) -> Any:
    if type(path) not in _PATH_FORMS:
        raise InputError(f"a decoder path of the kind {type(path).__name__} has no exported form")
    return _PATH_FORMS[type(path)]
