"""Whose rules Moses has for the sides of parallel text: by the codes of languages, or as the user says."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_plugins.corpora import parallel_text
from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.errors import InputError


def prepare_parallel(monkeypatch: pytest.MonkeyPatch, folder: Path, languages: str, *options: str) -> PairsPreparation:
    """The preparation that ``prepare parallel`` is asked for, without its steps."""
    asked = []
    monkeypatch.setattr(parallel_text, "prepare", lambda preparation, *rest: asked.append(preparation))
    source, target = languages.split("-")
    for language in (source, target):
        (folder / f"text.{language}").write_text("a\n")
    text = str(folder / "text")
    command = ["--src-lang", source, "--tgt-lang", target, "--train", text, "--valid", text, "--output", "data"]
    parallel_text.main([*command, *options])
    return asked[0]


def test_the_language_of_moses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def languages(names: str, *options: str) -> dict[str, str]:
        return prepare_parallel(monkeypatch, tmp_path, names, "--tokenizer", "moses", *options).moses_languages

    assert languages("eng-fra") == {"eng": "en", "fra": "fr"}
    assert languages("doc-sum") == {"doc": "en", "sum": "en"}
    assert languages("zh-EN", "--source-tokenizer", "jieba") == {"EN": "en"}
    assert languages("doc-sum", "--moses-language", "deu") == {"doc": "de", "sum": "de"}
    assert languages("tr-en", "--moses-language", "it,en") == {"tr": "it", "en": "en"}
    assert capsys.readouterr().out == ""
    assert languages("tr-en") == {"tr": "tr", "en": "en"}
    (note,) = capsys.readouterr().out.splitlines()
    assert note.startswith("note: Moses has no rules for the language 'tr'") and "--moses-language" in note
    for asked, sentence in (
        ("tr", "--moses-language tr: Moses has no rules for it; there are as, bn, ca"),
        ("de,", "--moses-language : Moses has no rules"),
        ("de,en,fr", "--moses-language de,en,fr: give one code, or two as SOURCE,TARGET"),
    ):
        with pytest.raises(InputError, match=sentence):
            languages("doc-sum", "--moses-language", asked)
    with pytest.raises(InputError, match="--moses-language is for Moses' tokens: give --tokenizer moses too"):
        prepare_parallel(monkeypatch, tmp_path, "doc-sum", "--moses-language", "de")
