"""The task through fairseq's own trainer: resuming, learning rates, averages, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.optim import FairseqOptimizer
from fairseq.trainer import Trainer

from fairseq_plugins.checkpoints import read_checkpoint
from fairseq_plugins.errors import InputError
from fairseq_plugins.tasks.streaming_language_modeling import (
    StreamingLanguageModelingConfig,
    StreamingLanguageModelingTask,
)
from tests.commands import train_in_process
from tests.texts import training

# With such steps the validation loss soon rises, and averaging begins.
AVERAGED = (
    "--random-windows --optimizer asgd --lr-scheduler non_monotone --non-monotone-interval 1 --lr 15 --clip-norm 1"
)
REGULARIZED = (
    "--criterion activation_regularized_cross_entropy --activation-regularization 2 "
    "--temporal-activation-regularization 1 --dropout 0.2 --weight-dropout 0.2 --embedding-dropout 0.1"
)
RECIPE = [*AVERAGED.split(), *REGULARIZED.split()]


def train(data: Path, folder: Path, *more: object, arch: str = "recurrent_lm") -> dict[str, Any]:
    train_in_process(*training(data, folder, *more, arch=arch))
    return read_checkpoint(folder / "checkpoint_last.pt")


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    for name, value in first["model"].items():
        assert value.equal(second["model"][name]), name
    states = [checkpoint["last_optimizer_state"]["state"] for checkpoint in (first, second)]
    for parameter, state in states[0].items():
        assert all(
            torch.as_tensor(value).equal(torch.as_tensor(states[1][parameter][key])) for key, value in state.items()
        )


@pytest.fixture(scope="module")
def uninterrupted(running_text: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """After five epochs and a half."""
    return train(running_text, tmp_path_factory.mktemp("uninterrupted"), *RECIPE, "--max-update", 95)


def test_averages_validate_and_are_saved(uninterrupted: dict[str, Any]) -> None:
    state = uninterrupted["last_optimizer_state"]
    assert state["is_averaging"] and state["holds_averages"]
    assert uninterrupted["extra_state"]["train_iterator"]["iterations_in_epoch"] > 0, "in the middle of an epoch"


@pytest.mark.system
@pytest.mark.parametrize(
    "interruption",
    [["--max-update", 46], ["--max-epoch", 4], ["--max-epoch", 5], ["--max-update", 91]],
    ids=["in an epoch", "after an epoch", "after a later epoch", "while it averages"],
)
def test_interrupted_training_ends_the_same(
    running_text: Path, tmp_path: Path, uninterrupted: dict[str, Any], interruption: list[object]
) -> None:
    state = train(running_text, tmp_path, *RECIPE, *interruption)["last_optimizer_state"]
    assert state["is_averaging"] == (interruption[-1] == 91)
    assert_same(train(running_text, tmp_path, *RECIPE, "--max-update", 95), uninterrupted)


@pytest.mark.system
@pytest.mark.parametrize("is_in_an_epoch", [True, False])
def test_another_number_of_processes_goes_on_between_epochs_only(
    running_text: Path, tmp_path: Path, is_in_an_epoch: bool
) -> None:
    checkpoint = train(running_text, tmp_path, *(["--max-update", 5] if is_in_an_epoch else ["--max-epoch", 1]))
    own = checkpoint["extra_state"]["StreamingLanguageModelingTask"]
    own["states"] = own["states"] * 2
    torch.save(checkpoint, tmp_path / "edited.pt")
    (tmp_path / "edited.pt").replace(tmp_path / "checkpoint_last.pt")
    if is_in_an_epoch:
        with pytest.raises(InputError, match="by 2 processes, .* has 1: go on with as many"):
            train(running_text, tmp_path, "--max-epoch", 1)
        return
    expected = train(running_text, tmp_path / "uninterrupted", "--max-epoch", 2)
    assert_same(train(running_text, tmp_path, "--max-epoch", 2), expected)


WINDOWS = ["--random-windows", "--seed", 1]


@pytest.mark.system
@pytest.mark.parametrize(
    ("saved", "changed", "message"),
    [
        ([], ["--tokens-per-sample", 7], "--tokens-per-sample 10, and this training has --tokens-per-sample 7: "),
        (WINDOWS, ["--random-windows", "--seed", 2], "--random-windows --seed 1, .* --random-windows --seed 2: "),
        (WINDOWS, [], "--tokens-per-sample 10 --random-windows --seed 1, .* --tokens-per-sample 10: "),
        ([], WINDOWS, "--tokens-per-sample 10, .* --tokens-per-sample 10 --random-windows --seed 1: "),
    ],
)
def test_other_windows_go_on_between_epochs_only(
    running_text: Path, tmp_path: Path, saved: list[object], changed: list[object], message: str
) -> None:
    train(running_text, tmp_path, *saved, "--max-update", 5)
    with pytest.raises(InputError, match=f"in the middle of an epoch with .*{message}go on with the same windows"):
        train(running_text, tmp_path, *changed, "--max-epoch", 1)
    between = tmp_path / "between"
    train(running_text, between, *saved, "--max-epoch", 1)
    assert train(running_text, between, *changed, "--max-epoch", 2)["extra_state"]["train_iterator"]["epoch"] == 3


@pytest.mark.system
def test_fewer_windows_than_were_read(running_text: Path, tmp_path: Path) -> None:
    train(running_text, tmp_path, "--max-update", 15)
    with pytest.raises(
        InputError, match="in the middle of an epoch, after 15 windows, and this training has .* in all"
    ):
        train(running_text, tmp_path, "--tokens-per-sample", 30, "--max-epoch", 1)


@pytest.mark.system
def test_the_seed_may_change_where_it_draws_no_windows(running_text: Path, tmp_path: Path) -> None:
    train(running_text, tmp_path, "--max-update", 5)
    expected = train(running_text, tmp_path / "uninterrupted", "--max-epoch", 1)
    assert_same(train(running_text, tmp_path, "--seed", 2, "--max-epoch", 1), expected)


def test_learning_rate_follows_the_window(running_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, float]] = []
    train_step, step = StreamingLanguageModelingTask.train_step, FairseqOptimizer.step

    def noting_length(task: Any, sample: dict[str, Any], *more: Any, **keywords: Any) -> Any:
        seen.append((sample["target"].size(1), 0.0))
        return train_step(task, sample, *more, **keywords)

    def noting_rate(optimizer: FairseqOptimizer, *more: Any, **keywords: Any) -> None:
        seen[-1] = (seen[-1][0], optimizer.get_lr())
        step(optimizer, *more, **keywords)

    clip_grad_norm = Trainer.clip_grad_norm

    def overflowing(trainer: Trainer, norm: float) -> torch.Tensor:
        if len(seen) == 5:
            raise OverflowError("as of --fp16")
        return clip_grad_norm(trainer, norm)

    monkeypatch.setattr(StreamingLanguageModelingTask, "train_step", noting_length)
    monkeypatch.setattr(FairseqOptimizer, "step", noting_rate)
    monkeypatch.setattr(Trainer, "clip_grad_norm", overflowing)
    # What fairseq notes of an overflow goes to a GPU.
    monkeypatch.setattr(torch.Tensor, "cuda", torch.Tensor.cpu)
    train(running_text, tmp_path, "--random-windows", "--max-update", 12, "--disable-validation")
    assert [rate for _, rate in seen].count(0.0) == 1, "one update was given up"
    made = [(length, rate) for length, rate in seen if rate]
    assert len(made) == 12 and len({length for length, _ in made}) > 3
    assert [rate for _, rate in made] == pytest.approx([length / 10 for length, _ in made])


@pytest.mark.system
@pytest.mark.parametrize("criterion", ["cross_entropy", "output_cross_entropy", "activation_regularized_cross_entropy"])
def test_small_differences_of_validation_losses_count(running_text: Path, tmp_path: Path, criterion: str) -> None:
    schedule = "--optimizer asgd --lr-scheduler non_monotone --lr 3e-5 --max-epoch 3"
    last = train(running_text, tmp_path, *schedule.split(), "--criterion", criterion)
    first, second = last["optimizer_history"][-1]["lr_scheduler_state"]["losses"]
    third = last["extra_state"]["val_loss"]
    assert first > second > third > first - 1e-4, "fairseq itself rounds to 0.001"
    assert read_checkpoint(tmp_path / "checkpoint_best.pt")["extra_state"]["train_iterator"]["epoch"] == 4


@pytest.mark.system
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch-size", 5000], "the training text has .* cannot be 5,000 streams: lower --batch-size$"),
        (["--batch-size-valid", 500], "the text has .* cannot be 500 streams: lower --batch-size-valid"),
        (["--tokens-per-sample", 2000], "which in 4 streams is less than a window of 2,000"),
        (["--valid-subset", "valid1"], "valid1.bin: no such set"),
        (
            ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1],
            "--label-smoothing: recurrent_lm gives <s> and <pad> no probability",
        ),
        (["--criterion", "r_drop"], "--criterion r_drop reads every window twice, and a stream has one state"),
    ],
)
def test_bad_input(running_text: Path, tmp_path: Path, options: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        train(running_text, tmp_path, "--max-update", 1, *options)


def test_models_that_carry_no_states(running_text: Path, tmp_path: Path) -> None:
    options = [str(running_text / "bin"), "--task", "streaming_language_modeling", "--arch", "rnnsearch_iwslt_de_en"]
    options += ["--batch-size", "4", "--optimizer", "sgd", "--lr", "1", "--save-dir", str(tmp_path), "--cpu"]
    sizes = "--encoder-embed-dim 4 --encoder-hidden-size 4 --decoder-embed-dim 4 --decoder-hidden-size 4"
    with pytest.raises(InputError, match="trains recurrent_lm and its architectures"):
        train_in_process(*options, *sizes.split())


def test_the_hub_interface_is_refused(running_text: Path) -> None:
    task = StreamingLanguageModelingTask.setup_task(StreamingLanguageModelingConfig(data=str(running_text / "bin")))
    with pytest.raises(InputError, match="'fairseq-plugins generate-text' writes text, and 'fairseq-plugins perpl"):
        task.build_dataset_for_inference([torch.tensor([4])], [1])


def test_fairseq_generate_is_refused(running_text: Path) -> None:
    task = StreamingLanguageModelingTask.setup_task(StreamingLanguageModelingConfig(data=str(running_text / "bin")))
    with pytest.raises(InputError, match="a language model translates nothing: 'fairseq-plugins generate-text'"):
        task.build_generator([], None)
