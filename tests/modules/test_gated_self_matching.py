"""R-NET's layers against their equations, their gradients, padding, and what self-matching holds at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fairseq_plugins.kernels import BACKEND_VARIABLE
from fairseq_plugins.modules import GatedMatching, Pointed, PointerNetwork, SelfMatching, best_spans

from .reading_reference import gated_matching, pointer, self_matching

P, Q, H, A = 3, 4, 2, 5
LENGTHS, QUESTION_LENGTHS = torch.tensor([6, 3, 1]), torch.tensor([2, 4, 1])


def texts(fill: float = 0.0) -> tuple[Tensor, Tensor]:
    """A passage (7, 3, P) and a question (4, 3, Q), whose padding holds ``fill``."""
    torch.manual_seed(0)
    passage, question = torch.randn(7, 3, P).double(), torch.randn(4, 3, Q).double()
    for x, lengths in (passage, LENGTHS), (question, QUESTION_LENGTHS):
        for row, length in enumerate(lengths):
            x[length:, row] = fill
    return passage, question


def words(x: Tensor, lengths: Tensor, row: int) -> list[Tensor]:
    return list(x[: lengths[row], row])


def matching() -> GatedMatching:
    torch.manual_seed(1)
    return GatedMatching(P, Q, H, A).double()


def itself() -> SelfMatching:
    torch.manual_seed(1)
    return SelfMatching(P, H, A).double()


def pointing() -> PointerNetwork:
    torch.manual_seed(1)
    return PointerNetwork(P, Q, A).double()


def test_gated_matching_is_its_equations() -> None:
    layer, (passage, question) = matching(), texts()
    matched = layer(passage, LENGTHS, question, QUESTION_LENGTHS)
    for row in range(3):
        length, question_length = LENGTHS[row], QUESTION_LENGTHS[row]
        output, weights = gated_matching(layer, words(passage, LENGTHS, row), words(question, QUESTION_LENGTHS, row))
        torch.testing.assert_close(matched.output[:length, row], output)
        torch.testing.assert_close(matched.weights[:length, row, :question_length], weights)
        assert not matched.output[length:, row].any()


@pytest.mark.parametrize("backend", ["cpp", "eager"])
def test_self_matching_is_its_equations(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    layer, (passage, _) = itself(), texts()
    output = layer(passage, LENGTHS)
    for row in range(3):
        length = LENGTHS[row]
        torch.testing.assert_close(output[:length, row], self_matching(layer, words(passage, LENGTHS, row)))
        assert not output[length:, row].any()


def test_pointer_is_its_equations() -> None:
    layer, (passage, question) = pointing(), texts()
    pointed = layer(passage, LENGTHS, question, QUESTION_LENGTHS)
    for row in range(3):
        expected = pointer(layer, words(passage, LENGTHS, row), words(question, QUESTION_LENGTHS, row))
        for found, probabilities in zip(pointed, expected, strict=True):
            torch.testing.assert_close(found[row, : LENGTHS[row]].exp(), probabilities)
            assert found[row, LENGTHS[row] :].eq(float("-inf")).all()


@pytest.mark.parametrize("name", ["matching", "itself", "pointer"])
def test_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, "eager")
    passage, question = (x[:3, 1:, :2].contiguous().requires_grad_() for x in texts())
    lengths, question_lengths = torch.tensor([3, 1]), torch.tensor([3, 1])
    real = torch.arange(3).unsqueeze(0) < lengths.unsqueeze(1)
    torch.manual_seed(1)
    layer: nn.Module = {
        "matching": GatedMatching(2, 2, 1, 2),
        "itself": SelfMatching(2, 1, 2),
        "pointer": PointerNetwork(2, 2, 2),
    }[name].double()

    def run(passage: Tensor, question: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
        if name == "matching":
            return tuple(layer(passage, lengths, question, question_lengths))
        if name == "itself":
            return (layer(passage, lengths),)
        return tuple(part[real] for part in layer(passage, lengths, question, question_lengths))

    assert torch.autograd.gradcheck(run, (passage, question, *layer.parameters()))


def test_padding_and_other_rows_change_nothing() -> None:
    """Neither what stands at padding, infinities and NaN too, nor how much padding there is."""
    layers = matching(), itself(), pointing()

    def run(passage: Tensor, lengths: Tensor, question: Tensor, question_lengths: Tensor) -> list[Tensor]:
        match, alone, point = layers
        matched = match(passage, lengths, question, question_lengths)
        return [
            matched.output,
            matched.weights,
            alone(passage, lengths),
            *(part.t() for part in point(passage, lengths, question, question_lengths)),
        ]

    together = run(*(part for x, n in zip(texts(), (LENGTHS, QUESTION_LENGTHS), strict=True) for part in (x, n)))
    dirty_passage, dirty_question = texts(float("nan"))
    for output, expected in zip(run(dirty_passage, LENGTHS, dirty_question, QUESTION_LENGTHS), together, strict=True):
        assert torch.equal(output, expected)
    passage, question = texts()
    for row in range(3):
        length, question_length = LENGTHS[row : row + 1], QUESTION_LENGTHS[row : row + 1]
        alone = run(passage[:length, row : row + 1], length, question[:question_length, row : row + 1], question_length)
        for output, expected in zip(alone, together, strict=True):
            part = expected[:length, row : row + 1]
            torch.testing.assert_close(output, part if part.dim() < 3 else part[..., : output.size(-1)])


def test_self_matching_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks change nothing, gradients included, and no more is kept for the gradients than queries and keys."""
    monkeypatch.setenv(BACKEND_VARIABLE, "eager")
    layer, (passage, _) = itself(), texts()
    x, padding = passage.transpose(0, 1), torch.arange(7).unsqueeze(0) >= LENGTHS.unsqueeze(1)
    results, queries = [], []
    attend = layer._attended
    monkeypatch.setattr(layer, "_attended", lambda part, *rest: (queries.append(part.size(1)), attend(part, *rest))[1])
    for chunk, expected in (1, [1] * 7), (3 * 3 * 7 * A, [3, 3, 1]), (10 * 3 * 7 * A, [7]):
        x = x.detach().requires_grad_()
        kept: list[int] = []

        def keep(tensor: Tensor, kept: list[int] = kept) -> Tensor:
            kept.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            context = layer.contexts(x, padding, chunk)
        assert queries == expected
        context.square().sum().backward()
        queries.clear()
        results.append((context.detach(), x.grad))
        assert max(kept) < 3 * 7 * 7 * A
    for of_chunks in results[:-1]:
        for one, other in zip(of_chunks, results[-1], strict=True):
            torch.testing.assert_close(one, other)


def test_best_spans() -> None:
    """The best pair that is no longer than it may be, and does not end before it begins."""
    start = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]).log()
    end = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]]).log()
    spans, scores = best_spans(Pointed(start, end), 2)
    assert spans.tolist() == [[0, 0], [1, 2]]
    torch.testing.assert_close(scores, torch.tensor([0.08, 0.21]).log())
    assert best_spans(Pointed(start, end), 5)[0].tolist() == [[0, 0], [0, 2]]


def test_sizes_are_checked() -> None:
    passage, question = texts()
    with pytest.raises(ValueError, match="passage"):
        matching()(question, LENGTHS, question, QUESTION_LENGTHS)
    with pytest.raises(ValueError, match="lengths"):
        itself()(passage, torch.tensor([0, 1, 2]))
    for layer in matching(), pointing():
        with pytest.raises(ValueError, match="passage has 3 rows, question 1"):
            layer(passage, LENGTHS, question[:, :1], QUESTION_LENGTHS[:1])
