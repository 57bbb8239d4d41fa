"""A recurrent layer of a user's own, in one file that FAIRSEQ_PLUGINS_EXTENSIONS names: nothing else has to change."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.commands import CHECKOUT, USER_DIR, output_lines, run_command
from tests.conftest import TranslationData

TOY = str(CHECKOUT / "tests" / "extensions" / "toy_recurrent.py")


def test_trains_and_translates(tiny_translation_data: TranslationData, tmp_path: Path) -> None:
    data = str(tiny_translation_data.joined)
    layers = ["--encoder-recurrent-layer", "toy", "--decoder-recurrent-layer", "toy", "--leak", "0.4"]
    layers += ["--decoder-leak", "0.2", "--encoder-layers", "1"]
    training = ["--optimizer", "adam", "--lr", "1e-3", "--max-sentences", "40", "--max-epoch", "2", "--cpu"]
    training += ["--num-workers", "0", "--disable-validation", "--no-epoch-checkpoints", "--save-dir", str(tmp_path)]
    training += ["--encoder-embed-dim", "8", "--decoder-embed-dim", "8"]
    training += ["--encoder-hidden-size", "8", "--decoder-hidden-size", "8"]
    command = ["fairseq-train", data, "--user-dir", USER_DIR, "--arch", "recurrent_seq2seq", *layers, *training]
    run_command(command, FAIRSEQ_PLUGINS_EXTENSIONS=TOY)

    checkpoint = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    options = checkpoint["cfg"]["model"]
    assert (options["leak"], options["decoder_leak"]) == (0.4, 0.2)
    epochs = {name: value.item() for name, value in checkpoint["model"].items() if name.endswith(".epochs")}
    assert len(epochs) == 2 + 2 and set(epochs.values()) == {2}, "networks are told of each epoch"

    generate = ["fairseq-generate", data, "--user-dir", USER_DIR, "--path", str(tmp_path / "checkpoint_last.pt")]
    finished = run_command([*generate, "--cpu", "--beam", "2", "--max-len-b", "6"], FAIRSEQ_PLUGINS_EXTENSIONS=TOY)
    assert sorted(output_lines(finished.stdout, "H")) == list(range(101))


def test_its_options_are_listed() -> None:
    options = run_command(["python", "-m", "fairseq_plugins", "options", "toy"], FAIRSEQ_PLUGINS_EXTENSIONS=TOY)
    assert "toy: leaky integrator" in options.stdout and "--leak LEAK" in options.stdout
