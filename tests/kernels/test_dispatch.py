"""Which backend runs: the first of the table that takes what it is given, and why the others do not."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
import torch

from fairseq_plugins.errors import InputError
from fairseq_plugins.kernels import BACKEND_VARIABLE, dispatch
from fairseq_plugins.kernels.dispatch import Backend, choose
from fairseq_plugins.modules import HigherOrderRNN, MultiChannelRNN
from tests.commands import CHECKOUT

NO_GPU = "there is no GPU that it was compared on"


@pytest.fixture(autouse=True)
def _nobody_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)


def test_what_is_on_a_cpu_runs_in_cpp() -> None:
    layer = MultiChannelRNN(2, 3)._layer()
    choice = choose("multi_channel", layer, 4)
    assert (choice.name, choice.refused) == ("cpp", {"cuda_graph": NO_GPU, "compiled": NO_GPU})


def test_what_cpp_does_not_take_runs_in_eager() -> None:
    half, meta = MultiChannelRNN(2, 3).half()._layer(), MultiChannelRNN(2, 3).to("meta")._layer()
    for layer, rows, reason in (
        (half, 4, "float16 is not among its precisions here"),
        (meta, 4, "it computes on CPUs, and the layer is on meta"),
        (MultiChannelRNN(2, 3)._layer(), 0, "there is nothing to compute"),
    ):
        choice = choose("multi_channel", layer, rows)
        assert (choice.name, choice.refused["cpp"]) == ("eager", reason)


def test_a_named_backend_comes_first_and_says_once_why_it_does_not_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    layer = MultiChannelRNN(2, 3).half()._layer()
    for name in "reference", "autograd", "eager":
        monkeypatch.setenv(BACKEND_VARIABLE, name)
        assert choose("multi_channel", layer, 4) == (name, choose("multi_channel", layer, 4).module, {})
    monkeypatch.setenv(BACKEND_VARIABLE, "cpp")
    dispatch._say_once.cache_clear()
    with caplog.at_level(logging.INFO, logger=dispatch.__name__):
        assert [choose("multi_channel", layer, 4).name for _ in range(2)] == ["eager"] * 2
    reason = "float16 is not among its precisions here"
    assert caplog.messages == [f"FAIRSEQ_PLUGINS_BACKEND=cpp: multi_channel runs on another backend where {reason}"]


def test_graphs_do_not_take_long_lags(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_graph = pytest.importorskip("fairseq_plugins.kernels.multi_channel.cuda_graph", exc_type=ImportError)
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # read by ours at each call
    reasons = [cuda_graph.refuses(HigherOrderRNN(2, 3, lags=lags)._layer(), 4) for lags in ((1, 5), (1, 256))]
    assert reasons == [None, "a lag of 256 is longer than the 16 that its graphs are made for"]


def test_another_operation_needs_a_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backends are imported when they are considered, and asked with the operation's own arguments."""
    modules = {
        "scan.fast": SimpleNamespace(refuses=lambda x, width: "too wide" if width > 2 else None),
        "scan.reference": SimpleNamespace(refuses=lambda x, width: None),
    }
    monkeypatch.setattr(dispatch, "module_of", lambda backend: modules[backend.module])
    backends = (
        Backend("triton", "scan.triton", needs="triton", is_measured=True),
        Backend("cpp", "scan.fast"),
        Backend("reference", "scan.reference"),
    )
    monkeypatch.setitem(dispatch.OPERATIONS, "scan", backends)
    x = torch.zeros(1)
    assert choose("scan", x, 1)[::2] == ("cpp", {"triton": NO_GPU})
    assert choose("scan", x, 3)[::2] == ("reference", {"triton": NO_GPU, "cpp": "too wide"})
    # A backend that this operation does not have leaves it as it is.
    monkeypatch.setenv(BACKEND_VARIABLE, "eager")
    assert choose("scan", x, 1).name == "cpp"
    monkeypatch.setenv(BACKEND_VARIABLE, "triton")
    modules["scan.triton"] = SimpleNamespace(refuses=lambda x, width: None)
    assert choose("scan", x, 1).name == "triton"


def test_unknown_backend_names_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, "quick")
    with pytest.raises(
        InputError, match="FAIRSEQ_PLUGINS_BACKEND=quick: no such backend; choose from reference, autograd"
    ):
        MultiChannelRNN(2, 3)(torch.randn(1, 1, 2))


def test_operations_may_have_each_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a training that goes on names them."""
    kept = dispatch.naming({"multi_channel": "autograd", "forget_scan": "eager"})
    monkeypatch.setenv(BACKEND_VARIABLE, kept)
    assert kept == "multi_channel=autograd,forget_scan=eager"
    assert choose("multi_channel", MultiChannelRNN(2, 3)._layer(), 4).name == "autograd"
    assert choose("forget_scan", torch.rand(1, 1, 1)).name == "eager"
    assert choose("linear", torch.rand(1, 1), torch.rand(1, 1)).name == "reference", "nothing is said of it"
    for text, message in (
        ("scan=eager", "FAIRSEQ_PLUGINS_BACKEND=scan=eager: no operation scan; choose from multi_channel, forget"),
        ("forget_scan=quick", "FAIRSEQ_PLUGINS_BACKEND=forget_scan=quick: no such backend"),
    ):
        monkeypatch.setenv(BACKEND_VARIABLE, text)
        with pytest.raises(InputError, match=message):
            choose("forget_scan", torch.rand(1, 1, 1))


def test_every_backend_is_on_the_one_list_and_on_the_page() -> None:
    names = {backend.name for backends in dispatch.OPERATIONS.values() for backend in backends}
    assert names == set(dispatch.BACKENDS)
    page = (CHECKOUT / "docs" / "speed.md").read_text(encoding="utf-8").partition("## Backends")[2]
    assert not [name for name in names if f"`{name}`" not in page]
