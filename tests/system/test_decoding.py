"""Translations are decoded by the codec that encoded the corpus, to the scores that fairseq's own decoding gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fairseq.data.data_utils import post_process

from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.experiments import decoding, evaluate
from fairseq_plugins.experiments.decoding import Generation
from fairseq_plugins.files import read_lines
from fairseq_plugins.scoring.bleu import Bleu
from fairseq_plugins.scoring.metrics import Outputs
from tests.commands import output_lines, run_command, train_in_process
from tests.conftest import TranslationData

MODEL = """
train: {arch: lstm}
generate: {beam: 2, batch-size: 64, max-len-a: 1, max-len-b: 5, min-len: 6}
"""
BEGINNING = "ni no na ni"
"""Of each target: a model that has learned little knows that much, and its BLEU is not zero."""
SIZES = [
    part
    for name in ("encoder-embed-dim", "encoder-hidden-size", "decoder-embed-dim", "decoder-hidden-size")
    for part in (f"--{name}", "16")
]
REMOVE_BPE = {"sentencepiece": "sentencepiece", "subword-nmt": "@@ ", "none": None}
"""What fairseq's --remove-bpe would be for each codec."""


@pytest.mark.slow
@pytest.mark.parametrize("bpe", REMOVE_BPE)
def test_scores_are_those_of_fairseqs_decoding(
    bpe: str, tiny_translation_data: TranslationData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    raw = tiny_translation_data.raw
    files = {split: (raw / f"{split}.xx", tmp_path / f"{split}.yy") for split in ("train", "valid", "test")}
    for _, target in files.values():
        lines = read_lines(raw / target.name)
        target.write_text("".join(f"{BEGINNING} {line}\n" for line in lines), encoding="utf-8")
    prepare(
        PairsPreparation("xx", "yy", tokenizer="moses", bpe=bpe, bpe_size=30 if bpe == "sentencepiece" else 10),
        files,
        tmp_path / "data",
    )
    data = PreparedData.load(tmp_path / "data")
    (tmp_path / "model.yaml").write_text(MODEL, encoding="utf-8")
    checkpoints = tmp_path / "work" / "checkpoints"
    options = ["--arch", "lstm", *SIZES, "--decoder-out-embed-dim", "16", "--optimizer", "adam", "--lr", "0.02"]
    train_in_process(
        *data.arguments(),
        *options,
        "--batch-size",
        "20",
        "--max-epoch",
        "12",
        "--no-epoch-checkpoints",
        "--cpu",
        "--save-dir",
        checkpoints,
    )
    evaluate.main([str(tmp_path / "model.yaml"), "--work", str(tmp_path / "work"), "--data", str(data.folder)])

    generated = tmp_path / "work" / "generate"
    command = ["fairseq-generate", *data.arguments(), "--path", str(checkpoints / "checkpoint_best.pt"), "--cpu"]
    command += ["--beam", "2", "--batch-size", "64", "--max-len-a", "1", "--max-len-b", "5", "--min-len", "6"]
    lines = output_lines(run_command(command).stdout, "D")
    pieces = [lines[number].split("\t")[1] for number in range(101)]
    tokens = [post_process(line, REMOVE_BPE[bpe]) if REMOVE_BPE[bpe] else line for line in pieces]
    assert bpe == "none" or tokens != pieces
    assert list(read_lines(generated / "test.tok.yy")) == tokens
    text = [data.preparation.detokenize_target(line) for line in tokens]
    expected = Bleu().scores(Outputs(tokens, text), Generation().references(data, "test"))
    results = json.loads((tmp_path / "work" / "results.json").read_text(encoding="utf-8"))
    assert {key: results[key] for key in expected} == expected
    assert 1 < expected["bleu_tokenized"] < 99
    if bpe != "none":
        return
    # Two processes divide the set, and their parts are joined in its order.
    whole = {path.name: path.read_bytes() for path in generated.iterdir()}
    asked: list[int] = []
    share = decoding._decode_share
    executor = decoding.ProcessPoolExecutor

    class Asked(executor):
        def submit(self, function: Any, request: Any, number: int, count: int) -> Any:
            asked.append(number)
            assert function is share and count == 2
            return super().submit(function, request, number, count)

    monkeypatch.setattr(decoding, "ProcessPoolExecutor", Asked)
    arguments = [str(tmp_path / "model.yaml"), "--work", str(tmp_path / "work"), "--data", str(data.folder)]
    evaluate.main([*arguments, "--processes", "2"])
    assert asked == [0, 1] and {path.name: path.read_bytes() for path in generated.iterdir()} == whole
