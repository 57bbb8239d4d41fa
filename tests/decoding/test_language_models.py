"""Trained language models: one stream whatever the windows, fairseq-eval-lm, the cache, samples, refusals."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest
import torch
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from fairseq_plugins.corpora.running_text import RunningTextPreparation, RunningTextRun
from fairseq_plugins.decoding import cache
from fairseq_plugins.decoding.cache import THETAS, CacheSettings, search, searched_settings, settings_file
from fairseq_plugins.decoding.language_model import LanguageModel, Reading, by_line
from fairseq_plugins.decoding.sampling import sample
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.configuration import Configuration
from fairseq_plugins.experiments.decoding import TextScoring
from tests.commands import train_in_process
from tests.texts import training

pytestmark = pytest.mark.system  # they share what is prepared or trained in seconds


@pytest.fixture(scope="module")
def checkpoint(running_text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("language_model")
    options = "--max-epoch 12 --optimizer adam --lr 0.01 --dropout 0.1"
    train_in_process(*training(running_text, folder, *options.split()))
    return folder / "checkpoint_best.pt"


@pytest.fixture(scope="module")
def model(checkpoint: Path) -> LanguageModel:
    return LanguageModel.load([checkpoint])


def perplexity(values: torch.Tensor) -> float:
    return math.exp(-values.double().mean().item())


def evaluated(checkpoint: Path, data: Path, *more: str) -> dict[str, float]:
    """What fairseq-eval-lm returns, run in this process."""
    from fairseq_cli.eval_lm import main

    arguments = [str(data / "bin"), "--path", str(checkpoint), "--cpu", "--gen-subset", "test", *more]
    parser = fairseq_options.get_eval_lm_parser()
    return main(convert_namespace_to_omegaconf(fairseq_options.parse_args_and_arch(parser, arguments)))


def test_windows_do_not_matter(model: LanguageModel) -> None:
    lines = model.lines_of("test")
    tokens = model.numbers(lines)
    assert len(tokens) == sum(len(line.split()) + 1 for line in lines)
    whole = model.read(tokens, window=len(tokens))
    for window in 1, 7:
        found = model.read(tokens, window)
        torch.testing.assert_close(found.log_probabilities, whole.log_probabilities, rtol=0, atol=1e-5)
        torch.testing.assert_close(found.outputs, whole.outputs, rtol=0, atol=1e-5)
    assert [len(line) for line in by_line(whole.log_probabilities, lines)] == [len(line.split()) + 1 for line in lines]


def test_it_has_learned(model: LanguageModel) -> None:
    # Fifteen words and the lines' ends, three of which may follow each word.
    assert perplexity(model.read(model.numbers(model.lines_of("test"))).log_probabilities) < 14


def test_eval_lm_agrees_or_refuses(model: LanguageModel, checkpoint: Path, running_text: Path) -> None:
    own = perplexity(model.read(model.numbers(model.lines_of("test"))).log_probabilities)
    found = evaluated(checkpoint, running_text, "--task", "streaming_language_modeling")
    assert found["perplexity"] == pytest.approx(own, abs=1e-4)
    with pytest.raises(InputError, match="say --task streaming_language_modeling"):
        evaluated(checkpoint, running_text)
    with pytest.raises(InputError, match="its context being all that was read before"):
        evaluated(checkpoint, running_text, "--task", "streaming_language_modeling", "--context-window", "3")
    with pytest.raises(InputError, match="evaluates a text as one stream: leave out --batch-size"):
        evaluated(checkpoint, running_text, "--task", "streaming_language_modeling", "--batch-size", "3")


def test_search_for_the_cache(model: LanguageModel) -> None:
    reading = model.read(model.numbers(model.lines_of("valid")))
    chosen, tried = search(reading, windows=(5, 20), thetas=(0.0, 1.0), weights=(0.0, 0.1, 0.5))
    assert len(tried) == 9 and [each["weight"] for each in tried].count(0) == 1
    assert perplexity(chosen.of(reading)) == pytest.approx(min(each["perplexity"] for each in tried))
    settings_file(model.path).unlink(missing_ok=True)
    first = searched_settings(model)
    written = json.loads(settings_file(model.path).read_text())
    assert CacheSettings(**written["chosen"]) == first
    written["chosen"]["weight"] = 0.25
    settings_file(model.path).write_text(json.dumps(written))
    assert searched_settings(model).weight == 0.25, "what was found is not searched for again"
    settings_file(model.path).write_text(json.dumps(written | {"checkpoint_sha256": "another"}))
    assert searched_settings(model) == first
    whole = settings_file(model.path).read_text()
    for damaged in whole[:40], "[]", whole.replace('"chosen"', '"other"'), whole.replace('"theta"', '"teta"'):
        settings_file(model.path).write_text(damaged)
        assert searched_settings(model) == first, "what is damaged is searched for again"
        assert settings_file(model.path).read_text() == whole
    for wrong in {"weight": -0.1}, {"weight": 1.0}, {"theta": math.inf}, {"theta": math.nan}, {"weight": math.nan}:
        with pytest.raises(InputError, match="a cache has a window of at least 1"):
            CacheSettings(**wrong)


def test_settings_that_are_given_and_searched_ones(model: LanguageModel) -> None:
    tokens = len(model.numbers(model.lines_of("valid")))

    def printed(*options: str) -> str:
        parsed = TextScoring().options(Configuration(Path("model.yaml")), model.data, options)
        settings = cache.chosen_settings(model, parsed)
        assert settings is not None
        return settings.note(tokens)

    searched_settings(model)
    written = json.loads(settings_file(model.path).read_text())
    written["chosen"] = {"window": 20, "theta": 0.25, "weight": 0.125}
    settings_file(model.path).write_text(json.dumps(written))
    assert printed("--cache") == "continuous cache: window 20, theta 0.25, weight 0.125"
    assert printed("--cache-weight", "0.5").startswith("continuous cache: window 500, theta 1.0, weight 0.5")
    silent = f"theta 1.0, weight 0.1; it changes nothing in a text of {tokens} tokens"
    assert printed("--cache-window", str(tokens - 1)).endswith(silent)
    assert printed("--cache-window", str(tokens - 2)).endswith("weight 0.1")
    # The rest is searched for beside what is given.
    assert printed("--cache", "--cache-window", "10", "--cache-weight", "0.25").startswith(
        "continuous cache: window 10, theta "
    )
    written = json.loads(settings_file(model.path).read_text())
    assert written["given"] == {"window": 10, "weight": 0.25}
    tried = {entry["theta"]: entry["perplexity"] for entry in written["tried"]}
    assert len(written["tried"]) == len(tried) == len(THETAS)
    assert written["chosen"]["theta"] == min(tried, key=tried.get)
    assert searched_settings(model).window != 10, "another search"
    with pytest.raises(InputError, match="a cache has a window of at least 1"):
        searched_settings(model, window=0)
    settings_file(model.path).unlink()


def test_the_search_may_choose_no_cache(model: LanguageModel) -> None:
    # Outputs that are all alike vote for every word that was read: a cache of any weight makes this text less probable.
    reading = Reading(torch.arange(30), torch.full((30,), -1.0), torch.zeros(30, 2))
    chosen, tried = search(reading, windows=(5,))
    assert chosen.weight == 0 and chosen.of(reading).equal(reading.log_probabilities)
    assert min(each["perplexity"] for each in tried) == pytest.approx(math.e)
    values = model.read(model.numbers(model.lines_of("valid")))
    assert CacheSettings(weight=0.0).of(values).equal(values.log_probabilities)


def test_another_validation_set_is_searched_again(
    model: LanguageModel, running_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []

    def noting(reading: Reading) -> tuple[CacheSettings, list[dict[str, float]]]:
        searched.append(len(reading.tokens))
        return CacheSettings(), []

    monkeypatch.setattr(cache, "search", noting)
    settings_file(model.path).unlink(missing_ok=True)
    searched_settings(model)
    searched_settings(model)
    assert len(searched) == 1
    shutil.copytree(running_text, tmp_path / "data")
    (tmp_path / "data" / "tokens" / "valid.txt").write_text("ba di\n")
    other = LanguageModel.load([model.path], tmp_path / "data")
    searched_settings(other)
    assert searched[1:] == [3]
    searched_settings(other)
    searched_settings(model)
    assert len(searched) == 3
    settings_file(model.path).unlink()


def test_samples(model: LanguageModel) -> None:
    lines = sample(model, tokens=60, seed=3)
    assert lines == sample(model, tokens=60, seed=3) != sample(model, tokens=60, seed=4)
    # A line that ends where it begins is a sample too.
    words = " ".join(filter(None, lines))
    assert re.fullmatch(r"[bdfgk][aio]( [bdfgk][aio])*", words)
    first = sample(model, tokens=5, seed=1, prompt="ba di", temperature=0.5)[0]
    assert first.startswith("ba di")
    greedy = sample(model, tokens=20, seed=1, top_k=1)
    assert greedy == sample(model, tokens=20, seed=2, top_k=1)
    assert sample(model, tokens=5, seed=(1 << 64) - 1, temperature=1e-6) and sample(model, 5, -1, temperature=1e38)


def test_words_that_pad_a_dictionary_are_not_drawn(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    dictionary = model.dictionary
    symbols, counts = [*dictionary.symbols], [*dictionary.count]
    symbols[-1], counts[-1] = "madeupword0000", 0
    monkeypatch.setattr(dictionary, "symbols", symbols)
    assert "madeupword0000" in " ".join(sample(model, tokens=200, seed=1, temperature=1e6)), "a word of the text"
    monkeypatch.setattr(dictionary, "count", counts)
    assert "madeupword0000" not in " ".join(sample(model, tokens=200, seed=1, temperature=1e6))


def test_unknown_words_of_a_prompt(model: LanguageModel, caplog: pytest.LogCaptureFixture) -> None:
    assert sample(model, tokens=5, seed=1, prompt="zebra ba")[0].startswith("<unk> ba")
    assert "the prompt has words that the model does not know, and reads as <unk>: zebra" in caplog.text


@pytest.mark.parametrize("value", [None, 5, b"a"], ids=repr)
def test_what_is_no_text(model: LanguageModel, value: object) -> None:
    with pytest.raises(TypeError, match=rf"^the prompt is {value!r}, not a text"):
        sample(model, 3, 1, prompt=value)
    with pytest.raises(TypeError, match=rf"^encoded: text 1 of the list \(from 0\) is {value!r}, not a text"):
        model.encoded(["a", value], "it")
    with pytest.raises(TypeError, match="^encoded takes a list of texts"):
        model.encoded("a word", "it")


def test_empty_lines_are_drawn(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        (tmp_path / f"{split}.txt").write_text("ba di\n\n" * 40, encoding="utf-8")
    inputs = {split: tmp_path / f"{split}.txt" for split in ("train", "valid")}
    RunningTextRun(RunningTextPreparation(), inputs, tmp_path / "data").prepare()
    train_in_process(*training(tmp_path / "data", tmp_path, "--max-epoch", 40, "--optimizer", "adam", "--lr", 0.03))
    model = LanguageModel.load([tmp_path / "checkpoint_last.pt"])
    assert sample(model, tokens=8, seed=1, top_k=1) == ["ba di", ""] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "the temperature is a number from 1e-06 on, not 0"),
        ({"temperature": 1e-40}, "not 1e-40"),
        ({"temperature": math.nan}, "not nan"),
        ({"temperature": math.inf}, "not inf"),
        ({"seed": 1 << 64}, "the seed is a whole number from -2.63 on and less than 2.64, not 18446744073709551616"),
        ({"tokens": 0}, "tokens and top-k are at least 1, not 0 and none"),
        ({"top_k": 0}, "tokens and top-k are at least 1, not 5 and 0"),
    ],
)
def test_numbers_that_cannot_be(model: LanguageModel, options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample(model, **{"tokens": 5, "seed": 1, **options})


@pytest.mark.parametrize("symbol", ["<s>", "<pad>", "</s>"])
def test_symbols_of_fairseqs_own(model: LanguageModel, symbol: str) -> None:
    message = f"my text, line 2: '{symbol}' is a symbol of fairseq's own: write it differently"
    with pytest.raises(InputError, match=f"^{message}$"):
        model.encoded(["ba di", f"ba {symbol} di"], "my text")
    with pytest.raises(InputError, match="the prompt, line 1: .* fairseq's own"):
        sample(model, tokens=5, seed=1, prompt=f"ba {symbol}")
    assert model.encoded(["ba <unk>"], "my text") == ["ba <unk>"]


def test_unknown_characters(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model.encoded(["ba  zebra"], "text") == ["ba zebra"]
    monkeypatch.setattr(model.preparation, "units", "characters")
    with pytest.raises(InputError, match="my text, line 2: the model's dictionary lacks é ü"):
        model.encoded(["", "üé"], "my text")
    with pytest.raises(InputError, match="my text is empty"):
        model.encoded([], "my text")


def test_all_spaces_of_characters_are_read_and_written(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        (tmp_path / f"{split}.txt").write_text("ba  di \n da  bi\n" * 20, encoding="utf-8")
    preparation = RunningTextPreparation(units="characters", unknown_words=[], keeps_spaces=True)
    inputs = {split: tmp_path / f"{split}.txt" for split in ("train", "valid")}
    RunningTextRun(preparation, inputs, tmp_path / "data").prepare()
    train_in_process(*training(tmp_path / "data", tmp_path, "--max-update", 1))
    model = LanguageModel.load([tmp_path / "checkpoint_last.pt"])
    [encoded] = model.encoded([" ba  di "], "my text")
    assert encoded == "\u2581 b a \u2581 \u2581 d i \u2581"
    assert len(model.numbers([encoded])) == 8 + 1
    assert sample(model, tokens=1, seed=1, prompt=" ba  ")[0].startswith(" ba  ")
    with pytest.raises(InputError, match=r"my text, line 2: the character U\+0009"):
        model.encoded(["ba", "ba\tdi"], "my text")


def test_translation_models_are_refused(tiny_translation_data, tmp_path: Path) -> None:
    options = [str(tiny_translation_data.joined), "--arch", "rnnsearch_iwslt_de_en", "--save-dir", str(tmp_path)]
    sizes = "--encoder-embed-dim 4 --encoder-hidden-size 4 --decoder-embed-dim 4 --decoder-hidden-size 4"
    options += [*sizes.split(), "--optimizer", "sgd", "--lr", "1", "--max-sentences", "8", "--max-update", "1", "--cpu"]
    train_in_process(*options, "--disable-validation")
    with pytest.raises(InputError, match="'rnnsearch_iwslt_de_en' is no recurrent language model"):
        LanguageModel.load([tmp_path / "checkpoint_last.pt"])
