"""A trained model in one line of Python: the same translations as by the scripts."""

from __future__ import annotations

import copy
import dataclasses
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig

import fairseq_plugins
from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.decoding.translation import Generated, GenerationOptions, check_generation, limited_generation
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import translate
from tests.commands import CHECKOUT, output_lines, run_command

pytestmark = pytest.mark.system  # they share what is prepared or trained in seconds


@pytest.fixture(scope="module")
def work(tiny_work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a work folder, for tests that change it."""
    return shutil.copytree(tiny_work, tmp_path_factory.mktemp("trained") / "work")


def translated(checkpoint: Path, lines: Sequence[str], *options: object) -> subprocess.CompletedProcess[str]:
    """What the command makes of lines."""
    command = ["python", "-m", "fairseq_plugins", "translate", str(checkpoint), "--gpus", "0", *map(str, options)]
    return run_command(command, stdin="".join(f"{line}\n" for line in lines))


def test_a_line_that_is_too_long_is_empty_and_the_others_are_translated(work: Path) -> None:
    lines = ["ni na", "", " ".join(["ni"] * 300), "na"]
    finished = translated(work, lines, "--max-len-a", "0", "--max-len-b", "2")
    first, empty, too_long, last = finished.stdout.splitlines()
    assert first and last and (empty, too_long) == ("", "")
    assert re.search(
        r"warning: line 3 has \d+ tokens, but the model takes 90: its translation is empty\n", finished.stderr
    )
    assert "warning: the translation of line 1 ends at 2 tokens, its limit; raise --max-len-b\n" in finished.stderr
    limited = translated(work, lines[:1], "--max-source-positions", "2")
    assert limited.stdout == "\n" and "but the model takes 2: its translation is empty" in limited.stderr


def test_a_text_of_more_tokens_than_fairseqs_tasks_take_is_translated(work: Path) -> None:
    """Unless they are told otherwise those take 1,024, and many models of ours 100,000."""
    model = fairseq_plugins.load(work)
    for one in model.models:
        one.encoder._max_source_positions = 2000
    long = " ".join(["ni"] * 520)
    assert len(model.preparation.encode_source(long).split()) > 1024
    short, translation = model.translate(["ni na", long], beam=1)
    assert short and translation


def test_sentences_of_a_paragraph_are_translated_one_by_one(work: Path) -> None:
    sentences = ["ni na.", " ".join(["ni"] * 300) + ".", "na"]
    by_themselves = translated(work, sentences).stdout.splitlines()
    finished = translated(work, [" ".join(sentences[:2]), "", sentences[2]], "--paragraphs")
    assert by_themselves[1] == ""
    assert finished.stdout.splitlines() == [f"{by_themselves[0]} ", "", by_themselves[2]]
    assert "warning: sentence 2 of line 1 has 602 tokens" in finished.stderr


def test_a_set_with_a_sentence_that_is_too_long(work: Path) -> None:
    model = fairseq_plugins.load(work)
    assert len(model.dataset("test")) == 101
    lengths = [len(line.split()) + 1 for line in (work / "data" / "bpe" / "test.xx").read_text().splitlines()]
    longest = next(number for number, length in enumerate(lengths, 1) if length > 8)
    with pytest.raises(
        InputError, match=rf"sentence {longest} of 'test' has {lengths[longest - 1]} tokens, but the model takes 8;"
    ):
        model.dataset("test", {"max_source_positions": 8})


def test_a_set_is_translated_as_fairseq_generate_does(work: Path) -> None:
    """The same subwords, and the same logarithms to the four digits that fairseq prints of them, to the base 2."""
    model = fairseq_plugins.load(work)
    options = GenerationOptions(GenerationConfig(beam=4, max_len_a=1, max_len_b=10, lenpen=0.7))
    found = dict(model.generate(model.dataset("test"), options, Generated()))
    command = ["fairseq-generate", *model.data.arguments(), "--path", str(model.path), "--gen-subset", "test", "--cpu"]
    command += ["--beam", "4", "--max-len-a", "1", "--max-len-b", "10", "--lenpen", "0.7"]
    printed = run_command(command).stdout
    pieces, numbers = output_lines(printed, "D"), output_lines(printed, "P")
    assert len(found) == 101 and sorted(found) == sorted(pieces)
    for number, hypothesis in found.items():
        assert hypothesis.pieces == pieces[number].split("\t")[1]
        base_2 = [value / math.log(2) for value in hypothesis.log_probabilities]
        assert base_2 == pytest.approx([float(text) for text in numbers[number].split()], abs=1e-4)


def test_translations_are_those_of_the_scripts(work: Path) -> None:
    lines = (work / "data" / "raw" / "test.xx").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if len(line.split()) <= 3][:12]
    lines.insert(3, "")
    checkpoint = work / "checkpoints" / "checkpoint_best.pt"
    expected = translated(work, lines, "--beam", "3").stdout.splitlines()
    assert expected[3] == "" and len(set(expected)) > 1
    model = fairseq_plugins.load(work)
    assert model.translate(lines, beam=3) == expected
    assert model.translate(lines, beam=3) == expected, "a second time too"
    decoders = [module for module in model.model.modules() if hasattr(module, "need_attn")]
    assert decoders and all(module.need_attn for module in decoders), "an analysis may follow"
    assert fairseq_plugins.load(checkpoint, data=work / "data").translate(lines, beam=3) == expected
    both = fairseq_plugins.load(f"{checkpoint}:{checkpoint}")
    assert both.translate(lines, beam=3) == expected, "an ensemble of twins"
    assert model.translate([""]) == [""]


def test_copies_translate_as_the_model_does(work: Path) -> None:
    checkpoint = work / "checkpoints" / "checkpoint_best.pt"
    for model in fairseq_plugins.load(work), fairseq_plugins.load(f"{checkpoint}:{checkpoint}"):
        expected = model.translate(["ni na"])
        for copied in copy.deepcopy(model), pickle.loads(pickle.dumps(model)):
            assert copied.translate(["ni na"]) == expected
            assert copied.models[0] is not model.models[0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"beam": 0}, "beam is 0: give a whole number from 1 on"),
        ({"beam": -1}, "beam is -1: give a whole number from 1 on"),
        ({"beam": 2.5}, "beam is 2.5: give a whole number from 1 on"),
        ({"no_repeat_ngram_size": -1}, "no-repeat-ngram-size is -1: give a whole number from 0 on"),
        ({"beam": True}, "beam is True: give a whole number from 1 on"),
        ({"length_penalty": math.nan}, "lenpen is nan: give a number from -10 to 10"),
    ],
)
def test_numbers_that_cannot_be(options: dict[str, Any], sentence: str, work: Path) -> None:
    with pytest.raises(InputError, match=f"^{sentence}"):
        fairseq_plugins.load(work).translate(["ni na"], **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_len_a": math.inf}, "max-len-a is inf: give a number from 0 to 1000"),
        ({"unkpen": -math.inf}, "unkpen is -inf: give a number from -1000 on"),
        ({"max_len_b": -1}, "max-len-b is -1: give a whole number from 0 on"),
        ({"min_len": 201}, "min-len is 201, but a translation of one word has 200 tokens at most; raise max-len-b"),
        ({"min_len": 9, "longest": 9}, "min-len is 9, but the model writes no more than 8 tokens; lower it"),
        ({"temperature": 1e-320}, "temperature is 1e-320: give a number from 1e-06 on"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], sentence: str) -> None:
    longest = options.pop("longest", 1024)
    with pytest.raises(InputError, match=f"^{sentence}$"):
        check_generation(GenerationConfig(**options), longest)


def never_ending(work: Path, folder: Path, by: float = 40) -> Path:
    """The same model, which hardly ends its sentences: the end's logit is lower by so much."""
    state = torch.load(work / "checkpoints" / "checkpoint_best.pt", weights_only=False)
    state["model"]["decoder.output_projection.bias"][2] -= by
    torch.save(state, folder / "endless.pt")
    return folder / "endless.pt"


def test_no_subword_comes_twice(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By counting; the script's translations are Python's."""
    lines = (work / "data" / "raw" / "test.xx").read_text(encoding="utf-8").splitlines()[:12]
    data = PreparedData.load(work / "data")
    endless = never_ending(work, tmp_path, 4)

    model = fairseq_plugins.load(endless, data=data.folder)
    text, written = type(model).text, []
    # A word that was written in other subwords would look like a repetition in the text.
    monkeypatch.setattr(type(model), "text", lambda self, line: written.append(line.split()) or text(self, line))

    def have_repetitions(**options: int) -> list[bool]:
        written.clear()
        assert all(len(line.split()) > 1 for line in model.translate(lines, beam=2, **options))
        return [len(set(subwords)) < len(subwords) for subwords in written]

    assert any(have_repetitions()), "there is something to forbid"
    assert have_repetitions(no_repeat_ngram_size=1) == [False] * len(lines)
    assert any(have_repetitions()), "the next call is free again"
    found = model.translate(lines, beam=2, no_repeat_ngram_size=1)
    extra = ["--data", data.folder, "--beam", "2", "--no-repeat-ngram-size", "1"]
    assert translated(endless, lines, *extra).stdout.splitlines() == found


def test_translations_are_not_much_longer_than_their_sources(work: Path, tmp_path: Path) -> None:
    """1.5 tokens for each of the source, its end included, and ten: in Python and by the command."""
    endless = never_ending(work, tmp_path)
    line = "ni na"
    model = fairseq_plugins.load(endless, data=work / "data")
    length = len(model.preparation.encode_source(line).split()) + 1
    translations = model.translations([line], GenerationOptions(limited_generation(beam=1)))
    assert translations.cut == {0: int(1.5 * length + 10)}
    finished = translated(endless, [line], "--data", work / "data", "--beam", "1")
    assert finished.stdout.splitlines() == translations.texts == model.translate([line], beam=1)
    assert f"the translation of line 1 ends at {int(1.5 * length + 10)} tokens, its limit" in finished.stderr


@pytest.mark.parametrize("options", [{}, {"prefix_size": 0, "no_repeat_ngram_size": 50}, {"sampling": True}])
def test_the_limit_is_the_sentence_s_own(work: Path, tmp_path: Path, options: dict) -> None:
    """Whatever is in its batch, with few tokens to choose from or all."""
    endless = never_ending(work, tmp_path)
    lines = ["ni na", "ni na " * 14]
    model = fairseq_plugins.load(endless, data=work / "data")
    generation = GenerationOptions(limited_generation(beam=2, **options))
    together = model.translations(lines, generation)
    lengths = [len(model.preparation.encode_source(line).split()) + 1 for line in lines]
    assert together.cut == {number: int(1.5 * length + 10) for number, length in enumerate(lengths)}
    if not options.get("sampling"):
        assert together.texts == [model.translations([line], generation).texts[0] for line in lines]


def test_sentences_longer_than_a_batch_of_the_training(work: Path, tmp_path: Path) -> None:
    state = torch.load(work / "checkpoints" / "checkpoint_best.pt", weights_only=False)
    state["cfg"]["dataset"]["max_tokens"] = 3
    torch.save(state, tmp_path / "short.pt")
    sentence = max((work / "data" / "raw" / "test.xx").read_text(encoding="utf-8").splitlines(), key=len)
    model = fairseq_plugins.load(tmp_path / "short.pt", data=work / "data")
    assert model.translate([sentence]) == fairseq_plugins.load(work).translate([sentence]) != [""]


def test_the_documentations_two_ways_find_the_same(work: Path) -> None:
    """docs/python.md: ours, and fairseq's own."""
    page = (CHECKOUT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    sentence = (work / "data" / "raw" / "test.xx").read_text(encoding="utf-8").splitlines()[0]
    found = []
    for block in blocks:
        block = block.replace("work/quickstart/mc_rnn_3", str(work)).replace("work/quickstart/data", f"{work}/data")
        names: dict[str, Any] = {}
        exec(block.replace("Der Hund schläft.", sentence), names)
        found.append(names["translations"])
    assert len(found) == 2 and found[0] == found[1] and found[0][0]


@pytest.mark.parametrize("warnings", ["", "ignore:semaphore_tracker:UserWarning"])
def test_it_says_nothing_of_its_own(work: Path, warnings: str) -> None:
    """Nor in a process that was started by one in which fairseq has read data by workers: fairseq sets the variable."""
    program = f"import fairseq_plugins; fairseq_plugins.load({str(work)!r}).translate(['a'])"
    environment = {**os.environ, "PYTHONWARNINGS": warnings}
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, capture_output=True, text=True)
    assert (finished.stdout, finished.stderr) == ("", "")


def test_bad_input(work: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"sentence 2 has \d+ tokens, but the model takes 90; split it"):
        fairseq_plugins.load(work).translate(["a", "word " * 200])
    for value in None, float("nan"), b"a", 5:
        with pytest.raises(TypeError, match=rf"^translate: text 1 of the list \(from 0\) is {value!r}, not a text"):
            fairseq_plugins.load(work).translate(["a", value])
    with pytest.raises(TypeError, match=r"a list of texts: translate\(\['a word'\]\)$"):
        fairseq_plugins.load(work).translate("a word")
    with pytest.raises(InputError, match="checkpoint_best.pt: no such checkpoint"):
        fairseq_plugins.load(tmp_path)
    with pytest.raises(InputError, match="no such file; give the folder"):
        fairseq_plugins.load(work, data=tmp_path)


def test_data_of_another_model(work: Path, tmp_path: Path) -> None:
    """Its dictionary has as many words, in another order: what would be translated is nonsense."""
    data = shutil.copytree(work / "data", tmp_path / "data")
    path = data / "bin" / "dict.xx.txt"
    path.write_text("".join(reversed(path.read_text(encoding="utf-8").splitlines(keepends=True))), encoding="utf-8")
    with pytest.raises(InputError, match="dict.xx.txt: missing, or not what was prepared"):
        fairseq_plugins.load(work, data=data)
    # Prepared so.
    dataclasses.replace(PairsPreparation.load(data), files={}).save(data)
    with pytest.raises(InputError, match="dict.xx.txt: not the dictionary that .*checkpoint_best.pt was trained with"):
        fairseq_plugins.load(work, data=data)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_words_that_the_training_text_lacks_are_named_on_a_terminal(
    work: Path, is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = (work / "data" / "raw" / "train.xx").read_text(encoding="utf-8").split()[0]
    lines = [f"{known.capitalize()} Giraffe, {known} zebra", "giraffe 12 Zebra"]
    monkeypatch.setattr(translate, "standard_input", lambda what: lines)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    translate.main([str(work), "--gpus", "0"])
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    assert ("not in the training text: Giraffe, zebra\n" in printed.err) is is_terminal
    translate.main([str(work), "--gpus", "0", "--quiet"])
    quiet = capsys.readouterr()
    assert (quiet.out, quiet.err) == (printed.out, "")


@pytest.mark.parametrize(
    ("tokenizer", "training", "unknown"),
    [
        ("none", "我们都喜欢看书。\n他看iPhone新闻吗？\n", ["旧"]),
        ("moses", "我们都喜欢看书。\n他看iPhone新闻吗？\n", ["旧"]),
        ("none", "ฉันชอบอ่านหนังสือ\nเขาอ่านข่าว\n", ["我", "喜", "欢", "看", "旧", "书", "新", "闻", "iphone"]),
        ("jieba", "我们 都 喜欢 看书 。\n他 看 iPhone 新闻 吗 ？\n", ["我", "旧书"]),
    ],
)
def test_characters_are_the_words_of_text_without_spaces(
    tokenizer: str, training: str, unknown: list[str], work: Path, tmp_path: Path
) -> None:
    """Unless the preparation cuts it into words."""
    preparation = PairsPreparation("zh", "en", source_tokenizer=tokenizer)
    data = dataclasses.replace(PreparedData.load(work / "data"), folder=tmp_path, preparation=preparation)
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "train.zh").write_text(training, encoding="utf-8")
    assert translate.words_not_in_training(data, ["我喜欢看旧书。", "新闻iPhone"]) == unknown


def test_without_its_training_text_no_word_is_named(work: Path) -> None:
    data = PreparedData.load(work / "data")
    assert translate.words_not_in_training(data, ["Giraffe"]) == ["Giraffe"]
    assert translate.words_not_in_training(dataclasses.replace(data, folder=work), ["Giraffe"]) == []
