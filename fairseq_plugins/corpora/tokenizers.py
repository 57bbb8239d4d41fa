"""From a line of text to tokens, and back: normalisation, tokenisation (Moses, NLTK, jieba), lower-casing."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import regex

from fairseq_plugins import languages
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import BYTE_ORDER_MARK

from .spacing import SPACE, joined

TOKENIZERS = ("moses", "treebank", "tweet", "jieba", "none")

_HEAD = re.compile(rf"^[\s{BYTE_ORDER_MARK}]+")
# Zero-width and soft characters, which nobody sees.
_NOTHING = re.compile(rf"[\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064{BYTE_ORDER_MARK}]*")
# Moses looks for what follows an apostrophe, and finds the line's end; sacremoses has cut that off.
_FINAL_APOSTROPHE = re.compile(r"(?<=[^\s'])(&apos;|')$")
_FINAL_STOP = re.compile(r"(?<=[^\s.])\.$")
# The zero-width joiner and non-joiner say how letters of one word are written; Moses takes them for signs of their own.
_SPACES_AT_JOINER = regex.compile(r"(?<=[\p{L}\p{M}]) ([\u200c\u200d]) (?=[\p{L}\p{M}])")
# Scripts that are written without spaces, and their punctuation.
_UNSPACED = r"\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003134f"
_SPACE_AT_UNSPACED = re.compile(rf"(?<=[{_UNSPACED}]) | (?=[{_UNSPACED}])")
# A word of another alphabet than jieba knows, which has letters and digits of ASCII only: it would cut it into letters.
_UNSPACED_SCRIPTS = "".join(rf"\p{{scx={name}}}" for name in ("Han", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr"))
_FOREIGN_WORD = regex.compile(
    rf"((?=[a-zA-Z0-9]*[[\p{{L}}\p{{M}}]--[{_UNSPACED_SCRIPTS}]--[\x00-\x7f]])"
    rf"[[\p{{L}}\p{{Nd}}]--[{_UNSPACED_SCRIPTS}]][[\p{{L}}\p{{Nd}}\p{{M}}\u200c\u200d]--[{_UNSPACED_SCRIPTS}]]*)",
    flags=regex.VERSION1,
)
_TREEBANK_ESCAPED = re.compile(r"(?=[/*])")
_SPACE_BEFORE_STOP = re.compile(r" (?=[,.!?;:%)\]}])|(?<=[(\[{]) ")


def note_moses_rules(names: Iterable[str], option: str) -> None:
    """Says for which of the ``names`` of languages Moses has no rules, and by which ``option`` others are named."""
    for name in names:
        if not languages.has_moses_rules(name):
            print(
                f"note: Moses has no rules for the language '{name}': it takes English abbreviations and cuts at every "
                f"apostrophe; {option} names a language that has some"
            )


def composed(text: str) -> str:
    """Letters with their accents as one character where there is one (NFC), as most text has them."""
    return unicodedata.normalize("NFC", text)


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _simplified(text: str) -> str:
    return _converter().convert(text)


NORMALIZATIONS: dict[str, Callable[[str], str]] = {"nfc": composed, "nfkc": _nfkc, "simplified": _simplified}
"""``nfc``: Unicode's composed form, so that a word is one word however its accents are typed. ``nfkc``: its
compatibility form, which makes full-width letters, digits and punctuation half-width too. ``simplified``: traditional
to simplified Chinese characters, phrase by phrase (OpenCC's ``t2s``)."""


class Tokenizer:
    """One side's normalisation, tokenisation and lower-casing, and the way back.

    Spaces are always normalised: every run of white space (no-break spaces, tabs, …) becomes one space, and none is
    at the ends. fairseq would do it anyway, and only so does a line stay one line in every reader.
    """

    def __init__(
        self,
        language: str,
        kind: str = "none",
        escape: bool = True,
        lowercase: bool = False,
        normalization: Sequence[str] = (),
        moses_language: str | None = None,
    ) -> None:
        """
        Args:
            language: the language's code (``de``), or another name.
            kind: ``moses``; ``treebank``, which writes "isn't" as ``is n't`` and quotation marks as `` and '', as the
                Penn Treebank does; ``tweet``, which leaves "isn't" whole; ``jieba``, which cuts Chinese into words; or
                ``none``.
            escape: Moses tokens write ``& | < > ' " [ ]`` as ``&amp;`` and so on, as Moses itself does; those of the
                Treebank write brackets as ``-LRB-`` and so on, and ``/`` and ``*`` with a backslash.
            lowercase: after tokenisation, as Moses recipes do (abbreviations are known by their case).
            normalization: what is done before tokenisation, names of :data:`NORMALIZATIONS` in their order.
            moses_language: whose abbreviations and apostrophes Moses knows, as sacremoses calls it; by ``language``
                unless it is given.

        Raises:
            InputError: an unknown name, or a package that is not installed.
        """
        if kind not in TOKENIZERS:
            raise InputError(f"unknown tokenizer {kind!r}: choose one of {', '.join(TOKENIZERS)}")
        self.language, self.kind, self.escape, self.lowercase = language, kind, escape, lowercase
        self.normalization = tuple(normalization)
        for name in self.normalization:
            if name not in NORMALIZATIONS:
                raise InputError(f"unknown normalization {name!r}: choose from {', '.join(NORMALIZATIONS)}")
        if "simplified" in self.normalization:
            _converter()
        self._rules = moses_language or languages.moses_language(language)
        if kind == "moses":
            import sacremoses  # not at the head of the file: --help and refusals need not wait for it

            self._moses = sacremoses.MosesTokenizer(lang=self._rules)
            self._demoses = sacremoses.MosesDetokenizer(lang=self._rules)
        elif kind == "treebank":
            if languages.language_code(language) != "en":
                raise InputError(f"the tokenizer 'treebank' is for English (en), not for '{language}': choose moses")
            from nltk.tokenize import NLTKWordTokenizer, TreebankWordDetokenizer

            self._sentences, self._words = languages.sentence_splitter(), NLTKWordTokenizer()
            self._detokenizer = TreebankWordDetokenizer()
        elif kind == "tweet":
            from nltk.tokenize import TreebankWordDetokenizer, TweetTokenizer

            self._words, self._detokenizer = TweetTokenizer(), TreebankWordDetokenizer()
        elif kind == "jieba":
            _jieba()

    def __call__(self, line: str) -> str:
        """A line of text as tokens separated by single spaces; none where nothing in it can be seen.

        Byte order marks at its head are no part of it.
        """
        line = "" if _NOTHING.fullmatch(line) else _HEAD.sub("", line)
        for name in self.normalization:
            line = NORMALIZATIONS[name](line)
        if self.kind == "moses":
            line = self._moses.tokenize(line, return_str=True, escape=self.escape)
            # Moses' own script takes the last full stop off every sentence, even one that ends in "U.S."; sacremoses
            # leaves it on abbreviations and numbers.
            line = _SPACES_AT_JOINER.sub(r"\1", line)
            line = _FINAL_APOSTROPHE.sub(r" \1", _FINAL_STOP.sub(" .", line.rstrip()))
        elif self.kind == "treebank":
            # It knows a full stop by the end of the sentence.
            sentences = self._sentences.tokenize(line)
            line = " ".join(word for sentence in sentences for word in self._treebank_words(sentence))
        elif self.kind == "tweet":
            line = " ".join(self._words.tokenize(line))
        elif self.kind == "jieba":
            line = " ".join(self._jieba_words(line))
        if self.lowercase:
            line = line.lower()
        return " ".join(line.split())

    def detokenize(self, tokens: str) -> str:
        """Tokens as text. What lower-casing and normalisation lost stays lost."""
        if self.kind == "none":
            return tokens
        if self.kind == "moses":
            tokens = self._demoses.unescape_xml(tokens) if self.escape else tokens
        elif self.kind in ("treebank", "tweet") and self.escape:
            tokens = tokens.replace("\\/", "/").replace("\\*", "*")
        words = joined(tokens.split(), self._rules)
        if self.kind == "moses":
            text = self._demoses.detokenize(words, unescape=False)
        elif self.kind == "jieba":
            text = _SPACE_BEFORE_STOP.sub("", _SPACE_AT_UNSPACED.sub("", " ".join(words)))
        else:
            text = self._detokenizer.detokenize(_turned(words), convert_parentheses=self.escape)
        return text.replace(SPACE, " ")

    def _jieba_words(self, line: str) -> list[str]:
        # Every second part is what the pattern has found.
        parts = enumerate(_FOREIGN_WORD.split(line))
        return [word for index, part in parts for word in ([part] if index % 2 else _jieba().cut(part))]

    def _treebank_words(self, sentence: str) -> list[str]:
        words = self._words.tokenize(sentence, convert_parentheses=self.escape)
        return [_TREEBANK_ESCAPED.sub(r"\\", word) for word in words] if self.escape else words


def _turned(words: Sequence[str]) -> list[str]:
    """Straight quotation marks as those of the Penn Treebank, which open and close by turns."""
    marks = itertools.cycle(("``", "''"))
    return [next(marks) if word == '"' else word for word in words]


@functools.cache
def _jieba() -> Any:
    # Not at the head of the file: only Chinese needs it. In here it is loaded once in each process.
    try:
        with warnings.catch_warnings():
            # It looks for its dictionary with setuptools' pkg_resources, which warns of its own end.
            warnings.simplefilter("ignore")
            import jieba
    except ImportError:
        raise InputError("jieba, which cuts Chinese into words, is not installed: run pip install jieba") from None
    jieba.setLogLevel("WARNING")
    return jieba


@functools.cache
def _converter() -> Any:
    try:
        import opencc
    except ImportError:
        raise InputError(
            "OpenCC, which simplifies Chinese characters, is not installed: run pip install opencc, "
            "or leave that step out"
        ) from None
    return opencc.OpenCC("t2s")
