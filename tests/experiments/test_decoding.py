"""What was decoded: every sentence, in the order of the set; and the references of a set."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.corpora.preparation import Preparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.decoding import (
    DECODINGS,
    Decoded,
    Decoding,
    Generation,
    check_metric,
    decoding_of,
    in_order,
)
from fairseq_plugins.scoring.metrics import Metric, Outputs, References, metric_named


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


def test_hypotheses_stand_in_the_order_of_the_set(data: PreparedData) -> None:
    decoded = Decoded({1: ("b", [-1.0]), 0: ("a", []), 2: ("", [])})
    assert in_order(decoded, 3, data, "test") == [("a", []), ("b", [-1.0]), ("", [])]


@pytest.mark.parametrize(("count", "first"), [(4, "; the first missing is number 4"), (2, "")])
def test_every_sentence_is_scored(data: PreparedData, count: int, first: str) -> None:
    with pytest.raises(InputError) as raised:
        in_order(Decoded({number: ("", []) for number in range(3)}), count, data, "test")
    assert str(raised.value) == f"{data.folder}: 3 sentences of 'test' were decoded, but there are {count}{first}"


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
    with pytest.raises(InputError, match="a corpus of a kind of its own, but what is done here needs"):
        Generation().references(other, "test")


def test_every_decoding_does_all_that_is_asked_of_one() -> None:
    asked = [name for name in vars(Decoding) if not name.startswith("_")]
    assert "decode" in asked and "kinds" in asked
    for decoding in DECODINGS.values():
        assert all(hasattr(decoding, name) for name in asked), decoding


def test_metrics(data: PreparedData, text_data: PreparedData, toy_perplexity: Metric) -> None:
    for good, bad, kind, needs in (
        (data, text_data, "running text", "pairs of texts"),
        (text_data, data, "pairs of texts", "running text"),
    ):
        metric = metric_named("bleu" if good is data else "perplexity")
        check_metric(good, metric)
        with pytest.raises(InputError) as raised:
            check_metric(bad, metric)
        assert str(raised.value) == (
            f"{bad.folder}: a corpus of {kind}, but the metric '{metric.name}' scores what is made of {needs}; name "
            f"another metric in the configuration (evaluate: metric), or prepare the data for it"
        )
    check_metric(data, toy_perplexity)
    own = dataclasses.replace(data, preparation=Preparation(metric="bleu"))
    own.preparation.kind = "a_users_own"
    check_metric(own, metric_named("bleu"))
