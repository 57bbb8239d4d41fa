"""Each repair of compat.py, with a test that fails without it. Whole commands: system/test_fairseq_commands.py."""

from __future__ import annotations

import argparse
import pickle
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import omegaconf
import pytest
import torch
from fairseq import options, utils
from fairseq.data import Dictionary, LanguagePairDataset, TokenBlockDataset, data_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.models import distributed_fairseq_model
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from hypothesis import given, settings
from hypothesis import strategies as st

import fairseq_plugins  # noqa: F401
from fairseq_plugins import compat
from tests.commands import train_in_process

TINY_LSTM = (
    "--arch lstm --encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-hidden-size 16 --decoder-hidden-size 16 "
    "--decoder-out-embed-dim 16 --optimizer adam --lr 0.01 --max-tokens 400 --no-progress-bar --cpu"
).split()


# ------------------------------------------------------------------------------------------------------------ apply


def test_applying_again_changes_nothing() -> None:
    places = [
        (data_utils, "batch_by_size"),
        (options, "parse_args_and_arch"),
        (distributed_utils, "call_main"),
        (distributed_utils, "all_gather_list"),
        (distributed_fairseq_model, "DistributedDataParallel"),
        (utils, "post_process_prediction"),
        (utils, "extract_hard_alignment"),
        (compat.FairseqTask, "inference_step"),
    ]
    before = [getattr(*place) for place in places]
    compat.apply()
    assert [getattr(*place) for place in places] == before


# ------------------------------------------------------------------------------------------------------ checkpoints


def save_and_load(value: object, folder: Path) -> object:
    torch.save(value, folder / "checkpoint.pt")
    return torch.load(folder / "checkpoint.pt", weights_only=True)


def test_loads_what_fairseq_checkpoints_hold(tmp_path: Path) -> None:
    arrays = {name: np.ones(2, name) for name in ("bool", "int32", "int64", "float16", "float32", "float64")}
    state = {
        "args": argparse.Namespace(arch="lstm", lr=[0.25]),
        "cfg": {"model": argparse.Namespace(dropout=0.1)},
        "extra_state": {"best": np.float64(12.5), "count": np.int64(3), "ratio": np.float32(0.5), **arrays},
    }
    loaded = save_and_load(state, tmp_path)
    assert loaded["args"] == state["args"] and loaded["cfg"] == state["cfg"]
    for name, value in state["extra_state"].items():
        np.testing.assert_array_equal(loaded["extra_state"][name], value, strict=True)


def test_loads_what_several_processes_send_each_other(tmp_path: Path) -> None:
    config = omegaconf.OmegaConf.create(
        {"model": argparse.Namespace(dropout=0.1), "lr": [0.1, None], "name": "x"}, flags={"allow_objects": True}
    )
    tensors: list[torch.Tensor] = []
    state = distributed_utils._split_tensors_from_obj({"cfg": config, "model": {"weight": torch.ones(2)}}, tensors)
    loaded = distributed_utils._put_tensors_in_obj(save_and_load(state, tmp_path), tensors)
    assert loaded["cfg"] == config and loaded["cfg"].lr == [0.1, None]
    assert torch.equal(loaded["model"]["weight"], torch.ones(2))


@pytest.mark.parametrize("package", ["numpy.core.multiarray", "numpy._core.multiarray"])
def test_loads_numpy_numbers_of_older_and_newer_numpy(package: str, tmp_path: Path) -> None:
    torch.save({"best": np.float64(1.5), "all": np.arange(3.0)}, tmp_path / "here.pt")
    with zipfile.ZipFile(tmp_path / "here.pt") as here, zipfile.ZipFile(tmp_path / "there.pt", "w") as there:
        for name in here.namelist():
            content = here.read(name)
            if name.endswith("data.pkl"):
                for known in b"numpy._core.multiarray", b"numpy.core.multiarray":
                    content = content.replace(b"c" + known + b"\n", b"c" + package.encode() + b"\n")
                assert package.encode() in content
            there.writestr(name, content)
    loaded = torch.load(tmp_path / "there.pt", weights_only=True)
    assert loaded["best"] == 1.5 and loaded["all"].tolist() == [0, 1, 2]


class Malicious:
    """Unpickling it runs code of the file's choosing."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple:
        return open, (str(self.target), "w")


def test_a_malicious_checkpoint_is_still_refused(tmp_path: Path) -> None:
    torch.save({"model": {}, "args": Malicious(tmp_path / "proof")}, tmp_path / "checkpoint.pt")
    refusals = [{"weights_only": True}] + [{}] * (torch.__version__ >= (2, 6))
    for keywords in refusals:
        with pytest.raises(pickle.UnpicklingError, match="weights_only|Weights only"):
            torch.load(tmp_path / "checkpoint.pt", **keywords)
    assert not (tmp_path / "proof").exists()


# ------------------------------------------------------------------------------------------------------------- data


@settings(deadline=None, max_examples=200)
@given(
    lengths=st.lists(st.integers(1, 12), max_size=60),
    max_sentences=st.none() | st.integers(1, 20),
    max_tokens=st.none() | st.integers(12, 80),
    multiple=st.sampled_from([1, 2, 8]),
    vectorised=st.booleans(),
)
def test_batches_hold_every_sentence_within_the_limits(
    lengths, max_sentences, max_tokens, multiple, vectorised
) -> None:
    indices = np.argsort(lengths, kind="stable")[::-1].astype(np.int64)
    batches = data_utils.batch_by_size(
        iter(indices),
        num_tokens_fn=lambda index: lengths[index],
        num_tokens_vec=np.array(lengths, dtype=np.int64)[indices] if vectorised else None,
        max_tokens=max_tokens,
        max_sentences=max_sentences,
        required_batch_size_multiple=multiple,
    )
    assert [index for batch in batches for index in batch] == list(indices)
    for batch in batches:
        assert len(batch) > 0
        assert max_sentences is None or len(batch) <= max_sentences
        assert max_tokens is None or len(batch) * max(lengths[index] for index in batch) <= max_tokens
        assert len(batch) < multiple or len(batch) % multiple == 0 or batch is batches[-1]


def test_batches_of_fixed_shapes_are_left_alone() -> None:
    batches = data_utils.batch_by_size(
        np.arange(5), lambda index: 3, required_batch_size_multiple=8, fixed_shapes=[(2, 4)]
    )
    assert [list(batch) for batch in batches] == [[0, 1], [2, 3], [4]]


def test_batches_are_the_same_whichever_epoch_makes_them(tiny_translation_data) -> None:
    def batches(epoch: int, **keywords: bool) -> tuple[list[list[int]], list[list[int]]]:
        config = TranslationConfig(
            data=str(tiny_translation_data.separate),
            source_lang="xx",
            target_lang="yy",
            train_subset="train",
            dataset_impl="mmap",
            required_seq_len_multiple=1,
        )
        task = TranslationTask.setup_task(config)
        task.load_dataset("train")
        iterator = task.get_batch_iterator(task.dataset("train"), max_tokens=100, epoch=epoch, **keywords)
        in_order = [sample["id"].tolist() for sample in iterator.next_epoch_itr(shuffle=True)]
        return [list(batch) for batch in iterator.frozen_batches], in_order

    first, third = batches(1), batches(3)
    assert first[0] == third[0] and first[1] != third[1]
    assert batches(1, update_epoch_batch_itr=True) == first
    assert batches(3, update_epoch_batch_itr=True)[0] != first[0]


def test_numpy_names_in_bucketed_language_pairs() -> None:
    dictionary = Dictionary()
    sentences = [torch.tensor([5] * length + [2]) for length in (1, 4, 7, 7)]
    sizes = np.array([len(sentence) for sentence in sentences])
    dataset = LanguagePairDataset(sentences, sizes, dictionary, num_buckets=2)  # --num-batch-buckets
    assert [size for _, size in dataset.buckets] == sorted({dataset.num_tokens(index) for index in range(4)})


def test_numpy_names_in_token_block_dataset() -> None:
    sizes = [3, 2]
    blocks = TokenBlockDataset([torch.arange(size) for size in sizes], sizes, None, pad=1, eos=2, break_mode="eos")
    assert [block.tolist() for block in blocks] == [[0, 1, 2], [0, 1]]


def test_numpy_names_in_mask_indices(monkeypatch) -> None:
    monkeypatch.setattr(np.random, "default_rng", np.random.RandomState)  # whose randint fairseq wants, as in 0.12.2
    mask = data_utils.compute_mask_indices((2, 20), None, mask_prob=0.5, mask_length=3, no_overlap=True, min_masks=1)
    assert mask.shape == (2, 20) and mask.any()


def test_numpy_names_in_conditional_random_field() -> None:
    from fairseq.modules.dynamic_crf_layer import DynamicCRF

    torch.manual_seed(1)
    layer = DynamicCRF(num_embedding=12, low_rank=2, beam_size=4)
    emissions, targets = torch.randn(2, 3, 12), torch.randint(0, 12, (2, 3))
    likelihood = layer(emissions, targets, torch.ones(2, 3, dtype=torch.bool), beam=4)
    assert torch.isfinite(likelihood).all()


# ------------------------------------------------------------------------------------------ data-parallel, precision


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


@pytest.mark.parametrize("precision", [["--memory-efficient-bf16"], ["--bf16", "--fp16-no-flatten-grads"], ["--bf16"]])
def test_trains_with_bfloat16_on_the_cpu(precision, tiny_translation_data, tmp_path: Path, capfd) -> None:
    from fairseq import checkpoint_utils

    train_in_process(
        tiny_translation_data.separate, *TINY_LSTM, *precision, "--max-update", "2", "--save-dir", tmp_path
    )
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert state["cfg"].common.bf16 and not state["cfg"].common.tpu
    embedding = state["model"]["encoder.embed_tokens.weight"]
    assert torch.equal(embedding, embedding.bfloat16().float()) and torch.isfinite(embedding).all()


def test_a_tpu_that_was_asked_for_stays(tiny_translation_data) -> None:
    def parse(*precision: str) -> argparse.Namespace:
        args = [str(tiny_translation_data.separate), *TINY_LSTM[:-1], *precision]
        return options.parse_args_and_arch(options.get_training_parser(), args)

    assert parse("--tpu", "--bf16").tpu and not parse("--bf16").tpu and not parse().tpu


# ------------------------------------------------------------------------------------ alignments, unknown words


def attention(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows)


@pytest.mark.parametrize("source", [[1, 1, 7, 8, 2], [7, 8, 2, 1, 1]], ids=["left-padded", "right-padded"])
@pytest.mark.parametrize("shown", ["left", "right"])
def test_alignments_do_not_depend_on_the_padding_side(source: list[int], shown: str) -> None:
    weights = attention([0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.3, 0.3, 0.4])
    padding = torch.zeros(3, 2)
    weights = torch.cat([padding, weights] if shown == "left" else [weights, padding], dim=1)
    source, target = torch.tensor(source), torch.tensor([9, 9, 2])
    assert utils.extract_hard_alignment(weights, source, target, pad=1, eos=2) == [(1, 0), (0, 1)]
    soft = utils.extract_soft_alignment(weights, source, target, pad=1, eos=2)
    assert soft[0] == ["0.100000", "0.800000", "0.100000"]


@pytest.fixture
def dictionary() -> Dictionary:
    dictionary = Dictionary()
    for word in "the cat sat@@ down".split():
        dictionary.add_symbol(word)
    return dictionary


def aligned(source: list[str | None], position: dict[int, int]) -> compat._SourceAlignment:
    return compat._SourceAlignment([], source, position)


def replaced(dictionary: Dictionary, tokens: str, alignment: object, monkeypatch, align_dict=None, **keywords) -> str:
    monkeypatch.setattr(compat, "_replacement", compat._Replacement(align_dict or {}))
    ids = torch.tensor([dictionary.index(token) for token in tokens.split()])
    new_ids, text, _ = utils.post_process_prediction(ids, "?", alignment, None, dictionary, **keywords)
    assert dictionary.string(new_ids) == text
    return text


def test_replaces_unknown_tokens_by_what_they_are_aligned_with(dictionary, monkeypatch) -> None:
    alignment = aligned(["die", "Katze", "Mia"], {0: 0, 1: 2, 2: 1})
    assert replaced(dictionary, "the <unk> <unk> </s>", alignment, monkeypatch) == "the Mia Katze"


def test_replacement_goes_through_the_alignment_dictionary(dictionary, monkeypatch) -> None:
    alignment = aligned(["die", "Katze"], {0: 0, 1: 1})
    assert replaced(dictionary, "<unk> <unk> </s>", alignment, monkeypatch, {"die": "the"}) == "the Katze"


def test_replacement_copies_pieces_before_they_are_joined(dictionary, monkeypatch) -> None:
    alignment = aligned(["Kä@@", "tz@@", "chen", "da"], {0: 0, 1: 1, 2: 2, 3: 3})
    text = replaced(dictionary, "<unk> <unk> <unk> down </s>", alignment, monkeypatch, remove_bpe="@@ ")
    assert text == "Kätzchen down"


def test_unknown_text_stays_unknown_and_is_counted(dictionary, monkeypatch) -> None:
    alignment = aligned(["die", None], {0: 1, 1: 0})
    assert replaced(dictionary, "<unk> <unk> <unk> </s>", alignment, monkeypatch) == "<unk> die <unk>"
    assert compat._replacement.left == 2


def test_tokens_that_are_not_shown_keep_their_positions(dictionary, monkeypatch) -> None:
    alignment = aligned(["xx", "yy"], {1: 1})
    text = replaced(
        dictionary, "cat <unk> </s>", alignment, monkeypatch, extra_symbols_to_ignore={dictionary.index("cat")}
    )
    assert text == "yy"


def test_a_task_that_decodes_in_its_own_way_is_refused(dictionary, monkeypatch) -> None:
    with pytest.raises(ValueError, match="--replace-unk does not work with this task"):
        replaced(dictionary, "<unk>", [(0, 0)], monkeypatch)


def test_a_model_without_attention_is_refused() -> None:
    hypothesis = {"attention": torch.empty(0), "tokens": torch.tensor([3, 2])}
    with pytest.raises(ValueError, match="needs a model with attention"):
        compat._hard_alignment(hypothesis, torch.tensor([5, 2]), pad=1, eos=2)


def test_replace_unk_without_a_dictionary_opens_no_file() -> None:
    assert utils.load_align_dict("@@ ") == {} and utils.load_align_dict(None) is None


# -------------------------------------------------------------------------------------------------------- transformer


def test_the_transformers_fast_path_is_not_taken() -> None:
    class Layer:  # as in fairseq 0.12.2
        def __init__(self, size: int, normalize_before: bool = False) -> None:
            self.size = size
            self.can_use_fastpath = not normalize_before

    compat.avoid_transformer_fast_path(Layer)
    assert Layer(3).can_use_fastpath is False and Layer(3).size == 3
    init = Layer.__init__
    compat.avoid_transformer_fast_path(Layer)
    assert Layer.__init__ is init


def test_layers_without_a_fast_path_are_left_alone() -> None:
    class Layer:
        def __init__(self) -> None:
            self.size = 3

    init = Layer.__init__
    compat.avoid_transformer_fast_path(Layer)
    assert Layer.__init__ is init


def test_commands_that_run_as_modules_are_repaired_too(monkeypatch) -> None:
    def main(cfg: object) -> object:
        return cfg

    command = SimpleNamespace(main=main, __spec__=SimpleNamespace(name="fairseq_cli.generate"))
    monkeypatch.setitem(sys.modules, "__main__", command)
    compat.repair_unknown_word_replacement()
    assert command.main is not main


def test_processes_close_their_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open one has gloo's threads abort the process now and then, after the training."""

    def train(*_: object) -> None:
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)

    monkeypatch.setattr(compat.distributed_utils, "distributed_main", train)
    compat._run_one_of_several(0, train, None, {})
    assert not torch.distributed.is_initialized()
