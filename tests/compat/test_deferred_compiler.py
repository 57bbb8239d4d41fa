"""PyTorch's compiler is not imported for an optimizer, and leaves optimizers alone where it is there."""

from __future__ import annotations

import sys

from tests.commands import run_command

WAITING = """
import sys, fairseq_plugins, torch
from fairseq.optim.adam import Adam
parameter = torch.nn.Parameter(torch.ones(2))
optimizer = Adam([parameter], lr=0.5)
optimizer.load_state_dict(optimizer.state_dict())
optimizer.zero_grad()
parameter.sum().backward()
optimizer.step()
print([round(number, 3) for number in parameter.tolist()], "torch._dynamo" in sys.modules)
"""
COMPILED = """
traced = []

def compiler(graph, inputs):
    traced.extend(str(node.target) for node in graph.graph.nodes)
    return graph.forward

@torch.compile(backend=compiler)
def update(x):
    y = x * 3
    optimizer.zero_grad()
    optimizer.add_param_group({"params": torch.nn.Parameter(x)})
    return y + 1

print(update(torch.ones(1)).tolist(), parameter.grad, len(optimizer.param_groups))
print([operator in " ".join(traced) for operator in ("mul", "add", "Parameter")])
"""


def test_an_optimizer_does_without() -> None:
    assert run_command([sys.executable, "-c", WAITING]).stdout == "[0.5, 0.5] False\n"


def test_a_compiled_function_may_call_an_optimizer() -> None:
    printed = run_command([sys.executable, "-c", WAITING + COMPILED]).stdout.splitlines()
    assert printed[1:] == ["[4.0] None 2", "[True, True, False]"]
