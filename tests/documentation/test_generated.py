"""The picture, the page of options, and README's generated parts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from lxml import etree

from fairseq_plugins.documentation import families, options_page, pages
from fairseq_plugins.documentation.picture import HEIGHT, WIDTH, picture
from fairseq_plugins.experiments import quickstart, records
from fairseq_plugins.experiments.records import Record, checkpoint_name
from fairseq_plugins.models.presets import PRESETS
from fairseq_plugins.modules import RECURRENT_KINDS, option

SCORES = {
    "bleu_tokenized": 28.04,
    "bleu_tokenized_signature": "nrefs:1|tok:none",
    "bleu_sacrebleu": 27.88,
    "sacrebleu_signature": "nrefs:1|tok:13a",
}


def test_the_picture_is_an_svg_for_light_and_dark_pages() -> None:
    root = etree.fromstring(picture().encode())
    assert picture() == picture()
    style = root.find("{*}style").text
    assert "@media (prefers-color-scheme: dark)" in style
    words = ["".join(each.itertext()) for each in root.iter("{*}text")]
    # Eq. 1: the in-degrees of three channels over seven words.
    numbers = [int(word) for word in words if word.isdecimal()]
    assert numbers == [3, 1, 2, 3, 1, 2, 3, 2, 3, 1, 2, 3, 1, 2, 1, 2, 3, 1, 2, 3, 1]
    paths = [each for each in root.iter("{*}path") if each.get("marker-end")]
    # An arc from each output that is read and exists, and DPN-S2S's four flows.
    arcs = sum(min(degree, t) for k in range(3) for t, degree in enumerate(numbers[7 * k : 7 * k + 7]))
    assert len(paths) == arcs + 4
    for each in root.iter("{*}text"):
        assert 0 <= float(each.get("x")) <= WIDTH and 0 < float(each.get("y")) <= HEIGHT
    # Read on a phone of 360 pixels.
    assert 18 * 360 / WIDTH > 10


def test_the_options_are_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class OwnOptions:
        own: int = option(1, "of a user's own")

    kind = RECURRENT_KINDS["mc_rnn"].__class__("own", "own layer", OwnOptions, None)
    monkeypatch.setitem(RECURRENT_KINDS, "own", kind)
    text = options_page.page()
    for name in RECURRENT_KINDS:
        assert (f"\n### {name}\n" in text) == (name != "own")
    assert "| `--channels` | `3` |" in text
    assert "\n### recurrent_seq2seq\n" in text and "\n### double_path\n" in text
    assert all(f"| `{name}` |" in text for name in PRESETS)
    assert "${" not in text


def write_quickstart(root: Path) -> None:
    """Recorded quick starts with two seeds."""
    records.write(Record("quickstart", "word_for_word", scores={"test": SCORES}), root)
    for seed, score in (1, 92.0), (2, 93.0):
        for model in quickstart.SYSTEMS.values():
            scores = {"test": {**SCORES, "bleu_tokenized": score, "bleu_sacrebleu": score}}
            path = f"configs/quickstart/{model}.yaml"
            run = Record("quickstart", model, path, seed, scores=scores, updates=1500, train_seconds=99.5, parameters=7)
            records.write(run, root)


def test_the_output_of_the_quick_start(tmp_path: Path) -> None:
    write_quickstart(tmp_path)
    lines = pages.quickstart_output(records.load_all(tmp_path)).splitlines()
    assert (lines[0], lines[-1]) == ("```", "```")
    assert lines[2].split() == (
        "system parameters updates training seconds BLEU (tokenised) sacreBLEU recorded BLEU (tokenised)".split()
    )
    assert lines[3].split() == ["word", "for", "word", "-", "-", "-", "28.04", "27.88", "-"]
    assert lines[4].split() == "MC-RNN-3 7 1,500 99.50 92.00 92.00 92.50, from 92.00 to 93.00 (2 runs)".split()
    assert lines[6] == "BLEU (tokenised): nrefs:1|tok:none"
    assert pages.quickstart_output([]).startswith("Not recorded yet: `scripts/quickstart.sh --record`")


def test_a_row_for_each_family() -> None:
    scores = {"test": {"bleu_tokenized": 32.0}}
    multi30k = Record("multi30k_de_en", "mc_rnn_3", "configs/multi30k_de_en/mc_rnn_3.yaml", 1, scores=scores)
    paper = "| MC-RNN | 32.23 tokenised BLEU, IWSLT'14 German-English"
    # A stand-in until the paper's own data is recorded.
    ours = "32.00 BLEU (tokenised), Multi30k (test 2016) (one run)"
    assert f"{paper} | {ours} | `scripts/train.sh configs/multi30k_de_en/mc_rnn_3.yaml` |" in families.table([multi30k])
    iwslt = Record("iwslt14_de_en", "mc_rnn_3", "configs/iwslt14_de_en/mc_rnn_3.yaml", 1, scores=scores)
    text = families.table([multi30k, iwslt])
    assert (
        f"{paper} | 32.00 (one run), the same data | `scripts/train.sh configs/iwslt14_de_en/mc_rnn_3.yaml` |" in text
    )
    assert "| 96.20 accuracy, TREC | not recorded yet | `scripts/train.sh configs/trec/rcrn.yaml` |" in text
    trec = Record("trec", "rcrn", "configs/trec/rcrn.yaml", 1, scores={"test": {"accuracy": 88.0}})
    assert "| 88.00 (one run), the same data without the paper's pretrained word vectors" in families.table([trec])
    differs = {"train": {"stop-time-hours": "2"}}
    path = "configs/pixel_mnist/dilated_rnn.yaml"
    pixels = Record("pixel_mnist", "dilated_rnn", path, 1, differs=differs, scores={"test": {"accuracy": 98.1}})
    assert (
        "| 97.70 accuracy, MNIST pixel by pixel | 98.10 (one run, `--stop-time-hours 2`), the same data | "
        f"`scripts/train.sh {path}` |"
    ) in families.table([pixels])


def test_a_family_shows_no_older_options_and_no_averaged_checkpoint() -> None:
    scores = {"test": {"bleu_tokenized": 32.0}}
    path = "configs/multi30k_de_en/mc_rnn_3.yaml"
    older = Record("multi30k_de_en", "mc_rnn_3", path, 1, scores=scores, differs={"train": {"lr": "1"}})
    averaged = Record("multi30k_de_en", "mc_rnn_3", path, 1, checkpoint=checkpoint_name(5), scores=scores)
    assert "32.00" not in families.table([older, averaged])


def test_records_are_json_that_ends_in_a_line(tmp_path: Path) -> None:
    write_quickstart(tmp_path)
    for path in tmp_path.rglob("*.json"):
        assert path.read_text(encoding="utf-8").endswith("}\n") and json.loads(path.read_text(encoding="utf-8"))
