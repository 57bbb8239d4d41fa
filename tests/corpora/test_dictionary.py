"""Dictionaries that are read without fairseq."""

from __future__ import annotations

from pathlib import Path

from fairseq.data import Dictionary as FairseqDictionary

from fairseq_plugins.corpora.dictionary import Dictionary


def test_words_that_pad_a_dictionary_are_impossible(tmp_path: Path) -> None:
    of_fairseq = FairseqDictionary()
    for word in "a", "b", "madeupword0007":  # the last one is of a text
        of_fairseq.add_symbol(word)
    of_fairseq.finalize(padding_factor=8)
    of_fairseq.save(str(tmp_path / "dict.txt"))
    dictionary = Dictionary.load(tmp_path / "dict.txt")
    assert dictionary.symbols[-2:] == ["madeupword0007", "madeupword0000"]
    assert dictionary.impossible == [1, 7]
