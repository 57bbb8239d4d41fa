"""Every option that README and docs name has an effect: it is tried here, or a test that is named here tries it.

docs/options.md has a test of its own, ``tests/models/test_effects_of_options.py``. What a page names and no table here
has fails, and the sentence says what to add.
"""

from __future__ import annotations

import ast
import copy
import importlib
import json
import logging
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.scoring import build_scorer
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import OmegaConf

from fairseq_plugins.checkpoints import read_checkpoint
from fairseq_plugins.command_parser import PROGRAM
from fairseq_plugins.corpora import iwslt14, labelled_tables, nist, parallel_text, ptb
from fairseq_plugins.corpora.labelled_texts import LabelledTextsRun
from fairseq_plugins.corpora.pairs import PairsRun
from fairseq_plugins.corpora.running_text import RunningTextRun
from fairseq_plugins.decoding.cache import chosen_settings, log_probabilities
from fairseq_plugins.decoding.language_model import LanguageModel
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration, language_models
from fairseq_plugins.experiments.configuration import KEYS, SECTIONS
from fairseq_plugins.experiments.decoding import TextScoring
from tests.commands import CHECKOUT, USER_DIR, run_command, run_in_process, train_in_process
from tests.conftest import TranslationData
from tests.corpora.parallel_text import contents, sentences, write
from tests.corpora.test_nist import write_ldc, write_year
from tests.documentation.markdown import PAGES, commands, name
from tests.models.test_effects_of_options import OPTIONS, differences

TESTS = CHECKOUT / "tests"
PAGES_OF_OPTIONS = [page for page in PAGES if page.name not in ("CHANGELOG.md", "options.md")]


class Trial(NamedTuple):
    """How an option is tried.

    Attributes:
        second: arguments with which something else comes out than …
        first: … with these.
        beside: arguments that both have.
        refusal: what ``second`` is refused with.
    """

    second: str
    first: str = ""
    beside: str = ""
    refusal: str | None = None


# ------------------------------------------------ of fairseq-train, on a language model and on a model that translates

AVERAGING = "--optimizer asgd --lr-scheduler non_monotone --lr 40 --clip-norm 5 --max-update 0 --max-epoch 3"
REGULARIZED = "--criterion activation_regularized_cross_entropy"
TRAINED: dict[str, Trial] = {
    "--activation-regularization": Trial("--activation-regularization 2", beside=REGULARIZED),
    "--temporal-activation-regularization": Trial("--temporal-activation-regularization 2", beside=REGULARIZED),
    "--arch": Trial("--arch mc_rnn_lm_ptb"),
    "--batch-size": Trial("--batch-size 3"),
    "--batch-size-valid": Trial("--batch-size-valid 2"),
    "--best-checkpoint-metric": Trial("--best-checkpoint-metric ppl"),
    "--clip-norm": Trial("--clip-norm 0.01"),
    "--criterion": Trial(f"{REGULARIZED} --activation-regularization 2"),
    "--keep-last-epochs": Trial("--keep-last-epochs 1", beside="--max-update 0 --max-epoch 2"),
    "--log-interval": Trial("--log-interval 1"),
    "--lr": Trial("--lr 0.5"),
    "--lr-scheduler": Trial("--lr-scheduler inverse_sqrt --warmup-updates 4"),
    "--max-tokens": Trial("--max-tokens 100", refusal="--max-tokens 100 has no effect with --task streaming_language"),
    "--maximize-best-checkpoint-metric": Trial(
        "--maximize-best-checkpoint-metric", beside="--max-update 0 --max-epoch 2"
    ),
    "--non-monotone-interval": Trial("--non-monotone-interval 0", beside=AVERAGING),
    "--optimizer": Trial("--optimizer adam"),
    "--random-windows": Trial("--random-windows"),
    "--save-interval-updates": Trial("--save-interval-updates 2"),
    "--seed": Trial("--seed 2"),
    "--tokens-per-sample": Trial("--tokens-per-sample 7"),
    "--update-freq": Trial("--update-freq 2"),
    "--warmup-updates": Trial("--warmup-updates 3", "--warmup-updates 4", beside="--lr-scheduler inverse_sqrt"),
}
TRAINED_ON_PAIRS: dict[str, Trial] = {
    "--eval-bleu": Trial("--eval-bleu"),
    "--fp16": Trial("--fp16"),
    "--left-pad-target": Trial("--left-pad-target", refusal="--left-pad-target is not supported"),
    "--max-tokens": Trial("--max-tokens 60"),
    "--r-drop-weight": Trial("--r-drop-weight 0", beside="--criterion r_drop --dropout 0.3"),
}
SMALL = (
    "--task streaming_language_modeling --arch recurrent_lm --decoder-embed-dim 12 --decoder-hidden-size 16 "
    "--decoder-layers 2 --share-decoder-input-output-embed --tokens-per-sample 10 --batch-size 4 --optimizer sgd "
    "--lr 1.0 --clip-norm 0.25 --seed 1 --cpu --distributed-world-size 1 --log-format simple --max-update 6"
)
SMALL_ON_PAIRS = (
    "--arch rnnsearch_iwslt_de_en --encoder-embed-dim 8 --encoder-hidden-size 8 --decoder-embed-dim 8 "
    "--decoder-hidden-size 8 --batch-size 20 --optimizer adam --lr 0.01 --seed 1 --cpu --distributed-world-size 1 "
    "--log-format simple --max-update 3"
)
Run = Callable[[str, str], dict[str, Any]]
"""Runs something that has a name with some arguments; returns all that comes out."""


@pytest.fixture(scope="module")
def train(running_text: Path, tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Trains on "text" or on "pairs" with some arguments; returns all that comes out: files, parameters, losses, how
    often it was logged, and what was said of validations."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.name == "train_inner":
                lines.append(record.name)
            elif record.name == "valid":
                validated.update(re.findall(r"\| (\w+) ", record.getMessage()))

    lines: list[str] = []
    validated: set[str] = set()
    commands = {"text": [running_text / "bin", *SMALL.split()]}
    commands["pairs"] = [tiny_translation_data.separate, *SMALL_ON_PAIRS.split()]
    # fairseq's bar gives its logger another name for each line.
    logger = logging.getLogger("fairseq.logging.progress_bar")

    def run(data: str, arguments: str) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("training")
        lines.clear()
        validated.clear()
        handler = Lines()
        logger.addHandler(handler)
        level, is_disabled = logger.level, logger.disabled
        logger.setLevel(logging.INFO)
        # Another test may have set up logging, which disables those that were there.
        logger.disabled = False
        logging.disable(logging.NOTSET)
        try:
            train_in_process(*commands[data], "--save-dir", folder, *arguments.split())
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.disabled = is_disabled
        found: dict[str, Any] = {"files": {path.name for path in folder.iterdir()}, "logged": len(lines)}
        found["validated"] = set(validated)
        for which in "best", "last":
            checkpoint = read_checkpoint(folder / f"checkpoint_{which}.pt")
            found |= {f"{which}: {name}": tensor.clone() for name, tensor in checkpoint["model"].items()}
            found |= {f"{which}: {key}": checkpoint["extra_state"].get(key) for key in ("val_loss", "best")}
        return found

    return run


@pytest.fixture(scope="module")
def trained_once(train: Run) -> Run:
    return cache(train)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "option"),
    [*(("text", option) for option in TRAINED), *(("pairs", option) for option in TRAINED_ON_PAIRS)],
)
def test_an_option_of_trainings(data: str, option: str, train: Run, trained_once: Run) -> None:
    trial = {"text": TRAINED, "pairs": TRAINED_ON_PAIRS}[data][option]
    assert option in trial.second.split()
    if trial.refusal is not None:
        with pytest.raises(InputError, match=trial.refusal):
            train(data, trial.second)
        return
    of_first = trained_once(data, f"{trial.beside} {trial.first}".strip())
    assert differences(of_first, trained_once(data, f"{trial.beside} {trial.second}".strip()))


@pytest.mark.slow
@pytest.mark.parametrize("data", ["text", "pairs"])
def test_the_same_training_gives_the_same(data: str, train: Run, trained_once: Run) -> None:
    """Else all would seem to have an effect."""
    assert not differences(trained_once(data, ""), train(data, ""))


@pytest.mark.system
def test_skip_invalid_size_inputs_valid_test(train: Run) -> None:
    """In training fairseq leaves out what is too long; in validation it stops and names the remedy."""
    with pytest.raises(Exception, match="skip this example with --skip-invalid-size-inputs-valid-test"):
        train("pairs", "--max-target-positions 6")
    train("pairs", "--max-target-positions 6 --skip-invalid-size-inputs-valid-test")


@pytest.mark.parametrize(("remove_bpe", "words"), [(None, 5), ("sentencepiece", 3)])
def test_eval_bleu_remove_bpe(monkeypatch: pytest.MonkeyPatch, remove_bpe: str | None, words: int) -> None:
    dictionary = Dictionary()
    target = dictionary.encode_line("▁the ▁c at ▁s at", add_if_not_exist=True).long().unsqueeze(0)
    cfg = TranslationConfig(eval_bleu=True, eval_bleu_remove_bpe=remove_bpe)
    task = TranslationTask(cfg, dictionary, dictionary)
    task.tokenizer = None
    monkeypatch.setattr(task, "inference_step", lambda *_, **__: [[{"tokens": target[0]}]])
    bleu = task._inference_with_bleu(None, {"id": torch.zeros(1), "target": target}, None)
    assert bleu.sys_len == words


# -------------------------------------------------------------------------------------------- of scripts/prepare_*.sh

PARALLEL: dict[str, Trial] = {
    "--bpe": Trial("--bpe subword-nmt"),
    "--bpe-size": Trial("--bpe-size 130"),
    "--joint": Trial("--joint", "--separate"),
    "--lowercase": Trial("--lowercase"),
    "--max-length": Trial("--max-length 8"),
    "--metric": Trial("--metric rouge"),
    "--moses-language": Trial("--moses-language fr", beside="--tokenizer moses"),
    "--ratio": Trial("--ratio 1.5"),
    "--separate": Trial("--separate"),
    "--separate-dictionaries": Trial("--separate-dictionaries"),
    "--source-tokenizer": Trial("--source-tokenizer moses"),
    "--src-lang": Trial("--src-lang xx"),
    "--tgt-lang": Trial("--tgt-lang xx"),
    "--test": Trial("--test OTHER", "--test VALID"),
    "--tokenizer": Trial("--tokenizer moses"),
    "--train": Trial("--train OTHER"),
    "--valid": Trial("--valid OTHER"),
    "--valid-every": Trial("--valid-every 5", "--valid-every 4"),
}
IWSLT14: dict[str, Trial] = {
    "--bpe": Trial("--bpe subword-nmt"),
    "--bpe-size": Trial("--bpe-size 130"),
    "--separate-dictionaries": Trial("--separate-dictionaries"),
    "--tokenized": Trial("--tokenized OTHER"),
}
NIST: dict[str, Trial] = {
    "--bpe": Trial("--bpe subword-nmt --bpe-size 5"),
    "--encoding": Trial("--encoding utf-8", refusal="1.sgm, line 2: not utf-8; name its encoding"),
    "--ldc": Trial("--ldc LDC"),
    "--nist": Trial("--nist OTHER"),
    "--no-nfkc": Trial("--no-nfkc"),
    "--no-simplify": Trial("--no-simplify"),
    "--set": Trial("--set 2012=OTHER_SOURCE,OTHER_REFERENCES"),
}
PTB: dict[str, Trial] = {
    "--characters": Trial("--characters"),
    "--input": Trial("--input OTHER"),
}
LABELLED: dict[str, Trial] = {
    "--given": Trial("--given tokens"),
    "--label": Trial("--label kind"),
    "--lowercase": Trial("--lowercase"),
    "--max-length": Trial("--max-length 3"),
    "--min-count": Trial("--min-count 1"),
    "--test": Trial("--test OTHER"),
    "--text": Trial("--text title"),
    "--tokenizer": Trial("--tokenizer treebank"),
    "--train": Trial("--train OTHER"),
    "--valid": Trial("--valid OTHER"),
    "--words": Trial("--words 12"),
}


class Preparation(NamedTuple):
    """A script: its ``main``, arguments that every call has, and what stands for the names of files in them."""

    main: Callable[[list[str]], None]
    arguments: str
    files: dict[str, str]


@pytest.fixture(scope="module")
def preparations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Preparation]:
    folder = tmp_path_factory.mktemp("inputs")
    for seed, (name_of_set, size) in enumerate({"train": 80, "valid": 9, "other": 40}.items()):
        for path in write(folder / name_of_set, sentences(size, seed)):
            path.with_suffix(".xx").write_bytes(path.read_bytes())
        rows = ["title\ttext\tlabel\tkind"]
        for number, (source, target) in enumerate(sentences(size, seed + 10)):
            rows.append(f"{target}\t{source} A-{number % 5}\t{'yes' if number % 2 else 'no'}\t{number % 3}")
        (folder / f"{name_of_set}.tsv").write_text("\n".join([*rows, ""]), encoding="utf-8")
        if name_of_set != "valid":
            _write_sets(folder / name_of_set, seed)
    prefixes = {name_of_set.upper(): str(folder / name_of_set) for name_of_set in ("train", "valid", "other")}
    tables = {key: f"{path}.tsv" for key, path in prefixes.items()}
    return {
        "parallel": Preparation(
            parallel_text.main, "--src-lang de --tgt-lang en --train TRAIN --bpe-size 120", prefixes
        ),
        "iwslt14": Preparation(iwslt14.main, "--tokenized TRAIN --bpe-size 120", prefixes),
        "nist": Preparation(
            nist.main,
            "--train TRAIN/plain --nist TRAIN --bpe none",
            {
                **prefixes,
                "TRAIN/plain": f"{folder}/train/plain",
                "LDC": f"{folder}/train/ldc",
                "2012=OTHER_SOURCE,OTHER_REFERENCES": f"2012={folder}/other/mt06-src.sgm,{folder}/other/mt06-ref.sgm",
            },
        ),
        "ptb": Preparation(ptb.main, "--input TRAIN", prefixes),
        "labelled": Preparation(
            labelled_tables.main, "--text text --label label --train TRAIN --valid VALID --test VALID", tables
        ),
    }


def _write_sets(folder: Path, seed: int) -> None:
    """What IWSLT'14, NIST Chinese-English and Penn Treebank are prepared from."""
    for name_of_set, size in ("train.tok", 40), ("valid.tok", 5), ("test.tok", 5):
        write(folder / name_of_set, sentences(size, seed))
    write_ldc(folder / "ldc")
    for path in write(folder / "plain", sentences(40, seed)):
        path.rename(path.with_suffix({".de": ".zh", ".en": ".en"}[path.suffix]))
    for year in range(2003, 2005 + seed):
        write_year(folder, year)
    for name_of_set in "train", "valid", "test":
        (folder / f"ptb.{name_of_set}.txt").write_text(f" aer banknote {seed} <unk> \n", encoding="utf-8")


@pytest.fixture(scope="module")
def prepare(
    preparations: dict[str, Preparation], tmp_path_factory: pytest.TempPathFactory, running_text: Path
) -> Iterator[Run]:
    """Prepares; returns all files, and the arguments of fairseq-preprocess, which is left out.

    ``running_text`` is there before: it is prepared in earnest.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        asked_for: list[str] = []

        def preprocess(run: PairsRun | RunningTextRun, arguments: list[str], folder: Path, *_: object) -> str:
            asked_for[:] = arguments
            (folder / "bin").mkdir(exist_ok=True)
            (folder / "bin" / "dict.txt").write_text("word 1\n")
            for language in run.languages if isinstance(run, PairsRun) else ():
                (folder / "bin" / f"dict.{language}.txt").write_text("word 1\n")
            return "none"

        def write_bin(run: LabelledTextsRun, folder: Path, *_: object) -> str:
            (folder / "bin").mkdir()
            return "none"

        for kind in PairsRun, RunningTextRun:
            monkeypatch.setattr(kind, "fairseq_preprocess", preprocess)
        monkeypatch.setattr(LabelledTextsRun, "_write_bin", write_bin)

        def run(script: str, arguments: str) -> dict[str, Any]:
            output = tmp_path_factory.mktemp("outputs") / "out"
            preparation = preparations[script]
            if script == "parallel" and "--valid" not in arguments:
                arguments += " --valid VALID"
            words = [preparation.files.get(word, word) for word in f"{preparation.arguments} {arguments}".split()]
            preparation.main([*words, "--output", str(output), "--workers", "1"])
            found: dict[str, Any] = dict(contents(output))
            # It says what was asked for, with or without an effect; that of a metric is on who reads it.
            record = found.pop("preparation.json")
            return found | {"metric": re.search(rb'"metric": "(\w+)"', record)[1], "asked for": list(asked_for)}

        yield run


@pytest.fixture(scope="module")
def prepared_once(prepare: Run) -> Run:
    return cache(prepare)


PREPARED = {"parallel": PARALLEL, "iwslt14": IWSLT14, "nist": NIST, "ptb": PTB, "labelled": LABELLED}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "option"), [(script, option) for script, trials in PREPARED.items() for option in trials]
)
def test_an_option_of_preparations(script: str, option: str, prepare: Run, prepared_once: Run) -> None:
    trial = PREPARED[script][option]
    of_first = prepared_once(script, f"{trial.beside} {trial.first}".strip())
    if trial.refusal is not None:
        with pytest.raises(InputError, match=trial.refusal):
            prepare(script, trial.second)
        return
    assert differences(of_first, prepare(script, f"{trial.beside} {trial.second}"))


@pytest.mark.slow
@pytest.mark.parametrize("script", PREPARED)
def test_the_same_preparation_gives_the_same(script: str, prepare: Run, prepared_once: Run) -> None:
    assert not differences(prepared_once(script, ""), prepare(script, ""))


# ------------------------------------------------------------------------- of fairseq's programs that read checkpoints

NO_MODEL = "Model file not found: nowhere.pt"
GENERATED: dict[str, Trial] = {
    "--beam": Trial("--beam 1"),
    "--gen-subset": Trial("--gen-subset valid"),
    "--lenpen": Trial("--lenpen -3", "--lenpen 3"),
    "--max-len-a": Trial("--max-len-a 1", beside="--max-len-b 0 --min-len 0 --lenpen 3"),
    "--max-len-b": Trial("--max-len-b 0", beside="--min-len 0 --lenpen 3"),
    "--max-tokens": Trial("--max-tokens 60"),
    "--nbest": Trial("--nbest 2"),
    "--path": Trial("--path nowhere.pt", refusal=NO_MODEL),
    "--remove-bpe": Trial("--remove-bpe letter", beside="--min-len 3"),
    "--scoring": Trial("--scoring rouge"),
}
VALIDATED: dict[str, Trial] = {
    "--max-tokens": Trial("--max-tokens 60"),
    "--path": Trial("--path nowhere.pt", refusal=NO_MODEL),
    "--task": Trial("--task no_task", refusal="argument --task: invalid choice: 'no_task'"),
    "--valid-subset": Trial("--valid-subset test"),
}
EVALUATED_TEXT: dict[str, Trial] = {
    "--gen-subset": Trial("--gen-subset valid"),
    "--path": Trial("--path nowhere.pt", refusal=NO_MODEL),
    "--task": Trial("--task language_modeling", refusal="states it carries on: say --task streaming_language_modeling"),
}
PROGRAMS = {"fairseq-generate": GENERATED, "fairseq-validate": VALIDATED, "fairseq-eval-lm": EVALUATED_TEXT}
RESULTS = re.compile(r"^(?:[HDP]-.*|Generate .*)|(?: \d+ / \d+ |valid on |Evaluated \d+ |Loss ).*", flags=re.MULTILINE)
"""The lines of output that are results, from where they are that."""
SPEEDS = re.compile(r"wps=\S+|in [\d.]+s \(.*\)")


@pytest.fixture(scope="module")
def language_model(running_text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint after six updates."""
    folder = tmp_path_factory.mktemp("language_model")
    train_in_process(running_text / "bin", "--save-dir", folder, *SMALL.split())
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def output(
    tiny_translation_data: TranslationData, tiny_checkpoint: Path, running_text: Path, language_model: Path
) -> Run:
    """Runs one of the programs; returns the results that it prints, or the last line of what it refuses."""
    translator = [tiny_translation_data.separate, "--path", tiny_checkpoint, "--batch-size", "50"]
    commands = {
        "fairseq-generate": translator,
        "fairseq-validate": [*translator, "--task", "translation"],
        "fairseq-eval-lm": [running_text / "bin", "--path", language_model, "--task", "streaming_language_modeling"],
    }

    def run(program: str, arguments: str) -> dict[str, Any]:
        common = ["--user-dir", USER_DIR, "--cpu", "--log-format", "simple", "--log-interval", "1"]
        finished = run_command([program, *commands[program], *common, *arguments.split()], status=None)
        if finished.returncode != 0:
            return {"refusal": finished.stderr.splitlines()[-1]}
        return {"printed": SPEEDS.sub("", "\n".join(RESULTS.findall(finished.stdout)))}

    return run


@pytest.fixture(scope="module")
def output_once(output: Run) -> Run:
    return cache(output)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "option"), [(program, option) for program, trials in PROGRAMS.items() for option in trials]
)
def test_an_option_of_programs(program: str, option: str, output: Run, output_once: Run) -> None:
    trial = PROGRAMS[program][option]
    of_first = output_once(program, f"{trial.beside} {trial.first}".strip())
    assert of_first["printed"]
    of_second = output(program, f"{trial.beside} {trial.second}")
    if trial.refusal is None:
        assert of_second["printed"] and differences(of_first, of_second)
    else:
        assert trial.refusal in of_second["refusal"]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_command_prints_the_same(program: str, output: Run, output_once: Run) -> None:
    assert not differences(output_once(program, ""), output(program, ""))


@pytest.mark.system
@pytest.mark.parametrize(
    ("second", "first"),
    [
        # The set has fewer tokens than the window that nobody gives.
        ("--cache --cache-window 10 --cache-theta 1000", "--cache-window 10 --cache-theta 1000"),
        ("--cache-window 3", "--cache-window 30"),
        ("--cache-window 10 --cache-theta 0", "--cache-window 10 --cache-theta 1000"),
        ("--cache-window 10 --cache-weight 0.5", "--cache-window 10 --cache-weight 0.25"),
    ],
)
def test_the_cache_of_a_language_model(second: str, first: str, language_model: Path) -> None:
    model = LanguageModel.load([language_model])
    tokens = model.numbers(model.lines_of("test"))

    def surprises(options: str) -> list[float]:
        """What ``evaluate`` keeps of each token of a set."""
        parsed = TextScoring().options(configuration.Configuration(Path("model.yaml")), model.data, options.split())
        return log_probabilities(model, tokens, chosen_settings(model, parsed)).tolist()

    assert surprises(second) != surprises(first)


# ----------------------------------------------------------------------------------------------------- of benchmarks

BENCHMARKS: dict[str, dict[str, Trial]] = {
    "models": {
        "--decode-peer": Trial("--decode-peer lstm_as_rnnsearch"),
        "--repetitions": Trial("--repetitions 3"),
        "--sentences": Trial("--sentences 2 3"),
        "--systems": Trial("--systems san_deeper_iwslt_de_en san_wider_iwslt_de_en dpn_iwslt_de_en"),
        "--task": Trial("--task language_modeling"),
        "--threads": Trial("--threads 2"),
        "--train-peer": Trial("--train-peer lstm_as_rnnsearch"),
        "--types": Trial("--types 30"),
    },
    "operations": {"--repetitions": Trial("--repetitions 3"), "--threads": Trial("--threads 2")},
    "rcrn_and_dilated": {
        "--cells": Trial("--cells gru"),
        "--networks": Trial("--networks waveform", beside="--samples 9"),
        "--repetitions": Trial("--repetitions 3", beside="--networks rcrn"),
        "--threads": Trial("--threads 2", beside="--networks rcrn"),
    },
    "rcrn_table_10": {"--repetitions": Trial("--repetitions 3"), "--threads": Trial("--threads 2")},
    "recurrent_layers": {
        "--backends": Trial("--backends eager"),
        "--bfloat16": Trial("--bfloat16"),
        "--layers": Trial("--layers torch.nn.LSTM"),
        "--repetitions": Trial("--repetitions 3"),
        "--sizes": Trial("--sizes tiny tiny"),
        "--threads": Trial("--threads 2"),
    },
}
BENCHMARKED = {
    "models": "--systems lstm_as_rnnsearch san_wider_iwslt_de_en san_deeper_iwslt_de_en --types 20 --sentences 2 2",
    "operations": "--tiny",
    "rcrn_and_dilated": "--steps 2 --dilations 1",
    "rcrn_table_10": "--steps 2",
    "recurrent_layers": "--sizes tiny",
}
"""Arguments that every call of a benchmark has."""


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a benchmark whose clock says that everything takes a second; returns its rows, and what was to be timed:
    how often and with how many threads."""
    folder = tmp_path_factory.mktemp("benchmarks")
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(str(CHECKOUT / "benchmarks"))
        timing = importlib.import_module("timing")
        timed: list[tuple[object, ...]] = []

        def take_turns(runs: dict[str, object], repetitions: int, *_: object) -> dict[str, Any]:
            timed.append((*runs, repetitions, torch.get_num_threads()))
            return dict.fromkeys(runs, timing.Timing(1.0, 0.0))

        for name_of_module in (*BENCHMARKS, "language_models"):
            monkeypatch.setattr(importlib.import_module(name_of_module), "take_turns", take_turns)
        models = importlib.import_module("models")
        model_of, built = models.model_of, {}

        def model_once(system: str, task: Any) -> Any:
            key = system, len(task.target_dictionary)
            if key not in built:
                built[key] = model_of(system, task)
            return copy.deepcopy(built[key])

        monkeypatch.setattr(models, "model_of", model_once)

        def run(script: str, arguments: str) -> dict[str, Any]:
            timed.clear()
            command = f"{BENCHMARKED[script]} --threads 1 --repetitions 2 {arguments} --json {folder}/rows.json"
            monkeypatch.setattr(sys, "argv", [script, *command.split()])
            importlib.import_module(script).main()
            rows = json.loads((folder / "rows.json").read_text(encoding="utf-8"))["rows"]
            # What was asked for they say with or without an effect.
            rows = [{key: row[key] for key in row.keys() - {"threads", "sentences"}} for row in rows]
            return {"rows": rows, "timed": list(timed)}

        yield run
        for name_of_module in ("timing", *BENCHMARKS, "language_models"):
            sys.modules.pop(name_of_module)
    torch.set_num_threads(threads)
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def benchmark_once(benchmark: Run) -> Run:
    return cache(benchmark)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "option"), [(script, option) for script, trials in BENCHMARKS.items() for option in trials]
)
def test_an_option_of_benchmarks(script: str, option: str, benchmark: Run, benchmark_once: Run) -> None:
    trial = BENCHMARKS[script][option]
    of_second = benchmark(script, f"{trial.beside} {trial.second}")
    assert differences(benchmark_once(script, trial.beside), of_second)


@pytest.mark.slow
@pytest.mark.parametrize("script", BENCHMARKS)
def test_the_same_benchmark_gives_the_same(script: str, benchmark: Run, benchmark_once: Run) -> None:
    assert not differences(benchmark_once(script, ""), benchmark(script, ""))


# ------------------------------------------------------------------------------------------------ of other commands


@pytest.mark.parametrize(("is_stemming", "score"), [(False, 0.0), (True, 100.0)])
def test_rouge_stemmer(is_stemming: bool, score: float) -> None:
    scorer = build_scorer(OmegaConf.create({"_name": "rouge", "rouge_stemmer": is_stemming}), None)
    scorer.add_string("stocks falling", "stock falls")
    assert scorer.score() == score


def test_the_cache_of_a_configuration(tmp_path: Path, running_text: Path) -> None:
    (tmp_path / "model.yaml").write_text("evaluate: {cache-window: 20, cache-theta: 0.5, cache-weight: 0.25}\n")
    data = PreparedData.load(running_text)
    options = TextScoring().options(configuration.load(tmp_path / "model.yaml"), data, ["--cache"])
    assert (options.cache_window, options.cache_theta, options.cache_weight) == (20, 0.5, 0.25)


def test_extras_are_installed(tmp_path: Path) -> None:
    stub, called = tmp_path / "python", tmp_path / "called"
    only_noted = f'case "$*" in *"pip install"*) echo "$@" >> "{called}"; exit;; *torch*) exit 1;; esac'
    stub.write_text(f'#!/usr/bin/env bash\n{only_noted}\nexec "{sys.executable}" "$@"\n')
    stub.chmod(0o755)
    for extras in ([], ["--extras", "chinese"]):
        run_command([CHECKOUT / "scripts" / "install.sh", *extras], PYTHON=str(stub))
    *_, last = called.read_text(encoding="utf-8").splitlines()
    assert last.endswith(".[train,report,chinese]") and called.read_text(encoding="utf-8").count("chinese") == 1


def test_options_of_generated_text(language_model: Path) -> None:
    def text(*options: str) -> str:
        command = ["generate-text", language_model, "--gpus", "0", "--seed", "1", *options]
        return run_in_process(language_models.main, *command).stdout

    short = text("--tokens", "5")
    assert text("--tokens", "5") == short != text("--tokens", "7")
    assert text("--tokens", "5", "--prompt", "ba").startswith("ba ") and not short.startswith("ba ")
    assert text("--tokens", "5", "--top-k", "1") == text("--tokens", "5", "--top-k", "1", "--seed", "2") != short


# ------------------------------------------------------------------------- of other commands, and which test tries it

TRAININGS = "test_effects::test_an_option_of_trainings"
PREPARATIONS = "test_effects::test_an_option_of_preparations"
OUTPUTS = "test_effects::test_an_option_of_programs"
TIMED = "test_effects::test_an_option_of_benchmarks"
CACHE = "test_effects::test_the_cache_of_a_language_model"
GENERATED_TEXT = "test_effects::test_options_of_generated_text"
EXPERIMENTS = "test_experiments::test_scores_and_translations"
RECORDED = "test_records::test_a_run_is_recorded"
COMPARED = "test_compare::test_every_file_counts"
DRY_RUN = "test_workflow::test_a_dry_run_shows_every_command_and_leaves_nothing"
DRY_RUN_ON_GPUS = "test_workflow::test_a_dry_run_of_another_recipe_on_gpus"

# "COMMAND OPTION", in which * stands for anything, or an option of whichever command; and FILE::TEST.
COVERED: dict[str, str] = {
    **{f"scripts/prepare_parallel.sh {option}": PREPARATIONS for option in PARALLEL},
    **{f"scripts/prepare_labelled_texts.sh {option}": PREPARATIONS for option in LABELLED},
    **{f"scripts/prepare_iwslt14_de_en.sh {option}": PREPARATIONS for option in IWSLT14},
    **{f"scripts/prepare_nist_zh_en.sh {option}": PREPARATIONS for option in NIST},
    **{f"scripts/prepare_ptb.sh {option}": PREPARATIONS for option in PTB},
    # The same code reads these options of all corpora of labelled texts.
    **{f"scripts/prepare_{name}.sh --max-length": PREPARATIONS for name in ("imdb", "reviews")},
    "scripts/prepare_imdb.sh --words": PREPARATIONS,
    "benchmarks/gpu.py --continue": "test_gpu::test_chosen_parts_alone_go_on_where_they_ended",
    "benchmarks/gpu.py --parts": "test_gpu::test_chosen_parts_alone_go_on_where_they_ended",
    "scripts/prepare_*.sh --output": "test_prepare::test_prepare_iwslt14",
    "scripts/prepare_copy_memory.sh --length": "test_generated_sequences::test_copy_memory",
    "scripts/prepare_pixels.sh --small": "test_sequence_tasks::test_long_memory",
    "scripts/prepare_pixels.sh --input": "test_generated_sequences::test_pixels",
    "scripts/prepare_answer_selection.sh --input": "test_labelled_texts::test_answer_selection",
    "scripts/prepare_gigaword.sh --input": "test_gigaword::test_from_text_to_numbers",
    "scripts/prepare_iwslt14_de_en.sh --archive": "test_iwslt14::test_an_archive_to_tokens",
    "scripts/prepare_reviews.sh --set": "test_labelled_texts::test_sst_and_reviews",
    "scripts/prepare_text.sh --characters": "test_running_text::test_fairseq_reads_all_characters",
    "scripts/prepare_text.sh --test": "test_running_text::test_from_text_to_numbers",
    "scripts/prepare_text.sh --train": "test_running_text::test_from_text_to_numbers",
    "scripts/prepare_text.sh --valid": "test_running_text::test_from_text_to_numbers",
    "scripts/prepare_trec.sh --test": "test_labelled_texts::test_trec",
    "scripts/prepare_trec.sh --train": "test_labelled_texts::test_trec",
    "--archive": "test_iwslt14::test_an_archive_to_tokens",
    "--bpe": PREPARATIONS,
    "--bpe-size": PREPARATIONS,
    "--characters": "test_running_text::test_fairseq_reads_all_characters",
    "--clean": "test_labelled_texts::test_answer_selection",
    "--encoding": PREPARATIONS,
    "--free-answers": "test_reading_comprehension::test_free_answers_of_one_s_own",
    "--given": PREPARATIONS,
    "--input": "test_labelled_audio::test_whole_recordings_are_held_out",
    "--rate": "test_labelled_audio::test_another_rate_and_several_channels",
    "--seed": "test_labelled_audio::test_whole_recordings_are_held_out",
    "--table": "test_labelled_audio::test_a_table",
    "--test-share": "test_labelled_audio::test_whole_recordings_are_held_out",
    "--valid-share": "test_labelled_audio::test_whole_recordings_are_held_out",
    "--window": "test_labelled_audio::test_whole_recordings_are_held_out",
    "--group": "test_labelled_texts::test_whole_questions_are_held_out",
    "--joint": PREPARATIONS,
    "--ldc": PREPARATIONS,
    "--lowercase": PREPARATIONS,
    "--max-answer": "test_reading_comprehension::test_passages_that_are_cut",
    "--max-length": PREPARATIONS,
    "--min-count": PREPARATIONS,
    "--moses-language": PREPARATIONS,
    "--nist": PREPARATIONS,
    "--no-nfkc": PREPARATIONS,
    "--no-simplify": PREPARATIONS,
    "--no-tags": "test_labelled_texts::test_entailment_takes_tokens_and_tags_of_parses",
    "--quoted": "test_labelled_texts::test_a_table_with_quoted_fields",
    "--ratio": PREPARATIONS,
    "--separate": PREPARATIONS,
    "--separate-dictionaries": PREPARATIONS,
    "--set": PREPARATIONS,
    "--source-tokenizer": PREPARATIONS,
    "--src-lang": PREPARATIONS,
    "--test": PREPARATIONS,
    "--text": PREPARATIONS,
    "--label": PREPARATIONS,
    "--label-smoothing": "test_output_cross_entropy::test_loss_gradients_and_log_are_those_of_fairseq",
    "--tgt-lang": PREPARATIONS,
    "--tokenized": PREPARATIONS,
    "--tokenizer": PREPARATIONS,
    "--train": PREPARATIONS,
    "--valid": PREPARATIONS,
    "--tune": "test_workflow::test_rows_choose_by_the_validation_set",
    "--valid-every": PREPARATIONS,
    "--vectors": "test_labelled_texts::test_vectors_bring_words_of_held_out_texts",
    "--words": "test_running_text::test_most_frequent_words",
    # fairseq's programs that read checkpoints.
    **{f"{program} {option}": OUTPUTS for program, trials in PROGRAMS.items() for option in trials},
    # Trainings.
    **dict.fromkeys([*TRAINED, *TRAINED_ON_PAIRS], TRAININGS),
    "fairseq-train --patience": "test_resuming::test_patience_holds_over_interruptions",
    "fairseq-* --task": "test_streaming_language_modeling::test_models_that_carry_no_states",
    "fairseq-* --user-dir": "test_fairseq_commands::test_register_and_user_dir_in_either_order",
    "scripts/train.sh --data": "test_experiments::test_missing_data",
    "scripts/train.sh --gpus": RECORDED,
    "scripts/train.sh --processes": "test_several_processes::test_two_processes_train_as_one",
    "--ddp-backend": "test_several_processes::test_two_processes_train_as_one",
    "torchrun *": "test_several_processes::test_two_machines_by_the_command_that_the_page_prints",
    "scripts/train.sh --stop-time-hours": "test_resuming::test_an_ended_training_gets_no_more_updates",
    "scripts/train.sh --work": RECORDED,
    "--bf16": "test_half_precision::test_trains_with_bfloat16_on_the_cpu",
    "--eval-bleu-remove-bpe": "test_effects::test_eval_bleu_remove_bpe",
    "--finetune-from-model": "test_recurrent_seq2seq::test_finetuning_starts_from_the_model",
    "--matmul-precision": "test_matmul_precision::test_pytorch_multiplies_as_is_said",
    "--max-epoch": "test_streaming_language_modeling::test_interrupted_training_ends_the_same",
    "--max-update": "test_streaming_language_modeling::test_interrupted_training_ends_the_same",
    "--memory-efficient-bf16": "test_half_precision::test_trains_with_bfloat16_on_the_cpu",
    "--negatives": "test_sequence_ranking::test_as_many_wrong_candidates_as_negatives",
    "--patience": "test_resuming::test_patience_holds_over_interruptions",
    "--restart": "test_training_identity::test_a_restart_deletes_what_was_trained",
    "--save-interval": "test_saving::test_the_last_epoch_is_saved",
    "--skip-invalid-size-inputs-valid-test": "test_effects::test_skip_invalid_size_inputs_valid_test",
    "--stop-min-lr": "test_language_models::test_finetuning_goes_on_from_averages_and_ends_by_itself",
    "--stop-time-hours": "test_resuming::test_an_ended_training_gets_no_more_updates",
    "--tensorboard-logdir": "test_fairseq_commands::test_a_board_that_nothing_writes",
    "--when-non-monotone": "test_language_models::test_finetuning_goes_on_from_averages_and_ends_by_itself",
    # Exported models.
    "scripts/export.sh --output": "test_exported_options::test_options_of_export",
    "--int8": "test_exported_options::test_options_of_export",
    "--license": "test_exported_options::test_options_of_export",
    "--min-len": "test_exported_options::test_options_of_beam_search",
    "--unkpen": "test_exported_options::test_options_of_beam_search",
    # The server.
    **{
        f"--{name}": "test_command_line::test_options_of_serve"
        for name in ("allow-origin", "body", "host", "per-minute", "port", "queue", "timeout")
    },
    "scripts/serve.sh --characters": "test_command_line::test_options_of_serve",
    # Decoding and scores.
    "--sacrebleu-tokenize": "test_evaluate::test_the_tokenizer_of_sacrebleu",
    "--rouge-tokenize": "test_evaluate::test_what_rouge_counts",
    "--target-lang": "test_fairseq_scorers::test_rouge_by_the_language_of_the_command",
    "--checkpoint-suffix": "test_fairseq_commands::test_what_would_score_something_else",
    "--constraints": "test_fairseq_commands::test_what_would_score_something_else",
    "--prefix-size": "test_fairseq_commands::test_what_would_score_something_else",
    "--score-reference": "test_fairseq_commands::test_what_would_score_something_else",
    "--print-alignment": "test_fairseq_commands::test_what_would_score_something_else",
    "--processes": "test_decoding::test_scores_are_those_of_fairseqs_decoding",
    "scripts/evaluate.sh --checkpoint": "test_evaluate::test_an_ensemble",
    "scripts/evaluate.sh --data": "test_experiments::test_missing_data",
    "scripts/evaluate.sh --gpus": RECORDED,
    "scripts/evaluate.sh --subset": "test_language_models::test_scores_cache_and_report",
    "scripts/evaluate.sh --work": EXPERIMENTS,
    "--average": EXPERIMENTS,
    "--beam": RECORDED,
    "--cache": CACHE,
    "--cache-window": CACHE,
    "--gen-subset": OUTPUTS,
    "--lenpen": OUTPUTS,
    "--max-len-a": OUTPUTS,
    "--max-len-b": OUTPUTS,
    "translate --paragraphs": "test_translation::test_sentences_of_a_paragraph_are_translated_one_by_one",
    "--metric": "test_compare::test_command_with_rouge",
    "--metrics": "test_evaluate::test_several_metrics",
    "--no-repeat-ngram-size": "test_generation::test_no_ngram_is_there_twice",
    "--nbest": OUTPUTS,
    "--passage": "test_answers_to_questions::test_questions_in_answers_out",
    "scripts/predict.sh --passage": "test_answers_to_questions::test_questions_in_answers_out",
    "--prompt": GENERATED_TEXT,
    "--top-k": GENERATED_TEXT,
    "--record": RECORDED,
    "--remove-bpe": OUTPUTS,
    "--replace-unk": "test_fairseq_commands::test_interactive_copies_unknown_words",
    "--rouge-stemmer": "test_effects::test_rouge_stemmer",
    "--scoring": OUTPUTS,
    "--subset": "test_sentences::test_text_that_cannot_be_used",
    "--tokens": GENERATED_TEXT,
    "scripts/perplexity.sh --words": "test_language_models::test_a_text_of_the_users",
    # Other scripts and analyses.
    "scripts/install.sh --extras": "test_effects::test_extras_are_installed",
    "--gpu": "test_install::test_pytorch_for_gpus",
    "scripts/quickstart.sh --task": "test_quickstart::test_another_seed_does_not_go_on_with_a_training",
    "scripts/reproduce.sh --": "test_workflow::test_options_of_every_training",
    "scripts/reproduce.sh --gpus": DRY_RUN_ON_GPUS,
    "scripts/reproduce.sh --max-update": DRY_RUN_ON_GPUS,
    "--format": "test_compare::test_command_with_rouge",
    "--dry-run": DRY_RUN,
    "--extras": "test_effects::test_extras_are_installed",
    "--help": "test_command::test_what_is_said_without_pytorch_and_fairseq",
    "--profile": "test_workflow::test_a_cluster_with_slurm",
    "--recipe": DRY_RUN_ON_GPUS,
    "--scale": DRY_RUN,
    "--seeds": DRY_RUN,
    "*analysis * --output": "test_experiments::test_analyses_of_a_checkpoint_and_its_report",
    "*analysis memory --channels": "test_memory::test_the_command_writes_numbers_and_a_figure",
    "*analysis memory --dilations": "test_memory::test_the_command_writes_numbers_and_a_figure",
    "word-overlap --subset": "test_word_overlap::test_word_overlap",
    "*builtin --output": "test_builtin::test_the_command_writes_a_corpus",
    "*builtin --task": "test_builtin::test_each_task_has_a_corpus",
    "--dilations": "test_memory::test_the_command_writes_numbers_and_a_figure",
    "--reference": COMPARED,
    "--sentences": "test_experiments::test_analyses_of_a_checkpoint_and_its_report",
    "--source": COMPARED,
    "--system": COMPARED,
    "--target": "test_sentences::test_pairs_of_a_set_and_of_files",
    # Benchmarks.
    **{f"benchmarks/{script}.py {option}": TIMED for script, trials in BENCHMARKS.items() for option in trials},
    **dict.fromkeys(["--cells", "--repetitions", "--threads"], TIMED),
    "benchmarks/memory.py --json": "test_memory::test_prints_a_table_and_writes_json",
    "benchmarks/models.py --json": "test_models::test_prints_ratios_and_writes_json",
    "benchmarks/models.py --exported": "test_models::test_exported_models_decode_beside_the_others",
    "benchmarks/models.py --medium": "test_models::test_models_with_products_in_bfloat16",
    "--medium": "test_models::test_models_with_products_in_bfloat16",
    "benchmarks/models.py --peer": "test_models::test_joey_nmt_is_an_installation_of_its_own",
    "benchmarks/scaling.py --budget": "test_scaling::test_whole_models_within_a_budget",
    "benchmarks/scaling.py --models": "test_scaling::test_whole_models_within_a_budget",
    # Of the layer of docs/add_a_layer.md.
    "--leak": "test_pages::test_adding_a_layer",
    "--encoder-leak": "test_extensions::test_a_metric_and_a_layer_go_through_all_scripts",
    "--decoder-leak": "test_extensions::test_a_metric_and_a_layer_go_through_all_scripts",
}
CONFIGURATION: dict[str, str] = {
    "base": "test_configuration::test_a_file_says_what_differs_from_its_bases",
    "extensions": "test_extensions::test_a_metric_and_a_layer_go_through_all_scripts",
    "recipe": "test_configuration::test_a_recipe_is_chosen_by_name",
    "recipes": "test_configuration::test_a_recipe_is_chosen_by_name",
    "train": "test_fairseq_commands::test_train_command",
    "generate": "test_fairseq_commands::test_options_of_generation",
    "data: folder": "test_configuration::test_data_and_work_folders_follow_the_names",
    "evaluate: average": "test_configuration::test_a_file_says_what_differs_from_its_bases",
    "evaluate: metric": "test_extensions::test_a_metric_and_a_layer_go_through_all_scripts",
    "evaluate: sacrebleu-tokenize": "test_evaluate::test_the_tokenizer_of_sacrebleu",
    "evaluate: rouge-tokenize": "test_evaluate::test_what_rouge_counts",
    "evaluate: cache-window": "test_language_models::test_scores_cache_and_report",
    "evaluate: cache-theta": "test_effects::test_the_cache_of_a_configuration",
    "evaluate: cache-weight": "test_effects::test_the_cache_of_a_configuration",
    "paper: table": "test_experiments::test_scores_and_translations",
    "paper: row": "test_experiments::test_scores_and_translations",
}
"""The keys of a configuration, as docs/configurations.md has them."""


def named() -> Iterator[tuple[str, str, str]]:
    """The page, the command (empty where the text names none) and the option, of all options that pages name."""
    for page in PAGES_OF_OPTIONS:
        for line in commands(page):
            for part in line.split("|"):
                words = shlex.split(part.split("<")[0])
                words = [word for word in words if "=" not in word or word.startswith("-")]
                if words[:1] == ["pip"]:
                    continue  # its options are not ours to try
                for option in (word.split("=")[0] for word in words if word.startswith("--")):
                    yield name(page), command_of(words), option
        # A prefix such as --encoder- is no option.
        prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9](?![\w-])", prose):
            yield name(page), "", option


def command_of(words: list[str]) -> str:
    """What runs: a script, a command of fairseq, a file or a module with its subcommand."""
    if words[0] == PROGRAM:
        return " ".join(words[1:3]) if words[1] == "analysis" else words[1]
    if "python" not in words:
        return words[0]
    words = words[words.index("python") + 1 :]
    if words[0] == "-m":
        words = words[1:]
    return " ".join(words[:2]) if words[0].endswith("analysis") else words[0]


NAMED = sorted(set(named()))
OF_MODELS = {option for _, option, _ in OPTIONS}


@cache
def sources(file: str) -> dict[str, str]:
    """The tests of all test files of a name: each with what it uses of its file."""
    found: dict[str, str] = {}
    for path in TESTS.rglob(f"{file}.py"):
        text = path.read_text(encoding="utf-8")
        parts = dict(part for node in ast.parse(text).body for part in _defined(node, text))
        for test in filter(re.compile("test_").match, parts):
            found[test] = found.get(test, "") + "\n".join(parts[used] for used in _used(test, parts))
    return found


def _defined(node: ast.stmt, text: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.FunctionDef):
        first = min(part.lineno for part in (node, *node.decorator_list))
        yield node.name, "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    elif isinstance(node, ast.Assign):
        yield from ((name.id, ast.unparse(node)) for name in node.targets if isinstance(name, ast.Name))


def _used(name: str, parts: dict[str, str]) -> set[str]:
    """A part of a file, those that it names, those that they name, and so on."""
    used, left = set(), [name]
    while left:
        used.add(part := left.pop())
        left += {*re.findall(r"\w+", parts[part])} & parts.keys() - used
    return used


def find_test(command: str, option: str) -> str | None:
    """The test that tries an option of a command; None where there is none."""
    if not command:
        # Of whichever command.
        return COVERED.get(option) or next((COVERED[what] for what in COVERED if what.endswith(f" {option}")), None)
    whole = f"{command} {option}"
    return next((test for pattern, test in COVERED.items() if fnmatchcase(whole, pattern)), COVERED.get(option))


def test_every_option_that_a_page_names_is_tried() -> None:
    missing = {}
    for page, command, option in NAMED:
        if option not in OF_MODELS and find_test(command, option) is None:
            missing.setdefault(f"{command} {option}".strip(), page)
    assert not missing, (
        f"{', '.join(f'{page} names {what}' for what, page in missing.items())}: nothing tries that it has an effect. "
        "Add a row to a table of this file, with two values of which something else must come out, or to COVERED the "
        "test that tries it"
    )


def test_the_tests_that_are_named_exist_and_name_the_option() -> None:
    wrong = []
    for covered in (COVERED, CONFIGURATION):
        for what, test in covered.items():
            file, function = test.split("::")
            option = what.split(" ")[-1].lstrip("-").rstrip("*")
            of_test = sources(file).get(function, "")
            names_it = option in of_test or option.replace("-", "_") in of_test
            if not names_it and test not in (TRAININGS, PREPARATIONS, OUTPUTS, TIMED):
                wrong.append(f"{what}: {test}")
    assert not wrong, "\n".join(["no such test, or it does not name the option:", *wrong])


def test_what_no_page_names_any_more_is_not_listed() -> None:
    used = {find_test(command, option) for _, command, option in NAMED}
    assert {test for test in COVERED.values()} <= used


def test_every_key_of_a_configuration_is_tried() -> None:
    keys = {f"{section}: {key}" for section, of_section in KEYS.items() for key in of_section}
    assert keys | (set(SECTIONS) - set(KEYS)) == CONFIGURATION.keys()
