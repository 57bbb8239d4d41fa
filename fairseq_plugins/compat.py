"""What fairseq 0.12 needs on today's Python and PyTorch, and nothing else.

``apply()`` is called when the package is imported, which fairseq does with ``--user-dir`` before it parses the command
line. Each repair is a function of its own below and does nothing where it is not needed, or when it was made before.
Tried with fairseq-fixed 0.12.3.1; the code of fairseq 0.12.2 that is concerned is the same unless a comment says so.
"""

from __future__ import annotations

import argparse
import collections
import copy
import functools
import inspect
import logging
import os
import socket
import sys
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import omegaconf
import torch
from fairseq import options, utils
from fairseq.data import bucket_pad_length_dataset, data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed_utils
from fairseq.models import BaseFairseqModel, distributed_fairseq_model
from fairseq.modules import transformer_layer
from fairseq.tasks import FairseqTask
from fairseq.tokenizer import tokenize_line

logger = logging.getLogger(__name__)

_REPAIRED = "_repaired_by_fairseq_plugins"


def apply() -> None:
    """Makes every repair that fairseq needs here. Further calls change nothing."""
    allow_checkpoint_types()
    restore_numpy_aliases()
    keep_last_batch()
    keep_batches_when_resuming()
    train_data_parallel_on_cpu()
    allow_bfloat16_without_tpu()
    repair_alignments()
    repair_unknown_word_replacement()
    avoid_transformer_fast_path(transformer_layer.TransformerEncoderLayerBase)


def _replace(owner: Any, name: str, build: Callable[[Callable], Callable]) -> None:
    """Replaces ``owner.name`` by ``build(owner.name)``, once; the mark survives a second import of this module."""
    original = getattr(owner, name)
    if not hasattr(original, _REPAIRED):
        replacement = build(original)
        if not isinstance(original, type):
            functools.update_wrapper(replacement, original)
        setattr(replacement, _REPAIRED, True)
        setattr(owner, name, replacement)


# ---------------------------------------------------------------------------------------------------- checkpoints


def allow_checkpoint_types() -> None:
    """Names the types in fairseq's checkpoints to ``torch.load``, which refuses unknown ones since PyTorch 2.6.

    None of them runs code of the file's choosing when it is loaded, so that ``weights_only=True`` keeps its promise.
    """
    reconstruct, scalar = np.zeros(1).__reduce__()[0], np.float64(0).__reduce__()[0]
    allowed: list[Any] = [
        argparse.Namespace,  # models with add_args, such as fairseq's lstm, keep their options in one
        # The score that --eval-bleu measures is a numpy number.
        np.ndarray,
        np.dtype,
        *(type(np.dtype(name)) for name in ("bool", "int32", "int64", "float16", "float32", "float64")),
        # Resuming in several processes broadcasts the checkpoint with its configuration already made.
        omegaconf.DictConfig,
        omegaconf.ListConfig,
        omegaconf.AnyNode,
        omegaconf.base.ContainerMetadata,
        omegaconf.base.Metadata,
        collections.defaultdict,
        dict,
        list,
        int,
        distributed_utils._TensorPlaceholder,
    ]
    renamed: list[tuple[Any, str]] = [(typing.Any, "typing.Any")]
    for package in "numpy.core.multiarray", "numpy._core.multiarray":  # before numpy 2, and since
        renamed += [(reconstruct, f"{package}._reconstruct"), (scalar, f"{package}.scalar")]
    if torch.__version__ < (2, 6):  # which takes no names, and asks what it is given for its own
        renamed = [value if value is typing.Any else _under_name(value, name) for value, name in renamed]
    torch.serialization.add_safe_globals([*allowed, *renamed])


def _under_name(function: Callable, name: str) -> Callable:
    """A function that does the same and says that it is called ``name``."""

    def renamed(*args: Any) -> Any:
        return function(*args)

    renamed.__module__, _, renamed.__name__ = name.rpartition(".")
    return renamed


# --------------------------------------------------------------------------------------------------------- data


def restore_numpy_aliases() -> None:
    """Gives back the names that fairseq's data code still uses and numpy has dropped.

    Names of numpy itself (1.24 and 2.0 dropped them), and the ``interpolation`` of ``np.percentile`` (2.4), which
    ``--num-batch-buckets`` comes to.
    """
    for name, value in ("int", int), ("float", float):
        if name not in vars(np):
            setattr(np, name, value)
    if not hasattr(np, "compat"):
        np.compat = types.SimpleNamespace(long=int)

    def build(_get_buckets: Callable) -> Callable:
        def get_buckets(sizes: np.ndarray, num_buckets: int) -> np.ndarray:
            return np.unique(np.percentile(sizes, np.linspace(0, 100, num_buckets + 1), method="lower")[1:])

        return get_buckets

    if "interpolation" not in inspect.signature(np.percentile).parameters:
        for module in data_utils, bucket_pad_length_dataset:  # the second imports it by name
            _replace(module, "get_buckets", build)


def keep_last_batch() -> None:
    """Gives back the last batch, which fairseq-fixed drops when its size is no multiple of the required one.

    Without it training, validation and generation silently leave out the sentences of that batch. fairseq 0.12.2
    keeps them. Every caller reads the function from ``data_utils``.
    """
    probe = np.arange(3)
    batches = data_utils.batch_by_size(probe, None, np.ones_like(probe), required_batch_size_multiple=8)
    if sum(map(len, batches)) == len(probe):
        return

    def build(batch_by_size: Callable) -> Callable:
        def keeping_last_batch(
            indices: Sequence[int],
            num_tokens_fn: Callable[[int], int] | None,
            num_tokens_vec: Sequence[int] | None = None,
            max_tokens: int | None = None,
            max_sentences: int | None = None,
            required_batch_size_multiple: int = 1,
            fixed_shapes: Sequence[tuple[int, int]] | None = None,
        ) -> list[np.ndarray]:
            if not isinstance(indices, np.ndarray):
                indices = np.fromiter(indices, dtype=np.int64, count=-1)
            if len(indices) == 0:
                return []
            batches = batch_by_size(
                indices,
                num_tokens_fn,
                num_tokens_vec,
                max_tokens,
                max_sentences,
                required_batch_size_multiple,
                fixed_shapes,
            )
            if fixed_shapes is not None:
                return batches
            # The batches are consecutive pieces of the indices, each within the limits; what is missing at the end
            # was one of them.
            kept = sum(map(len, batches))
            return [*batches, indices[kept:]] if kept < len(indices) else batches

        return keeping_last_batch

    _replace(data_utils, "batch_by_size", build)


def keep_batches_when_resuming() -> None:
    """Makes a training that is resumed in a later epoch see the batches of one that was never interrupted.

    fairseq-fixed seeds the choice of batches with the epoch in which it makes them, and then keeps them for all
    epochs: those of epoch 1 in an uninterrupted training, others in a resumed one. fairseq 0.12.2 does not.
    """
    if "rebuild_batches" not in FairseqTask.get_batch_iterator.__code__.co_consts:
        return

    def build(get_batch_iterator: Callable) -> Callable:
        signature = inspect.signature(get_batch_iterator)

        def get(self: FairseqTask, *args: Any, **keywords: Any) -> Any:
            call = signature.bind(self, *args, **keywords)
            call.apply_defaults()
            asked = call.arguments
            made_for_each_epoch = (
                asked["disable_iterator_cache"]
                or asked["update_epoch_batch_itr"]
                or getattr(self.cfg, "rebuild_batches", False)
                or not self.can_reuse_epoch_itr(asked["dataset"])
            )
            if made_for_each_epoch:
                return get_batch_iterator(*call.args, **call.kwargs)
            seed = asked["seed"]
            asked["seed"] = seed + 1 - asked["epoch"]  # fairseq adds the epoch
            iterator = get_batch_iterator(*call.args, **call.kwargs)
            iterator.seed = seed  # the order of the batches does depend on the epoch
            return iterator

        return get

    _replace(FairseqTask, "get_batch_iterator", build)


# ------------------------------------------------------------------------------- data-parallel training on CPUs


def train_data_parallel_on_cpu() -> None:
    """Lets ``--cpu --distributed-world-size N`` train with N processes that talk through gloo.

    fairseq starts a process for each GPU, hands torch's DistributedDataParallel a GPU number, and gathers logging
    outputs in GPU memory. What runs on GPUs is left as it is.
    """
    _replace(distributed_utils, "call_main", _starting_cpu_processes)
    _replace(distributed_utils, "all_gather_list", _gathering_in_main_memory)
    _replace(distributed_fairseq_model, "DistributedDataParallel", _without_devices_on_cpu)


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
    """One of several processes on this machine. That it is found in this module is what makes the repairs here too."""
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
            gather._buffer = torch.empty(size, dtype=torch.uint8)
            gather._cpu_buffer = torch.empty(max_size, dtype=torch.uint8)
        return all_gather_list(data, group, max_size)

    return gather


def _without_devices_on_cpu(data_parallel: type) -> type:
    class DataParallel(data_parallel):
        def __init__(self, module: torch.nn.Module, device_ids: Any = None, output_device: Any = None, **options: Any):
            if all(parameter.device.type == "cpu" for parameter in module.parameters()):
                device_ids = output_device = None
            super().__init__(module, device_ids=device_ids, output_device=output_device, **options)

    return DataParallel


# --------------------------------------------------------------------------------------------------------- bf16


def allow_bfloat16_without_tpu() -> None:
    """Lets ``--bf16`` and ``--memory-efficient-bf16`` run on what is there; fairseq takes them for a wish for a TPU."""

    def build(parse_args_and_arch: Callable) -> Callable:
        def parse(parser: argparse.ArgumentParser, input_args: list[str] | None = None, *rest: Any, **keywords: Any):
            parsed = parse_args_and_arch(parser, input_args, *rest, **keywords)
            args = parsed[0] if isinstance(parsed, tuple) else parsed
            asked_for_tpu = "--tpu" in (sys.argv if input_args is None else input_args)
            if getattr(args, "bf16", False) and not asked_for_tpu and (utils.xm is None or getattr(args, "cpu", False)):
                args.tpu = False
            return parsed

        return parse

    _replace(options, "parse_args_and_arch", build)


# ------------------------------------------------------------------------- alignments and unknown word replacement


def repair_alignments() -> None:
    """Undoes the shift of alignments where a model pads the source on the other side than the data (fairseq #3625).

    fairseq's ``lstm`` turns left-padded sources to right-padded ones and returns its attention so. A model never
    attends to padding, so attention there tells that it is shifted by the length of the padding.
    """

    def build(extract: Callable) -> Callable:
        def extract_unshifted(attn, src_sent, tgt_sent, pad, eos):
            padding = src_sent.eq(pad)
            length = int(padding.sum())
            if length > 0 and attn[:, padding].any():
                attn = attn.roll(length if padding[0] else -length, dims=1)
            return extract(attn, src_sent, tgt_sent, pad, eos)

        return extract_unshifted

    _replace(utils, "extract_hard_alignment", build)
    _replace(utils, "extract_soft_alignment", build)


def repair_unknown_word_replacement() -> None:
    """Makes ``--replace-unk [DICTIONARY]`` of fairseq-generate and -interactive work, with any model with attention.

    Each unknown token of a translation becomes the source token that it attends to most, or what the alignment
    dictionary says for that token. Tokens are those that the model sees, so with BPE pieces of words are copied before
    ``--post-process`` joins them. fairseq looks up positions of pieces among words, fails with ``--print-alignment``
    and without, takes the option without a dictionary for a file named "@@ ", and in fairseq-interactive copies
    ``<unk>``.

    The text of an unknown source token is what fairseq-interactive reads, or what ``--dataset-impl raw`` holds.
    Binarised data do not keep it: fairseq-generate accepts them here, replaces what attends to a known source token,
    leaves the rest ``<unk>``, and warns with their number.
    """
    _replace(utils, "load_align_dict", _without_dictionary)
    _replace(BaseFairseqModel, "prepare_for_inference_", _showing_attention)
    _replace(FairseqTask, "inference_step", _attaching_sources)
    _replace(utils, "post_process_prediction", _replacing_unknown_words)
    # The command that runs has been imported before its --user-dir, as __main__ with python -m. Importing the others
    # from here would set up logging for them.
    commands = {name: sys.modules.get(name) for name in ("fairseq_cli.generate", "fairseq_cli.interactive")}
    main = sys.modules["__main__"]
    if getattr(getattr(main, "__spec__", None), "name", None) in commands:
        commands["__main__"] = main
    for module in filter(None, commands.values()):
        _replace(module, "main", _remembering_replacement)
        if hasattr(module, "make_batches"):
            _replace(module, "make_batches", _remembering_lines)


class _Replacement:
    """What ``--replace-unk`` of the command that runs asks for.

    Attributes:
        dictionary: from a source token to what replaces it, for those that are not copied
        lines: the source texts of the present batch, as the model's tokens, where they are known without the data set
        left: how many unknown tokens had to stay
    """

    def __init__(self, dictionary: dict[str, str]) -> None:
        self.dictionary = dictionary
        self.lines: list[str] | None = None
        self.left = 0


_replacement: _Replacement | None = None


class _SourceAlignment(list):
    """A hypothesis' alignment as fairseq prints it, and with it what replacing needs.

    Attributes:
        source: the source tokens; None where an unknown token's text is not known
        position: from the position of an unknown target token to that of the source token
    """

    def __init__(self, printed: Any, source: list[str | None], position: dict[int, int]) -> None:
        super().__init__(printed if isinstance(printed, list) else [])
        self.source = source
        self.position = position


def _without_dictionary(load_align_dict: Callable) -> Callable:
    def load(replace_unk: str | None) -> dict[str, str] | None:
        return load_align_dict("" if replace_unk == "@@ " else replace_unk)

    return load


def _remembering_replacement(main: Callable) -> Callable:
    def run(cfg: argparse.Namespace | omegaconf.DictConfig, *rest: Any, **keywords: Any) -> Any:
        global _replacement
        if isinstance(cfg, argparse.Namespace):
            cfg = convert_namespace_to_omegaconf(cfg)
        if cfg.generation.replace_unk is None:
            return main(cfg, *rest, **keywords)
        _replacement = _Replacement(utils.load_align_dict(cfg.generation.replace_unk))
        if main.__module__ != "fairseq_cli.interactive" and cfg.dataset.dataset_impl != "raw":
            cfg = copy.deepcopy(cfg)
            cfg.generation.replace_unk = None  # fairseq-generate refuses it without raw text
        try:
            result = main(cfg, *rest, **keywords)
            if _replacement.left:
                logger.warning(
                    f"--replace-unk: {_replacement.left} unknown words stay, because the words that they attend to "
                    f"are unknown too and binarised data do not keep their text; "
                    f"use fairseq-interactive, or --dataset-impl raw with data preprocessed so"
                )
            return result
        finally:
            _replacement = None

    return run


def _remembering_lines(make_batches: Callable) -> Callable:
    def make(lines: list[str], cfg: Any, task: FairseqTask, max_positions: Any, encode_fn: Callable) -> Iterator[Any]:
        for batch in make_batches(lines, cfg, task, max_positions, encode_fn):
            if _replacement is not None:
                _replacement.lines = [encode_fn(lines[number]) for number in batch.ids.tolist()]
            yield batch

    return make


def _showing_attention(prepare_for_inference_: Callable) -> Callable:
    def prepare(self: BaseFairseqModel, cfg: omegaconf.DictConfig) -> None:
        if _replacement is not None:
            cfg = copy.deepcopy(cfg)
            cfg.generation.print_alignment = "hard"  # what makes models such as lstm compute it
        prepare_for_inference_(self, cfg)

    return prepare


def _attaching_sources(inference_step: Callable) -> Callable:
    def infer(self: FairseqTask, generator: Any, models: Any, sample: dict[str, Any], *rest: Any, **keywords: Any):
        hypotheses = inference_step(self, generator, models, sample, *rest, **keywords)
        if _replacement is None:
            return hypotheses
        dictionary = self.target_dictionary
        pad, eos, unknown = dictionary.pad(), dictionary.eos(), dictionary.unk()
        for row, tokens in enumerate(sample["net_input"]["src_tokens"].cpu()):
            source = _source_tokens(self, sample, row, tokens)
            for hypothesis in hypotheses[row]:
                position: dict[int, int] = {}
                if hypothesis["tokens"].eq(unknown).any():
                    pairs = hypothesis["alignment"]
                    if not (isinstance(pairs, list) and pairs and isinstance(pairs[0], tuple)):
                        pairs = _hard_alignment(hypothesis, tokens, pad, eos)
                    position = {target: source for source, target in pairs}
                hypothesis["alignment"] = _SourceAlignment(hypothesis["alignment"], source, position)
        return hypotheses

    return infer


def _hard_alignment(hypothesis: dict[str, Any], source: torch.Tensor, pad: int, eos: int) -> list[tuple[int, int]]:
    attention = hypothesis["attention"]
    if attention is None or attention.numel() == 0:
        raise ValueError("--replace-unk needs a model with attention to the source, and this one shows none")
    return utils.extract_hard_alignment(attention.t().cpu(), source, hypothesis["tokens"].cpu(), pad, eos)


def _source_tokens(task: FairseqTask, sample: dict[str, Any], row: int, tokens: torch.Tensor) -> list[str | None]:
    """The source tokens of a batch's row, without padding and end of sentence; None for an unknown text."""
    dictionary = task.source_dictionary
    kept = [token for token in tokens.tolist() if token not in (dictionary.pad(), dictionary.eos())]
    text = None
    if _replacement.lines is not None:
        text = _replacement.lines[row]
    else:
        for dataset in task.datasets.values():
            if hasattr(getattr(dataset, "src", None), "get_original_text"):
                text = dataset.src.get_original_text(int(sample["id"][row]))
    words = None if text is None else tokenize_line(text)
    if words is not None and len(words) == len(kept):
        return words
    return [None if token == dictionary.unk() else dictionary[token] for token in kept]


def _replacing_unknown_words(post_process_prediction: Callable) -> Callable:
    def post_process(
        hypo_tokens, src_str, alignment, align_dict, tgt_dict, remove_bpe=None, extra_symbols_to_ignore=None
    ):
        if _replacement is None or alignment is None:
            return post_process_prediction(
                hypo_tokens, src_str, alignment, align_dict, tgt_dict, remove_bpe, extra_symbols_to_ignore
            )
        if not isinstance(alignment, _SourceAlignment):
            raise ValueError("--replace-unk does not work with this task, which decodes in a way of its own")
        hidden = {tgt_dict.eos(), tgt_dict.bos(), *(extra_symbols_to_ignore or ())}
        words = []
        position = 0
        for token in hypo_tokens.tolist():
            if token not in hidden:
                word = tgt_dict[token]
                if token == tgt_dict.unk():
                    word = alignment.source[alignment.position[position]] if position in alignment.position else None
                    if word is None:
                        word = tgt_dict.unk_string()
                        _replacement.left += 1
                    else:
                        word = _replacement.dictionary.get(word, word)
                words.append(word)
            position += token not in (tgt_dict.eos(), tgt_dict.pad())
        hypo_str = data_utils.post_process(" ".join(words), remove_bpe)
        return tgt_dict.encode_line(hypo_str, add_if_not_exist=True), hypo_str, alignment

    return post_process


# ------------------------------------------------------------------------------------------- fairseq's transformer


def avoid_transformer_fast_path(layer: type) -> None:
    """Keeps fairseq 0.12.2's transformer encoder off a fused kernel whose arguments changed in PyTorch 1.13.

    It fails in generation: "Mask Type should be defined". fairseq-fixed has no such path.
    """
    if "can_use_fastpath" not in layer.__init__.__code__.co_names:
        return

    def build(init: Callable) -> Callable:
        def initialise(self: torch.nn.Module, *args: Any, **keywords: Any) -> None:
            init(self, *args, **keywords)
            self.can_use_fastpath = False

        return initialise

    _replace(layer, "__init__", build)
