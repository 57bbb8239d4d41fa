"""The exact commands of fairseq, what fairseq's parsers refuse, and how several GPUs share a batch."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.decoding.translation import GenerationOptions
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration as configurations
from fairseq_plugins.experiments import fairseq_commands as commands
from fairseq_plugins.experiments import processes
from fairseq_plugins.experiments.configuration import Configuration
from tests.commands import CHECKOUT

from .conftest import CLASSIFIED, COPIED, ENTAILED, PIXELS, PREPARATIONS, RANKED, READ, RECORDED_VOICES
from .test_configuration import CONFIGURATIONS, write


def options_of(tmp_path: Path, content: str, kind: str = "train", extra: tuple[str, ...] = ()) -> list[str]:
    configuration = configurations.load(write(tmp_path, model=content))
    return commands.option_arguments(kind, getattr(configuration, kind), extra)


def test_commands_beside_packages_that_were_installed_to_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    for path in site / "fairseq" / "__init__.py", site / "bin" / "fairseq-train":
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.setattr(commands.sysconfig, "get_path", lambda name: str(tmp_path / "python"))
    monkeypatch.setattr(commands.importlib.util, "find_spec", PathFinder.find_spec)
    monkeypatch.syspath_prepend(site)
    assert commands.executable("fairseq-train") == str(site / "bin" / "fairseq-train")
    with pytest.raises(InputError, match="python/fairseq-generate is not there; install fairseq into this environment"):
        commands.executable("fairseq-generate")


def test_train_command(tmp_path: Path, data: PreparedData) -> None:
    configuration = configurations.load(
        write(tmp_path, model="train:\n  arch: lstm\n  lr: 1e-3\n  encoder-bidirectional: true\n  cpu: false")
    )
    work = tmp_path / "my work"
    command = commands.train_command(configuration, data, work, 0, ["--max-epoch", "3"]).words
    assert Path(command[0]).name == "fairseq-train"
    assert command[1:] == [
        *[str(tmp_path / "prepared data" / "bin"), "--user-dir", str(CHECKOUT / "fairseq_plugins")],
        *["--source-lang", "de", "--target-lang", "en", "--save-dir", str(work / "checkpoints")],
        *["--log-format", "json", "--arch", "lstm", "--lr", "1e-3", "--encoder-bidirectional"],
        *["--distributed-world-size", "1", "--cpu", "--max-epoch", "3"],
    ]
    assert f"'{tmp_path}/prepared data/bin'" in processes.shown(command)


def test_a_board_that_nothing_writes(tmp_path: Path, data: PreparedData, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = configurations.load(write(tmp_path, model="train:\n  arch: lstm\n  tensorboard-logdir: board"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="--tensorboard-logdir has no effect without the package tensorboard: run "):
        commands.train_command(configuration, data, tmp_path / "work", 0, [])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name == "tensorboardX" or None)
    command = commands.train_command(configuration, data, tmp_path / "work", 0, [])
    assert command.options.tensorboard_logdir == "board"


def generation(data: PreparedData, configuration: Configuration, *extra: str) -> argparse.Namespace:
    return commands.decoding_options("generate", data, configuration.generate, extra)[0]


def test_options_of_generation(tmp_path: Path, data: PreparedData) -> None:
    configuration = configurations.load(write(tmp_path, model="generate:\n  beam: 4\n  unkpen: -0.5\n  lenpen: 2"))
    parsed = generation(data, configuration, "--lenpen", "0.6")
    assert (parsed.beam, parsed.unkpen, parsed.lenpen, parsed.num_workers) == (4, -0.5, 0.6, 0)
    _, arguments = commands.decoding_options("generate", data, configuration.generate, ["--lenpen", "0.6"])
    assert arguments == ["--beam", "4", "--unkpen", "-0.5", "--lenpen", "2", "--lenpen", "0.6"]
    options = GenerationOptions.of(parsed, arguments)
    assert options.generation.beam == 4 and options.batches.max_tokens is None
    assert "lenpen" in options.task and "beam" in options.task, "a task looks for its own among them"
    assert generation(data, configuration, "--num-workers", "2").num_workers == 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("train:\n  arch: lstm\n  max-token: 1", "line 3: fairseq-train has no option 'max-token'; did you mean 'ma"),
        ("train:\n  arch: lstm\n  max_tokens: 1", "line 3: fairseq-train has no option 'max_tokens'; did you mean 'ma"),
        ("train:\n  arch: lstm\n  channels: 3", "line 3: fairseq-train has no option 'channels'"),
        ("train:\n  arch: mc_rnn_iwslt", "line 2: arch: fairseq knows no 'mc_rnn_iwslt'; did you mean 'mc_rnn_"),
        ("train:\n  optimizer: adaam", "line 2: optimizer: fairseq knows no 'adaam'; did you mean 'adam',"),
        ("train:\n  optimizer: zzz", "line 2: optimizer: fairseq knows no 'zzz'; there are adadelta, adafactor,"),
        ("train:\n  arch: lstm\n  xyzq: 1", "line 3: fairseq-train has no option 'xyzq'; 'fairseq-train --help' lists"),
        ("train:\n  arch: lstm\n  cpu: yes", "line 3: cpu is a flag: write true or false, not 'yes'"),
        ("train:\n  arch: lstm\n  save-dir: x", "line 3: 'save-dir' cannot be in a configuration: say --work DIR"),
        ("generate:\n  remove-bpe: sentencepiece", "line 2: 'remove-bpe' cannot be in a configuration: the prepar"),
        ("generate:\n  beem: 5", "line 2: fairseq-generate has no option 'beem'; did you mean 'beam'?"),
        ("generate:\n  arch: lstm", "line 2: fairseq-generate has no option 'arch'"),
    ],
)
def test_unknown_options_name_the_nearest(tmp_path: Path, content: str, expected: str) -> None:
    with pytest.raises(InputError) as raised:
        options_of(tmp_path, content, kind=content.split(":")[0])
    assert f"{tmp_path / 'model.yaml'}, {expected}" in str(raised.value)


def test_options_belong_to_the_architecture_of_the_command_line(tmp_path: Path) -> None:
    content = "train:\n  channels: 3"
    assert options_of(tmp_path, content, extra=("--arch", "mc_rnn_iwslt_de_en")) == ["--channels", "3"]


@pytest.mark.parametrize(
    ("content", "extra", "expected"),
    [
        ("train:\n  arch: lstm\n  max-update: x", [], r"model.yaml, line 3: argument --max-update: invalid int value"),
        ("train:\n  arch: lstm", ["--max-epok", "3"], r"no option '--max-epok'; did you mean '--max-epoch'\?"),
        ("train:\n  arch: lstm", ["--lr", "x"], r"fairseq-train: argument --lr: invalid value: 'x'"),
        ("train:\n  arch: lstm", ["--max-epoch", "x"], r"fairseq-train: argument --max-epoch: invalid int value"),
        (
            "train:\n  lr: 1",
            ["--arch", "mc_rn_iwslt_de_en"],
            r"--arch/-a: there is no 'mc_rn_iwslt_de_en'; did you mean 'mc_rnn_iwslt_de_en', '[\w-]+' or '[\w-]+'\?; "
            "'fairseq-plugins options' lists ours$",
        ),
        ("train:\n  arch: lstm", ["--optimizer", "adaam"], r"--optimizer: there is no 'adaam'; did you mean 'adam'"),
        ("train:\n  arch: lstm", ["--optimizer", "lion"], r"--optimizer: there is no 'lion'; there are .*\badam,"),
        ("train:\n  arch: lstm", ["--lr-scheduler", "qqq"], r"there is no 'qqq'; there are .*\binverse_sqrt,"),
        ("train:\n  arch: lstm", ["--criterion", "focal"], r"there is no 'focal'; there are .*\bcross_entropy,"),
        ("train:\n  lr: 1", ["--arch", "qqq"], r"there is no 'qqq'; 'fairseq-plugins options' lists ours$"),
        ("train:\n  arch: lstm", ["--xyzq", "3"], r"no option '--xyzq'; 'fairseq-train --help' lists them$"),
        ("train:\n  lr: 1", [], r"model.yaml: train: arch is missing"),
        ("train:\n  arch: lstm", ["--save-dir", "x"], r"--save-dir cannot be passed on to fairseq-train: say --work"),
    ],
)
def test_fairseqs_parser_reads_the_whole_command(
    tmp_path: Path, data: PreparedData, content: str, extra: list[str], expected: str
) -> None:
    configuration = configurations.load(write(tmp_path, model=content))
    with pytest.raises(InputError, match=expected):
        commands.train_command(configuration, data, tmp_path, 0, extra)


def test_the_command_line_is_named_for_its_own_values(tmp_path: Path, data: PreparedData) -> None:
    configuration = configurations.load(write(tmp_path, model="train:\n  arch: lstm\n  max-update: 3"))
    with pytest.raises(InputError, match="^fairseq-train: argument --max-update: invalid int value: 'x'"):
        commands.train_command(configuration, data, tmp_path, 0, ["--max-update", "x"])


@pytest.mark.parametrize(
    ("content", "extra", "expected"),
    [
        ("generate:\n  beam: 0", [], "^{}, line 2: --beam 0: at least 1 hypothesis has to be kept$"),
        (
            "generate:\n  beam: 5",
            ["--beam", "-1"],
            "^fairseq-generate: --beam -1: at least 1 hypothesis has to be kept$",
        ),
    ],
)
def test_a_beam_of_nothing(tmp_path: Path, data: PreparedData, content: str, extra: list[str], expected: str) -> None:
    path = write(tmp_path, model=content)
    with pytest.raises(InputError, match=expected.format(path)):
        generation(data, configurations.load(path), *extra)


SOMETHING_ELSE = {
    "score-reference": ("true", "the references themselves would be scored; for their probabilities take fairseq-gen"),
    "prefix-size": ("3", "the references' first words would be scored as the model's; to go on from them take fairs"),
    "constraints": ("ordered", "a line is text alone here, without constraints; take fairseq-interactive$"),
    "quiet": ("true", "it is about what fairseq-generate prints; take that command$"),
    "print-alignment": ("hard", "it is about what fairseq-generate prints"),
    "print-step": ("true", "it is about what fairseq-generate prints"),
    "retain-iter-history": ("true", "it is about what fairseq-generate prints"),
    "scoring": ("chrf", "the configuration names the metric"),
    "skip-invalid-size-inputs-valid-test": ("true", "a part of the sentences would be left out"),
    "num-shards": ("2", "a part of the sentences would be left out; for less memory take a smaller --max-tokens$"),
    "shard-id": ("1", "a part of the sentences would be left out"),
    "distributed-world-size": ("2", "a part of the sentences would be left out"),
    "distributed-rank": ("1", "a part of the sentences would be left out"),
    "checkpoint-suffix": ("_1", "another file than the checkpoint would be read; give that file as the checkpoint$"),
    "checkpoint-shard-count": ("2", "another file than the checkpoint would be read"),
}


def of_the_command_line(key: str) -> list[str]:
    value, _ = SOMETHING_ELSE[key]
    return [f"--{key}"] if value == "true" else [f"--{key}", value]


def test_a_best_checkpoint_by_what_is_not_computed(tmp_path: Path, data: PreparedData) -> None:
    path = write(tmp_path, model="train:\n  arch: lstm\n  best-checkpoint-metric: bleu")
    expected = "--best-checkpoint-metric bleu: no BLEU is computed in training; add --eval-bleu$"
    with pytest.raises(InputError, match=f"^{path}, line 3: {expected}"):
        commands.train_command(configurations.load(path), data, tmp_path, 0, [])
    assert commands.train_command(configurations.load(path), data, tmp_path, 0, ["--eval-bleu"]).options.eval_bleu


@pytest.mark.parametrize("key", SOMETHING_ELSE)
def test_what_would_score_something_else(tmp_path: Path, data: PreparedData, key: str) -> None:
    """In a configuration and on the command line."""
    value, reason = SOMETHING_ELSE[key]
    path = write(tmp_path, model=f"generate:\n  beam: 2\n  {key}: {value}")
    with pytest.raises(InputError, match=f"^{path}, line 3: --{key}: {reason}"):
        generation(data, configurations.load(path))
    path = write(tmp_path, model="generate:\n  beam: 2")
    with pytest.raises(InputError, match=f"^fairseq-generate: --{key}: {reason}"):
        generation(data, configurations.load(path), *of_the_command_line(key))


@pytest.mark.parametrize("key", ["num-shards", "shard-id", "distributed-rank", "skip-invalid-size-inputs-valid-test"])
def test_what_would_predict_something_else(data: PreparedData, key: str) -> None:
    data = dataclasses.replace(data, preparation=PREPARATIONS["trec"])
    with pytest.raises(InputError, match=f"^fairseq-validate: --{key}: {SOMETHING_ELSE[key][1]}"):
        commands.decoding_options("validate", data, {}, of_the_command_line(key))


def test_what_scores_nothing_else(tmp_path: Path, data: PreparedData) -> None:
    content = "generate: {score-reference: false, prefix-size: 0, num-shards: 1}"
    configuration = configurations.load(write(tmp_path, model=content))
    extra = ["--sampling", "--nbest", "5", "--lenpen", "2", "--max-source-positions", "9", "--truncate-source"]
    parsed = generation(data, configuration, *extra)
    assert parsed.sampling and parsed.truncate_source and (parsed.nbest, parsed.max_source_positions) == (5, 9)


@pytest.mark.parametrize("value", ["0", "-3"])
def test_a_sentence_of_no_tokens(data: PreparedData, value: str) -> None:
    expected = f"^fairseq-generate: --max-source-positions {value}: a sentence has at least 1 token$"
    with pytest.raises(InputError, match=expected):
        commands.decoding_options("generate", data, {}, [f"--max-source-positions={value}"])


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        (["-s", "en"], "^-s cannot be passed on to fairseq-generate: the prepared data says it$"),
        (["-ten"], "^-t cannot be passed on to fairseq-generate: the prepared data says it$"),
        (["--target-lang=de"], "^--target-lang cannot be passed on to fairseq-generate: the prepared data says it$"),
        (["--remove-bpe"], "^--remove-bpe cannot be passed on to fairseq-generate: the preparation of the data undoes"),
        (["--gen-subset", "valid"], "^--gen-subset cannot be passed on to fairseq-generate: say --subset NAME"),
    ],
)
def test_what_the_scripts_say_has_other_names_too(
    tmp_path: Path, data: PreparedData, extra: list[str], expected: str
) -> None:
    configuration = configurations.load(write(tmp_path, model="generate: {beam: 2}"))
    with pytest.raises(InputError, match=expected):
        generation(data, configuration, *extra)


def test_another_set_than_the_scripts(data: PreparedData) -> None:
    with pytest.raises(InputError, match="^--valid-subset cannot be passed on to fairseq-validate: say --subset NAME"):
        commands.decoding_options("validate", data, {}, ["--valid-subset", "valid"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"score_reference": true}', "--eval-bleu-args: score_reference: the references themselves would be scored$"),
        ("{beam: 2}", "--eval-bleu-args is no JSON: "),
    ],
)
def test_validation_that_would_score_the_references(
    tmp_path: Path, data: PreparedData, arguments: str, expected: str
) -> None:
    path = write(tmp_path, model=f"train:\n  arch: lstm\n  eval-bleu: true\n  eval-bleu-args: '{arguments}'")
    with pytest.raises(InputError, match=f"^{path}, line 4: {expected}"):
        commands.train_command(configurations.load(path), data, tmp_path, 0, [])
    path = write(tmp_path, model="train:\n  arch: lstm\n  eval-bleu: true")
    with pytest.raises(InputError, match=f"^fairseq-train: {expected}"):
        commands.train_command(configurations.load(path), data, tmp_path, 0, ["--eval-bleu-args", arguments])


def test_a_gpu_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "available_gpus", lambda: 0)
    with pytest.raises(InputError, match="--gpus 1: PyTorch sees no GPU here; --gpus 0 is the CPU"):
        commands.device_of(1)
    assert commands.device_of(None) == commands.device_of(0) == "cpu"
    monkeypatch.setattr(commands, "available_gpus", lambda: 2)
    assert commands.device_of(None) == commands.device_of(2) == "cuda"
    with pytest.raises(InputError, match="--gpus 3: PyTorch sees 2 GPU"):
        commands.device_of(3)


@pytest.mark.parametrize(
    ("available", "there"),
    [(0, "PyTorch sees no GPU here; "), (1, "PyTorch sees 1 here; ask for at most as many; ")],
)
def test_more_gpus_than_there_are(
    tmp_path: Path, data: PreparedData, available: int, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "available_gpus", lambda: available)
    configuration = configurations.load(write(tmp_path, model="train: {arch: lstm}"))
    message = f"--gpus 2: {there}--gpus 0 is the CPU, with --processes 2 in 2 processes"
    with pytest.raises(InputError, match=message):
        commands.train_command(configuration, data, tmp_path, 2, [])


# Bases that have options of their models.
MODELS_OF_BASES = {
    **dict.fromkeys(("quickstart", "quickstart_summarization"), "rnnsearch_iwslt_de_en"),
    **dict.fromkeys(CLASSIFIED, "rcrn_classifier"),
    **dict.fromkeys(ENTAILED, "rcrn_entailment"),
    **dict.fromkeys(RANKED, "rcrn_ranking"),
    **dict.fromkeys((*COPIED, *PIXELS), "dilated_rnn_pixels"),
    **dict.fromkeys(READ, "rnet"),
    **dict.fromkeys(RECORDED_VOICES, "dilated_gru_audio"),
}


@pytest.mark.system
@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_fairseq_accepts_every_configuration(
    path: Path, tmp_path: Path, data_for: Callable[[Configuration], PreparedData]
) -> None:
    configuration = configurations.load(path)
    data = data_for(configuration)
    arch = (
        "awd_lstm_ptb"
        if data.preparation.kind == "running_text"
        else MODELS_OF_BASES.get(configuration.dataset, "lstm")
    )
    extra = ["--arch", arch] if path.stem.startswith("_base") else []
    assert commands.train_command(configuration, data, tmp_path, 0, extra).options.seed == 1
    if not configuration.generate:
        return  # neither classes nor probabilities of a text are generated
    generate = generation(data, configuration)
    # As the papers: 10 on NIST and for MC-RNN's headlines, else 5.
    is_wide = configuration.dataset in ("nist_zh_en", "gigaword", "quickstart_summarization")
    of_dpn = configuration.dataset == "gigaword" and path.stem in ("dpn", "cnn", "_base_dpn")
    assert generate.beam == (10 if is_wide and not of_dpn else 5)
    assert generate.min_len == (14 if of_dpn else 1)


def test_option() -> None:
    arguments = ["--beam", "5", "--lr=1", "--beam", "6", "--cpu"]
    assert commands.option(arguments, "--beam") == "6"
    assert commands.option(arguments, "--lr") == "1"
    assert commands.option(arguments, "--seed", "-s") is None


def shared(tmp_path: Path, number: int, options: str, *extra: str) -> commands.Share:
    configuration = configurations.load(write(tmp_path, model=f"train: {{arch: lstm, {options}}}"))
    return commands.share_of(configuration, extra, number)


@pytest.mark.parametrize(
    ("number", "options", "expected"),
    [
        (1, "max-tokens: 4000", []),
        (4, "max-tokens: 4000", ["--max-tokens", "1000"]),
        (4, "max-tokens: 4000, update-freq: 4", ["--update-freq", "1"]),
        (4, "max-tokens: 4000, update-freq: 8", ["--update-freq", "2"]),
        (4, "max-tokens: 4000, update-freq: 2", ["--update-freq", "1", "--max-tokens", "2000"]),
        (2, "max-tokens: 4000, batch-size: 64", ["--max-tokens", "2000", "--batch-size", "32"]),
        (2, "max-tokens: 4000, update-freq: '4,2'", ["--update-freq", "2,1"]),
        (4, "batch-size: 64, update-freq: '4,2'", ["--update-freq", "2,1", "--batch-size", "32"]),
    ],
)
def test_processes_share_the_batch(tmp_path: Path, number: int, options: str, expected: list[str]) -> None:
    share = shared(tmp_path, number, options)
    assert share.options == expected
    assert share.note == (f"{number} processes share a batch: each has {' '.join(expected)}" if expected else "")


def test_a_batch_that_cannot_be_shared_is_said(tmp_path: Path) -> None:
    share = shared(tmp_path, 3, "max-tokens: 4000, batch-size: 63, update-freq: 2")
    assert share.options == []
    assert share.note == (
        "3 processes: a batch is 3 times what the experiment says: 24,000 (max-tokens) and 378 (batch-size)"
    )
    assert shared(tmp_path, 2, "max-tokens: x") == ([], ""), "fairseq's parser says that"


def test_options_of_the_command_line_are_shared_too(tmp_path: Path) -> None:
    assert shared(tmp_path, 2, "max-tokens: 4000", "--max-tokens", "6000").options == ["--max-tokens", "3000"]
    assert shared(tmp_path, 2, "max-tokens: 4000", "--update-freq=2").options == ["--update-freq", "1"]


def test_train_command_of_several_processes_on_the_cpu(tmp_path: Path, data: PreparedData) -> None:
    configuration = configurations.load(CHECKOUT / "configs" / "nist_zh_en" / "dpn.yaml")
    command = commands.train_command(configuration, data, tmp_path, 0, [], processes=2).words
    assert (commands.process_count(command), commands.option(command, "--update-freq")) == (2, "2")
    assert "--cpu" in command


def test_train_command_of_several_gpus(tmp_path: Path, data: PreparedData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "available_gpus", lambda: 4)
    configuration = configurations.load(CHECKOUT / "configs" / "nist_zh_en" / "dpn.yaml")
    one, two, four = (commands.train_command(configuration, data, tmp_path, number, []).words for number in (1, 2, 4))
    assert [commands.option(command, "--update-freq") for command in (one, two, four)] == ["4", "2", "1"]
    assert {commands.option(command, "--max-tokens") for command in (one, two, four)} == {"4000"}
    assert [commands.process_count(command) for command in (one, two, four)] == [1, 2, 4]
    assert "--cpu" not in four
    with pytest.raises(InputError, match="--processes 3: each of the 2 GPUs has one process; say --gpus 3, or"):
        commands.train_command(configuration, data, tmp_path, 2, [], processes=3)
    assert commands.train_command(configuration, data, tmp_path, 2, [], processes=2).words == two
    extra = ["--cpu", "--distributed-world-size", "2", "--update-freq", "6"]
    assert commands.train_command(configuration, data, tmp_path, 0, extra).options.update_freq == [3]
