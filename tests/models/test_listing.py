"""``fairseq-plugins options``."""

from __future__ import annotations

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.models.listing import options_text
from fairseq_plugins.models.presets import PRESETS
from fairseq_plugins.modules import RECURRENT_KINDS
from tests.commands import CHECKOUT, run_command


def joined(text: str) -> str:
    """Without the breaks that the width of the terminal made."""
    return " ".join(text.split())


def test_without_a_name_all_are_listed() -> None:
    text = options_text(None)
    for name in (*RECURRENT_KINDS, *PRESETS):
        assert f"  {name} " in text


def test_a_kind() -> None:
    text = joined(options_text("mc_rnn"))
    assert text.startswith("mc_rnn: multi-channel RNN (MC-RNN)")
    assert "--channels CHANNELS channels: block size minus one (default: 3)" in text
    assert "--cell {lstm,gru,rnn} cell inside the layers (default: lstm)" in text
    assert "--order" not in text


def test_the_page_of_layers_has_every_kind() -> None:
    page = (CHECKOUT / "docs" / "recurrent_layers.md").read_text(encoding="utf-8")
    assert not [name for name in RECURRENT_KINDS if f"`{name}`" not in page]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "mc_rnn_2_gigaword",
            [
                "MC-RNN-2 of MC-RNN's Table 3 (--arch; the model is recurrent_seq2seq)",
                "channels: block size minus one (mc_rnn: 3) (default: 2)",
                "number of decoder layers (default: 4)",
                "--encoder-channels ENCODER_CHANNELS --channels of the encoder alone --decoder-channels",
            ],
        ),
        ("dpn_nist_zh_en", ["encoder: convolutions of the CNN path (default: 12)"]),
        ("cnn_gigaword", ["encoder layers [(dim, kernel_size), ...] (default: [(256, 3)] * 6)"]),
        ("san_nist_zh_en", ["encoder: number of attention heads (default: 8)"]),
    ],
)
def test_an_architecture_shows_its_own_values(name: str, lines: list[str]) -> None:
    text = joined(options_text(name))
    for line in lines:
        assert line in text


def test_unknown_names() -> None:
    with pytest.raises(
        InputError, match="mc_rn: neither a recurrent layer nor an architecture; did you mean 'mc_rnn'?"
    ):
        options_text("mc_rn")
    with pytest.raises(InputError, match="qqq: neither .* nor an architecture; 'fairseq-plugins options' lists ours"):
        options_text("qqq")


@pytest.mark.system
def test_the_command() -> None:
    assert (
        "--connection-init {identity,orthogonal}"
        in run_command(["python", "-m", "fairseq_plugins", "options", "mc_rnn"]).stdout
    )
    finished = run_command(["python", "-m", "fairseq_plugins", "options", "mc_rn"], status=1)
    assert finished.stderr.splitlines()[-1].startswith("error: mc_rn: neither")
