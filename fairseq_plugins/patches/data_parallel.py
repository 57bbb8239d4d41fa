"""Data-parallel training on CPUs: ``fairseq-train --cpu --distributed-world-size N``, or under torchrun."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

import omegaconf
import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.models import distributed_fairseq_model

from .replacing import replace_once


def train_data_parallel_on_cpu() -> None:
    """Lets ``--cpu --distributed-world-size N`` train with N processes that talk through gloo.

    fairseq starts a process for each GPU, hands torch's DistributedDataParallel a GPU number, and gathers logging
    outputs in GPU memory. What runs on GPUs is left as it is.

    For fairseq 0.12.
    """
    replace_once(distributed_utils, "call_main", _starting_cpu_processes)
    replace_once(distributed_utils, "all_gather_list", _gathering_in_main_memory)
    replace_once(distributed_fairseq_model, "DistributedDataParallel", _without_devices_on_cpu)


def _starting_cpu_processes(call_main: Callable) -> Callable:
    def call(cfg: omegaconf.DictConfig, main: Callable, **kwargs: Any) -> Any:
        distributed = cfg.distributed_training
        by_torchrun = (
            distributed.distributed_init_method in (None, "env://")
            and {"MASTER_ADDR", "MASTER_PORT", "RANK"} <= os.environ.keys()
            and int(os.environ.get("WORLD_SIZE", 1)) > 1
        )
        if not cfg.common.cpu or not (by_torchrun or distributed.distributed_world_size > 1):
            return call_main(cfg, main, **kwargs)

        if distributed.distributed_backend == "nccl":  # the default, which knows no CPUs
            distributed.distributed_backend = "gloo"
        if by_torchrun:
            distributed.distributed_init_method = "env://"
            distributed.distributed_world_size = int(os.environ["WORLD_SIZE"])
            distributed.distributed_rank = int(os.environ["RANK"])
            distributed.distributed_no_spawn = True
        if distributed.distributed_no_spawn:
            return _run_one_of_several(distributed.device_id, main, cfg, kwargs)

        processes = distributed.distributed_world_size
        if distributed.distributed_init_method is not None:  # given by the user, so there may be other machines
            processes = min(processes, distributed.distributed_num_procs)
        else:
            port = distributed.distributed_port if distributed.distributed_port > 0 else _free_port()
            distributed.distributed_init_method = f"tcp://localhost:{port}"
        kwargs["start_rank"] = distributed.distributed_rank
        distributed.distributed_rank = None  # each process sets its own
        return torch.multiprocessing.spawn(
            _run_cpu_process, args=(processes, main, cfg, kwargs), nprocs=processes, join=True
        )

    return call


def _run_cpu_process(index: int, processes: int, main: Callable, cfg: omegaconf.DictConfig, kwargs: dict) -> None:
    """One of several processes on this machine."""
    from .. import register

    # fairseq does not: it takes the package for registered, because this function is imported from it.
    register()
    torch.set_flush_denormal(True)  # as flush_denormals did in the process that started this one
    if "OMP_NUM_THREADS" not in os.environ:  # each process would take every core
        torch.set_num_threads(max(1, torch.get_num_threads() // processes))
    _run_one_of_several(index, main, cfg, kwargs)


def _run_one_of_several(index: int, main: Callable, cfg: omegaconf.DictConfig, kwargs: dict) -> None:
    """fairseq's part of a process. It leaves the process group open, and gloo's threads then now and then abort the
    process at its end, when the training is done and saved."""
    distributed_utils.distributed_main(index, main, cfg, kwargs)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def _gathering_in_main_memory(all_gather_list: Callable) -> Callable:
    def gather(data: Any, group: Any = None, max_size: int = 16384) -> list[Any]:
        group = distributed_utils.get_global_group() if group is None else group
        if torch.distributed.get_backend(group) != "nccl":
            # fairseq looks for its buffers on the function of this name, and makes them on the GPU if there are none.
            size = max_size * distributed_utils.get_world_size(group)
            vars(gather)["_buffer"] = torch.empty(size, dtype=torch.uint8)
            vars(gather)["_cpu_buffer"] = torch.empty(max_size, dtype=torch.uint8)
        return all_gather_list(data, group, max_size)

    return gather


def _without_devices_on_cpu(data_parallel: type) -> type:
    class DataParallel(data_parallel):
        def __init__(self, module: torch.nn.Module, device_ids: Any = None, output_device: Any = None, **options: Any):
            if all(parameter.device.type == "cpu" for parameter in module.parameters()):
                device_ids = output_device = None
            super().__init__(module, device_ids=device_ids, output_device=output_device, **options)

    return DataParallel
