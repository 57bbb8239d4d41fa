"""Input and choices for pairs of texts that cannot be used: one sentence, and nothing is left behind."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from fairseq_plugins.corpora import parallel_text, pipeline
from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.errors import CommandError, InputError
from tests.corpora.parallel_text import STEPS, contents, sentences, write


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    parallel_text.main(list(map(str, arguments)))


def test_sides_of_different_length_name_both_counts(tmp_path: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    source, _ = write(tmp_path / "long", sentences(7, 1))
    _, target = write(tmp_path / "short", sentences(5, 1))
    for split in ("train", "test"):
        with pytest.raises(InputError, match=r"long\.de has 7 lines and .*short\.en has 5: line n of one must be"):
            prepare(STEPS, {**inputs, split: (source, target)}, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_a_colon_in_the_output_folder(
    tmp_path: Path, inputs: dict[str, tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = "da:ta.*: fairseq takes a path with ':' for several; name another folder for --output$"
    with pytest.raises(InputError, match=refusal):
        prepare(STEPS, inputs, tmp_path / "da:ta")
    assert not (tmp_path / "da:ta").exists()
    (tmp_path / "da:ta").mkdir()
    monkeypatch.chdir(tmp_path / "da:ta")
    with pytest.raises(InputError, match=refusal):
        prepare(STEPS, inputs, "out")


def test_a_pipe_is_refused_unread(tmp_path: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    """Whoever opened it would wait for somebody to write into it."""
    source, target = write(tmp_path / "odd", sentences(5, 1))
    target.unlink()
    os.mkfifo(target)
    with pytest.raises(InputError, match=r"odd\.en: a pipe, which is empty after it has been read once"):
        prepare(STEPS, {**inputs, "valid": (source, target)}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_empty_file(tmp_path: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    source, target = write(tmp_path / "valid", sentences(5, 1))
    target.write_text("")
    with pytest.raises(InputError, match=r"valid\.en is empty"):
        prepare(STEPS, {**inputs, "valid": (source, target)}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_line_that_is_not_utf8(tmp_path: Path, inputs: dict[str, tuple[Path, Path]], workers: int) -> None:
    source, target = write(tmp_path / "train", sentences(5, 1))
    source.write_bytes(source.read_bytes() + "für\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"train\.de, line 6: not UTF-8"):
        prepare(STEPS, {**inputs, "train": (source, target)}, tmp_path / "out", workers)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("bpe", ["sentencepiece", "subword-nmt"])
def test_a_vocabulary_larger_than_the_corpus_allows(
    tmp_path: Path, inputs: dict[str, tuple[Path, Path]], bpe: str, no_binarising: None
) -> None:
    steps = dataclasses.replace(STEPS, bpe=bpe, bpe_size=50_000)
    with pytest.raises(InputError, match=r"the largest possible --bpe-size is \d+$") as error:
        prepare(steps, inputs, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    largest = int(str(error.value).split()[-1])
    prepare(dataclasses.replace(steps, bpe_size=largest), inputs, tmp_path / "out")


def test_nothing_left_after_cleaning(tmp_path: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    with pytest.raises(InputError, match="no pair of train is left"):
        prepare(dataclasses.replace(STEPS, min_length=99), inputs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_check_of_the_numbers_of_pairs(tmp_path: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    def check(kept: dict[str, int]) -> None:
        assert kept == {"train": 200, "valid": 15, "test": 13, "test1": 9}
        raise InputError("too few")

    with pytest.raises(InputError, match="too few"):
        prepare(STEPS, inputs, tmp_path / "out", check=check)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else(tmp_path: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    (tmp_path / "thesis").write_text("the only copy")
    with pytest.raises(InputError, match="not empty and holds no preparation"):
        prepare(STEPS, inputs, tmp_path)
    with pytest.raises(InputError, match="is a file"):
        prepare(STEPS, inputs, tmp_path / "thesis")
    with pytest.raises(InputError, match=r"thesis/out: cannot make this folder \(File exists\)"):
        prepare(STEPS, inputs, tmp_path / "thesis" / "out")
    assert contents(tmp_path) == {"thesis": b"the only copy"}


def test_a_folder_that_must_not_be_written(
    tmp_path: Path, inputs: dict[str, tuple[Path, Path]], prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline.os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(InputError, match="cannot write into the folder around it: name another"):
        prepare(STEPS, inputs, tmp_path)
    assert list(tmp_path.iterdir()) == []
    # What is prepared already can be used from anywhere.
    assert prepare(STEPS, inputs, prepared) == PairsPreparation.load(prepared)


def test_a_disk_that_is_mounted_there_has_no_other_name(
    tmp_path: Path, inputs: dict[str, tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path)
    with pytest.raises(InputError, match=": a disk is mounted there: name a folder on it for --output"):
        prepare(STEPS, inputs, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_leaves_a_folder_that_was_there(tmp_path: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError):
        prepare(dataclasses.replace(STEPS, bpe_size=50_000), inputs, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_fairseq_preprocess_fails(
    tmp_path: Path, inputs: dict[str, tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(CommandError, match="fairseq-preprocess failed with status 1: it said nothing; start again"):
        prepare(dataclasses.replace(STEPS, bpe="none"), inputs, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ein Satz\rnoch einer\rund noch einer\r", "line 1: carriage returns within the lines, as if they ended them"),
        (b"ein Satz\r\r\nnoch einer\r\r\n", "line 1: carriage returns within the lines, as if they ended them"),
        ("ein Satz\n".encode("utf-16"), ": UTF-16 text; convert it to UTF-8 with iconv -f UTF-16 -t UTF-8"),
        ("ein Satz\n".encode("utf-16-le"), "line 1: a NUL byte, which no text has; if it is UTF-16, convert"),
        (b"ein Satz\nnoch \0 einer\n", "line 2: a NUL byte, which no text has"),
        (b"ein Satz\nn\xe4chster\n", "line 2: not UTF-8 .byte 2 is 0xe4.; convert it, for example"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_text_that_is_none(
    tmp_path: Path, inputs: dict[str, tuple[Path, Path]], content: bytes, message: str, packed: bool
) -> None:
    end = ".gz" if packed else ""
    paths = (tmp_path / f"odd.de{end}", tmp_path / f"odd.en{end}")
    for path in paths:
        path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError, match=rf"odd\.de{end}.*{message}"):
        prepare(STEPS, {**inputs, "valid": paths}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_stray_carriage_return_is_warned_of(
    tmp_path: Path, inputs: dict[str, tuple[Path, Path]], no_binarising: None, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = write(tmp_path / "odd", sentences(5, 9))
    source.write_bytes(source.read_bytes().replace(b" ", b"\r", 1).replace(b"\n", b"\r\n"))
    prepare(STEPS, {**inputs, "valid": (source, target)}, tmp_path / "out")
    warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert warnings == [f"warning: {source}, line 1: a carriage return within the line (1 in all), taken for a space"]


def test_empty_lines(
    tmp_path: Path, inputs: dict[str, tuple[Path, Path]], no_binarising: None, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = write(tmp_path / "odd", sentences(3, 9))
    target.write_text("\n \n\n", encoding="utf-8")
    with pytest.raises(InputError, match="odd.en: all lines are empty"):
        prepare(STEPS, {**inputs, "valid": (source, target)}, tmp_path / "out")
    target.write_text("\nnot empty\n\n", encoding="utf-8")
    prepare(STEPS, {**inputs, "valid": (source, target)}, tmp_path / "out")
    assert f"warning: {target}: 2 of 3 lines are empty\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options, is_warned_of",
    [({}, True), ({"tokenizer": "moses"}, True), ({"given": "tokens"}, False), ({"metric": "rouge"}, False)],
)
def test_text_that_moses_has_escaped(
    tmp_path: Path, no_binarising: None, options: dict[str, str], is_warned_of: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """sacrebleu's own tokenisation of ``&apos;s`` has three tokens more than people's ``'s``."""
    train = write(tmp_path / "train", [("der Hund", "the dog &apos;s")] * 3)
    test = write(
        tmp_path / "test", [("&apos;s war", "that was &#91;it&#93; &amp; all"), ("ja", "yes"), ("ja", "it &apos;s")]
    )
    steps = PairsPreparation("de", "en", bpe="none", **options)
    prepare(steps, {"train": train, "valid": train, "test": test}, tmp_path / "out")
    warned = [line for line in capsys.readouterr().out.splitlines() if "Moses" in line]
    assert len(warned) == (2 if is_warned_of else 0)
    if is_warned_of:
        assert warned[1].startswith(f"warning: {test[1]}: 2 of 3 lines are Moses' tokens with escapes, such as &#91;: ")


@pytest.mark.parametrize(("symbol", "bpe_size"), [("<s>", 2), ("<pad>", 4), ("</s>", 3)])
def test_symbols_of_fairseq_s_own(tmp_path: Path, no_binarising: None, symbol: str, bpe_size: int) -> None:
    paths = tmp_path / "odd.de", tmp_path / "odd.en"
    paths[0].write_text("ein\nein Hund\nunk <unk>\nein Hund\n", encoding="utf-8")
    paths[1].write_text(f"a\na dog\nthe <unk>\nthe {symbol} {symbol} {symbol}\n", encoding="utf-8")
    steps = PairsPreparation("de", "en", bpe="none", min_length=2)
    inputs = {"train": paths, "valid": write(tmp_path / "valid", sentences(5, 9))}
    for odd in inputs, {**inputs, "train": inputs["valid"], "test": paths}:
        with pytest.raises(InputError, match=f"odd.en, line 4: '{symbol}' is a symbol of fairseq's own: write it"):
            prepare(steps, odd, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    # Of subwords none is a symbol.
    steps = dataclasses.replace(steps, bpe="subword-nmt", bpe_size=bpe_size)
    prepare(steps, inputs, tmp_path / "out")
    assert (tmp_path / "out/tokens/train.en").read_text().splitlines()[2] == f"the {symbol} {symbol} {symbol}"
    assert symbol not in (tmp_path / "out/bpe/train.en").read_text().split()
    paths[1].write_text("a\na dog\nthe <unk>\nthe cat\n", encoding="utf-8")
    prepare(PairsPreparation("de", "en", bpe="none"), {"train": paths, "valid": paths}, tmp_path / "unknown")


def test_a_file_in_the_place_of_a_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "train", sentences(3, 1))
    common = ["--src-lang", "de", "--tgt-lang", "en", "--valid", tmp_path / "train", "--output", tmp_path / "out"]
    prefix = tmp_path / "train"
    with pytest.raises(InputError, match=f"train.de: a prefix is meant: {prefix}, which stands for {prefix}.de and"):
        run_main(monkeypatch, *common, "--train", f"{prefix}.de")


def test_missing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "train", sentences(3, 1))
    common = ["--src-lang", "de", "--train", tmp_path / "train", "--output", tmp_path / "out"]
    with pytest.raises(InputError, match=r"valid\.de: no such file, nor valid\.de\.gz"):
        run_main(monkeypatch, *common, "--tgt-lang", "en", "--valid", tmp_path / "valid")
    with pytest.raises(InputError, match=r"train\.fr: no such file"):
        run_main(monkeypatch, *common, "--tgt-lang", "fr", "--valid", tmp_path / "train")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--tokenizer", "spacy", "invalid choice: 'spacy'"),
        ("--bpe", "wordpiece", "invalid choice: 'wordpiece'"),
        ("--bpe-size", "8k", "invalid int value: '8k'"),
        ("--ratio", "much", "invalid float value: 'much'"),
        ("--valid-every", "23", "not allowed with argument --valid"),
        ("--colour", "red", "unrecognized arguments: --colour"),
    ],
)
def test_unknown_option_values(
    option: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--src-lang", "de", "--tgt-lang", "en", "--train", "t", "--valid", "v", "--output", "o"]
    with pytest.raises(SystemExit) as exit_:
        run_main(monkeypatch, *common, option, value)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_a_metric_that_nobody_knows_here(
    tmp_path: Path, no_binarising: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "text", sentences(30, 1))
    options = ["--src-lang", "de", "--tgt-lang", "en", "--train", tmp_path / "text", "--valid", tmp_path / "text"]
    options += ["--bpe", "none", "--workers", 1, "--metric"]
    for metric, note in (("bleu", None), ("toy", "define it"), ("rogue", "define it; did you mean 'rouge'?")):
        run_main(monkeypatch, *options, metric, "--output", tmp_path / metric)
        notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
        prefix = f"note: '{metric}' is no metric of pairs of texts here: an extension has to "
        assert notes == ([] if note is None else [prefix + note])
        assert PairsPreparation.load(tmp_path / metric).metric == metric


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"tokenizer": "spacy"}, "unknown tokenizer 'spacy': choose one of moses, treebank, tweet, jieba, none"),
        ({"bpe": "wordpiece"}, "unknown bpe 'wordpiece': choose one of sentencepiece, subword-nmt, none"),
        ({"target_lang": "de"}, "both 'de'"),
        ({"target_lang": "de-AT"}, "letters, digits and _ only"),
        (
            {"target_lang": "log"},
            "files that end in .log are logs, of fairseq too; give the side another name, such as",
        ),
        ({"source_lang": "gz"}, "files that end in .gz are packed ones; give the side another name, such as gzs"),
        ({"bpe_size": 0}, "bpe-size is 0: it must be positive"),
        ({"min_length": 9, "max_length": 8}, "max-length is 8, less than min-length, 9"),
        ({"ratio": 0.5}, "ratio is 0.5"),
        ({"ratio": float("nan")}, "ratio is nan: it must be positive, and a number"),
        ({"ratio": float("inf")}, "ratio is inf: it must be positive, and a number"),
        ({"dictionary_size": 4}, "dictionary-size is 4: 4 are fairseq's own symbols"),
        ({"valid_every": 1}, "valid-every is 1"),
    ],
)
def test_impossible_choices(choices: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PairsPreparation(**{"source_lang": "de", "target_lang": "en", **choices})


UNKNOWN_FIELD = {"kind": "pairs", "splits": {}, "files": {}, "dictionary_sizes": {}, "format": 1, "colour": "red"}


@pytest.mark.parametrize("content", [None, "{", "[]", '{"format": 0}', json.dumps(UNKNOWN_FIELD)])
def test_a_damaged_preparation_json(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "preparation.json").write_text(content)
    with pytest.raises(InputError, match=r"preparation\.json"):
        PairsPreparation.load(tmp_path)


def test_a_missing_model_file(prepared: Path, tmp_path: Path) -> None:
    PairsPreparation.load(prepared).save(tmp_path)
    with pytest.raises(InputError, match=r"sentencepiece\.de-en\.model: missing"):
        PairsPreparation.load(tmp_path).encode_source("etwas")
