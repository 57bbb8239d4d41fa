"""Cleaning, tokens, BPE and fairseq's binary form of any parallel text."""

from __future__ import annotations

import dataclasses
import gzip
import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_plugins.corpora import pipeline
from fairseq_plugins.corpora.lines import read_aligned, side_files
from fairseq_plugins.corpora.pairs import PairsPreparation, PairsRun, prepare
from fairseq_plugins.corpora.subwords import SentencePieceModel
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import locked
from tests.corpora.parallel_text import STEPS, contents, lines, sentences, write

pytestmark = pytest.mark.system  # they share what is prepared or trained in seconds

STAGES = ("raw", "tokens", "bpe", "bin")


# The output folder


def test_the_folder_holds_every_stage_of_every_split(prepared: Path) -> None:
    assert sorted(path.name for path in prepared.iterdir()) == sorted((*STAGES, "preparation.json"))
    texts = {f"{split}.{language}" for split in ("train", "valid", "test", "test1") for language in ("de", "en")}
    assert {path.name for path in (prepared / "raw").iterdir()} == texts
    assert {path.name for path in (prepared / "tokens").iterdir()} == texts
    assert {path.name for path in (prepared / "bpe").iterdir()} == texts | {"sentencepiece.de-en.model"}


def test_stages_are_line_by_line_the_same_sentences(prepared: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    preparation = PairsPreparation.load(prepared)
    for split, paths in inputs.items():
        for path, tokenize, encode in (
            (paths[0], preparation.source.tokenize, preparation.encode_source),
            (paths[1], preparation.tokenize_target, preparation.encode_target),
        ):
            name = f"{split}{path.suffix}"
            raw = lines(prepared / "raw" / name)
            assert raw == lines(path)
            assert [tokenize(line) for line in raw] == lines(prepared / "tokens" / name)
            assert [encode(line) for line in raw] == lines(prepared / "bpe" / name)


def test_fairseq_reads_back_every_sentence(prepared: Path) -> None:
    from fairseq.data import Dictionary, data_utils

    for language in ("de", "en"):
        dictionary = Dictionary.load(str(prepared / "bin" / f"dict.{language}.txt"))
        for split in ("train", "test1"):
            path = prepared / "bin" / f"{split}.de-en.{language}"
            sentences = [dictionary.string(tokens) for tokens in data_utils.load_indexed_dataset(str(path), dictionary)]
            expected = lines(prepared / "bpe" / f"{split}.{language}")
            assert len(sentences) == len(expected)
            if split == "train":  # whose every piece is in the dictionary
                assert sentences == expected


def test_joint_bpe_gives_one_dictionary(prepared: Path) -> None:
    dictionaries = [(prepared / "bin" / f"dict.{language}.txt").read_bytes() for language in ("de", "en")]
    assert dictionaries[0] == dictionaries[1]
    size = dictionaries[0].count(b"\n")
    assert PairsPreparation.load(prepared).dictionary_sizes == {"de": size, "en": size}


def test_preparation_json_says_what_was_done(prepared: Path) -> None:
    content = json.loads((prepared / "preparation.json").read_text())
    assert {name: content[name] for name in ("source_lang", "target_lang", "lowercase", "tokenizer", "escape")} == {
        "source_lang": "de",
        "target_lang": "en",
        "lowercase": True,
        "tokenizer": "moses",
        "escape": True,
    }
    assert content["bpe_models"] == dict.fromkeys(("de", "en"), "bpe/sentencepiece.de-en.model")
    assert {split: count["kept"] for split, count in content["splits"].items()} == {
        "train": 200,
        "valid": 15,
        "test": 13,
        "test1": 9,
    }
    assert "--joined-dictionary" in content["commands"][0]
    assert content["versions"]["sentencepiece"]


def test_save_and_load(prepared: Path, tmp_path: Path) -> None:
    preparation = PairsPreparation.load(prepared)
    preparation.save(tmp_path)
    assert PairsPreparation.load(tmp_path) == preparation


# Applying it to new text


def test_raw_text_in_and_raw_text_out(prepared: Path) -> None:
    preparation = PairsPreparation.load(prepared)
    for raw in lines(prepared / "raw" / "test.en"):
        tokens = preparation.decode_target(preparation.encode_target(raw))
        assert tokens == preparation.tokenize_target(raw) != raw
        assert preparation.detokenize_target(tokens) == raw.lower()


@settings(max_examples=200)
@given(text=st.text())
def test_any_text_survives_the_bpe(prepared: Path, text: str) -> None:
    preparation = PairsPreparation.load(prepared)
    for steps in (preparation, dataclasses.replace(preparation, tokenizer="none", lowercase=False)):
        steps._folder = prepared
        assert steps.decode_target(steps.encode_target(text)) == steps.tokenize_target(text)


def test_decoding_what_a_model_predicts(prepared: Path) -> None:
    preparation = PairsPreparation.load(prepared)
    assert preparation.decode_target("\u2581 \u2581so \u2581 \u2581it s \u2581") == "so its"


# Cleaning


def test_cleaning_drops_training_pairs_at_the_limits(tmp_path: Path, no_binarising: None) -> None:
    pairs = [
        ("a b c d", "a b c d e f"),  # kept: exactly the ratio
        ("a b c d", "a b c d e f g"),  # ratio
        ("a b c d e f g", "a b c d"),  # ratio
        ("a", "b"),  # too short
        ("a b", "c d"),  # kept: exactly the shortest
        ("a b c d e f g h", "a b c d e f g h"),  # kept: exactly the longest
        ("a b c d e f g h i", "a b c d e f g h"),  # too long
        ("a b c d e f g h", "a b c d e f g h i"),  # too long
        ("", "a b"),  # too short
    ]
    short = [("", "x y"), ("a", "b c d e f g h i j"), ("x", "")]
    inputs = {"train": write(tmp_path / "train", pairs), "valid": write(tmp_path / "valid", short)}
    inputs["test"] = write(tmp_path / "test", short)
    steps = PairsPreparation("de", "en", min_length=2, max_length=8, ratio=1.5, bpe="none")
    counts = prepare(steps, inputs, tmp_path / "out").splits
    assert counts["train"]["dropped"] == {"too short": 2, "too long": 2, "ratio": 2}
    assert (counts["train"]["read"], counts["train"]["kept"]) == (9, 3)
    for stage in ("raw", "tokens", "bpe"):
        assert list(read_aligned(side_files(tmp_path / "out" / stage / "train", ("de", "en")))) == [
            pairs[0],
            pairs[4],
            pairs[5],
        ]
        for split in ("valid", "test"):
            assert list(read_aligned(side_files(tmp_path / "out" / stage / split, ("de", "en")))) == short


def test_the_ratio_is_of_tokens_not_of_words(tmp_path: Path, no_binarising: None) -> None:
    inputs = {split: write(tmp_path / split, [("Ja, ja!", "Yes yes"), ("a b", "c d")]) for split in ("train", "valid")}
    for tokenizer, kept in (("none", 2), ("moses", 1)):
        steps = PairsPreparation("de", "en", tokenizer=tokenizer, ratio=1.5, bpe="none")
        assert prepare(steps, inputs, tmp_path / tokenizer).splits["train"]["kept"] == kept


@pytest.mark.parametrize("workers", [1, 2])
def test_every_nth_cleaned_pair_becomes_validation(tmp_path: Path, no_binarising: None, workers: int) -> None:
    pairs = [(f"a{n}", f"b{n}" if n % 5 else "") for n in range(1, 40_000)]  # more than one block of lines
    inputs = {"train": write(tmp_path / "train", pairs)}
    steps = PairsPreparation("de", "en", valid_every=23, bpe="none")
    counts = prepare(steps, inputs, tmp_path / "out", workers).splits
    clean = [source for source, target in pairs if target]
    for stage in ("raw", "tokens", "bpe"):
        assert lines(tmp_path / "out" / stage / "valid.de") == clean[22::23]
        assert lines(tmp_path / "out" / stage / "train.de") == [
            source for number, source in enumerate(clean, start=1) if number % 23
        ]
    assert counts["train"]["kept"] + counts["valid"]["kept"] == len(clean)
    assert counts["train"]["dropped"]["too short"] == len(pairs) - len(clean)


# Other choices


def test_separate_bpe_and_packed_files(tmp_path: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    for split in ("train", "valid"):
        for path in inputs[split]:
            (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    steps = PairsPreparation("de", "en", bpe="subword-nmt", bpe_size=40, joint=False)
    packed = {split: side_files(tmp_path / split, ("de", "en")) for split in ("train", "valid")}
    preparation = prepare(steps, packed, tmp_path / "out")
    assert preparation.bpe_models == {"de": "bpe/subword-nmt.de.codes", "en": "bpe/subword-nmt.en.codes"}
    bin_ = tmp_path / "out" / "bin"
    assert (bin_ / "dict.de.txt").read_bytes() != (bin_ / "dict.en.txt").read_bytes()
    assert preparation.splits["train"]["files"] == ["train.de.gz", "train.en.gz"]
    reloaded = PairsPreparation.load(tmp_path / "out")
    for raw in lines(tmp_path / "out" / "raw" / "train.en"):  # nothing was tokenised or lower-cased
        assert raw == reloaded.tokenize_target(raw) == reloaded.decode_target(reloaded.encode_target(raw))


def test_symbols_of_fairseqs_own_are_unknown_in_new_text(tmp_path: Path, no_binarising: None) -> None:
    """They would be padding within a sentence, which attention does not see, or its end."""
    inputs = {split: write(tmp_path / split, [("er sie", "he she")]) for split in ("train", "valid")}
    preparation = prepare(PairsPreparation("de", "en", tokenizer="none", bpe="none"), inputs, tmp_path / "out")
    assert preparation.encode_source("er <pad> <s> sie </s>") == "er <unk> <unk> sie <unk>"
    assert preparation.encode_target("<pad> she") == "<unk> she"


def test_given_tokens_are_left_as_they_are(tmp_path: Path, no_binarising: None) -> None:
    pairs = [("er &amp; &quot;sie&quot; .", "he &amp;amp; SHE U.S.")]
    inputs = {split: write(tmp_path / split, pairs) for split in ("train", "valid")}
    steps = PairsPreparation("de", "en", given="tokens", tokenizer="moses", lowercase=True, bpe="none")
    preparation = prepare(steps, inputs, tmp_path / "out")
    assert list(read_aligned(side_files(tmp_path / "out" / "tokens" / "train", ("de", "en")))) == pairs
    assert not (tmp_path / "out" / "raw").exists()
    assert preparation.source.tokenize("Er & sie.") == "er &amp; sie ."  # for the text to translate


@pytest.mark.parametrize("given", ["raw", "tokens"])
def test_letters_are_composed_on_both_sides(given: str, tmp_path: Path, no_binarising: None) -> None:
    """So that a word is one word; references are what models write, or no n-gram would match."""
    decomposed, word = "cafe\u0301", "caf\u00e9"
    inputs = {split: write(tmp_path / split, [(decomposed, decomposed)]) for split in ("train", "valid")}
    (tmp_path / "more.en").write_text(f"{decomposed}\n", encoding="utf-8")
    files = {"inputs": inputs, "references": {"valid": [tmp_path / "more.en"]}}
    choices = {"given": given, "tokenizer": "none", "bpe": "none"}
    steps = PairsPreparation("de", "en", source_normalization=["nfc"], **choices)
    preparation = prepare(steps, output=tmp_path / "out", **files)
    tokens = sorted((tmp_path / "out" / "tokens").iterdir())
    assert len(tokens) == 5 and {path.read_text(encoding="utf-8") for path in tokens} == {f"{word}\n"}
    assert preparation.encode_source(decomposed) == preparation.encode_target(decomposed) == word
    if given == "raw":
        raw = {path.name: path.read_text(encoding="utf-8").strip() for path in (tmp_path / "out" / "raw").iterdir()}
        assert raw["valid.en"] == raw["valid.ref1.en"] == word
        assert raw["valid.de"] == decomposed, "it is composed when it is tokenised"
    prepare(PairsPreparation("de", "en", **choices), output=tmp_path / "as given", **files)
    assert lines(tmp_path / "as given" / "tokens" / "valid.en") == [decomposed]


def test_bpe_is_learned_on_training_pairs_alone(tmp_path: Path, no_binarising: None) -> None:
    letters = {"train": "ä", "valid": "ö", "test": "ü"}
    inputs = {
        split: write(tmp_path / split, [(f"{letter}{source}", target) for source, target in sentences(20, 1)])
        for split, letter in letters.items()
    }
    prepare(PairsPreparation("de", "en", bpe_size=100), inputs, tmp_path / "out")
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "out" / "bpe" / "sentencepiece.de-en.model"))
    characters = set("".join(model.id_to_piece(list(range(model.get_piece_size())))))
    assert characters & set(letters.values()) == {"ä"}


def test_pieces_are_joined_into_words(prepared: Path) -> None:
    preparation = PairsPreparation.load(prepared)
    for raw in lines(prepared / "raw" / "test.en"):
        pieces = preparation.encode_target(raw).split()
        words = preparation.join_pieces("en", pieces)
        assert [word.text for word in words] == preparation.tokenize_target(raw).split()
        assert [position for word in words for position in range(word.start, word.stop)] == list(range(len(pieces)))
    assert preparation.join_pieces("en", []) == []
    assert PairsPreparation("de", "en", bpe="none").join_pieces("de", ["a", "b"]) == [("a", 0, 1), ("b", 1, 2)]


# Running again


def test_running_again_does_nothing(
    prepared: Path,
    inputs: dict[str, tuple[Path, Path]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(PairsRun, "write", None)
    before = contents(prepared)
    assert prepare(STEPS, inputs, prepared) == PairsPreparation.load(prepared)
    assert contents(prepared) == before
    assert "up to date" in capsys.readouterr().out


def test_another_preparation_is_not_overwritten(prepared: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    before = contents(prepared)
    steps = dataclasses.replace(STEPS, bpe_size=160, lowercase=False)
    with pytest.raises(
        InputError, match=r"already prepared with different options \(lowercase, bpe_size\): remove it, or"
    ):
        prepare(steps, inputs, prepared)
    with pytest.raises(InputError, match=r"with different options \(the test files, the test1 files\)"):
        prepare(STEPS, {**inputs, "test": inputs["test1"], "test1": inputs["test"]}, prepared)
    assert contents(prepared) == before


def _kill_self(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _killed_in_cleaning(inputs: dict[str, tuple[Path, Path]], output: Path) -> None:
    calls = iter(range(100))
    original = PairsRun._reason_to_drop
    PairsRun._reason_to_drop = lambda *arguments: next(calls, None) is None and _kill_self() or original(*arguments)
    prepare(STEPS, inputs, output)


def _killed_in_bpe(inputs: dict[str, tuple[Path, Path]], output: Path) -> None:
    SentencePieceModel.encode = _kill_self
    prepare(STEPS, inputs, output)


def _killed_in_preprocess(inputs: dict[str, tuple[Path, Path]], output: Path) -> None:
    pipeline.subprocess.Popen = _kill_self
    prepare(STEPS, inputs, output)


def _killed_before_the_end(inputs: dict[str, tuple[Path, Path]], output: Path) -> None:
    PairsPreparation.save = _kill_self
    prepare(STEPS, inputs, output)


@pytest.mark.parametrize(
    "killed",
    [
        pytest.param(_killed_in_cleaning, marks=pytest.mark.slow),
        pytest.param(_killed_in_bpe, marks=pytest.mark.slow),
        _killed_in_preprocess,
        _killed_before_the_end,
    ],
)
def test_a_killed_run_leaves_nothing_and_the_next_ends_with_the_same_bytes(
    killed: Callable[..., None], inputs: dict[str, tuple[Path, Path]], prepared: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    process = multiprocessing.get_context("fork").Process(target=killed, args=(inputs, output))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not output.exists()
    prepare(STEPS, inputs, output)
    assert contents(output) == contents(prepared)
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "what the killed one had begun is gone"


def test_two_runs_at_once(tmp_path: Path, inputs: dict[str, tuple[Path, Path]]) -> None:
    with locked(tmp_path / ".out.lock"), pytest.raises(InputError, match="another preparation is at work"):
        prepare(STEPS, inputs, tmp_path / "out")


def test_held_out_pairs_of_the_training_set_are_warned_of(
    tmp_path: Path, no_binarising: None, capsys: pytest.CaptureFixture[str]
) -> None:
    train, other = sentences(60, 1), sentences(9, 2)
    inputs = {
        "train": write(tmp_path / "train", train),
        "valid": write(tmp_path / "valid", other),
        "test": write(tmp_path / "test", [*train[:3], (train[4][0], "Another one."), *other]),
    }
    prepare(dataclasses.replace(STEPS, bpe_size=120), inputs, tmp_path / "out")
    warnings = [line for line in capsys.readouterr().out.splitlines() if "in the training set" in line]
    assert warnings == [
        "warning: 3 of the 13 pairs of test are in the training set too, word for word: scores are higher for it"
    ]
