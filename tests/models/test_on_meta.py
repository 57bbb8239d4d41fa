"""Every architecture trains, validates and decodes without a tensor left on the CPU, and without waiting for the GPU.

The tensors are on PyTorch's ``meta`` device, in whose place a GPU's would be (``transfers.py``). Models are made on the
CPU and moved, as in a training.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from fairseq import utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data import BaseWrapperDataset, Dictionary, LanguagePairDataset, ListDataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.optim import OPTIMIZER_REGISTRY
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from fairseq.trainer import Trainer
from omegaconf import DictConfig
from torch import Tensor

from fairseq_plugins.models.presets import PRESETS
from fairseq_plugins.tasks.long_memory import LongMemoryConfig, LongMemoryTask, PixelDataset
from fairseq_plugins.tasks.reading_comprehension import (
    ReadingComprehensionConfig,
    ReadingComprehensionTask,
    ReadingDataset,
)
from fairseq_plugins.tasks.sequence_classification import SequenceClassificationConfig, SequenceClassificationTask
from fairseq_plugins.tasks.sequence_ranking import SequenceRankingConfig, SequenceRankingTask
from fairseq_plugins.tasks.streaming_language_modeling import (
    StreamingLanguageModelingConfig,
    StreamingLanguageModelingTask,
)
from fairseq_plugins.tasks.streams import Text
from fairseq_plugins.tasks.waveform_classification import (
    WaveformClassificationConfig,
    WaveformClassificationTask,
    WindowDataset,
)

from .transfers import META, OnGPU, Transfers

PACKAGE = "fairseq_plugins"
WORDS, LABELS = 12, 3
LENGTHS = (3, 1, 2)

UPDATE = {
    "trainer.train_step": "whether the norm of the gradients is a number, before anything changes",
    "trainer._reduce_and_log_stats": "the same, for the log",
}
"""What fairseq reads back in every update, once each, and why."""
LOG = {
    "meters.safe_round": "each number of the log is rounded",
    "streaming_language_modeling.reduce_metrics": "losses of a validation keep digits that float32 has not",
    "sequence_classification.reduce_metrics": "each number of the log is a Python number",
    "answer_span.reduce_metrics": "each number of the log is a Python number",
    "ranking_hinge.reduce_metrics": "each number of the log is a Python number",
    "ranking_hinge.of_scores": "MAP and MRR of a validation are computed on the CPU",
    "fp16_optimizer.clip_grad_norm": "the scale of float16's gradients goes into how they are clipped",
    "dynamic_loss_scaler.check_overflow": "whether numbers in float16 have overflowed, before anything changes",
}
"""What is read back beside: when it is, nothing is left that the GPU could do meanwhile."""
OF_FAIRSEQ = {
    "transformer_encoder.forward_scriptable": "whether there is padding",
    "transformer_decoder.extract_features_scriptable": "whether there is padding",
    "fconv.forward": "whether there is padding",
    "transformer_decoder.buffered_future_mask": "a mask that is made on the CPU once",
}
"""What fairseq's own models read back, or copy, within a pass."""
OF_ASGD = {"fairseq_optimizer.step": "PyTorch's ASGD reads how many updates each parameter has had"}
"""What one optimizer reads back."""
MOST_READ_BACK = 8
"""Numbers, in an update or in a batch of a validation."""


class Work(NamedTuple):
    """A task with batches of training and validation, and the criterion that its configurations have."""

    task: FairseqTask
    training: dict[str, Any]
    validation: dict[str, Any]
    criterion: str


def words(number: int) -> Dictionary:
    dictionary = Dictionary()
    for index in range(number - len(dictionary)):
        dictionary.add_symbol(f"w{index}")
    return dictionary


def texts(seed: int = 0, end: bool = False) -> ListDataset:
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(4, WORDS, (length,), generator=generator) for length in LENGTHS]
    rows = [torch.cat([row, torch.tensor([2])]) if end else row for row in rows]
    return ListDataset(rows, [len(row) for row in rows])


def collated(dataset: Any) -> dict[str, Any]:
    batch: dict[str, Any] = dataset.collater([dataset[index] for index in range(len(dataset))])
    return batch


def translation(arch: str) -> Work:
    # Models that share all embeddings have one dictionary.
    dictionary = words(WORDS)
    task = TranslationTask(TranslationConfig(data=""), dictionary, dictionary)
    source, target = texts(0, end=True), texts(1, end=True)
    pairs = LanguagePairDataset(source, source.sizes, dictionary, target, target.sizes, dictionary)
    return Work(task, collated(pairs), collated(pairs), "output_cross_entropy")


def streams(arch: str) -> Work:
    dictionary = words(WORDS)
    task = StreamingLanguageModelingTask(
        StreamingLanguageModelingConfig(data="", tokens_per_sample=4, seed=1), dictionary
    )
    text = torch.randint(4, WORDS, (20,))
    batches = [
        collated_windows(task.windows(Text(text, dictionary.eos(), dictionary.pad(), is_training), 3))
        for is_training in (True, False)
    ]
    return Work(task, *batches, "output_cross_entropy")


def collated_windows(windows: Any) -> dict[str, Any]:
    # The last window, which has padding.
    sample: dict[str, Any] = windows.collater([windows[len(windows) - 1]])
    return {**sample, "window": 0}


def _labels() -> Dictionary:
    dictionary = Dictionary()
    for label in range(LABELS):
        dictionary.add_symbol(str(label))
    return dictionary


def classification(arch: str) -> Work:
    cfg = SequenceClassificationConfig(data="", seed=1)
    task = SequenceClassificationTask(cfg, words(WORDS), _labels(), None)
    task.inputs = ["input0", "input1"] if "pair" in ARCH_MODEL_NAME_REGISTRY[arch] else ["input0"]
    sides = [texts(number) for number in range(len(task.inputs))]
    target = BaseWrapperDataset([torch.tensor([label]) for label in range(LABELS)])
    batches = [collated(task.examples(sides, (), target, is_training)) for is_training in (True, False)]
    return Work(task, *batches, "sequence_classification")


def ranking(arch: str) -> Work:
    task = SequenceRankingTask(SequenceRankingConfig(data="", seed=1, negatives=2), words(WORDS), _labels(), None)
    task.inputs = ["input0", "input1"]
    is_right, groups = np.array([True, False, False]), np.array([0, 0, 1])
    batches = [
        collated(task.examples([texts(0), texts(1)], is_right, groups, is_training)) for is_training in (True, False)
    ]
    return Work(task, *batches, "ranking_hinge")


def long_memory(arch: str) -> Work:
    task = LongMemoryTask(LongMemoryConfig(data="", problem="pixels", sequence_length=4, seed=1))
    pixels, digits = np.zeros((3, 4), dtype=np.uint8), np.arange(3)
    batch = collated(PixelDataset(pixels, digits, 4, (1,), is_renewed=False, order=None))
    return Work(task, batch, batch, "sequence_classification")


def reading(arch: str) -> Work:
    task = ReadingComprehensionTask(ReadingComprehensionConfig(data="", seed=1), words(WORDS))
    spans = np.array([[0, 1], [0, 0], [-1, -1]])
    batch = collated(ReadingDataset(texts(0), texts(1), np.array([0, 2, 2]), spans, task.dictionary.pad()))
    return Work(task, batch, batch, "answer_span")


def waveforms(arch: str) -> Work:
    # Each number is a step of a network that reads them one by one; the others need a few frames.
    width = 8 if arch == "waveform_classifier" else 480
    task = WaveformClassificationTask(WaveformClassificationConfig(data="", window=width, seed=1), _labels())
    windows = np.array([[0, width, 0, label] for label in range(LABELS)])
    batch = collated(WindowDataset(np.arange(width, dtype=np.int16), windows, width, (1,), is_renewed=False))
    return Work(task, batch, batch, "sequence_classification")


WORK: dict[str, tuple[Callable[[str], Work], tuple[str, ...]]] = {
    "translation": (translation, ("recurrent_seq2seq", "double_path", "fconv", "transformer", "lstm")),
    "streaming_language_modeling": (streams, ("recurrent_lm",)),
    "sequence_classification": (classification, ("sequence_classifier", "sequence_pair_classifier")),
    "sequence_ranking": (ranking, ("sequence_ranker",)),
    "long_memory": (long_memory, ("long_memory_network",)),
    "reading_comprehension": (reading, ("reading_comprehension",)),
    "waveform_classification": (waveforms, ("waveform_classifier",)),
}
"""Each task: what makes a batch of it, and the models that it trains."""


def work_of(arch: str) -> Work:
    return next(make(arch) for make, models in WORK.values() if ARCH_MODEL_NAME_REGISTRY[arch] in models)


def is_ours(entry: Any) -> bool:
    return bool(entry.__module__.startswith(f"{PACKAGE}."))


VARIABLE = "FAIRSEQ_PLUGINS_META"
SIZES = ("layers", "size", "dim", "heads", "dropout", "channels", "order")
"""How options end that say how large a network is, and not what it computes."""


def architectures() -> Iterator[Any]:
    """Ours and the papers' baselines. One of each kind is no slow test; another size of one that is here takes the same
    operations, and minutes."""
    operations, kinds = set(), set()
    for arch, model in ARCH_MODEL_REGISTRY.items():
        if arch not in PRESETS and not is_ours(model):
            continue
        name = ARCH_MODEL_NAME_REGISTRY[arch]
        overrides = PRESETS[arch].overrides if arch in PRESETS else {}
        computed = (
            name,
            arch in PRESETS,
            *((key, overrides[key]) for key in sorted(overrides) if not key.endswith(SIZES)),
        )
        kind = overrides.get("encoder_recurrent_layer", "lstm")
        marks = [pytest.mark.slow if (name, kind) in kinds else pytest.mark.system]
        if computed in operations:
            marks.append(pytest.mark.skipif(VARIABLE not in os.environ, reason=f"another size: say {VARIABLE}=1"))
        operations.add(computed)
        kinds.add((name, kind))
        yield pytest.param(arch, marks=marks)


@cache
def configuration(arch: str, criterion: str, optimizer: str = "adam", **options: Any) -> DictConfig:
    """That of a training, as fairseq-train makes it."""
    from argparse import Namespace

    args = Namespace(
        **{"max_source_positions": 1024, "max_target_positions": 1024, "lr": [0.1], "clip_norm": 1.0, **options},
        arch=arch,
        task="translation",
        criterion=criterion,
        optimizer=optimizer,
        lr_scheduler="fixed",
        data="",
        cpu=True,
        distributed_world_size=1,
    )
    ARCH_CONFIG_REGISTRY[arch](args)
    return convert_namespace_to_omegaconf(args)


def moved(sample: dict[str, Any]) -> dict[str, Any]:
    batch: dict[str, Any] = utils.apply_to_sample(lambda tensor: tensor.to(META), copy.deepcopy(sample))
    return batch


class MetaTrainer(Trainer):
    """fairseq's Trainer, on the ``meta`` device."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]  # an attribute there
        return META

    @device.setter
    def device(self, value: torch.device) -> None:
        pass

    def clip_grad_norm(self, clip_norm: float) -> Tensor:
        # fairseq adds the norms up on the GPU of this machine, or else on the CPU.
        with OnGPU():
            norm: Tensor = super().clip_grad_norm(clip_norm)
        return norm

    def save_checkpoint(self, *_: Any) -> None:
        """After an error there is nothing to save."""


def trainer_of(arch: str, work: Work, criterion: str | None = None, **options: Any) -> MetaTrainer:
    cfg = configuration(arch, criterion or work.criterion, **options)
    model = work.task.build_model(cfg.model)
    return MetaTrainer(cfg, work.task, model, work.task.build_criterion(cfg.criterion))


@pytest.fixture(autouse=True)
def _own_meters() -> Iterator[None]:
    # What is validated goes to meters that outlive a training; those of one on the CPU would be copied.
    metrics.reset()
    yield
    metrics.reset()


def steps(trainer: MetaTrainer, work: Work) -> tuple[Transfers, Transfers]:
    """An update and a validation: what each transfers."""
    training, validation = Transfers(), Transfers()
    batches = moved(work.training), moved(work.validation)
    with OnGPU():
        assert trainer.optimizer is not None  # made now
    with training:
        trainer.train_step([batches[0]])
    assert all(parameter.is_meta for parameter in trainer.get_model().parameters())
    assert trainer.get_num_updates() == 1
    with validation:
        trainer.valid_step(batches[1])
    return training, validation


def check(training: Transfers, validation: Transfers, own: Mapping[str, str] | None = None) -> None:
    """Raises AssertionError where something is transferred that neither ``own`` nor a table of every model's has."""
    own = own or {}
    assert UPDATE.keys() <= training.read_back.keys() <= {*UPDATE, *LOG, *own}
    assert {training.read_back[name] for name in UPDATE} == {1}
    assert validation.read_back.keys() <= {*LOG, *own}
    assert training.copied.keys() | validation.copied.keys() <= own.keys()
    for transfers in (training, validation):
        assert sum(count for name, count in transfers.read_back.items() if name not in own) <= MOST_READ_BACK


@pytest.mark.parametrize("arch", architectures())
def test_every_architecture(arch: str) -> None:
    work = work_of(arch)
    check(*steps(trainer_of(arch, work), work), {} if is_ours(ARCH_MODEL_REGISTRY[arch]) else OF_FAIRSEQ)


SMALL = {
    **{f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in (("layers", 1), ("hidden_size", 4))},
    "encoder_embed_dim": 4,
    "decoder_embed_dim": 4,
}
TRANSLATION = ("rnnsearch_iwslt_de_en", SMALL)
STREAMS = ("recurrent_lm", {"decoder_layers": 1, "decoder_hidden_size": 4, "decoder_embed_dim": 4})

CRITERIA: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "output_cross_entropy": (TRANSLATION, STREAMS),
    "r_drop": (TRANSLATION,),
    "activation_regularized_cross_entropy": (STREAMS,),
    "sequence_classification": (("bilstm_classifier", {"hidden_size": 4, "embed_dim": 4}),),
    "ranking_hinge": (("bilstm_ranking", {"hidden_size": 4, "embed_dim": 4}),),
    "answer_span": (("rnet_1", {"hidden_size": 4, "embed_dim": 4, "character_hidden_size": 2}),),
    # fairseq's own, which configurations have too.
    "cross_entropy": (TRANSLATION, STREAMS),
    "label_smoothed_cross_entropy": (TRANSLATION,),
}
"""Models, with sizes, that each criterion trains."""


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_criterion(criterion: str) -> None:
    """With label smoothing and without, where there is any."""
    for arch, sizes in CRITERIA[criterion]:
        work = work_of(arch)
        has_smoothing = arch != STREAMS[0] and hasattr(configuration(arch, criterion).criterion, "label_smoothing")
        for smoothing in (0.0, 0.1) if has_smoothing else (None,):
            options = {} if smoothing is None else {"label_smoothing": smoothing}
            if criterion == "activation_regularized_cross_entropy":
                options = {"activation_regularization": 2.0, "temporal_activation_regularization": 1.0}
            check(*steps(trainer_of(arch, work, criterion, **sizes, **options), work))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "adadelta", "asgd", "nag", "rmsprop", "sgd"])
def test_every_optimizer(optimizer: str) -> None:
    arch, sizes = STREAMS
    work = work_of(arch)
    momentum = {"momentum": 0.9, "rmsprop_momentum": 0.9, "weight_decay": 0.1}
    trainer = trainer_of(arch, work, optimizer=optimizer, **sizes, **momentum)
    check(*steps(trainer, work), OF_ASGD if optimizer == "asgd" else {})


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision(precision: str) -> None:
    for arch, sizes in TRANSLATION, STREAMS:
        work = work_of(arch)
        trainer = trainer_of(arch, work, **sizes, **{precision: True})
        assert next(trainer.get_model().parameters()).dtype != torch.float32
        check(*steps(trainer, work))


def decoders() -> Iterator[Any]:
    """Those of ours that beam search calls."""
    for parameters in architectures():
        arch = parameters.values[0]
        if ARCH_MODEL_NAME_REGISTRY[arch] in ("recurrent_seq2seq", "double_path"):
            is_quick = arch in ("mc_rnn_iwslt_de_en", "double_path")
            others = [mark for mark in parameters.marks if mark.name == "skipif"]
            yield pytest.param(arch, marks=[pytest.mark.system if is_quick else pytest.mark.slow, *others])


@pytest.mark.parametrize("arch", decoders())
def test_steps_of_beam_search(arch: str) -> None:
    """Two numbers are read back in each: whether sentences have left, of what the encoder and the decoder keep."""
    work = work_of(arch)
    model = work.task.build_model(configuration(arch, work.criterion).model).eval()
    inputs, beam, rows = work.validation["net_input"], 2, len(LENGTHS)
    with torch.no_grad():
        encoded = model.encoder(inputs["src_tokens"], inputs["src_lengths"])
        # Once for a batch.
        repeated = model.encoder.reorder_encoder_out(encoded, torch.arange(rows).repeat_interleave(beam))
    model, inputs, repeated = model.to(META), moved(inputs), moved(repeated)
    order, tokens = (torch.zeros(shape, dtype=torch.long, device=META) for shape in (rows * beam, (rows * beam, 1)))
    incremental_state: dict[str, dict[str, Any]] = {}
    with torch.no_grad(), Transfers() as transfers:
        assert all(tensor.is_meta for tensors in model.encoder(**inputs).values() for tensor in tensors)
        assert not transfers.read_back
        for step in range(1, 4):
            logits, extra = model.decoder(tokens, repeated, incremental_state)
            scores = model.get_normalized_probs((logits, extra), log_probs=True)
            assert scores.is_meta and scores.shape == (rows * beam, 1, WORDS)
            model.decoder.reorder_incremental_state_scripting(incremental_state, order)
            repeated = model.encoder.reorder_encoder_out(repeated, order)
            tokens = torch.cat([tokens, scores[:, -1].argmax(-1, keepdim=True)], dim=1)
            assert transfers.read_back == {"beam_groups.regroup": 2 * step}
    assert not transfers.copied


def test_every_registry_is_covered() -> None:
    """What is new needs a row: a task in WORK, a model beside it, a criterion in CRITERIA, an optimizer in its test."""
    assert {name for name, task in TASK_REGISTRY.items() if is_ours(task)} <= WORK.keys()
    models = {name for _, of_task in WORK.values() for name in of_task}
    assert {ARCH_MODEL_NAME_REGISTRY[parameters.values[0]] for parameters in architectures()} <= models
    assert {name for name, criterion in CRITERION_REGISTRY.items() if is_ours(criterion)} <= CRITERIA.keys()
    optimizers = next(mark.args[1] for mark in test_every_optimizer.pytestmark if mark.args)  # type: ignore[attr-defined]  # pytest adds it
    assert {name for name, optimizer in OPTIMIZER_REGISTRY.items() if is_ours(optimizer)} <= {*optimizers}


def test_what_is_left_on_the_cpu_is_noticed() -> None:
    x = torch.zeros(3, device=META)
    with pytest.raises(AssertionError, match=r"\(3,\) is on the CPU"), Transfers():
        x.index_select(0, torch.arange(3))
    with Transfers() as transfers:
        assert float(x.sum()) == 1.0 and bool((x > 0).any()) and x.cpu().tolist() == [0.0] * 3
        x.to("cpu")
        torch.arange(3).to(META)
    assert (sum(transfers.read_back.values()), sum(transfers.copied.values())) == (4, 1)
