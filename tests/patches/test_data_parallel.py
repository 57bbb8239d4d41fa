"""Several processes on CPUs; as whole commands in tests/system."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.models import distributed_fairseq_model

from fairseq_plugins.patches import data_parallel
from fairseq_plugins.patches.data_parallel import train_data_parallel_on_cpu
from tests.commands import command_configuration

from .unpatched import fault_of


@pytest.fixture
def one_process_group():
    """A gloo group of this process alone."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield torch.distributed.group.WORLD
    torch.distributed.destroy_process_group()


def test_gathers_lists_without_a_gpu(one_process_group) -> None:
    for data in {"loss": torch.tensor(1.5), "n": 3}, ["x" * 100]:
        assert distributed_utils.all_gather_list(data, group=one_process_group) == [data]
    assert distributed_utils.all_gather_list(["x" * 20000], one_process_group, max_size=30000) == [["x" * 20000]]
    with pytest.raises(ValueError, match="exceeds max_size"):
        distributed_utils.all_gather_list(["x" * 20000], group=one_process_group)


@pytest.mark.parametrize("backend", ["pytorch_ddp", "legacy_ddp"])
def test_wraps_models_on_the_cpu(backend: str, one_process_group) -> None:
    config = distributed_utils.DistributedTrainingConfig(ddp_backend=backend, device_id=1, tpu=False)
    model = torch.nn.Linear(2, 2)
    wrapped = distributed_fairseq_model.DistributedFairseqModel(config, model, one_process_group, torch.device("cpu"))
    wrapped(torch.ones(1, 2)).sum().backward()
    assert wrapped.state_dict().keys() == model.state_dict().keys()
    assert torch.equal(model.weight.grad, torch.ones(2, 2))


@pytest.mark.skipif(torch.cuda.is_available(), reason="fairseq uses the GPU instead")
def test_fairseq_starts_and_gathers_on_gpus_alone(one_process_group, unpatch: Callable[[object, str], None]) -> None:
    unpatch(distributed_utils, "all_gather_list")
    with fault_of(train_data_parallel_on_cpu, AssertionError, RuntimeError, TypeError):
        distributed_utils.all_gather_list([1], group=one_process_group)
    unpatch(distributed_utils, "call_main")
    with fault_of(train_data_parallel_on_cpu, AssertionError):
        distributed_utils.call_main(command_configuration(processes=2), lambda cfg: None)


def test_fairseq_wraps_models_on_gpus_alone(one_process_group, unpatch: Callable[[object, str], None]) -> None:
    unpatch(distributed_fairseq_model, "DistributedDataParallel")
    with fault_of(train_data_parallel_on_cpu, ValueError):
        test_wraps_models_on_the_cpu("pytorch_ddp", one_process_group)


def test_processes_close_their_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open one has gloo's threads abort the process now and then, after the training."""

    def train(*_: object) -> None:
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)

    monkeypatch.setattr(data_parallel.distributed_utils, "distributed_main", train)
    data_parallel._run_one_of_several(0, train, None, {})
    assert not torch.distributed.is_initialized()
