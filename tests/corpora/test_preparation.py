"""The record of a preparation: what it says to who does not know the kind, and what is no record."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.corpora.preparation import Preparation, result
from fairseq_plugins.errors import InputError
from tests.commands import run_command

RECORD = """{
  "kind": "pairs", "source_lang": "zh", "target_lang": "en", "given": "raw", "lowercase": true, "tokenizer": "moses",
  "source_tokenizer": "jieba", "source_normalization": ["nfkc"], "moses_languages": {"en": "en"}, "escape": true, "min_length": 1, "max_length": 250,
  "ratio": null, "valid_every": null, "bpe": "subword-nmt", "bpe_size": 25000, "joint": false,
  "separate_dictionaries": false, "joined_words": false, "dictionary_size": null, "unknown_words": [],
  "metric": "bleu", "origin": {"encoding": "utf-8"},
  "bpe_models": {"zh": "bpe/subword-nmt.zh.codes", "en": "bpe/subword-nmt.en.codes"},
  "splits": {
    "train": {"files": ["train.zh", "train.en"], "sha256": ["29", "c7"], "read": 200, "kept": 198,
              "dropped": {"too short": 2, "too long": 0, "ratio": 0}},
    "test": {"files": ["test.zh", "test.en", "test.ref1.en"], "sha256": ["51", "dd", "7f"], "references": 2,
             "name": "nist04", "read": 13, "kept": 13, "dropped": {"too short": 0, "too long": 0, "ratio": 0}}
  },
  "dictionary_sizes": {"zh": 124, "en": 120},
  "commands": ["fairseq-preprocess --source-lang zh --target-lang en --destdir bin"],
  "versions": {"python": "3.11.7"}, "files": {"bin/dict.zh.txt": {"bytes": 9, "sha256": "a0"}}, "format": 1
}
"""


def test_a_record_is_read_as_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "preparation.json").write_text(RECORD)
    preparation = Preparation.load(tmp_path)
    assert type(preparation) is PairsPreparation
    assert {"kind": "pairs", **dataclasses.asdict(preparation)} == json.loads(RECORD)
    assert preparation.split_of("nist04") == "test"
    assert preparation.tokenize_target("It's SO.") == "it &apos;s so ."


@pytest.mark.parametrize("name", ["kind", "files", "splits", "dictionary_sizes", "format"])
def test_a_record_that_leaves_out_what_every_one_says(name: str, tmp_path: Path) -> None:
    content = json.loads(RECORD)
    del content[name]
    (tmp_path / "preparation.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"preparation\.json: not a preparation of format 1; delete .* and prepare"):
        Preparation.load(tmp_path)


def test_what_is_asked_without_knowing_the_kind(tmp_path: Path) -> None:
    (tmp_path / "preparation.json").write_text(RECORD)
    preparation = Preparation.load(tmp_path)
    arguments = [str(tmp_path / "bin"), "--source-lang", "zh", "--target-lang", "en"]
    assert preparation.fairseq_arguments(tmp_path) == arguments
    assert preparation.dictionaries() == ["bin/dict.zh.txt", "bin/dict.en.txt"]
    assert preparation.metric == "bleu"
    assert list(preparation.splits) == ["train", "test"]


def test_a_new_record_says_its_kind_and_what_was_asked_for_first(tmp_path: Path) -> None:
    PairsPreparation("de", "en", origin={"archive": "a.tgz"}).save(tmp_path)
    content = json.loads((tmp_path / "preparation.json").read_text())
    assert content["kind"] == "pairs"
    results = ["origin", "splits", "dictionary_sizes", "commands", "versions", "files", "bpe_models"]
    assert list(content)[-len(results) :] == results
    assert not set(results) & PairsPreparation("de", "en").choices().keys()


def test_a_kind_is_found_by_the_name_of_its_file(tmp_path: Path) -> None:
    PairsPreparation("de", "en").save(tmp_path)
    program = """
import sys
from fairseq_plugins.corpora.preparation import Preparation
assert "fairseq_plugins.corpora.pairs" not in sys.modules
print(type(Preparation.load(sys.argv[1])).__name__)
"""
    finished = run_command(["python", "-c", program, tmp_path])
    assert finished.stdout == "PairsPreparation\n"


def test_a_metric_of_an_extension(tmp_path: Path) -> None:
    PairsPreparation("de", "en", metric="toy").save(tmp_path)
    assert Preparation.load(tmp_path).metric == "toy"


@pytest.mark.parametrize("kind", ["no_such_kind", "nist", "../pairs", "os", "", None, ["pairs"]])
def test_an_unknown_kind(kind: object, tmp_path: Path) -> None:
    (tmp_path / "preparation.json").write_text(json.dumps(json.loads(RECORD) | {"kind": kind}))
    with pytest.raises(InputError, match=r"preparation\.json: there is no kind of corpus .* here"):
        Preparation.load(tmp_path)


def test_another_kind_than_what_is_needed(tmp_path: Path) -> None:
    @dataclasses.dataclass
    class Other(Preparation):
        kind = "another_kind"
        counted: dict[str, int] = result(dict)

    Other(metric="accuracy").save(tmp_path)
    assert Other.load(tmp_path) == Preparation.load(tmp_path)
    with pytest.raises(InputError, match="of the kind 'another_kind', but this needs one of the kind 'pairs'"):
        PairsPreparation.load(tmp_path)


def test_a_record_that_belongs_to_no_folder() -> None:
    with pytest.raises(InputError, match="belongs to no folder yet"):
        PairsPreparation("de", "en", bpe_models={"en": "bpe/model"}).encode_target("a")
