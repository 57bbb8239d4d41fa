"""NIST Chinese-English from small files in the forms of the LDC's and NIST's."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from fairseq_plugins.corpora import nist
from fairseq_plugins.corpora.nist import (
    Reader,
    find_evaluation_sets,
    find_parallel_files,
    ldc_pairs,
    read_evaluation_set,
    read_segments,
)
from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.errors import InputError
from tests.commands import run_command

CHINESE = ["我喜歡看新聞。", "他在２００４年去了北京。", "今天天气很好，", "他們說：「好」"]
ENGLISH = ["I like the news.", "He went to Beijing in 2004.", "The weather is fine today,", 'They said: "good"']

# As NIST's older sets: upper case, attributes without quotation marks, bare & and missing end tags.
SOURCE = """<srcset setid="mt{year}_zh_v1" srclang="Chinese">
<DOC docid=XIN1 sysid=source>
<hl>
<seg id=1> {0} </seg>
</hl>
<p>
<seg id=2> {1} </seg>
<seg id=3> {2}
</p>
</DOC>
<DOC docid=AFP2 sysid=source>
<seg id=1> {3} </seg>
</DOC>
</srcset>
"""
REFERENCE = """<refset setid="mt{year}_zh_v1" srclang="Chinese" trglang="English">
{documents}</refset>
"""
DOCUMENTS = """<DOC docid=AFP2 sysid={system}>
<seg id=1> {3} & {system}
</DOC>
<DOC docid=XIN1 sysid={system}>
<hl><seg id=1> {0} {system} </seg></hl>
<p><seg id=2> {1} <seg id=3> {2} &amp; more </seg></p>
</DOC>
"""
# As the newer ones: XML with a declaration, one file for each reference.
NEWER = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE mteval SYSTEM "mteval-xml-v1.3.dtd">
<mteval><refset setid="x" srclang="zh" trglang="en" refid="{system}">
<doc docid="XIN1" genre="nw"><p><seg id="1">{0}</seg><seg id="2">{1}</seg></p><p><seg id="3">{2}</seg></p></doc>
<doc docid="AFP2" genre="nw"><p><seg id="1">{3}</seg></p></doc>
</refset></mteval>
"""
TRANSLATORS = ("E01", "E02", "E03", "E04")


def write_year(folder: Path, year: int, encoding: str = "gb18030", newer: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    source = SOURCE.format(*CHINESE, year=f"{year % 100:02}")
    (folder / f"mt{year % 100:02}-src.sgm").write_text(source, encoding=encoding)
    if newer:
        for system in TRANSLATORS:
            text = NEWER.format(*(line.replace("&", "&amp;") for line in ENGLISH), system=system)
            (folder / f"mt{year % 100:02}-{system}.xml").write_text(text, encoding="utf-8")
    else:
        documents = "".join(DOCUMENTS.format(*ENGLISH, system=system) for system in TRANSLATORS)
        text = REFERENCE.format(documents=documents, year=f"{year % 100:02}")
        (folder / f"mt{year % 100:02}-ref.sgm").write_text(text, encoding="utf-8")


def test_segments_of_a_set_that_is_not_well_formed(tmp_path: Path) -> None:
    write_year(tmp_path, 2004)
    reader = Reader()
    (segments,) = read_segments(tmp_path / "mt04-src.sgm", reader).values()
    assert [segment.text for segment in segments] == CHINESE
    assert [(segment.document, segment.number) for segment in segments] == [
        ("XIN1", "1"),
        ("XIN1", "2"),
        ("XIN1", "3"),
        ("AFP2", "1"),
    ]
    assert [segment.line for segment in segments] == [4, 7, 8, 12]
    assert reader.encoding_of == {tmp_path / "mt04-src.sgm": "gb18030"}


@pytest.mark.parametrize("newer", [False, True])
def test_references_stand_in_the_order_of_the_source(newer: bool, tmp_path: Path) -> None:
    write_year(tmp_path, 2004, newer=newer)
    paths = sorted(tmp_path.glob("mt04-[Er]*"))
    evaluation = read_evaluation_set(tmp_path / "mt04-src.sgm", [p for p in paths if "src" not in p.name], 4, Reader())
    assert evaluation.source == CHINESE
    if newer:
        assert evaluation.references == [ENGLISH] * 4
    else:
        for system, lines in zip(TRANSLATORS, evaluation.references, strict=True):
            assert lines == [f"{ENGLISH[0]} {system}", ENGLISH[1], f"{ENGLISH[2]} & more", f"{ENGLISH[3]} & {system}"]


def test_sets_without_markup(tmp_path: Path) -> None:
    (tmp_path / "zh").write_text("一\n二\n", encoding="utf-8")
    for name in ("en0", "en1"):
        (tmp_path / name).write_text("one\ntwo\n")
    evaluation = read_evaluation_set(tmp_path / "zh", [tmp_path / "en0", tmp_path / "en1"], 2, Reader())
    assert evaluation == nist.EvaluationSet(["一", "二"], [["one", "two"]] * 2)
    (tmp_path / "en1").write_text("one\n")
    with pytest.raises(InputError, match="en1 has 1 lines and .*zh has 2"):
        read_evaluation_set(tmp_path / "zh", [tmp_path / "en0", tmp_path / "en1"], 2, Reader())


@pytest.mark.parametrize(
    ("change", "count", "sentence"),
    [
        (("<seg id=3> The weather is fine today, &amp; more </seg>", ""), 4, "E01 lacks segment 3 of document XIN1"),
        (("docid=AFP2", "docid=AFP9"), 4, "the reference E01 lacks document AFP2, which"),
        (("<hl><seg id=1>", "<seg id=9> x </seg><hl><seg id=1>"), 4, "line 6: segment 9 of document XIN1 is not in"),
        (
            ("sysid=E04", "sysid=E03"),
            4,
            r"3 references \(E01, E02, E03\), but 4 were expected; give all of them, or say",
        ),
        (("", ""), 1, r"4 references \(E01, E02, E03, E04\), but 1 were expected; .* say --references 4"),
    ],
)
def test_references_that_do_not_fit(change: tuple[str, str], count: int, sentence: str, tmp_path: Path) -> None:
    write_year(tmp_path, 2004)
    reference = tmp_path / "mt04-ref.sgm"
    if change[0]:
        text = reference.read_text()
        occurrences = -1 if "E04" in change[0] else 1
        assert change[0] in text
        reference.write_text(text.replace(*change, occurrences))
    with pytest.raises(InputError, match=sentence):
        read_evaluation_set(tmp_path / "mt04-src.sgm", [reference], count, Reader())


def test_files_that_are_no_sets(tmp_path: Path) -> None:
    path = tmp_path / "x.sgm"
    path.write_text("<doc docid=1>text</doc>")
    with pytest.raises(InputError, match="x.sgm: it holds no <seg>"):
        read_segments(path, Reader())
    path.write_text("<srcset>\n<seg id=1>text</seg></srcset>")
    with pytest.raises(InputError, match="x.sgm, line 2: a segment outside of a <doc>"):
        read_segments(path, Reader())
    path.write_text("")
    with pytest.raises(InputError, match="x.sgm: neither SGML nor XML"):
        read_segments(path, Reader())
    path.write_text("<srcset><doc docid=1><seg id=1>a</seg><seg id=1>b</seg></doc></srcset>")
    with pytest.raises(InputError, match="segment 1 of document 1 is there more than once"):
        read_evaluation_set(path, [path], 1, Reader())


def test_a_reference_that_is_there_twice(tmp_path: Path) -> None:
    """In one set of references, or in two of them of one name."""
    source, reference = tmp_path / "src.sgm", tmp_path / "ref.sgm"
    source.write_text("<srcset><doc docid=1><seg id=1>a</seg></doc></srcset>")
    document = "<doc docid=1{system}>\n<seg id=1>{text}</seg>\n</doc>\n"
    once, again = document.format(system="", text="one"), document.format(system="", text="two")
    for text in (f"<refset>\n{once}{again}</refset>", f"<refset>\n{once}</refset><refset>{again}</refset>"):
        reference.write_text(text)
        with pytest.raises(InputError, match="ref.sgm, line [56]: segment 1 of document 1 is there more than once"):
            read_evaluation_set(source, [reference], 1, Reader())
    named = "".join(document.format(system=f" sysid={name}", text=name) for name in ("one", "two"))
    reference.write_text(f"<refset>{named}</refset>")
    assert read_evaluation_set(source, [reference], 2, Reader()).references == [["one"], ["two"]]


def test_years_are_found_by_what_the_files_say(tmp_path: Path) -> None:
    write_year(tmp_path / "LDC2010T12" / "data", 2004)
    write_year(tmp_path / "LDC2010T14" / "data", 2005, newer=True)
    arabic = SOURCE.format(*CHINESE, year="06").replace("Chinese", "Arabic")
    (tmp_path / "mt06-ara-src.sgm").write_text(arabic, encoding="utf-8")
    (tmp_path / "readme.xml").write_text("<readme/>")
    sets = find_evaluation_sets(tmp_path, Reader())
    assert sorted(sets) == [2004, 2005]
    assert sets[2004][0].name == "mt04-src.sgm"
    assert [path.name for path in sets[2005][1]] == [f"mt05-{system}.xml" for system in TRANSLATORS]
    write_year(tmp_path / "again", 2004)
    with pytest.raises(InputError, match="several source sets of 2004; name one with --set 2004=SOURCE,REFERENCES"):
        find_evaluation_sets(tmp_path, Reader())


@pytest.mark.parametrize(
    ("name", "year"),
    [
        ("nist_mt04_zh", 2004),
        ("mt_eval_zh-en_2005_v1", 2005),
        ("NIST-2008", 2008),
        ("LDC2010T17/mt06_src.sgm", 2006),
        ("LDC2010T12", None),
        ("mt12", 2012),
        ("mt0412", None),
        ("format_04", None),
    ],
)
def test_year_of(name: str, year: int | None) -> None:
    assert nist._year_of(name) == year


def test_encodings(tmp_path: Path) -> None:
    path = tmp_path / "x.zh"
    path.write_bytes("\ufeff新聞\r\n二\n".encode())
    assert Reader().lines(path) == ["新聞", "二"]
    path.write_bytes("新聞\n".encode("big5"))
    assert Reader(["utf-8", "big5"]).lines(path) == ["新聞"]
    path.write_bytes(b"a\n\xff\xff\n")
    with pytest.raises(InputError, match="x.zh, line 2: neither utf-8 nor gb18030; name its encoding with --encoding"):
        Reader().lines(path)
    with pytest.raises(InputError, match="there is no encoding 'gb-18030-x'"):
        Reader(["gb-18030-x"])
    packed = tmp_path / "x.zh.gz"
    packed.write_bytes(gzip.compress("新聞\n".encode("gb18030")))
    assert Reader().lines(packed) == ["新聞"]
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(InputError, match="x.zh.gz: not a whole gzip file"):
        Reader().lines(packed)
    with pytest.raises(InputError, match="absent: cannot be read"):
        Reader().lines(tmp_path / "absent")


def write_ldc(folder: Path) -> None:
    """LDC2002E18 in SGML, the Hansards and something else of LDC2004T07 in plain lines."""
    for language, lines, encoding in ("chinese", CHINESE, "gb18030"), ("english", ENGLISH, "utf-8"):
        segments = "".join(f"<s id={i}> {line} </s>\n" for i, line in enumerate(lines, 1))
        for corpus, name, text in (
            ("LDC2002E18", "1.sgm", f"<DOC docid=1>\n{segments}</DOC>\n"),
            ("LDC2004T07_Hong_Kong", "hansard/1.txt", "".join(line + "\n" for line in lines)),
            ("LDC2004T07_Hong_Kong", "laws/1.txt", "".join(line + "\n" for line in lines)),
        ):
            path = folder / corpus / language / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding=encoding)


def test_ldc_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_ldc(tmp_path)
    (tmp_path / "LDC2002E18" / "chinese" / "2.sgm").write_text("<DOC docid=1><s id=1>x</s></DOC>")
    (tmp_path / "LDC2002E18" / "english" / "2.sgm").write_text("<DOC docid=1><s id=2>x</s></DOC>")
    (tmp_path / "LDC2002E18" / "chinese" / "3.sgm").write_text("<DOC docid=1><s id=1>x</s></DOC>")
    (tmp_path / "LDC2002E18" / "readme.txt").write_text("read me")
    assert list(ldc_pairs(tmp_path, Reader())) == list(zip(CHINESE, ENGLISH, strict=True)) * 2
    said = capsys.readouterr().out
    assert "LDC2002E18: 4 sentence pairs in 2 pairs of files; 1 files without a partner; 1 pairs of files left" in said
    assert "LDC2004T07 (Hansards): 4 sentence pairs in 1 pairs of files\n" in said
    for corpus in ("LDC2003E07", "LDC2003E14", "LDC2004T08", "LDC2005T06"):
        assert f"{corpus}: missing (no folder of that name in" in said


def test_nothing_to_be_found(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sentence pairs found. Name the corpora's folders LDC2002E18, "):
        list(ldc_pairs(tmp_path, Reader()))
    with pytest.raises(InputError, match="absent: no such folder"):
        list(ldc_pairs(tmp_path / "absent", Reader()))


def test_partners_differ_in_the_language_only(tmp_path: Path) -> None:
    for name in ("a/data.zh", "a/data.en", "b_chinese.txt", "b_english.txt", "c.zh", "d/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    pairs, unpaired = find_parallel_files(tmp_path)
    assert [(source.name, target.name) for source, target in pairs] == [
        ("data.zh", "data.en"),
        ("b_chinese.txt", "b_english.txt"),
    ]
    assert unpaired == 1


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """A folder with LDC corpora, plain files and all of NIST's years but 2012."""
    write_ldc(tmp_path / "ldc")
    for year, newer in (2003, False), (2004, True), (2005, False), (2006, True), (2008, False):
        write_year(tmp_path / "nist", year, newer=newer)
    characters = [chr(0x4E00 + i) for i in range(40)]
    for language, lines in ("zh", [*characters, ""]), ("en", [f"word {i}" for i in range(40)] + ["dropped"]):
        (tmp_path / f"plain.{language}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def prepare(corpora: Path, *more: str) -> str:
    command = ["scripts/prepare_nist_zh_en.sh", "--ldc", str(corpora / "ldc"), "--train", str(corpora / "plain")]
    command += ["--nist", str(corpora / "nist"), "--bpe", "subword-nmt", "--bpe-size", "5", "--workers", "1"]
    command += ["--output", str(corpora / "out"), *more]
    return run_command(["bash", *command], cwd=Path(__file__).parents[2]).stdout


@pytest.mark.system
def test_whole_preparation(corpora: Path) -> None:
    said = prepare(corpora)
    assert "NIST 2012: missing" in said
    assert "LDC2003E07: missing" in said
    out = corpora / "out"
    content = json.loads((out / "preparation.json").read_text())
    assert content["source_tokenizer"] == "jieba"
    assert content["source_normalization"] == ["nfkc", "simplified"]
    assert {split: facts["kept"] for split, facts in content["splits"].items()} == {
        "train": 48,
        **dict.fromkeys(("valid", "test", "test1", "test2", "test3"), 4),
    }
    names = {split: facts.get("name") for split, facts in content["splits"].items()}
    assert names == {
        "train": None, "valid": "nist03", "test": "nist04", "test1": "nist05", "test2": "nist06", "test3": "nist08"
    }  # fmt: skip
    assert (out / "raw" / "valid.zh").read_text().splitlines() == CHINESE
    assert (out / "tokens" / "valid.zh").read_text().splitlines()[:3] == [
        "我 喜欢 看 新闻 。",
        "他 在 2004 年 去 了 北京 。",
        "今天天气 很 好 ,",
    ]
    assert (out / "tokens" / "test1.ref3.en").read_text().splitlines()[0] == "i like the news . e04"
    assert not (out / "tokens" / "test1.ref4.en").exists()
    assert (out / "bin" / "dict.zh.txt").read_text() != (out / "bin" / "dict.en.txt").read_text()
    preparation = PairsPreparation.load(out)
    assert preparation.split_of("nist08") == "test3"
    assert preparation.splits["test3"]["references"] == 4
    assert "up to date" in prepare(corpora)


@pytest.mark.system
def test_steps_can_be_left_out(corpora: Path) -> None:
    prepare(corpora, "--no-simplify", "--no-nfkc", "--bpe", "sentencepiece", "--bpe-size", "110")
    assert (corpora / "out" / "tokens" / "valid.zh").read_text().splitlines()[:2] == [
        "我 喜歡 看 新聞 。",
        "他 在 ２ ０ ０ ４ 年 去 了 北京 。",
    ]


@pytest.mark.parametrize("given", ["--train", "--set"])
def test_a_pipe_is_refused_unread(given: str, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opened it would wait for somebody to write into it."""
    os.mkfifo(corpora / "pipe.zh")
    (corpora / "pipe.en").write_text("word\n")
    prefix = str(corpora / "pipe")
    with pytest.raises(InputError, match=r"pipe\.zh: a pipe, which is empty after it has been read once"):
        main(corpora, monkeypatch, given, {"--train": prefix, "--set": f"2003={prefix}.zh,{prefix}.en"}[given])
    assert not (corpora / "out").exists()


def test_training_text_in_markup_is_read_by_its_segments(tmp_path: Path) -> None:
    form = '<srcset setid="x">\n<doc docid="1">\n<seg id="1">{0}</seg>\n<seg id="2">{1}</seg>\n</doc>\n</srcset>\n'
    (tmp_path / "old.zh.sgm").write_text(form.format(*CHINESE), encoding="gb18030")
    (tmp_path / "old.en.sgm").write_text(form.format(*ENGLISH), encoding="utf-8")
    prefix = str(tmp_path / "old")
    assert list(nist.plain_pairs(prefix, Reader())) == list(zip(CHINESE[:2], ENGLISH[:2], strict=True))
    (tmp_path / "old.en").write_text("\n".join(ENGLISH[:2]), encoding="utf-8")
    with pytest.raises(InputError, match="old.zh.sgm is SGML or XML, and .*old.en is plain text: give both in one"):
        list(nist.plain_pairs(prefix, Reader()))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--nist", "absent"], "absent: no such folder"),
        (["--set", "2003"], "--set 2003: write --set YEAR=SOURCE,REFERENCE[,REFERENCE...]"),
        (["--set", "2007=a,b"], "--set 2007=a,b: the years are 2003, 2004, 2005, 2006, 2008, 2012"),
        (["--set", "2012=a,b"], "--set 2012=a,b: a: no such file"),
        (["--references", "3"], "but 3 were expected; give all of them, or say --references 4"),
        (["--train", "absent"], "absent.zh: no such file, nor absent.zh.gz"),
    ],
)
def test_bad_input_is_one_sentence(
    options: list[str], sentence: str, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError) as raised:
        main(corpora, monkeypatch, *options)
    assert sentence in str(raised.value)
    assert not (corpora / "out").exists()


def main(corpora: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    """The script's command in this process."""
    arguments = [
        "--train",
        str(corpora / "plain"),
        "--nist",
        str(corpora / "nist"),
        "--output",
        str(corpora / "out"),
        *more,
    ]
    nist.main(arguments)


def test_validation_set_is_needed(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (corpora / "nist").glob("mt03*"):
        path.unlink()
    sentence = "NIST 2003, the validation set, is missing: name it with --set 2003=..."
    with pytest.raises(InputError, match=sentence):
        main(corpora, monkeypatch)


def test_training_text_is_needed(corpora: Path) -> None:
    finished = run_command(
        ["bash", "scripts/prepare_nist_zh_en.sh", "--nist", str(corpora / "nist"), "--output", str(corpora / "out")],
        status=2,
        cwd=Path(__file__).parents[2],
    )
    assert finished.stderr.splitlines()[-1].endswith("give training text: --ldc DIR, --train PREFIX or both")
