"""BLEU of a development set, batches with empty translations among it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sacrebleu
import torch
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.logging import metrics
from fairseq.tasks.translation import TranslationTask

from fairseq_plugins.patches.validation_bleu import repair_validation_bleu
from tests.commands import train_in_process
from tests.conftest import TranslationData

from .unpatched import needless, original_of

REFERENCES = [["a b c d e f", "g h i j k"], ["l m n o p"], ["a b c d e"]]
SIZES = [
    part
    for name in ("encoder-embed-dim", "encoder-hidden-size", "decoder-embed-dim", "decoder-hidden-size")
    for part in (f"--{name}", "8")
]


def of_batches(translations: list[list[str]], is_validation: bool = True, reduce: Any = None) -> dict[str, float]:
    """What is logged of batches, as a training does it."""
    reduce = reduce or TranslationTask.reduce_metrics
    task, criterion = (kind.__new__(kind) for kind in (TranslationTask, CrossEntropyCriterion))
    task.cfg = SimpleNamespace(eval_bleu=True)
    with metrics.aggregate(new_root=True) as meters:
        for lines, references in zip(translations, REFERENCES, strict=False):
            logged = {"loss": torch.tensor(3.0), "ntokens": 5, "nsentences": len(lines), "sample_size": 5}
            if is_validation:
                bleu = sacrebleu.corpus_bleu(lines, [references])
                logged |= {"_bleu_sys_len": bleu.sys_len, "_bleu_ref_len": bleu.ref_len}
                logged |= {f"_bleu_counts_{order}": count for order, count in enumerate(bleu.counts)}
                logged |= {f"_bleu_totals_{order}": count for order, count in enumerate(bleu.totals)}
            reduce(task, [logged], criterion)
        return meters.get_smoothed_values()


@pytest.mark.parametrize(
    "translations",
    [
        [["", ""], [""], [""]],
        [["a b c d e f", "g h i j k"], [""], ["a b c d e"]],
        [["", ""], ["l m n o p"], [""]],
        [["a b c d e f", ""], ["l m n o p"], ["a b c d x"]],
    ],
    ids=["all empty", "one batch empty", "the first batch empty", "one line empty"],
)
def test_bleu_is_that_of_all_batches(translations: list[list[str]]) -> None:
    lines = [line for batch in translations for line in batch]
    references = [line for batch in REFERENCES for line in batch]
    assert of_batches(translations)["bleu"] == pytest.approx(
        sacrebleu.corpus_bleu(lines, [references]).score, abs=0.006
    )


def test_updates_have_no_bleu() -> None:
    assert "bleu" not in of_batches([["", ""], [""]], is_validation=False)


def test_fairseq_leaves_out_empty_translations() -> None:
    logged = of_batches([["", ""], [""]], reduce=original_of(TranslationTask, "reduce_metrics"))
    assert "bleu" not in logged, needless(repair_validation_bleu)


@pytest.mark.system
def test_a_training_by_bleu_goes_on_where_all_translations_are_empty(
    tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    arguments = [tiny_translation_data.separate, "--source-lang", "xx", "--target-lang", "yy", "--arch", "lstm", *SIZES]
    arguments += ["--decoder-out-embed-dim", "8", "--optimizer", "adam", "--batch-size", "40", "--cpu"]
    arguments += ["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "min_len": 0, "max_len_b": 0}']
    arguments += ["--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric", "--save-dir", tmp_path]
    for epochs in "1", "2":
        train_in_process(*arguments, "--max-epoch", epochs)
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    assert state["extra_state"]["best"] == state["extra_state"]["val_loss"] == 0
    assert state["extra_state"]["train_iterator"]["epoch"] == 3
    assert (tmp_path / "checkpoint_best.pt").exists()
