"""Batches, tasks of a small dictionary and models by architecture, for the tests of the models."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TypeVar

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoderDecoderModel
from hypothesis import strategies as st
from torch import Tensor

from benchmarks import untrained
from benchmarks.untrained import build_architecture
from fairseq_plugins.models.options import idle_options

__all__ = [
    "WORDS",
    "build_architecture",
    "check_beam_reordering",
    "make_task",
    "pad",
    "saved_bytes",
    "sentences",
    "without_idle",
]

WORDS = 11
Options = TypeVar("Options", bound=FairseqDataclass)
Result = TypeVar("Result")

sentences = st.lists(
    st.lists(st.integers(4, WORDS - 1), min_size=0, max_size=7).map(lambda words: [*words, 2]), min_size=1, max_size=4
)


def make_task(source_types: int = WORDS, target_types: int | None = None, **cfg: bool) -> SimpleNamespace:
    """See :func:`untrained.make_task`."""
    return untrained.make_task(source_types, target_types, **cfg)


def without_idle(options: Options) -> Options:
    """The options, those that would have no effect beside the others at their defaults."""
    default = type(options)()
    for name in idle_options(options, type(options)):
        setattr(options, name, getattr(default, name))
    return options


def saved_bytes(run: Callable[[], Result]) -> tuple[int, Result]:
    """The bytes of all tensors that a forward pass saves for the backward pass, and what it returns."""
    sizes: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.nbytes) or x, lambda x: x):
        result = run()
    return sum(sizes), result


def pad(sentences: list[list[int]], side: str, pad_index: int, width: int) -> Tensor:
    rows = []
    for sentence in sentences:
        padding = [pad_index] * (width - len(sentence))
        rows.append(padding + sentence if side == "left" else sentence + padding)
    return torch.tensor(rows)


def check_beam_reordering(
    model: FairseqEncoderDecoderModel, batch: list[list[int]], beam: int, like_a_beam: bool, data: st.DataObject
) -> None:
    """As in beam search (hypotheses change places within a sentence, finished sentences leave), and anyhow; with
    gradients, and without as in beam search, where steps are prepared."""
    with torch.set_grad_enabled(data.draw(st.booleans())):
        _check_beam_reordering(model, batch, beam, like_a_beam, data)


def _check_beam_reordering(
    model: FairseqEncoderDecoderModel, batch: list[list[int]], beam: int, like_a_beam: bool, data: st.DataObject
) -> None:
    def draw_order(rows: int) -> Tensor:
        if not like_a_beam:
            return torch.tensor(data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=6)))
        kept = sorted(data.draw(st.sets(st.integers(0, rows // beam - 1), min_size=1)))
        return torch.tensor([i * beam + data.draw(st.integers(0, beam - 1)) for i in kept for _ in range(beam)])

    first = torch.arange(len(batch)).repeat_interleave(beam)
    whole = model.encoder(pad(batch, "left", 1, max(map(len, batch))))
    encoded = model.encoder.reorder_encoder_out(whole, first)
    assert encoded["encoder_padding_mask"][0].size(0) == len(batch), "hypotheses share their sentence"
    target = torch.randint(4, WORDS, (len(first), 2))
    incremental_state: dict = {}
    for t in range(2):
        model.decoder(target[:, : t + 1], encoded, incremental_state)
    rows = first
    for _ in range(2):
        order = draw_order(len(rows))
        rows = rows[order]
        model.decoder.reorder_incremental_state_scripting(incremental_state, order)
        encoded = model.encoder.reorder_encoder_out(encoded, order)
        target = torch.cat([target[order], torch.randint(4, WORDS, (len(order), 1))], dim=1)
        logits, extra = model.decoder(target, encoded, incremental_state)
        # Every row with its own copy of its sentence.
        alone = {name: [x.index_select(0, rows) for x in tensors] for name, tensors in whole.items()}
        expected, expected_extra = model.decoder(target, {**alone, "sentences": [torch.arange(len(rows))]})
        torch.testing.assert_close(logits[:, -1], expected[:, -1], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(extra["attn"][0][:, -1], expected_extra["attn"][0][:, -1], rtol=1e-9, atol=1e-9)


def check_padding_alone(model: FairseqEncoderDecoderModel) -> None:
    """Fails if a sentence of nothing but padding changes a gradient of the others."""
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, float) and (name == "p" or name.endswith("dropout")):
                setattr(module, name, 0.0)
    source, target = torch.tensor([[5, 6, 7, 2], [4, 9, 2, 1], [1, 1, 1, 1]]), torch.tensor([[2, 5], [2, 1], [1, 1]])
    gradients = []
    for rows in 2, 3:
        logits, _ = model(source[:rows], None, target[:rows])
        loss = logits[target[:rows] != 1].pow(2).sum()
        gradients.append(torch.autograd.grad(loss, list(model.parameters()), allow_unused=True))
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-9, atol=1e-9)
