"""Which names of a corpus's sides are languages, and whose rules Moses has for them."""

from __future__ import annotations

import pytest
from sacremoses.corpus import NonbreakingPrefixes

from fairseq_plugins.languages import MOSES, has_moses_rules, language_code, moses_language


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ("de deu ger DE de_AT DE-at deu_Latn", "de"),
        ("en eng EN en_US", "en"),
        ("fr fra FRA fre", "fr"),
        ("zh zho chi zh-Hans zh_CN cmn cmn_Hans", "zh"),
        ("ja jpn ja_XX", "ja"),
        ("ko kor", "ko"),
        ("or ory", "or"),  # Odia is of the group Oriya
        ("th tha tha_Thai", "th"),
        ("tr tur", "tr"),
        ("yue", "yue"),
        ("arb_Arab", "arb"),
    ],
)
def test_codes_of_languages(names: str, code: str) -> None:
    assert {language_code(name) for name in names.split()} == {code}


def test_names_that_are_no_languages() -> None:
    names = "title sum doc src tgt article source target in out text ref hyp s t src_de english"
    for name in names.split():
        assert language_code(name) is None, name
        assert moses_language(name) == "en" and has_moses_rules(name), name
    assert language_code("") is None


def test_the_languages_of_moses_are_those_of_sacremoses() -> None:
    abbreviations = set(NonbreakingPrefixes().available_langs.values())
    # Of Japanese and Korean it knows the letters alone.
    assert abbreviations | {"ja", "ko"} == MOSES
    assert all(moses_language(code) == code and has_moses_rules(code) for code in MOSES)
    assert moses_language("tr") == "tr" and not has_moses_rules("tr")
