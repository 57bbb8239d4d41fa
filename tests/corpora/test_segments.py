"""Test sets in the SGML and XML of IWSLT and WMT, and other markup, given as files of sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_plugins.corpora.lines import read_pairs, side_files
from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.errors import InputError

# As IWSLT's: titles are no segments, and characters are escaped.
IWSLT = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment
over two lines -->
<mteval>
<srcset setid="tst" srclang="{language}">
<doc docid="7" genre="lectures">
<title>No segment</title>
<seg id="1"> {0} </seg>
<seg id="2"> {1} </seg>
</doc>
<doc docid="8" genre="lectures">
<seg id="1">{2}</seg>
</doc>
</srcset>
</mteval>
"""
# As WMT's: several segments in a line.
WMT = """<refset setid="newstest" srclang="any" trglang="en">
<doc sysid="ref" docid="a" genre="news" origlang="de">
<p><seg id="1">{0}</seg><seg id="2">{1}</seg></p>
</doc>
<doc sysid="ref" docid="b" genre="news" origlang="de">
<p><seg id="1">{2}</seg></p>
</doc>
</refset>
"""
GERMAN, ENGLISH = ("Ein Hund &amp; eine Katze", "Es regnet.", "Ja."), ("A dog &amp; a cat", "It is raining.", "Yes.")
PAIRS = [("Ein Hund & eine Katze", "A dog & a cat"), ("Es regnet.", "It is raining."), ("Ja.", "Yes.")]


def write(prefix: Path, form: str, german: tuple[str, ...] = GERMAN, ends: tuple[str, str] = ("", "")) -> None:
    for language, lines, end in ("de", german, ends[0]), ("en", ENGLISH, ends[1]):
        path = prefix.with_name(end.format(prefix.name)) if end else Path(f"{prefix}.{language}")
        path.write_text(form.format(*lines, language=language), encoding="utf-8")


@pytest.mark.parametrize(
    ("form", "ends"),
    [
        (IWSLT, ("", "")),
        (WMT, ("", "")),
        (IWSLT, ("{0}.de.xml", "{0}.en.xml")),
        (WMT, ("{0}-src.de.sgm", "{0}-ref.en.sgm")),
    ],
)
def test_segments_are_read_in_order(form: str, ends: tuple[str, str], tmp_path: Path) -> None:
    write(tmp_path / "test", form, ends=ends)
    assert list(read_pairs(side_files(tmp_path / "test", ("de", "en")))) == PAIRS


def test_a_test_set_is_prepared_by_its_segments(tmp_path: Path, no_binarising: None) -> None:
    for language in ("de", "en"):
        (tmp_path / f"train.{language}").write_text("ein Satz\nnoch einer\n")
    write(tmp_path / "test", IWSLT)
    inputs = {split: side_files(tmp_path / split, ("de", "en")) for split in ("train", "test")}
    prepare(PairsPreparation("de", "en", bpe="none", valid_every=2), inputs, tmp_path / "out")
    for side, language in enumerate(("de", "en")):
        text = (tmp_path / "out" / "raw" / f"test.{language}").read_text()
        assert text.splitlines() == [pair[side] for pair in PAIRS]


def test_plain_text_may_begin_with_a_tag_of_its_own(tmp_path: Path) -> None:
    for language in ("de", "en"):
        (tmp_path / f"test.{language}").write_text("<b>1</b>\n<seg id=1>2</seg>\n")
    assert [pair[0] for pair in read_pairs(side_files(tmp_path / "test", ("de", "en")))] == [
        "<b>1</b>",
        "<seg id=1>2</seg>",
    ]


def test_sides_whose_segments_do_not_agree(tmp_path: Path) -> None:
    write(tmp_path / "test", IWSLT)
    paths = side_files(tmp_path / "test", ("de", "en"))
    text = paths[1].read_text()
    paths[1].write_text(text.replace('docid="8"', 'docid="9"'))
    with pytest.raises(InputError, match="test.de, line 12, and .*test.en, line 12: segment 1 of document '8' stands"):
        list(read_pairs(paths))
    paths[1].write_text(text.replace('<seg id="1">Yes.</seg>', ""))
    with pytest.raises(InputError, match="test.de has 3 segments and .*test.en has 2"):
        list(read_pairs(paths))
    paths[1].write_text(text.replace('<seg id="2">', '<seg id="1">'))
    with pytest.raises(InputError, match="test.en, line 9: segment 1 of document 7 is there more than once, first in"):
        list(read_pairs(paths))
    paths[1].write_text(WMT.format(*ENGLISH).replace('sysid="ref" docid="b"', 'sysid="other" docid="b"'))
    with pytest.raises(InputError, match=r"test.en: the texts of 2 systems \(ref, other\), of which one is wanted"):
        list(read_pairs(paths))
    paths[1].write_text("A dog\n")
    with pytest.raises(InputError, match="test.de is SGML or XML, and .*test.en is plain text: give both in one form"):
        list(read_pairs(paths))


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        ('<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n', "TMX: write each side's"),
        ('<?xml version="1.0"?>\n<dataset id="newstest2021">\n', "WMT's XML of both sides: .*wmt-unwrap"),
        ("<url>http://www.ted.com</url>\nA talk.\n", "IWSLT's training text with its tags: remove the lines"),
        ('<!DOCTYPE html>\n<html lang="en">\n', "HTML: write its sentences into a text file"),
    ],
)
def test_other_markup_is_refused(head: str, sentence: str, tmp_path: Path) -> None:
    for language in ("de", "en"):
        (tmp_path / f"train.{language}").write_text(head)
    with pytest.raises(InputError, match=f"train.de: {sentence}"):
        list(read_pairs(side_files(tmp_path / "train", ("de", "en"))))
