"""Headlines from text to ROUGE: prepared, trained and scored by the scripts, on a handful of built-in pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rouge_score.rouge_scorer import RougeScorer

from fairseq_plugins.corpora import builtin
from fairseq_plugins.experiments import evaluate
from tests.commands import CHECKOUT, run_command, run_in_process

SIZES = {"train": 60, "valid": 8, "test": 9}
SMALL = ["--encoder-embed-dim", "8", "--encoder-hidden-size", "8", "--encoder-layers", "1", "--decoder-embed-dim", "8"]
SMALL += ["--decoder-hidden-size", "8", "--decoder-layers", "1", "--max-update", "6"]


@pytest.fixture(scope="module")
def headlines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared set with so few words in its dictionary that some are unknown."""
    folder = tmp_path_factory.mktemp("headlines")
    names = {"train": ("train.article.txt", "train.title.txt"), "test": ("input.txt", "task1_ref0.txt")}
    names["valid"] = ("valid.article.filter.txt", "valid.title.filter.txt")
    texts = builtin.read("summarization")
    for split, size in SIZES.items():
        for name, side in zip(names[split], ("article", "title"), strict=True):
            lines = texts[f"{split}.{side}"].lower().splitlines(keepends=True)[:size]
            (folder / name).write_text("".join(lines), encoding="utf-8")
    command = [CHECKOUT / "scripts" / "prepare_gigaword.sh", "--input", folder, "--output", folder / "data"]
    run_command([*command, "--words", "40"])
    return folder


def test_trained_scored_and_unknown_words_replaced(headlines: Path, tmp_path: Path) -> None:
    configuration = CHECKOUT / "configs" / "gigaword" / "mc_rnn_3.yaml"
    place = [configuration, "--work", tmp_path, "--data", headlines / "data", "--gpus", "0"]
    run_command([CHECKOUT / "scripts" / "train.sh", *place, *SMALL])
    place += ["--min-len", "5", "--max-len-b", "8"]
    finished = run_command([CHECKOUT / "scripts" / "evaluate.sh", *place])
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["paper"]["rouge1"] == 36.55
    assert "36.55 / 17.58 / 33.72" in finished.stdout
    assert (
        results["rouge_signature"].startswith("nrefs:1|f1|stem:no|") and results["rouge_signature"] in finished.stdout
    )
    assert "bleu_sacrebleu" not in results
    hypotheses = (tmp_path / "generate" / "test.title").read_text().splitlines()
    references = (headlines / "data" / "tokens" / "test.title").read_text().splitlines()
    assert len(hypotheses) == len(references) == SIZES["test"]
    assert not any("<unk>" in line for line in hypotheses)
    peer = RougeScorer(["rouge1", "rouge2", "rougeL"])
    scores = [peer.score(*pair) for pair in zip(references, hypotheses, strict=True)]
    for name in "rouge1", "rouge2", "rougeL":
        assert results[name] == pytest.approx(100 * sum(s[name].fmeasure for s in scores) / len(scores), abs=0.006)

    finished = run_in_process(evaluate.main, *place, "--subset", "valid")
    assert "36.55" not in finished.stdout, "of the test set"

    # An untrained model says <unk> where it may; copied words come from the article.
    run_in_process(evaluate.main, *place, "--unkpen", "-100")
    unknown = (tmp_path / "generate" / "test.title").read_text().split()
    assert set(unknown) == {"unk"}
    for subset in "test", "valid":
        run_in_process(evaluate.main, *place, "--unkpen", "-100", "--replace-unk", "--subset", subset)
        articles = (headlines / "data" / "bpe" / f"{subset}.article").read_text().splitlines()
        replaced = (tmp_path / "generate" / f"{subset}.title").read_text().splitlines()
        for article, headline in zip(articles, replaced, strict=True):
            assert headline.split() and set(headline.split()) <= {*article.split(), "</s>"}
