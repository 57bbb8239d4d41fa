"""sacreBLEU by the tokenizer of the target language, as sacrebleu's own command has it."""

from __future__ import annotations

import importlib
from argparse import ArgumentParser, Namespace

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU

from fairseq_plugins.errors import InputError
from fairseq_plugins.scoring.bleu import (
    SACREBLEU_TOKENIZERS,
    Bleu,
    bleu,
    has_hardly_spaces,
    sentence_bleu,
    tokenizer_of,
)
from fairseq_plugins.scoring.metrics import Outputs, References

CHINESE = ["我今天在学校学习中文。", "他们明天去北京看朋友。"]
TRANSLATED = ["我今天在学校学汉语。", "他们明天去北京看朋友。"]
THAI = ["ฉันเรียนภาษาไทยที่โรงเรียนในวันนี้", "พรุ่งนี้เราจะไปตลาดกับเพื่อน"]


def references(lines: list[str], language: str = "") -> References:
    return References([lines], [lines], language=language)


def outputs(lines: list[str]) -> Outputs:
    return Outputs(lines, lines)


@pytest.mark.parametrize("language", ["zh", "zho", "zh_CN", "cmn_Hans"])
def test_chinese_is_cut_by_zh(language: str) -> None:
    scores = Bleu().scores(outputs(TRANSLATED), references(CHINESE, language))
    assert scores["bleu_sacrebleu"] == round(sacrebleu.corpus_bleu(TRANSLATED, [CHINESE], tokenize="zh").score, 2)
    assert 50 < scores["bleu_sacrebleu"] < 100
    assert "|tok:zh|" in scores["sacrebleu_signature"]


def test_every_score_is_by_the_same_tokenizer() -> None:
    metric = Bleu().configured(Namespace(tokenize="13a"))
    known = references(CHINESE, "zh")
    compared = metric.compare(outputs(CHINESE), outputs(TRANSLATED), known, samples=5)["bleu_sacrebleu"]
    assert compared.system.score == pytest.approx(sacrebleu.corpus_bleu(TRANSLATED, [CHINESE], tokenize="zh").score)
    assert "|tok:zh|" in compared.signature and "bs:5" in compared.signature
    singly = [BLEU(tokenize="zh", effective_order=True).sentence_score(line, [CHINESE[0]]).score for line in TRANSLATED]
    assert metric.sentence_scores(outputs(TRANSLATED[:1]), references(CHINESE[:1], "zh")).tolist() == singly[:1]
    assert sentence_bleu(TRANSLATED[:1], [CHINESE[:1]], "zh").tolist() == singly[:1]


@pytest.mark.parametrize("language", ["de", "en", "zh", "ja", "ko", "th", "title", ""])
def test_the_tokenizer_is_that_of_sacrebleu(language: str) -> None:
    # sacrebleu takes it so from its option --language-pair.
    expected = BLEU._TOKENIZER_MAP.get(language, "13a")
    assert tokenizer_of(language) == expected
    if expected in ("13a", "zh"):
        assert BLEU(trg_lang=language).tokenizer.signature() == bleu(tokenizer_of(language)).tokenizer.signature()


@pytest.mark.parametrize(("language", "tokenizer", "package"), [("jpn", "ja-mecab", "ja"), ("ko", "ko-mecab", "ko")])
def test_what_is_not_installed(language: str, tokenizer: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(f"sacrebleu.tokenizers.tokenizer_{tokenizer.replace('-', '_')}")
    monkeypatch.setattr(module, "MeCab", None)
    sentence = (
        rf"sacreBLEU's tokenizer {tokenizer} is not installed: run pip install 'sacrebleu\[{package}\]', "
        "or name another by --sacrebleu-tokenize"
    )
    for score in (Bleu().remarks, lambda known: Bleu().scores(outputs(["a"]), known)):
        with pytest.raises(InputError, match=sentence):
            score(references(["a"], language))
    # The figure of the tokens needs no tokenizer, and another one can be named.
    assert Bleu().only("bleu_tokenized").remarks(references(["a b"], language)) == []
    assert (
        "|tok:char|"
        in Bleu().tokenized_by("char").scores(outputs(["a"]), references(["a"], language))["sacrebleu_signature"]
    )


def test_the_tokenizer_can_be_named() -> None:
    scores = Bleu().tokenized_by("char").scores(outputs(THAI), references(THAI, "th"))
    assert "|tok:char|" in scores["sacrebleu_signature"] and scores["bleu_sacrebleu"] == 100
    assert (
        "|tok:13a|"
        in Bleu().tokenized_by("13a").scores(outputs(CHINESE), references(CHINESE, "zh"))["sacrebleu_signature"]
    )
    assert set(SACREBLEU_TOKENIZERS) == set(BLEU.TOKENIZERS) - {"none"}
    with pytest.raises(InputError, match="sacrebleu-tokenize chars: choose one of 13a, .*; did you mean 'char'"):
        Bleu().tokenized_by("chars")


@pytest.mark.parametrize(
    ("options", "column", "tokenizer"),
    [
        (["--sacrebleu-tokenize", "char"], "bleu_sacrebleu", "char"),
        (["--tokenize", "13a", "--sacrebleu-tokenize", "intl"], "bleu_sacrebleu", "intl"),
        (["--tokenize", "13a"], "bleu_sacrebleu", None),
        (["--tokenize", "none"], "bleu_tokenized", None),
    ],
)
def test_options_of_commands_that_score_files(options: list[str], column: str, tokenizer: str | None) -> None:
    parser = ArgumentParser()
    Bleu().add_arguments(parser)
    metric = Bleu().configured(parser.parse_args(options))
    assert ([column.key for column in metric.columns], metric.tokenizer) == ([column], tokenizer)


def test_options_that_exclude_each_other() -> None:
    with pytest.raises(InputError, match="--sacrebleu-tokenize is for sacreBLEU, and --tokenize none for tokens"):
        Bleu().configured(Namespace(tokenize="none", sacrebleu_tokenize="char"))


def test_remarks() -> None:
    words = ["the cat sat on the mat .", "Die Donaudampfschifffahrtsgesellschaft wurde gegründet"]
    for language in ("de", "en", "title"):
        assert Bleu().remarks(references(words, language)) == []
    segmented = " ".join(CHINESE[0])
    assert Bleu().remarks(References([[segmented]], [CHINESE[:1]], language="zh")) == [
        "sacreBLEU cuts text by zh, since the target language is 'zh' (--sacrebleu-tokenize names another)"
    ]
    for lines, language in ((THAI, "th"), (CHINESE, "tgt"), (CHINESE, "")):
        text, tokens = Bleu().remarks(references(lines, language))
        assert text.startswith("warning: sacreBLEU cuts text by 13a, which wants words between spaces")
        assert "--sacrebleu-tokenize" in text and "char for Thai" in text
        assert tokens.startswith("warning: tokenised BLEU is of what is between spaces")
    assert len(Bleu().remarks(references(CHINESE, "zh"))) == 2
    # Who has named a tokenizer knows.
    assert Bleu().tokenized_by("char").only("bleu_sacrebleu").remarks(references(THAI, "th")) == []


def test_hardly_a_space() -> None:
    assert has_hardly_spaces(THAI) and has_hardly_spaces(CHINESE)
    assert not has_hardly_spaces(["Hyvää huomenta", "경찰이 어제 강도를 잡았다", "one", "word"])
    assert not has_hardly_spaces([]) and not has_hardly_spaces(["17"]) and not has_hardly_spaces(["", ""])
    # Between phrases Thai has spaces.
    assert has_hardly_spaces([f"{THAI[0]} {THAI[1]}"])
    assert not has_hardly_spaces(["ฉัน เรียน ภาษา ไทย", "我 今天 在 学校"])
    assert has_hardly_spaces(["thequickbrownfoxjumpsover thelazydog"])
