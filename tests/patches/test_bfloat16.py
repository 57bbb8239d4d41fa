"""Training in bfloat16 on the CPU."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fairseq import options

from fairseq_plugins.patches.bfloat16 import allow_bfloat16_without_tpu
from tests.commands import train_in_process

from .unpatched import needless

TINY_LSTM = (
    "--arch lstm --encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-hidden-size 16 --decoder-hidden-size 16 "
    "--decoder-out-embed-dim 16 --optimizer adam --lr 0.01 --max-tokens 400 --no-progress-bar --cpu"
).split()


@pytest.mark.system
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


def parse(*precision: str) -> argparse.Namespace:
    return options.parse_args_and_arch(options.get_training_parser(), ["data", *TINY_LSTM[:-1], *precision])


def test_fairseq_wants_a_tpu(unpatch: Callable[[object, str], None]) -> None:
    unpatch(options, "parse_args_and_arch")
    assert parse("--bf16").tpu, needless(allow_bfloat16_without_tpu)


def test_a_tpu_that_was_asked_for_stays() -> None:
    assert parse("--tpu", "--bf16").tpu and not parse("--bf16").tpu and not parse().tpu
