"""The loop of a decoder as CUDA graphs against the same one operation after the other; without a GPU by the same code
without graphs."""

from __future__ import annotations

import copy
import gc
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from fairseq_plugins.kernels import BACKEND_VARIABLE, comparison
from fairseq_plugins.kernels.decoder_loop import DecoderLoop, cuda_graph, decoder_loop, eager
from fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqModel
from fairseq_plugins.modules.recurrent.contract import Step
from fairseq_plugins.modules.recurrent.conventional import ConventionalRNN, ConventionalState
from tests.models.test_recurrent_seq2seq import make_model
from tests.models.transfers import META, OnGPU, Transfers

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KINDS = ["lstm", "gru", "rnn", "mc_rnn", "ho_rnn", "rcrn"]
BATCH = [[4, 5, 6, 7, 8], [9, 10], [10, 4, 5]]


@pytest.fixture(autouse=True)
def short_graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So few steps to a graph that short sentences need several, of which the last is not full."""
    monkeypatch.setattr(cuda_graph, "STEPS", 3)
    monkeypatch.setattr(cuda_graph, "refuses", lambda like: None)
    yield
    gc.collect()


def on(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, f"decoder_loop={backend}")


def padded(rows: list[list[int]]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [1] * (width - len(row)) for row in rows], device=DEVICE)


def results(model: RecurrentSeq2SeqModel, rows: list[list[int]]) -> dict[str, Tensor]:
    """Logits and all gradients, for sources that are longer than the targets."""
    target = padded(rows)
    source = padded([row + row[::-1] for row in rows])
    lengths = source.ne(1).sum(1)
    model.zero_grad()
    logits = model(source, lengths, target)[0]
    weights = torch.linspace(-1, 1, logits.numel(), device=DEVICE, dtype=logits.dtype).view_as(logits)
    (logits * weights)[target.ne(1)].sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert all(gradient is not None for gradient in gradients.values())
    return {"logits": logits.detach(), **{name: gradient.clone() for name, gradient in gradients.items()}}


def make(kind: str = "lstm", dropout: float = 0.0) -> RecurrentSeq2SeqModel:
    model = make_model(
        dropout=dropout, encoder_recurrent_layer=kind, decoder_recurrent_layer=kind, decoder_layers=2, encoder_layers=2
    )
    return model.double().to(DEVICE).train()


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_loop(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch after batch, of other lengths and numbers of rows."""
    model = make(kind)
    for rows in BATCH, BATCH[1:], [[4]], [[5, 6, 7, 8, 9, 10, 4]] * 9:
        on("eager", monkeypatch)
        expected = results(model, rows)
        on("cuda_graph", monkeypatch)
        torch.testing.assert_close(results(model, rows), expected, rtol=1e-9, atol=1e-9)
    assert cuda_graph.captures(model.decoder) == 3


def test_graphs_read_parameters_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update the same graphs compute with what was learned; a copy of the model has its own."""
    on("cuda_graph", monkeypatch)
    model = make()
    before = results(model, BATCH)["logits"]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
    made = cuda_graph.captures(model.decoder)
    after = results(model, BATCH)
    assert cuda_graph.captures(model.decoder) == made and not torch.allclose(after["logits"], before)
    other = copy.deepcopy(model)
    on("eager", monkeypatch)
    torch.testing.assert_close(after, results(other, BATCH), rtol=1e-9, atol=1e-9)


def test_what_is_no_number_stays_in_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    on("cuda_graph", monkeypatch)
    model = make()
    expected = results(model, BATCH[1:])
    weight = model.encoder.embed_tokens.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[4] = math.nan
    assert results(model, BATCH)["logits"].isnan().any()
    with torch.no_grad():
        weight.copy_(kept)
    torch.testing.assert_close(results(model, BATCH[1:]), expected)


def test_dropout_is_the_same_forwards_and_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The derivative along a direction, with the same random numbers, is what the gradients say."""
    on("cuda_graph", monkeypatch)
    model = make(dropout=0.4)
    weight = model.decoder.stack.layers[0].rnn.weight_hh_l0
    direction = torch.randn(weight.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(DEVICE)
    source, target = padded(BATCH), padded(BATCH)

    def loss() -> Tensor:
        torch.manual_seed(5)
        return model(source, source.ne(1).sum(1), target)[0].square().sum()

    (gradient,) = torch.autograd.grad(loss(), [weight])
    values = []
    for step in 1e-5, -1e-5:
        with torch.no_grad():
            weight += step * direction
        values.append(loss().item())
        with torch.no_grad():
            weight -= step * direction
    slope = (values[0] - values[1]) / 2e-5
    assert slope == pytest.approx((gradient * direction).sum().item(), rel=1e-6)
    torch.manual_seed(6)
    assert loss().item() != model(source, source.ne(1).sum(1), target)[0].square().sum().item()


def test_gradients_of_what_is_no_parameter() -> None:
    """Inputs, state and constants have theirs; what has none, or needs none, has None."""
    torch.manual_seed(0)
    x, h = (
        torch.randn(*sizes, dtype=torch.float64, device=DEVICE, requires_grad=True) for sizes in ((4, 2, 3), (2, 3))
    )
    constant = torch.randn(2, 3, dtype=torch.float64, device=DEVICE, requires_grad=True)
    weight, unread = (torch.randn(3, 3, dtype=torch.float64, device=DEVICE, requires_grad=True) for _ in range(2))
    counter = torch.zeros(2, dtype=torch.long, device=DEVICE)

    owner = Owner()

    def run(inputs, state, constants, parameters):  # noqa: ANN001, ANN202
        (x,), (h, count), (constant,) = inputs, state, constants
        outputs = []
        for row in x.unbind(0):
            h = torch.tanh(row + h @ parameters[0] + constant * count.unsqueeze(1))
            count = count + 1
            outputs.append(h)
        return (torch.stack(outputs),), (h, count)

    found = []
    for backend in eager, cuda_graph:
        given = (DecoderLoop(owner, None, run), (x,), (h, counter), (constant,), (weight, unread))
        (output,) = backend.decoder_loop(*given)
        inputs = [x, h, constant, weight, unread]
        gradients = torch.autograd.grad(output.square().sum(), inputs, allow_unused=True)
        assert gradients[-1] is None
        found.append([output.detach(), *gradients[:-1]])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


def test_second_derivatives_are_refused() -> None:
    x = torch.randn(4, 2, 3, device=DEVICE, requires_grad=True)
    h = torch.zeros(2, 3, device=DEVICE)

    owner = Owner()
    loop = DecoderLoop(owner, None, lambda inputs, state, constants, parameters: ((inputs[0] * 2,), state))
    (output,) = cuda_graph.decoder_loop(loop, (x,), (h,), (), ())
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(output.square().sum(), [x], create_graph=True)


def test_what_cannot_be_captured_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """After it CUDA's streams and generators are not what they were: nothing goes on."""
    on("cuda_graph", monkeypatch)
    monkeypatch.setattr(cuda_graph, "captured", fails)
    with pytest.raises(RuntimeError, match=r"cannot be a CUDA graph \(not permitted when capturing\): set .*=eager$"):
        results(make(), BATCH)


def test_the_comparison_sees_what_cannot_be_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not comparison.judge("decoder_loop", "cuda_graph", DEVICE).problem
    monkeypatch.setattr(cuda_graph, "captured", fails)
    assert "not permitted" in comparison.judge("decoder_loop", "cuda_graph", DEVICE).problem


def test_without_memory_everything_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq leaves such a batch out, and goes on."""
    on("cuda_graph", monkeypatch)
    model = make()
    results(model, BATCH[1:])

    def has_none(work: object, device: torch.device, memory: object) -> None:
        raise torch.OutOfMemoryError("none is left")

    with monkeypatch.context() as patch:
        patch.setattr(cuda_graph, "captured", has_none)
        with pytest.raises(torch.OutOfMemoryError):
            results(model, BATCH)
    made = cuda_graph.captures(model.decoder)
    results(model, BATCH[1:])
    assert cuda_graph.captures(model.decoder) == made + 1


def test_several_hypotheses_of_a_sentence_attend_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make()
    source = padded(BATCH)
    target = source.repeat_interleave(2, dim=0)
    found = []
    for backend in "eager", "cuda_graph":
        on(backend, monkeypatch)
        encoded = model.encoder(source, source.ne(1).sum(1))
        order = torch.arange(3, device=DEVICE).repeat_interleave(2)
        found.append(model.decoder(target, model.encoder.reorder_encoder_out(encoded, order))[0])
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)


def test_other_numbers_of_rows_are_refused() -> None:
    x, h = torch.zeros(4, 6, 3), torch.zeros(3, 3)
    loop = DecoderLoop(model := nn.Identity(), None, lambda *tensors: ((tensors[0][0],), tensors[1]))
    with pytest.raises(ValueError, match="must have 6 rows"):
        decoder_loop(loop, (x,), (h,), (), tuple(model.parameters()))


@pytest.mark.parametrize("is_reentrant", [True, False])
def test_checkpoints_draw_the_same_dropout(is_reentrant: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    on("cuda_graph", monkeypatch)
    model = make(dropout=0.3)
    source, target = padded(BATCH), padded(BATCH)
    weight = model.decoder.stack.layers[1].rnn.weight_ih_l0

    def logits(anchor: Tensor) -> Tensor:
        return model(source, source.ne(1).sum(1), target)[0] * anchor

    gradients = []
    for run in logits, lambda anchor: checkpoint(logits, anchor, use_reentrant=is_reentrant):
        torch.manual_seed(3)
        model.zero_grad()
        run(torch.ones((), device=DEVICE, dtype=torch.float64, requires_grad=True)).square().sum().backward()
        gradients.append(weight.grad.clone())
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)
    assert cuda_graph.captures(model.decoder) == 1


def test_dropout_is_off_where_it_is_its_own_module_that_evaluates(monkeypatch: pytest.MonkeyPatch) -> None:
    on("cuda_graph", monkeypatch)
    model = make(dropout=0.4)
    model.decoder.dropout = model.encoder.dropout = model.encoder.stack.dropout.p = 0.0
    model.decoder.stack.training = False
    expected = results(model, BATCH)["logits"]
    assert not torch.equal(results(model, BATCH)["logits"], expected), "the stack's dropout is on"
    model.decoder.stack.dropout.eval()
    torch.testing.assert_close(results(model, BATCH), results(model, BATCH))


def test_a_state_that_goes_through_several_graphs_unchanged() -> None:
    """A delay line of more parts than a graph has steps: each part's gradient is another's in the graph before."""
    torch.manual_seed(0)
    x = torch.randn(11, 2, 3, dtype=torch.float64, device=DEVICE, requires_grad=True)
    line = [torch.randn(2, 3, dtype=torch.float64, device=DEVICE, requires_grad=True) for _ in range(5)]
    owner = Owner()

    def run(inputs, state, constants, parameters):  # noqa: ANN001, ANN202
        outputs, state = [], list(state)
        for row in inputs[0].unbind(0):
            outputs.append(torch.tanh(row + state[-1]))
            state = [outputs[-1], *state[:-1]]
        return (torch.stack(outputs),), state

    found = []
    for backend in eager, cuda_graph:
        (output,) = backend.decoder_loop(DecoderLoop(owner, None, run), (x,), line, (), ())
        weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64, device=DEVICE).view_as(output)
        found.append([output.detach(), *torch.autograd.grad((output * weights).sum(), [x, *line])])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


def test_graphs_share_their_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, they take hardly more memory than the largest."""
    on("cuda_graph", monkeypatch)
    model = make()
    for rows in [[[5] * 30] * 20, [[5] * 9] * 20, [[5] * 9] * 9, BATCH]:
        results(model, rows)
    programs = cuda_graph._programs[model.decoder]
    assert programs.made == 4
    found = tree_leaves([vars(program) for program in programs._programs.values()])
    buffers = [leaf for leaf in found if isinstance(leaf, Tensor)]
    storages = {buffer.untyped_storage().data_ptr() for buffer in buffers}
    assert len(storages) == len(buffers) / 4


def fails(work: object, device: torch.device, memory: object) -> None:
    raise RuntimeError("not permitted when capturing\nand so on")


class Owner:
    """Of a loop."""


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_waits_for_the_gpu_or_comes_from_the_cpu(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither could be captured."""
    on("cuda_graph", monkeypatch)
    model = make(kind, dropout=0.3).to(META)
    tokens, lengths = torch.zeros(3, 5, dtype=torch.long, device=META), torch.zeros(3, dtype=torch.long, device=META)
    with OnGPU(), Transfers() as transfers:
        model(tokens, lengths, tokens)[0].sum().backward()
    assert cuda_graph.captures(model.decoder) == 1
    assert not transfers.read_back and not transfers.copied


def test_steps_that_change_are_not_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """HM-RNN anneals a slope from epoch to epoch, which a graph would keep."""
    on("cuda_graph", monkeypatch)
    model = make("hm_rnn")
    results(model, BATCH)
    assert not cuda_graph.captures(model.decoder)


def test_a_derived_layer_says_itself_that_its_steps_are_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may drop at random in a step, which would not be the same when it is computed anew."""
    on("cuda_graph", monkeypatch)

    class Derived(ConventionalRNN):
        def stepper(self, batch_size: int) -> Step[ConventionalState]:
            return super().stepper(batch_size)

    class Fixed(Derived):
        has_fixed_steps = True

    for kind, captures in (Derived, 0), (Fixed, 1):
        model = make()
        for layer in model.decoder.stack.layers:
            layer.__class__ = kind
        results(model, BATCH)
        assert cuda_graph.captures(model.decoder) == captures


def test_evaluation_tells_its_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    on("cuda_graph", monkeypatch)
    model = make().eval()
    source = padded(BATCH)
    weights = model(source, source.ne(1).sum(1), source)[1]["attn"][0]
    assert weights is not None and weights.shape == (3, 5, 5)
