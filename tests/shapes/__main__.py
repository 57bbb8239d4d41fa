"""Calls everything that reads tensors with wrong ones, which has to be said and must not end the process.

    python -m tests.shapes [EXAMPLES]

Each call is printed before it is made: the last line names the one that ended the process.
"""

from __future__ import annotations

import sys

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_plugins.kernels import conventional_layers

from .calls import Call, compiled_calls, other_calls, recurrent_calls

FAULTS = ("size", "dimensions", "precision", "device", "lengths")
PRECISIONS = (torch.float64, torch.float16, torch.int64, torch.bool)
# torch's own functions refuse by a RuntimeError, its indices by an IndexError.
REFUSED = (ValueError, RuntimeError, IndexError, TypeError)


@st.composite
def wrong_tensors(draw: st.DrawFn, call: Call) -> dict[str, Tensor]:
    """The tensors of a call of which one is wrong."""
    tensors = dict(call.tensors)
    fault = draw(st.sampled_from(FAULTS), label="fault")
    if fault == "lengths" and "lengths" in tensors:
        # More than there are steps, or negative.
        row = draw(st.integers(0, tensors["lengths"].numel() - 1), label="row")
        length = draw(st.one_of(st.integers(-(1 << 40), -1), st.integers(tensors["x"].size(0) + 1, 1 << 40)))
        tensors["lengths"] = tensors["lengths"].index_fill(0, torch.tensor(row), length)
    elif fault == "dimensions":
        name = draw(st.sampled_from(sorted(tensors)), label="name")
        has_more = draw(st.booleans(), label="has more") and name not in ("x", "weight")
        sizes = (*tensors[name].shape, 1) if has_more else tensors[name].shape[:-1]
        tensors[name] = tensors[name].new_zeros(sizes)
    elif fault in ("precision", "device") and (named := sorted(set(tensors) - call.any_type)):
        name = draw(st.sampled_from(named), label="name")
        to = st.sampled_from([each for each in PRECISIONS if each != tensors[name].dtype])
        tensors[name] = tensors[name].to("meta" if fault == "device" else draw(to, label="precision"))
    else:
        name, dimension = draw(st.sampled_from(call.bound_sizes()), label="dimension")
        sizes = list(tensors[name].shape)
        length, is_multiple = sizes[dimension], call.sizes[name][dimension] == "b"
        wrong = st.integers(0, 3 * length + 2).filter(lambda n: n % length if is_multiple else n != length)
        sizes[dimension] = draw(wrong, label="length")
        tensors[name] = tensors[name].new_zeros(sizes)
    return tensors


def strided(tensor: Tensor) -> Tensor:
    """The same numbers, no two of them side by side in memory."""
    return torch.stack([tensor, tensor], dim=-1)[..., 0]


def run(call: Call, tensors: dict[str, Tensor], needs_gradients: bool) -> Tensor:
    """What the call returns, after its backward pass where there is one."""
    with torch.set_grad_enabled(needs_gradients):
        if needs_gradients:
            tensors = {
                name: tensor.detach().requires_grad_() if tensor.is_floating_point() else tensor
                for name, tensor in tensors.items()
            }
        result = call.function(tensors)
        if needs_gradients and result.requires_grad:
            result.sum().backward()
    return result.detach()


def fuzz(examples: int) -> None:
    torch.manual_seed(0)
    calls = [*recurrent_calls(), *other_calls(), *compiled_calls()]

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data(), st.sampled_from(calls), st.booleans(), st.booleans())
    def check(data: st.DataObject, call: Call, needs_gradients: bool, is_on_our_kernel: bool) -> None:
        tensors = data.draw(wrong_tensors(call))
        shown = {name: f"{tensor.dtype} {tuple(tensor.shape)} {tensor.device}" for name, tensor in tensors.items()}
        print(f"{call.name}, gradients: {needs_gradients}, {shown}", flush=True)
        conventional_layers.is_faster = lambda *_: is_on_our_kernel
        try:
            run(call, tensors, needs_gradients)
        except REFUSED:
            return
        raise AssertionError("nothing was said")

    for call in calls:
        for needs_gradients in False, True:
            print(f"{call.name}, gradients: {needs_gradients}, as it should be", flush=True)
            torch.manual_seed(0)
            expected = run(call, call.tensors, needs_gradients)
            others = {name: strided(tensor) for name, tensor in call.tensors.items()}
            torch.testing.assert_close(run(call, others, needs_gradients), expected, rtol=1e-5, atol=1e-5)
    check()


if __name__ == "__main__":
    fuzz(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
    print("no call ended the process")
