"""European languages through Moses, Chinese through jieba and OpenCC."""

from __future__ import annotations

import pickle
import sys

import pytest

from fairseq_plugins.corpora import parallel_text, tokenizers
from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.corpora.tokenizers import Tokenizer
from fairseq_plugins.errors import InputError


def test_chinese_words() -> None:
    tokenizer = Tokenizer("zh", "jieba", lowercase=True, normalization=["nfkc", "simplified"])
    assert tokenizer("我喜歡ＣＮＮ的新聞，") == "我 喜欢 cnn 的 新闻 ,"
    assert tokenizer("  今天　Hello World  3.5% ") == "今天 hello world 3.5%"


def test_normalization_can_be_left_out() -> None:
    assert Tokenizer("zh", "jieba")("新聞，") == "新聞 ，"
    assert Tokenizer("zh", normalization=["nfkc"])("新聞，Ａ") == "新聞,A"
    assert Tokenizer("zh", normalization=["simplified"])("新聞，Ａ") == "新闻，Ａ"


def test_chinese_text_has_no_spaces() -> None:
    tokenizer = Tokenizer("zh", "jieba")
    for text in ("今天天气很好！", "他在CNN工作。", "Hello World, 你好", "（一）二，三"):
        assert tokenizer.detokenize(tokenizer(text)) == text.replace(", ", ",")


def test_worker_processes_get_it_whole() -> None:
    tokenizer = Tokenizer("zh", "jieba", normalization=["simplified"])
    assert pickle.loads(pickle.dumps(tokenizer))("喜歡新聞") == "喜欢 新闻"


@pytest.mark.parametrize(
    ("options", "package", "sentence"),
    [
        ({"kind": "jieba"}, "jieba", "jieba, which cuts Chinese into words, is not installed: run pip install jieba"),
        ({"normalization": ["simplified"]}, "opencc", "OpenCC, which simplifies Chinese characters, is not installed"),
    ],
)
def test_packages_that_are_not_installed(
    options: dict, package: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    tokenizers._jieba.cache_clear()
    tokenizers._converter.cache_clear()
    with pytest.raises(InputError, match=sentence):
        Tokenizer("zh", **options)


def test_unknown_names() -> None:
    with pytest.raises(InputError, match="unknown normalization 'nfd': choose from nfc, nfkc, simplified"):
        Tokenizer("zh", normalization=["nfd"])
    with pytest.raises(InputError, match="unknown normalization 'nfd': choose from nfc, nfkc, simplified"):
        PairsPreparation("zh", "en", source_normalization=["nfd"])
    with pytest.raises(
        InputError, match="unknown source-tokenizer 'char': choose one of moses, treebank, tweet, jieba, none"
    ):
        PairsPreparation("zh", "en", source_tokenizer="char")


def test_preparation_replays_the_source_side_only() -> None:
    steps = PairsPreparation(
        "zh", "en", tokenizer="moses", source_tokenizer="jieba", source_normalization=["nfkc", "simplified"]
    )
    assert steps.source.tokenize("我喜歡新聞，") == "我 喜欢 新闻 ,"
    assert steps.tokenize_target("I like news，") == "I like news ，"
    assert steps.detokenize_target("I like news .") == "I like news."


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("en", "He's here, isn't he?", "He &apos;s here , isn &apos;t he ?"),
        ("de", 'Herr Dr. Müller sagte: "Ja & nein."', "Herr Dr. Müller sagte : &quot; Ja &amp; nein . &quot;"),
        ("en", "[a] | <b>", "&#91; a &#93; &#124; &lt; b &gt;"),
        # Moses takes the last full stop off whatever precedes it, and keeps dots together.
        ("en", "They live in the U.S.", "They live in the U.S ."),
        ("en", "They live in the U.S. now.", "They live in the U.S. now ."),
        ("de", "Das war 1975.", "Das war 1975 ."),
        ("en", "Well...", "Well ..."),
        ("en", ".", "."),
        ("en", "", ""),
    ],
)
def test_moses_tokens(language: str, text: str, tokens: str) -> None:
    assert Tokenizer(language, "moses")(text) == tokens


def test_moses_tokens_without_escapes() -> None:
    tokenizer = Tokenizer("en", "moses", escape=False)
    assert tokenizer("He's <b> & c") == "He 's < b > & c"
    assert tokenizer.detokenize("he 's &amp; c") == "he's &amp; c"


def test_nothing_is_lower_cased_or_tokenised_unless_asked() -> None:
    assert Tokenizer("en")("  He's\u00a0HERE,\tisn't \u2028 he? ") == "He's HERE, isn't he?"
    assert Tokenizer("en", lowercase=True)("HERE, Ä") == "here, ä"


def test_abbreviations_are_known_by_their_case() -> None:
    assert Tokenizer("en", "moses", lowercase=True)("Mr. Li and No. 5") == "mr. li and no. 5"


TREEBANK = [
    ("I don't think it's \"good\".", "i do n't think it 's `` good '' ."),
    ("It wasn't. Mr. Smith can't wait... (He's gone.)", "it was n't . mr. smith ca n't wait ... ( he 's gone . )"),
    ("  two\tspaces  ", "two spaces"),
]


@pytest.mark.parametrize(("text", "tokens"), TREEBANK)
def test_the_treebank_splits_negations_and_turns_quotation_marks(text: str, tokens: str) -> None:
    assert Tokenizer("en", "treebank", escape=False, lowercase=True)(text) == tokens


def test_the_treebank_escapes() -> None:
    tokenizer = Tokenizer("en", "treebank", escape=True, lowercase=True)
    assert tokenizer("The writer/director (really) isn't *") == "the writer\\/director -lrb- really -rrb- is n't \\*"
    assert Tokenizer("en", "treebank").detokenize("The writer\\/director") == "The writer/director"


@pytest.mark.parametrize("kind", ["treebank", "tweet"])
def test_english_text_comes_back(kind: str) -> None:
    for escape in (False, True):
        tokenizer = Tokenizer("en", kind, escape=escape)
        for text in ("I don't (really) know.", "Who's there, then?"):
            assert tokenizer.detokenize(tokenizer(text)) == text
    assert pickle.loads(pickle.dumps(Tokenizer("en", kind)))("It isn't.").startswith("It is")


def test_the_treebank_is_english() -> None:
    with pytest.raises(InputError, match="the tokenizer 'treebank' is for English .en., not for 'de': choose moses"):
        Tokenizer("de", "treebank")


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("eng", "It doesn't.", "It doesn 't ."),
        ("EN", "It doesn't.", "It doesn 't ."),
        ("en_US", "It doesn't.", "It doesn 't ."),
        ("title", "It doesn't.", "It doesn 't ."),
        ("sum", "It doesn't.", "It doesn 't ."),
        ("fra", "L'ami de M. Blanc", "L' ami de M. Blanc"),
        ("deu", "Das ist bzw. war es.", "Das ist bzw. war es ."),
        # Moses has no rules for it, and cuts at every apostrophe.
        ("tr", "Ankara'da", "Ankara ' da"),
    ],
)
def test_moses_rules_by_the_codes_of_languages(name: str, text: str, tokens: str) -> None:
    tokenizer = Tokenizer(name, "moses", escape=False)
    assert tokenizer(text) == tokens
    assert name == "tr" or tokenizer.detokenize(tokens) == text


def test_moses_rules_of_another_language() -> None:
    assert Tokenizer("doc", "moses", escape=False, moses_language="fr")("L'ami") == "L' ami"
    assert Tokenizer("eng", "treebank")("It isn't.") == "It is n't ."


@pytest.mark.parametrize("kind", ["none", "moses"])
def test_a_byte_order_mark_changes_no_tokens(kind: str) -> None:
    tokenizer = Tokenizer("de", kind)
    assert tokenizer("\ufeffHallo, du!") == tokenizer(" \ufeff Hallo, du!") == tokenizer("Hallo, du!")


SEPARATORS = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\u00a0", "\u202f", "\u3000"]
KEPT = ["\u200b", "\u200c", "\u200d", "\u2060", "\u00ad", "\u200f", "@@", "\u2581", "|||", "\uff12\uff10"]


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("kind", tokenizers.TOKENIZERS)
def test_separators_within_a_line_are_spaces(kind: str, separator: str) -> None:
    assert Tokenizer("en", kind)(f"eins{separator}zwei drei") == "eins zwei drei"


@pytest.mark.parametrize("kind", sorted({*tokenizers.TOKENIZERS} - {"none"}))
@pytest.mark.parametrize(
    "words", ["Wie groß ist die Größe ?", "Πόσο μεγάλη είναι η Αθήνα ;", "Привет , мир !", "नमस्ते", "مرحبا"]
)
def test_words_of_every_alphabet_stay_words(kind: str, words: str) -> None:
    """Of TREC and the others in English too, whose tokenizers were made for it."""
    text = words.replace(" ,", ",").replace(" ?", "?").replace(" !", "!").replace(" ;", ";")
    assert Tokenizer("en", kind)(text) == words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("我爱Größe和Привет。", "我 爱 Größe 和 Привет 。"),
        ("２０２４年，ＡＢＣ", "２ ０ ２ ４ 年 ， ＡＢＣ"),
        ("नमस्ते 你好 te\u0301", "नमस्ते 你好 té"),
        ("한국어 문장", "한국어 문장"),
        ("C++和naïve 3.5%，T恤", "C++ 和 naïve 3.5% ， T恤"),
    ],
)
def test_jieba_cuts_chinese_alone(text: str, tokens: str) -> None:
    assert Tokenizer("zh", "jieba", normalization=["nfc"])(text) == tokens


def test_a_joiner_within_a_word_leaves_it_whole() -> None:
    """Moses takes it for a sign between words."""
    tokenizer = Tokenizer("fa", "moses")
    assert tokenizer("می\u200cخواهم، نمی\u200cشود\u200cها.") == "می\u200cخواهم ، نمی\u200cشود\u200cها ."
    assert tokenizer.detokenize(tokenizer("او می\u200cخواهد")) == "او می\u200cخواهد"


@pytest.mark.parametrize("kind", ["moses", "tweet"])
def test_a_zero_width_space_is_no_part_of_a_word(kind: str) -> None:
    assert Tokenizer("en", kind)("good\u200b day") == "good \u200b day"


@pytest.mark.parametrize("mark", KEPT)
def test_marks_within_a_line_stay(mark: str) -> None:
    """They say how letters are joined (Persian, Hindi), or are text."""
    assert Tokenizer("fa")(f"می{mark}خواهم ja") == f"می{mark}خواهم ja"


@pytest.mark.parametrize(("text", "lower"), [("İstanbul IŞIK", "i\u0307stanbul işik"), ("STRAẞE", "straße")])
def test_lower_case_is_unicodes_and_keeps_the_number_of_tokens(text: str, lower: str) -> None:
    tokens = Tokenizer("tr", "none", lowercase=True)(text)
    assert tokens == lower and len(tokens.split()) == len(text.split())


def test_a_word_is_one_word_however_its_accents_are_typed() -> None:
    tokenizer = Tokenizer("fr", normalization=["nfc"])
    assert tokenizer("cafe\u0301") == tokenizer("caf\u00e9") == "caf\u00e9"
    options = ["--src-lang", "fr", "--tgt-lang", "en", "--train", "x", "--valid", "x", "--output", "y"]
    assert parallel_text.parser().parse_args(options).source_normalization == "nfc"


@pytest.mark.parametrize("kind", ["none", "moses"])
@pytest.mark.parametrize("line", ["", " ", "\u3000", "\u200b", " \u2060\u00ad", "\u200e\ufeff"])
def test_a_line_of_nothing_that_can_be_seen_is_empty(kind: str, line: str) -> None:
    """A model would make a sentence of it."""
    assert Tokenizer("en", kind)(line) == ""


@pytest.mark.parametrize("language", ["en", "fr", "de"])
@pytest.mark.parametrize(("escape", "apostrophe"), [(True, "&apos;"), (False, "'")])
def test_a_final_apostrophe_is_a_token(language: str, escape: bool, apostrophe: str) -> None:
    """As Moses' own script has it, and as it is within the line."""
    tokenizer = Tokenizer(language, "moses", escape)
    assert tokenizer("8' x 10'") == f"8 {apostrophe} x 10 {apostrophe}"
    assert tokenizer("the boys'") == f"the boys {apostrophe}"
    assert tokenizer("'") == apostrophe and tokenizer("'10'").endswith(f"10 {apostrophe}")
