"""What fairseq-generate wrote: every sentence, in the order of the set; and the references of a set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.corpora.preparation import Preparation
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.decoding import DECODINGS, Decoding, Generation, Hypothesis, decoding_of, hypotheses
from fairseq_plugins.experiments.prepared_data import PreparedData
from fairseq_plugins.scoring.metrics import Metric, Outputs, References


def references_of(data: PreparedData, subset: str) -> References:
    return Generation().references(data, subset)


def test_all_references_of_a_set_are_read(data: PreparedData) -> None:
    facts = {"name": "nist04", "references": 3}
    PairsPreparation("de", "en", lowercase=True, splits={"test": facts, "valid": {"name": "nist03"}}).save(data.folder)
    data = PreparedData.load(data.folder)
    assert data.preparation.split_of("nist04") == data.preparation.split_of("test") == "test"
    lines = {f"{folder}_test{ref}": f"{folder} {ref}" for folder in ("raw", "tokens") for ref in ("", ".ref1", ".ref2")}
    write_sets(data, **lines, tokens_valid="x")
    references = references_of(data, "test")
    assert references.tokens == [["tokens "], ["tokens .ref1"], ["tokens .ref2"]]
    assert references.text == [["raw "], ["raw .ref1"], ["raw .ref2"]]
    with pytest.raises(InputError, match="the prepared sets are nist04, nist03"):
        references_of(data, "nist05")


def write_sets(data: PreparedData, **files: str) -> None:
    for name, line in files.items():
        folder, subset = name.split("_")
        (data.folder / folder).mkdir(exist_ok=True)
        (data.folder / folder / f"{subset}.en").write_text(line + "\n", encoding="utf-8")


def test_references_are_raw_text_where_there_is_some(data: PreparedData) -> None:
    write_sets(data, tokens_test="it &apos;s here .", raw_test="It's here.", tokens_valid="it &apos;s there .")
    assert references_of(data, "test").text == [["It's here."]]
    assert references_of(data, "valid").text == [["it's there."]]
    assert references_of(data, "valid").tokens == [["it &apos;s there ."]]
    with pytest.raises(InputError, match="test2.en: no such file; the prepared sets are test, valid"):
        references_of(data, "test2")


LOG = [
    "2026-01-01 | INFO | something",
    "S-1\tquelle",
    "H-1\t-0.5\t▁b est",
    "D-1\t-0.5\tb est",
    "P-1\t-1.0000 -0.5000",
    "D-1\t-0.9\tsecond best",
    "P-1\t-2.0000 -0.5000",
    "D-0\t-0.1\ta",
    "D-2\t-0.1\t",
]


def test_hypotheses_stand_in_the_order_of_the_set() -> None:
    expected = [Hypothesis("a", []), Hypothesis("b est", [-math.log(2), -math.log(2) / 2]), Hypothesis("", [])]
    assert hypotheses(LOG, 3, "log") == expected, "natural logarithms, where fairseq's are to the base 2"


@pytest.mark.parametrize(("count", "first"), [(4, "; the first missing is sentence 4"), (2, "")])
def test_every_sentence_is_scored(count: int, first: str) -> None:
    with pytest.raises(InputError) as raised:
        hypotheses(LOG, count, "log")
    assert str(raised.value) == f"log: 3 sentences were translated, but there are {count}{first}"


def test_speed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "D-0\t-1\tTranslated words\n"
        "INFO:fairseq_cli.generate:Translated 1,000 sentences (9 tokens) in 12.5s (80.00 sentences/s, 7 tokens/s)\n",
        encoding="utf-8",
    )
    assert Generation().speed(log) == 80.0


def test_preparation_decides_about_lower_case(data: PreparedData) -> None:
    write_sets(data, tokens_test="a")
    assert references_of(data, "test").lowercase
    PairsPreparation(source_lang="de", target_lang="en").save(data.folder)
    assert not references_of(PreparedData.load(data.folder), "test").lowercase


def test_outputs_are_read_as_they_were_written(data: PreparedData, tmp_path: Path) -> None:
    outputs = Outputs(["it &apos;s .", ""], ["it's.", ""], [[-0.25, -1.5, 0.0], [-3.0]])
    Generation().write(outputs, tmp_path, data, "test")
    assert Generation().read(tmp_path, data, "test") == outputs
    assert (tmp_path / "test.en").read_text(encoding="utf-8") == "it's.\n\n"
    (tmp_path / "test.log_probabilities.en").unlink()
    with pytest.raises(InputError, match="test.log_probabilities.en: no such file"):
        Generation().read(tmp_path, data, "test")


def test_a_metric_that_wants_other_outputs(toy_perplexity: Metric, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(decoding_of(toy_perplexity), Generation)
    monkeypatch.setattr(type(toy_perplexity), "decoding", "generatee")
    with pytest.raises(
        InputError, match="wants outputs of 'generatee'; did you mean 'generate'\\?; there are generate"
    ):
        decoding_of(toy_perplexity)


def test_data_of_another_kind(data: PreparedData, tmp_path: Path) -> None:
    @dataclass
    class TestsOwn(Preparation):
        kind = "tests_own_for_decoding"
        metric: str = "bleu"

    TestsOwn().save(data.folder)
    other = PreparedData.load(data.folder)
    assert other.arguments()[0] == str(data.folder / "bin")
    with pytest.raises(InputError, match="a corpus of the kind 'tests_own_for_decoding', but what is done here needs"):
        Generation().references(other, "test")


def test_every_decoding_does_all_that_is_asked_of_one() -> None:
    asked = [name for name in vars(Decoding) if not name.startswith("_")]
    assert "command" in asked and "variant" in asked
    for decoding in DECODINGS.values():
        assert all(callable(getattr(decoding, name, None)) for name in asked), decoding
