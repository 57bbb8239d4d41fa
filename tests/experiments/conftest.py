"""Fixtures of the tests of experiments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_plugins.corpora.generated_sequences import GeneratedSequencesPreparation
from fairseq_plugins.corpora.labelled_audio import LabelledAudioPreparation
from fairseq_plugins.corpora.labelled_texts import LabelledTextsPreparation
from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.corpora.reading_comprehension import ReadingPreparation
from fairseq_plugins.corpora.running_text import RunningTextPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.experiments.configuration import Configuration
from fairseq_plugins.files import sha256

CLASSIFIED = ("trec", "sst_5", "sst_2", "imdb", "reviews", "own_labels", "quickstart_classification")
ENTAILED = ("snli", "scitail")
RANKED = ("wikiqa", "trecqa")
COPIED = ("copy_memory",)
PIXELS = ("pixel_mnist", "permuted_mnist", "noisy_mnist_1000", "noisy_mnist_2000")
READ = ("narrativeqa", "fairytale_qa", "generated_passages")
RECORDED_VOICES = ("vctk", "spoken_digits")
PREPARATIONS = {
    **dict.fromkeys(CLASSIFIED, LabelledTextsPreparation(texts=["text"])),
    **dict.fromkeys(ENTAILED, LabelledTextsPreparation(texts=["premise", "hypothesis"])),
    **dict.fromkeys(RANKED, LabelledTextsPreparation(texts=["question", "answer"], is_ranking=True)),
    "own_labels/rcrn_pairs": LabelledTextsPreparation(texts=["premise", "hypothesis"]),
    "own_labels/rcrn_ranking": LabelledTextsPreparation(texts=["question", "answer"], is_ranking=True),
    **dict.fromkeys(READ, ReadingPreparation(data_set="questions")),
    **dict.fromkeys(COPIED, GeneratedSequencesPreparation(problem="copy_memory", length=5)),
    **dict.fromkeys(RECORDED_VOICES, LabelledAudioPreparation(data_set="vctk")),
    **dict.fromkeys(PIXELS, GeneratedSequencesPreparation(problem="pixels", length=784)),
}
"""Folder of configurations, or one of them → how their data is prepared, where it is neither pairs nor running text."""


def pairs_data(folder: Path) -> PreparedData:
    """Prepared data as far as commands look at it: preparation.json and dictionaries."""
    (folder / "bin").mkdir(parents=True)
    for language in "de", "en":
        (folder / "bin" / f"dict.{language}.txt").write_text("a 1\n", encoding="utf-8")
    PairsPreparation(source_lang="de", target_lang="en", lowercase=True, tokenizer="moses").save(folder)
    return PreparedData.load(folder)


@pytest.fixture
def data(tmp_path: Path) -> PreparedData:
    """Such data in a folder with a space."""
    return pairs_data(tmp_path / "prepared data")


def recorded(data: PreparedData) -> PreparedData:
    """The data as if it had been prepared with the files that are in its folder now: the record has their checksums."""
    paths = sorted(path for path in data.folder.glob("*/*") if path.is_file())
    files = {
        path.relative_to(data.folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in paths
    }
    dataclasses.replace(data.preparation, files=files).save(data.folder)
    return PreparedData.load(data.folder)


@pytest.fixture
def text_data(tmp_path: Path) -> PreparedData:
    """The same of running text."""
    folder = tmp_path / "prepared text"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "dict.txt").write_text("a 1\n", encoding="utf-8")
    RunningTextPreparation().save(folder)
    return PreparedData.load(folder)


@pytest.fixture
def data_for(data: PreparedData, text_data: PreparedData) -> Callable[[Configuration], PreparedData]:
    """The same of the kind that a configuration's model reads."""

    def of(configuration: Configuration) -> PreparedData:
        for name in f"{configuration.dataset}/{configuration.model}", configuration.dataset:
            if name in PREPARATIONS:
                return dataclasses.replace(data, preparation=PREPARATIONS[name])
        return text_data if "task" in configuration.train else data

    return of
