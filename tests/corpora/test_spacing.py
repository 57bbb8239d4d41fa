"""Text comes back from its tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_plugins.corpora.spacing import SPACE, joined
from fairseq_plugins.corpora.tokenizers import Tokenizer

TEXTS = {
    "en": [
        "“Stop!”",
        "He said “Stop!” and left.",
        "He said: “It’s ‘fine’.”",
        "(“a”) [b] {c}",
        "usually ‘!’ or “.” and “¿Qué?”",
        "They’re John’s ‘friends’, aren’t they?",
        "the boys’ house, the boys' house",
        "O’Neill in the ’90s",
        "rock in the '90s and 'now'",
        "At 10:30 we go; it was 2:1.",
        "From 2010: 30 people.",
        "See http://www.example.com/a_b/~c?d=1&e=%20#f.",
        "See https://example.com/ (or www.example.com/a) now, http://a.b:8080/c!",
        "Is it http://a.b? Yes & no.",
        "Mail me.too@mail.example.com now.",
        "It is 10 € a day, $5 or £3.50.",
        "It costs €5 and 10 €.",
        '"Stop!", he said.',
        "It's 5 o'clock: don't.",
        "5’10” tall",
    ],
    "de": [
        "„Halt!“",
        "Er sagte „Halt!“ und „Ja“, dann: „So.“",
        "ein „.“ und „?“ nur",
        "Er rief »Halt!« laut.",
        "«Halt!», rief er.",
        "„Das ist ‚so‘ gut“, sagt „Spiegel“-Leser Hans.",
        "Das geht’s, hab’ ich, Hans’ Haus.",
        "Wie geht's dir?",
        "Wie geht's, wie steht's?",
        "Das ist Hans' Haus.",
        "Er sagt 'so' und 'so'.",
        "10 € am Tag um 10:30 Uhr",
        "Ich denke, ja.“",
    ],
    "fr": [
        "L’homme n’est pas là aujourd’hui.",
        "L'homme n'est pas là aujourd'hui.",
        "« Arrête ! » dit-il.",
        "“Vraiment ?” dit-il.",
        "l’“homme”",
        "10 € par jour",
    ],
    "it": [
        "un po’ d’acqua dell’uomo",
        "un po' d'acqua dell'uomo",
        "È un po' così.",
        "dell'“Europa”, «Ferma!»",
        "gli anni '90",
        "rispetto a 'uno' e 'due' o 'tre'",
    ],
    "nl": [
        "’s avonds foto’s en zo’n auto in ’t begin",
        "'s avonds foto's en zo'n auto",
        "'m' voor minuten, 's' voor 'n'",
    ],
    "ca": ["l'home d'aquí, anar-se'n", "l’home d’aquí, anar-se’n"],
    "uk": ["м'ята і сім'я, п'ять", "м’ята і сім’я", "«Стій!»"],
    "ru": ["«Стой!» – сказал он.", "Он сказал: «Стой!»"],
    "pl": ["Powiedział „stój!” i poszedł.", "O’Neill"],
    "cs": ["„Stůj!“ a „-“ a „.“", "Kennedy' - li"],
    "es": ["Dijo: “¡Para!”", "¿Qué? ¡No!", "«Para»", "los 'a' y los 'b'"],
    "pt": ["“Pare!” e 'isto' e 'aquilo'", "d'água"],
    "sv": ["Han sa ”stopp” och ”nej!” igen.", "»Stopp!»"],
    "fi": ["”Seis!” ja ”Thumb”-koodaus"],
    "da": ["»Stop!«"],
    "hu": ["„Állj!”"],
    "tr": ["Ankara'da ve İzmir'de", "Ankara’da", "Kip 'L' ise 'HUP' gibi"],
}
"""By language, as Moses cuts them."""

AMBIGUOUS = ["and / or", "20 ° C", "Yes – no", "R & D", "# 1"]
"""With or without spaces these have the same tokens. They stay apart, as Moses has them."""


@pytest.mark.parametrize("escape", [True, False])
@pytest.mark.parametrize("language", TEXTS)
def test_text_comes_back(language: str, escape: bool) -> None:
    tokenizer = Tokenizer(language, "moses", escape=escape)
    assert [tokenizer.detokenize(tokenizer(text)) for text in TEXTS[language]] == TEXTS[language]


@pytest.mark.parametrize("kind", ["treebank", "tweet"])
def test_english_text_comes_back(kind: str) -> None:
    texts = [*TEXTS["en"][:6], "the ’90s and the '90s", "10 € a day at 10:30", 'He said, "No." and "Yes!"']
    texts += ["See http://www.example.com/a?b=1, or mail me.too@example.com."]
    for escape in (True, False):
        tokenizer = Tokenizer("en", kind, escape=escape)
        assert [tokenizer.detokenize(tokenizer(text)) for text in texts] == texts


def test_chinese_text_comes_back() -> None:
    tokenizer = Tokenizer("zh", "jieba")
    texts = ["他说：“停！”", "时间是10:30。", "“Hello world”他说", "It’s好"]
    assert [tokenizer.detokenize(tokenizer(text)) for text in texts] == texts


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_what_is_ambiguous_stays_apart(text: str) -> None:
    tokenizer = Tokenizer("en", "moses")
    assert tokenizer(text) == tokenizer(text.replace(" ", "")) or " " in text
    assert tokenizer.detokenize(tokenizer(text)) == text


@pytest.mark.parametrize("language", TEXTS)
@given(
    st.lists(st.sampled_from([*"„“”‚‘’«»›'\":/.?!€-&=@(–", "s", "t", "po", "O", "Neill", "10", "90s", "http", "a.b"]))
)
def test_nothing_but_spaces_changes(language: str, tokens: list[str]) -> None:
    parts = joined(tokens, language)
    assert "".join(parts).replace(SPACE, "") == "".join(tokens)
    tokenizer = Tokenizer(language, "moses", escape=False)
    assert tokenizer.detokenize(" ".join(tokens)).replace(" ", "") == "".join(tokens)
