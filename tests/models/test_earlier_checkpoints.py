"""Checkpoints that earlier versions wrote load, and translate to the same tokens and scores.

Those of ``tests/fixtures/checkpoints`` come from the commit before recurrent networks got one contract (66b5294): a
model of each family with 16 features, trained to turn the sentences of ``tests/conftest.py`` round.
``translations.json`` is what ``fairseq-generate --beam 3 --nbest 3`` of that commit made of sentences of the test set.
"""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask

import fairseq_plugins

fairseq_plugins.register()

CHECKPOINTS = Path(__file__).resolve().parents[1] / "fixtures" / "checkpoints"
TRANSLATIONS = json.loads((CHECKPOINTS / "translations.json").read_text(encoding="utf-8"))


def load(name: str, folder: Path) -> tuple[FairseqEncoderDecoderModel, FairseqTask]:
    """The model of a fixture and its task, by way of ``folder``."""
    checkpoint = folder / f"{name}.pt"
    checkpoint.write_bytes(gzip.decompress((CHECKPOINTS / f"{name}.pt.gz").read_bytes()))
    for language in "xx", "yy":
        (folder / f"dict.{language}.txt").write_bytes((CHECKPOINTS / "dict.txt").read_bytes())
    [model], _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(checkpoint)], arg_overrides={"data": str(folder), "source_lang": "xx", "target_lang": "yy"}
    )
    return model.eval(), task


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_translates_as_before(name: str, tmp_path: Path) -> None:
    model, task = load(name, tmp_path)
    model.make_generation_fast_(beamable_mm_beam_size=None, need_attn=False)
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=3)
    for expected in TRANSLATIONS[name]:
        source = task.source_dictionary.encode_line(expected["source"], add_if_not_exist=False).long().unsqueeze(0)
        sample = {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([source.size(1)])}}
        [hypotheses] = generator.generate([model], sample)
        found = [
            (hypothesis["score"].item(), task.target_dictionary.string(hypothesis["tokens"]))
            for hypothesis in hypotheses
        ]
        assert [text for _, text in found] == [text for _, text in expected["hypotheses"]]
        for (score, _), (score_before, _) in zip(found, expected["hypotheses"], strict=True):
            assert score / math.log(2) == pytest.approx(score_before, abs=1e-4)


def test_the_fixtures_are_small() -> None:
    assert sum(path.stat().st_size for path in CHECKPOINTS.iterdir()) < 300_000
