"""Every file that is read, cut short at five places, and with a bit turned round where a checksum is known."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_plugins.checkpoints import check_dictionaries, read_checkpoint
from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.corpora.preparation import Preparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration as configurations
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.experiments.training_identity import TrainingIdentity
from fairseq_plugins.files import read_lines, sha256, write_json
from tests.conftest import TranslationData

CONFIGURATION = "train:\n  arch: rnnsearch_iwslt_de_en\n  lr: 1e-3\ngenerate: {beam: 5}\n"
PLACES = (0.0, 0.1, 0.5, 0.9, 0.999)


@pytest.fixture(scope="module")
def whole(
    tiny_translation_data: TranslationData, tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with one of every kind of file that the project reads."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "bin").mkdir()
    (folder / "tokens").mkdir()
    dictionary = (tiny_translation_data.separate / "dict.xx.txt").read_bytes()
    for language in "de", "en":
        (folder / "bin" / f"dict.{language}.txt").write_bytes(dictionary)
        (folder / "bin" / f"train.de-en.{language}.bin").write_bytes(bytes(range(200)))
        (folder / "tokens" / f"test.{language}").write_text("ein Satz\nnoch einer\n", encoding="utf-8")
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.*")) if path.is_file()]
    files = {name: {"bytes": (folder / name).stat().st_size, "sha256": sha256(folder / name)} for name in names}
    PairsPreparation("de", "en", bpe="none", files=files, splits={"test": {}, "train": {}}).save(folder)
    (folder / "model.yaml").write_text(CONFIGURATION, encoding="utf-8")
    shutil.copyfile(tiny_checkpoint, folder / "checkpoint.pt")
    (folder / "text.gz").write_bytes(gzip.compress("\n".join(f"Satz {n}" for n in range(2000)).encode()))
    write_json(folder / "results.json", {"updates": 5, "bleu_tokenized": 30.0})
    TrainingIdentity({"lr": [0.1]}, {"max_tokens": [4000]}, {}, None).save(folder)
    return folder


def prepared(folder: Path) -> None:
    data = PreparedData.load(folder)
    data.verify_training()
    data.verify("test")


# File → what reads it, and whether a cut is certain to be noticed.
READERS: dict[str, tuple[Callable[[Path], object], bool]] = {
    "preparation.json": (Preparation.load, True),
    "results.json": (Run, True),
    "training.json": (TrainingIdentity.load, True),
    "model.yaml": (lambda folder: configurations.load(folder / "model.yaml"), False),
    "checkpoint.pt": (lambda folder: read_checkpoint(folder / "checkpoint.pt"), True),
    "text.gz": (lambda folder: list(read_lines(folder / "text.gz")), True),
    "bin/dict.de.txt": (prepared, True),
    "bin/train.de-en.de.bin": (prepared, True),
    "tokens/test.en": (prepared, True),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", READERS)
def test_cut_short(name: str, place: float, whole: Path, tmp_path: Path) -> None:
    read, is_noticed = READERS[name]
    read(whole)
    folder = shutil.copytree(whole, tmp_path / "copy")
    content = (whole / name).read_bytes()
    (folder / name).write_bytes(content[: int(len(content) * place)])
    try:
        read(folder)
    except InputError as error:
        assert name in str(error) and "\n" not in str(error)
    else:
        # A last line end may be missing.
        assert not is_noticed or (place == PLACES[-1] and (folder / name).read_bytes() == content.rstrip())


@pytest.mark.parametrize("name", [name for name, (read, _) in READERS.items() if read is prepared])
@pytest.mark.parametrize("place", PLACES)
def test_a_bit_turned_round(name: str, place: float, whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "copy")
    content = bytearray((whole / name).read_bytes())
    content[int(len(content) * place)] ^= 4
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: missing, or not what was prepared"):
        prepared(folder)


def test_json_of_another_shape(whole: Path, tmp_path: Path) -> None:
    for name in "preparation.json", "results.json", "training.json":
        for content in ("[]", "3", "null", '"text"', '{"format": 1, "kind": 3}', '{"format": 1, "files": []}'):
            folder = shutil.copytree(whole, tmp_path / "copy")
            (folder / name).write_text(content, encoding="utf-8")
            if name == "results.json" and content.startswith("{"):
                Run(folder)
            else:
                with pytest.raises(InputError, match=name):
                    READERS[name][0](folder)
            shutil.rmtree(folder)


def test_a_dictionary_that_is_none(whole: Path, tmp_path: Path) -> None:
    checkpoint = read_checkpoint(whole / "checkpoint.pt")
    for content in ("", "word\n", "word one\n", "word 1\nword\n", "\n", "\0 1\n"):
        path = tmp_path / "dict.txt"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match="dict.txt"):
            check_dictionaries(checkpoint, "checkpoint.pt", [path])
