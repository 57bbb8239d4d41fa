"""HM-RNN against its equations, a sentence, a step and a level at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_plugins.modules import HierarchicalMultiscaleRNN, LockedDropout, RecurrentStack
from fairseq_plugins.modules.recurrent.hierarchical_multiscale import _straight_through

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


def sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x))


def reference(layer: HierarchicalMultiscaleRNN, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The outputs and the boundaries."""
    top, size = layer.levels, layer.hidden_size
    outputs, boundaries = [], []
    for row, length in enumerate(lengths.tolist()):
        h = {level: x.new_zeros(size) for level in range(1, top + 1)}
        c = dict(h)
        z = {level: x.new_zeros(()) for level in range(1, top + 1)}
        out = []
        found = []
        for t in range(length):
            new_h, new_c, new_z = {0: x[t, row]}, {}, {0: x.new_ones(())}
            for level in range(1, top + 1):
                i = level - 1
                s = layer.weight_recurrent[i] @ h[level]
                s = s + new_z[level - 1] * (layer.weight_bottom_up[i] @ new_h[level - 1]) + layer.bias[i]
                if level < top:
                    s = s + z[level] * (layer.weight_top_down[i] @ h[level + 1])
                f, inp, o, g = (s[k * size : (k + 1) * size] for k in range(4))
                f, inp, o, g = sigmoid(f), sigmoid(inp), sigmoid(o), torch.tanh(g)
                flush, update = z[level], (1 - z[level]) * new_z[level - 1]
                copy = (1 - z[level]) * (1 - new_z[level - 1])
                new_c[level] = flush * (inp * g) + update * (f * c[level] + inp * g) + copy * c[level]
                new_h[level] = (flush + update) * o * torch.tanh(new_c[level]) + copy * h[level]
                if level < top:
                    hard = torch.clamp((layer.slope * s[-1] + 1) / 2, 0, 1)
                    new_z[level] = hard + ((hard > 0.5).to(hard) - hard).detach()
                else:
                    new_z[level] = x.new_zeros(())
            h, c, z = new_h, new_c, new_z
            levels = range(1, top + 1)
            together = torch.cat([h[level] for level in levels])
            gates = [sigmoid(layer.output_gate[level - 1] @ together) for level in levels]
            out.append(torch.relu(sum(gates[i - 1] * layer.output_weight[i - 1] @ h[i] for i in levels)))
            found.append(torch.stack([z[level] for level in range(1, top)]) if top > 1 else x.new_zeros(0))
        outputs.append(torch.stack(out + [x.new_zeros(size)] * (len(x) - length)))
        boundaries.append(torch.stack(found + [x.new_zeros(top - 1)] * (len(x) - length)))
    return torch.stack(outputs, dim=1), torch.stack(boundaries, dim=1)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_equals_the_reference_gradients_too(levels: int) -> None:
    torch.manual_seed(levels)
    layer = HierarchicalMultiscaleRNN(3, [4] * levels).double()
    layer.on_epoch(10)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(3)
    x = torch.randn(8, 4, 3, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([8, 0, 1, 5])
    result = layer(x, lengths, need_details=True)
    expected, boundaries = reference(layer, x, lengths)
    torch.testing.assert_close(result.output, expected, **TOLERANCE)
    if levels > 1:
        assert result.details["boundaries"].equal(boundaries.round())
        real = torch.arange(8).unsqueeze(1) < lengths
        assert 0 < boundaries[real].mean() < 1, "all three operations are seen"
    gradient = torch.randn_like(expected)
    inputs = [x, *layer.parameters()]
    torch.testing.assert_close(
        *(torch.autograd.grad(each, inputs, gradient) for each in (result.output, expected)), **TOLERANCE
    )


def level_states(layer: HierarchicalMultiscaleRNN, steps: int) -> tuple[Tensor, Tensor]:
    """h and c of the upper one of two levels after each step."""
    state = layer.initial_state(1)
    hidden, cell_state = [], []
    for x in torch.randn(steps, 1, 3):
        _, state = layer.step(x, state)
        hidden.append(state.hidden[0, 1])
        cell_state.append(state.cell_state[0, 1])
    return torch.stack(hidden), torch.stack(cell_state)


def test_without_a_boundary_below_a_level_stands_still() -> None:
    torch.manual_seed(0)
    layer = HierarchicalMultiscaleRNN(3, [4, 4])
    with torch.no_grad():
        layer.bias[0][-1] = -10
        hidden, _ = level_states(layer, 3)
        assert not hidden.any()
        layer.bias[0][-1] = 10
        hidden, cell_state = level_states(layer, 3)
    assert not hidden[0].equal(hidden[1]) and not cell_state[1].equal(cell_state[2])


def test_the_gradient_of_a_boundary_is_that_of_the_hard_sigmoid() -> None:
    x = torch.tensor([0.2, 0.7], requires_grad=True)
    z = _straight_through(x)
    assert z.tolist() == [0, 1]
    z.mul(torch.tensor([2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [2, 3]


def test_the_slope_grows_and_is_kept() -> None:
    layer = HierarchicalMultiscaleRNN(3, [4, 4])
    assert layer.slope == 1
    for epoch, slope in (1, 1.04), (50, 3.0), (100, 5.0), (500, 5.0):
        layer.on_epoch(epoch)
        assert layer.slope.item() == pytest.approx(slope)
    restored = HierarchicalMultiscaleRNN(3, [4, 4])
    restored.load_state_dict(layer.state_dict())
    assert restored.slope == 5


def test_detectors_start_without_a_preference() -> None:
    layer = HierarchicalMultiscaleRNN(3, [4, 4, 4])
    assert [bias[16:].tolist() for bias in layer.bias] == [[0.0], [0.0], []]


def test_a_stack_has_one_network_for_all_levels() -> None:
    torch.manual_seed(0)
    stack = RecurrentStack("hm_rnn", 3, [4, 4], bidirectional=True, dropout=LockedDropout(0.5))
    assert (len(stack.layers), len(stack.backward_layers), stack.output_size) == (1, 1, 8)
    x, lengths = torch.randn(6, 2, 3), torch.tensor([6, 3])
    assert not stack(x, lengths).output.equal(stack(x, lengths).output), "dropout between levels"
    stack.eval()
    result = stack(x, lengths, need_details=True)
    assert {name: value.shape for name, value in result.details.items()} == {
        "layers.0.boundaries": (6, 2, 1),
        "backward_layers.0.boundaries": (6, 2, 1),
    }
    [summary] = stack.summaries(result, lengths)
    assert summary[1].equal(torch.cat([result.output[2, 1, :4], result.output[0, 1, 4:]]))


def test_locked_dropout_has_a_mask_for_each_level_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    stack = RecurrentStack("hm_rnn", 3, [32, 32, 32], dropout=LockedDropout(0.5))
    masks: list[Tensor] = []

    def mask(own: LockedDropout, like: Tensor) -> Tensor:
        masks.append(drawn(own, like))
        return masks[-1]

    drawn = LockedDropout._mask
    monkeypatch.setattr(LockedDropout, "_mask", mask)
    stack(torch.randn(5, 2, 3))
    assert len(masks) == 2, "of the two lower levels, for all steps"
    assert not masks[0].equal(masks[1])


def test_drop_connect() -> None:
    torch.manual_seed(0)
    stack = RecurrentStack("hm_rnn", 3, [4, 4], drop_connect=0.5)
    x = torch.randn(5, 2, 3)
    assert not stack(x).output.equal(stack(x).output)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="the levels of an HM-RNN have one width, not 4, 5"):
        HierarchicalMultiscaleRNN(3, [4, 5])
    with pytest.raises(ValueError, match="at least 1"):
        HierarchicalMultiscaleRNN(3, [])
