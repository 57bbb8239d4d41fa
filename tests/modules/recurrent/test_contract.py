"""What the contract of recurrent networks gives to those who only have to say how they run."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_plugins.modules import RecurrentNetwork, RecurrentOutput


class Sums(RecurrentNetwork):
    """Running sums, not step by step."""

    input_size = output_size = 2
    has_cell_state = False
    is_steppable = False

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: tuple[Tensor, ...] | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        output = x.cumsum(0)
        if lengths is not None:
            output = output.masked_fill((torch.arange(len(x)).unsqueeze(1) >= lengths).unsqueeze(-1), 0)
        return RecurrentOutput(output, None, {})

    def recurrent_parameters(self) -> list[str]:
        return []


def test_summaries_are_the_last_real_outputs() -> None:
    network, x = Sums(), torch.randn(4, 3, 2)
    lengths = torch.tensor([4, 2, 0])
    [summary] = network.summaries(network(x, lengths), lengths)
    torch.testing.assert_close(summary, torch.stack([x[:4, 0].sum(0), x[:2, 1].sum(0), torch.zeros(2)]))
    [summary] = network.summaries(network(x), None)
    torch.testing.assert_close(summary, x.sum(0))
    assert network.summary_sizes == [2]


def test_a_network_that_does_not_run_step_by_step_says_so() -> None:
    with pytest.raises(TypeError, match="Sums does not run step by step"):
        Sums().initial_state(3)
    with pytest.raises(TypeError, match="Sums does not run step by step"):
        Sums().stepper(3)(torch.zeros(3, 2), ())
