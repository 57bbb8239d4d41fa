"""A text is cut into sentences, and is the same text when it is put together again."""

from __future__ import annotations

import pysbd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairseq_plugins.corpora import sentences
from fairseq_plugins.corpora.sentences import LinesInSentences, split_sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", [""]),
        (" \n\n ", [" \n\n "]),
        ("Ein Hund", ["", "Ein Hund", ""]),
        (
            "Das ist Dr. Müller.  Er liest z. B. Bücher.",
            ["", "Das ist Dr. Müller.", "  ", "Er liest z. B. Bücher.", ""],
        ),
        ("\tEine Zeile\r\n\r\n  die nächste! ", ["\t", "Eine Zeile", "\r\n\r\n  ", "die nächste!", " "]),
        ("Der Hund\nschläft.", ["", "Der Hund", "\n", "schläft.", ""]),
        (
            "Sieh https://a.org/watch?v=b!c an. Gut?",
            ["", "Sieh https://a.org/watch?v=b!c an.", " ", "Gut?", ""],
        ),
        ("a\u2028b\x0bc", ["", "a", "\u2028", "b", "\x0b", "c", ""]),
    ],
)
def test_sentences_and_what_is_between_them(text: str, parts: list[str]) -> None:
    assert split_sentences(text, "de") == parts


def test_each_language_has_its_rules() -> None:
    assert split_sentences("狗在睡觉。猫在跑。", "zh")[1::2] == ["狗在睡觉。", "猫在跑。"]
    text = "Das war ca. Seite 3."
    assert len(split_sentences(text, "de")) == len(split_sentences(text, "deu")) == 3
    assert split_sentences("It rains. It pours.", "title")[1::2] == ["It rains.", "It pours."]


@given(
    st.text(st.sampled_from(" \n\r\t.!?…\"'()[]«»„“&ȸ♨1aZäß狗。🙂\u2028\x00"), max_size=60),
    st.sampled_from(["de", "en", "ja"]),
)
@example("a ȸ b. c", "en")
@example("(a. b", "de")
def test_nothing_is_lost(text: str, language: str) -> None:
    parts = split_sentences(text, language)
    assert "".join(parts) == text
    assert not "".join(parts[::2]).strip()
    assert all(sentence and sentence == sentence.strip() for sentence in parts[1::2])
    assert all(len(sentence.splitlines()) == 1 for sentence in parts[1::2])


@pytest.mark.parametrize("sign", "∯∮ᓰᓱᓳᓴᓷᓸ⎋♨☝✂⌬ȸȹ☉☈☇☄♬♭☏ƪ♟♝♦")
def test_signs_of_pysbd_are_no_matter(sign: str) -> None:
    expected = [f"Das Bad {sign} ist {sign * 3} heiß.", f"Es dampft &{sign}&, oder?", f"{sign} Ja!"]
    assert split_sentences(" ".join(expected), "de")[1::2] == expected


def test_lines_are_put_together_again() -> None:
    paragraphs = ["Es regnet.  Der Hund schläft.", "", " Ein Hund", " "]
    lines = LinesInSentences.of(paragraphs, "de")
    assert lines.sentences == ["Es regnet.", "Der Hund schläft.", "Ein Hund"]
    assert [lines.place(number) for number in range(3)] == ["sentence 1 of line 1", "sentence 2 of line 1", "line 3"]
    assert lines.join(["It rains.", "", "A dog"]) == ["It rains.  ", "", " A dog", " "]
    lines = LinesInSentences.of(paragraphs)
    assert lines.sentences == paragraphs and lines.join(["a", "", "b", "c"]) == ["a", "", "b", "c"]
    assert lines.place(1) == "line 2"


def test_a_long_line_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """pysbd takes three seconds for 5,000 characters of some texts."""
    monkeypatch.setattr(sentences, "WINDOW", 50)
    lengths: list[int] = []
    segment = pysbd.Segmenter.segment

    def measured(self: pysbd.Segmenter, text: str) -> list[str]:
        lengths.append(len(text))
        return segment(self, text)

    monkeypatch.setattr(pysbd.Segmenter, "segment", measured)
    text = "Der Hund schläft. Ein Mann liest. " * 10
    assert split_sentences(text, "de")[1::2] == ["Der Hund schläft.", "Ein Mann liest."] * 10
    assert max(lengths) <= 50
    assert "".join(split_sentences("a" * 120 + ". b", "de")) == "a" * 120 + ". b"
