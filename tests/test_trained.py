"""A trained model in one line of Python: the same translations as by the scripts."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.hub_utils import GeneratorHubInterface

import fairseq_plugins
from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.prepared_data import PreparedData
from fairseq_plugins.experiments.translate import translate
from tests.commands import CHECKOUT, train_in_process
from tests.conftest import TranslationData

pytestmark = pytest.mark.system  # they share what is prepared or trained in seconds

SIZES = [
    part
    for side in ("encoder", "decoder")
    for name in ("embed-dim", "hidden-size", "layers")
    for part in (f"--{side}-{name}", "1" if name == "layers" else "12")
]


@pytest.fixture(scope="module")
def work(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with a model that has learned a little, and its data in ``data`` beside it."""
    folder = tmp_path_factory.mktemp("trained")
    raw = tiny_translation_data.raw
    files = {split: (raw / f"{split}.xx", raw / f"{split}.yy") for split in ("train", "valid", "test")}
    prepare(PairsPreparation("xx", "yy", tokenizer="moses", bpe="subword-nmt", bpe_size=10), files, folder / "data")
    arguments = PreparedData.load(folder / "data").arguments()
    options = ["--arch", "mc_rnn_iwslt_de_en", *SIZES, "--max-source-positions", "90"]
    options += ["--optimizer", "adam", "--lr", "0.02", "--batch-size", "20", "--max-epoch", "2", "--cpu"]
    train_in_process(*arguments, *options, "--save-dir", folder / "checkpoints")
    return folder


def test_translations_are_those_of_the_scripts(work: Path) -> None:
    lines = (work / "data" / "raw" / "test.xx").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if len(line.split()) <= 3][:12]
    lines.insert(3, "")
    checkpoint = work / "checkpoints" / "checkpoint_best.pt"
    expected = translate(lines, str(checkpoint), PreparedData.load(work / "data"), 0, ["--beam", "3"])
    assert expected[3] == "" and len(set(expected)) > 1
    model = fairseq_plugins.load(work)
    assert model.translate(lines, beam=3) == expected
    assert model.translate(lines, beam=3) == expected, "a second time too"
    assert fairseq_plugins.load(checkpoint, data=work / "data").translate(lines, beam=3) == expected
    both = fairseq_plugins.load(f"{checkpoint}:{checkpoint}")
    assert both.translate(lines, beam=3) == expected, "an ensemble of twins"
    assert model.translate([""]) == [""]


def test_no_subword_comes_twice(work: Path, tmp_path: Path) -> None:
    """By counting, in the scripts' translations and in Python's."""
    lines = (work / "data" / "raw" / "test.xx").read_text(encoding="utf-8").splitlines()[:12]
    data = PreparedData.load(work / "data")
    state = torch.load(work / "checkpoints" / "checkpoint_best.pt", weights_only=False)
    # A model that has learned little, and hardly ends its sentences.
    state["model"]["decoder.output_projection.bias"][2] -= 4
    torch.save(state, tmp_path / "endless.pt")

    def has_repetition(line: str) -> bool:
        subwords = data.pairs.encode_target(line).split()
        return len(set(subwords)) < len(subwords)

    model = fairseq_plugins.load(tmp_path / "endless.pt", data=data.folder)
    assert any(map(has_repetition, model.translate(lines, beam=2))), "there is something to forbid"
    found = model.translate(lines, beam=2, no_repeat_ngram_size=1)
    assert all(len(line.split()) > 1 for line in found) and not any(map(has_repetition, found))
    assert any(map(has_repetition, model.translate(lines, beam=2))), "the next call is free again"
    extra = ["--beam", "2", "--no-repeat-ngram-size", "1"]
    assert translate(lines, str(tmp_path / "endless.pt"), data, 0, extra) == found


def test_translations_are_not_much_longer_than_their_sources(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}
    generate = GeneratorHubInterface.generate

    def keep(hub: GeneratorHubInterface, *arguments: Any, **given: Any) -> Any:
        seen.update(given)
        return generate(hub, *arguments, **given)

    monkeypatch.setattr(GeneratorHubInterface, "generate", keep)
    fairseq_plugins.load(work).translate(["a"])
    assert (seen["max_len_a"], seen["max_len_b"]) == (1.5, 10)


def test_sentences_longer_than_a_batch_of_the_training(work: Path, tmp_path: Path) -> None:
    state = torch.load(work / "checkpoints" / "checkpoint_best.pt", weights_only=False)
    state["cfg"]["dataset"]["max_tokens"] = 3
    torch.save(state, tmp_path / "short.pt")
    sentence = max((work / "data" / "raw" / "test.xx").read_text(encoding="utf-8").splitlines(), key=len)
    model = fairseq_plugins.load(tmp_path / "short.pt", data=work / "data")
    assert model.translate([sentence]) == fairseq_plugins.load(work).translate([sentence]) != [""]


def test_the_documentations_two_ways_find_the_same(work: Path) -> None:
    """docs/python.md: ours, and fairseq's own."""
    page = (CHECKOUT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    sentence = (work / "data" / "raw" / "test.xx").read_text(encoding="utf-8").splitlines()[0]
    found = []
    for block in blocks:
        block = block.replace("work/quickstart/mc_rnn_3", str(work)).replace("work/quickstart/data", f"{work}/data")
        names: dict[str, Any] = {}
        exec(block.replace("Der Hund schläft.", sentence), names)
        found.append(names["translations"])
    assert len(found) == 2 and found[0] == found[1] and found[0][0]


@pytest.mark.parametrize("warnings", ["", "ignore:semaphore_tracker:UserWarning"])
def test_it_says_nothing_of_its_own(work: Path, warnings: str) -> None:
    """Nor in a process that was started by one in which fairseq has read data by workers: fairseq sets the variable."""
    program = f"import fairseq_plugins; fairseq_plugins.load({str(work)!r}).translate(['a'])"
    environment = {**os.environ, "PYTHONWARNINGS": warnings}
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, capture_output=True, text=True)
    assert (finished.stdout, finished.stderr) == ("", "")


def test_bad_input(work: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"sentence 2 has \d+ tokens, but the model takes 90; split it"):
        fairseq_plugins.load(work).translate(["a", "word " * 200])
    for value in None, float("nan"), b"a", 5:
        with pytest.raises(TypeError, match=rf"^translate: text 1 of the list \(from 0\) is {value!r}, not a text"):
            fairseq_plugins.load(work).translate(["a", value])
    with pytest.raises(TypeError, match=r"a list of texts: translate\(\['a word'\]\)$"):
        fairseq_plugins.load(work).translate("a word")
    with pytest.raises(InputError, match="checkpoint_best.pt: no such checkpoint"):
        fairseq_plugins.load(tmp_path)
    with pytest.raises(InputError, match="no such file; give the folder"):
        fairseq_plugins.load(work, data=tmp_path)


def test_data_of_another_model(work: Path, tmp_path: Path) -> None:
    """Its dictionary has as many words, in another order: what would be translated is nonsense."""
    data = shutil.copytree(work / "data", tmp_path / "data")
    path = data / "bin" / "dict.xx.txt"
    path.write_text("".join(reversed(path.read_text(encoding="utf-8").splitlines(keepends=True))), encoding="utf-8")
    with pytest.raises(InputError, match="dict.xx.txt: missing, or not what was prepared"):
        fairseq_plugins.load(work, data=data)
    # Prepared so.
    dataclasses.replace(PairsPreparation.load(data), files={}).save(data)
    with pytest.raises(InputError, match="dict.xx.txt: not the dictionary that .*checkpoint_best.pt was trained with"):
        fairseq_plugins.load(work, data=data)
