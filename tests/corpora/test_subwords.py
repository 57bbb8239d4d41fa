"""Both subword models: nothing is lost, and sizes that the text does not allow are refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fairseq.data.data_utils import post_process
from fairseq.tokenizer import tokenize_line
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fairseq_plugins.corpora import subwords
from fairseq_plugins.corpora.subwords import SUBWORD_MODELS, SubwordModel, learn_subwords
from fairseq_plugins.errors import InputError

SIZES = {"sentencepiece": 150, "subword-nmt": 60}


def training_lines() -> list[str]:
    generator = random.Random(1)
    words = ["".join(generator.choices("abdeghilnorstuwäöüß", k=generator.randint(1, 8))) for _ in range(60)]
    lines = [" ".join(generator.choices(words, k=generator.randint(1, 12))) for _ in range(300)]
    return [*lines, "", "x@@ @@ @@ y@@", "\u2581 \u2581x \uf8ff1 \u2585", "don &apos;t &amp; <s> <unk> </s> @-@"] * 2


@pytest.fixture(scope="module", params=sorted(SUBWORD_MODELS))
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SubwordModel:
    path = tmp_path_factory.mktemp("subwords") / "model"
    kind = SUBWORD_MODELS[request.param]
    kind.learn(training_lines(), SIZES[request.param], path)
    return kind(path)


# Any characters but line ends; the space is drawn often enough to make words.
lines = st.text(
    st.one_of(
        st.just(" "),
        st.characters(exclude_characters="\n", codec="utf-8"),
        st.sampled_from("@\u2581\uf8ff01ab"),
    )
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=lines.map(lambda line: " ".join(filter(None, line.split(" ")))))
@example(line="")
@example(line="x@@ @@ @@@ @@@@ @ a@@")
@example(line="\u2581 a\u2581 \u2581\u2581 \uf8ff \uf8ff0 \uf8ff1")
@example(line="<s> </s> <pad> <unk> </w> x</w>")
@example(line="日本語 👩‍👩‍👧 e\u0301 \u00a0 ½ ﬁ \u200b \ufeff")
@example(line="\r \x00 \x85 \u2028 \t")
def test_decoding_undoes_encoding(model: SubwordModel, line: str) -> None:
    assert model.decode(model.encode(line)) == line


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=lines.map(lambda line: " ".join(line.split())))
def test_pieces_are_tokens_for_fairseq(model: SubwordModel, line: str) -> None:
    pieces = model.encode(line)
    assert tokenize_line(pieces) == pieces.split(" ") if pieces else line == ""


def test_fairseq_undoes_the_segmentation(model: SubwordModel) -> None:
    symbol = {"sentencepiece": "sentencepiece", "subword-nmt": "@@ "}[model.name]
    for line in training_lines()[:300]:
        assert post_process(model.encode(line), symbol) == line


@pytest.mark.parametrize(("name", "size"), [("sentencepiece", 48), ("subword-nmt", 23)])
def test_no_piece_is_a_symbol_of_fairseq_s_own(name: str, size: int, tmp_path: Path) -> None:
    line = "ein <s> alter</s> Hund </s> <pad> x<s> y</s> a<pad> b<pad> c</s>"
    SUBWORD_MODELS[name].learn([line] * 50, size, tmp_path / "model")
    model = SUBWORD_MODELS[name](tmp_path / "model")
    pieces = model.encode(line)
    assert not {"<s>", "<pad>", "</s>"} & set(pieces.split())
    assert len(pieces.split()) < 40, "the model has learned them"
    assert model.decode(pieces) == line
    words = len(line.split())
    assert sum(model.starts_word(pieces.split(), index) for index in range(len(pieces.split()))) == words


def test_words_of_the_training_text_become_few_pieces(model: SubwordModel) -> None:
    words = sum(len(line.split()) for line in training_lines()[:300])
    pieces = sum(len(model.encode(line).split()) for line in training_lines()[:300])
    characters = sum(len(line.replace(" ", "")) for line in training_lines()[:300])
    assert words <= pieces < 0.7 * characters


@pytest.mark.parametrize("name", sorted(SUBWORD_MODELS))
def test_learning_twice_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    for number in range(2):
        SUBWORD_MODELS[name].learn(iter(training_lines()), SIZES[name], tmp_path / str(number))
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()


def test_the_vocabulary_has_the_size_asked_for(tmp_path: Path) -> None:
    import sentencepiece

    SUBWORD_MODELS["sentencepiece"].learn(training_lines(), 150, tmp_path / "model")
    assert sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "model")).get_piece_size() == 150
    SUBWORD_MODELS["subword-nmt"].learn(training_lines(), 60, tmp_path / "codes")
    assert len((tmp_path / "codes").read_text().splitlines()) == 60 + 1  # and the version


@pytest.mark.parametrize("name", sorted(SUBWORD_MODELS))
def test_the_largest_possible_size_is_named(name: str, tmp_path: Path) -> None:
    model = SUBWORD_MODELS[name]
    with pytest.raises(InputError, match=r"more than .* allows: the largest possible --bpe-size is \d+$") as error:
        model.learn(training_lines(), 100_000, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    largest = int(str(error.value).split()[-1])
    model.learn(training_lines(), largest, tmp_path / "model")
    with pytest.raises(InputError, match=f"is {largest}$"):
        model.learn(training_lines(), largest + 1, tmp_path / "model")


def test_the_smallest_possible_size_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the smallest possible --bpe-size is \d+$") as error:
        SUBWORD_MODELS["sentencepiece"].learn(training_lines(), 5, tmp_path / "model")
    smallest = int(str(error.value).split()[-1])
    SUBWORD_MODELS["sentencepiece"].learn(training_lines(), smallest, tmp_path / "model")


def test_words_of_one_character_have_nothing_to_merge(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the largest possible --bpe-size is 0$"):
        SUBWORD_MODELS["subword-nmt"].learn(["a b", "c"], 10, tmp_path / "model")


@pytest.mark.parametrize("content", [None, b"", b"something else\n", b"\xff\xfe"])
@pytest.mark.parametrize("name", sorted(SUBWORD_MODELS))
def test_a_damaged_model_file(name: str, content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "model").write_bytes(content)
    with pytest.raises(InputError, match="prepare the corpus again"):
        SUBWORD_MODELS[name](tmp_path / "model")


def test_where_words_start(model: SubwordModel) -> None:
    line = "the brightest of all the unforeseeable lights"
    pieces = model.encode(line).split(" ")
    starts = [index for index in range(len(pieces)) if model.starts_word(pieces, index)]
    assert len(pieces) > len(starts) > 1
    words = [model.decode(" ".join(pieces[i:j])) for i, j in zip(starts, [*starts[1:], len(pieces)], strict=True)]
    assert words == line.split(" ")


def test_more_subwords_than_lines_are_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = training_lines()[:30]
    (tmp_path / "text").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    for size, is_warned in (len(lines), False), (len(lines) + 1, True):
        (tmp_path / str(size)).mkdir()
        learn_subwords("subword-nmt", size, [tmp_path / "text"], ["de"], tmp_path / str(size))
        warning = f"warning: {size:,} subwords for {len(lines):,} lines"
        assert (warning in capsys.readouterr().out) == is_warned


def test_words_are_not_kept_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subwords, "_MOST_WORDS", 20)
    kind = SUBWORD_MODELS["subword-nmt"]
    kind.learn(training_lines(), SIZES["subword-nmt"], tmp_path / "model")
    model = kind(tmp_path / "model")
    words = [f"word{number}" for number in range(100)]
    assert [model.decode(model.encode(word)) for word in words] == words
    assert len(model._bpe.cache) <= 21
