"""MC-RNN and RNNSearch through fairseq's own commands: what fairseq's users expect of a model works."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import torch
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqModel
from tests.commands import USER_DIR, output_lines, run_command, train_in_process
from tests.conftest import TranslationData

SIZES = (
    "--encoder-embed-dim 48 --encoder-hidden-size 48 --decoder-embed-dim 48 --decoder-hidden-size 48 "
    "--encoder-layers 1 --decoder-layers 1 --dropout 0"
).split()
TRAINING = (
    "--optimizer adam --lr 4e-3 --clip-norm 1.0 --max-sentences 16 --seed 1 --cpu --num-workers 0 --log-format json "
    "--disable-validation --no-epoch-checkpoints"
).split()


VALID = ["--gen-subset", "valid"]
"""40 sentences, where 101 would show no more."""
FEW = [*VALID, "--beam", "2", "--max-len-b", "5"]
"""Options of a decoding of which nobody looks at the words."""


def training(data: TranslationData, arch: str, folder: Path, *more: str, max_epoch: int = 1) -> list[str]:
    joined = str(data.joined)
    options = [joined, "--arch", arch, *SIZES, *TRAINING, "--save-dir", str(folder), "--max-epoch", str(max_epoch)]
    return [*options, *more]


@pytest.fixture(scope="module")
def mc_rnn(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of an MC-RNN that has learnt to turn sentences round."""
    folder = tmp_path_factory.mktemp("mc_rnn")
    # The rate goes down to zero, because at 4e-3 the loss leaps now and then, which must not be in the last epoch.
    decay = ["--lr-scheduler", "polynomial_decay", "--total-num-update", "650"]
    # From small embeddings the rule is learnt, from large ones a few hundred sentences are rather learnt by heart.
    command = training(
        tiny_translation_data, "mc_rnn_iwslt_de_en", folder, *decay, "--embed-init-std", "0.0577", max_epoch=50
    )
    train_in_process(*command)
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def rnnsearch(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of an RNNSearch with the other kind of decoder attention, trained for a moment."""
    folder = tmp_path_factory.mktemp("rnnsearch")
    train_in_process(
        *training(tiny_translation_data, "rnnsearch_iwslt_de_en", folder, "--decoder-attention", "output", max_epoch=2)
    )
    return folder / "checkpoint_last.pt"


def generate(data: TranslationData, checkpoint: Path | str, *more: str) -> str:
    """The output of fairseq-generate on the test set, run in this process."""
    from fairseq_cli.generate import _main

    parser = fairseq_options.get_generation_parser()
    # Worker processes would be waited for, five seconds each, when Python collects what this call leaves.
    args = [str(data.joined), "--path", str(checkpoint), "--cpu", "--beam", "5", "--max-sentences", "32"]
    args += ["--num-workers", "0"]
    # What is trained for a moment alone would not end.
    args += ["--max-len-b", "20", *more]
    output = io.StringIO()
    _main(convert_namespace_to_omegaconf(fairseq_options.parse_args_and_arch(parser, args)), output)
    return output.getvalue()


def references(data: TranslationData) -> list[str]:
    return (data.raw / f"test.{data.target}").read_text().splitlines()


def test_generate_and_score_every_sentence(mc_rnn: Path, tiny_translation_data: TranslationData) -> None:
    command = ["fairseq-generate", tiny_translation_data.joined, "--user-dir", USER_DIR, "--path", mc_rnn, "--cpu"]
    finished = run_command([*command, "--beam", "5", "--max-sentences", "32"])
    hypotheses = output_lines(finished.stdout, "H")
    expected = references(tiny_translation_data)
    assert sorted(hypotheses) == list(range(101)) == list(range(len(expected)))
    right = sum(hypotheses[i].split("\t")[1] == expected[i] for i in range(101))
    assert right >= 90, f"{right} of 101 sentences turned round"
    assert warnings_in(finished.stderr) == []


def test_interactive_and_validate(mc_rnn: Path, tiny_translation_data: TranslationData) -> None:
    data = str(tiny_translation_data.joined)
    common = ["--user-dir", USER_DIR, "--path", mc_rnn, "--cpu"]
    sentences = "ba di fo\nlo ki na ga bo\n"
    finished = run_command(["fairseq-interactive", data, *common, "--beam", "3"], stdin=sentences)
    hypotheses = output_lines(finished.stdout, "H")
    assert [hypotheses[i].split("\t")[1] for i in range(2)] == ["fo di ba", "bo ga na ki lo"]
    assert warnings_in(finished.stderr) == []
    finished = run_command(
        [
            "fairseq-validate",
            data,
            *common,
            "--task",
            "translation",
            "--criterion",
            "cross_entropy",
            "--max-sentences",
            "32",
        ]
        + ["--valid-subset", "valid", "--log-format", "json"],
    )
    statistics = [json.loads(line) for line in finished.stdout.splitlines() if line.startswith('{"')]
    text = finished.stdout + finished.stderr
    assert "valid_loss" in text or any("valid_loss" in s for s in statistics), text[-2000:]


def test_resumed_training_equals_uninterrupted(tiny_translation_data: TranslationData, tmp_path: Path) -> None:
    for name, epochs in ("whole", [2]), ("resumed", [1, 2]):
        for max_epoch in epochs:
            train_in_process(
                *training(tiny_translation_data, "mc_rnn_2_iwslt_de_en", tmp_path / name, max_epoch=max_epoch)
            )
    whole, resumed = (
        torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True) for name in ("whole", "resumed")
    )
    for name, value in whole["model"].items():
        assert value.equal(resumed["model"][name]), name
    assert whole["optimizer_history"][-1] == resumed["optimizer_history"][-1]


def test_print_alignment_is_not_shifted_by_padding(mc_rnn: Path, tiny_translation_data: TranslationData) -> None:
    """The sources of one batch are padded on the left; a turned-round sentence is aligned from its end."""
    printed = {}
    # fairseq's switch: given, it turns padding on the left off.
    for side, switch in ("left", []), ("right", ["--left-pad-source"]):
        output = generate(tiny_translation_data, mc_rnn, "--print-alignment", *switch)
        printed[side] = output_lines(output, "A")
        hypotheses = output_lines(output, "H")
    assert printed["left"] == printed["right"]
    expected = references(tiny_translation_data)
    found = total = 0
    for i, reference in enumerate(expected):
        if hypotheses[i].split("\t")[1] != reference:
            continue
        length = len(reference.split())
        wanted = {f"{length - 1 - t}-{t}" for t in range(length)}
        found += len(wanted & set(printed["left"][i].split()))
        total += length
    assert total > 200
    assert found / total > 0.7


def test_search_options(mc_rnn: Path, rnnsearch: Path, tiny_translation_data: TranslationData) -> None:
    data = tiny_translation_data
    plain = output_lines(generate(data, mc_rnn), "H")
    nbest = generate(data, mc_rnn, "--nbest", "3")
    assert len([line for line in nbest.splitlines() if line.startswith("H-")]) == 3 * 101
    assert output_lines(nbest, "H") == plain

    prefixed = output_lines(generate(data, mc_rnn, "--prefix-size", "2"), "H")
    for i, reference in enumerate(references(data)):
        assert prefixed[i].split("\t")[1].split()[:2] == reference.split()[:2]

    sampling = [*VALID, "--sampling", "--beam", "1", "--temperature", "2.0"]
    sampled = [output_lines(generate(data, mc_rnn, *sampling, "--seed", seed), "H") for seed in ("1", "1", "2")]
    assert sampled[0] == sampled[1] != sampled[2]

    # A model that is sure of itself would not be moved.
    short, long = (output_lines(generate(data, rnnsearch, *VALID, "--lenpen", value), "H") for value in ("-3", "3"))
    assert sum(len(h.split()) for h in short.values()) < sum(len(h.split()) for h in long.values())

    scored = output_lines(generate(data, mc_rnn, "--score-reference"), "H")
    assert [scored[i].split("\t")[1] for i in range(101)] == references(data)
    same = [i for i in range(101) if scored[i].split("\t")[1] == plain[i].split("\t")[1]]
    for i in same:
        assert float(scored[i].split("\t")[0]) == pytest.approx(float(plain[i].split("\t")[0]), abs=1e-4)


def test_ensembles_of_mixed_architectures(
    mc_rnn: Path, rnnsearch: Path, tiny_translation_data: TranslationData
) -> None:
    data = tiny_translation_data
    alone = output_lines(generate(data, mc_rnn, *VALID), "H")
    twice = output_lines(generate(data, f"{mc_rnn}:{mc_rnn}", *VALID), "H")
    assert {i: h.split("\t")[1] for i, h in twice.items()} == {i: h.split("\t")[1] for i, h in alone.items()}
    mixed = output_lines(generate(data, f"{mc_rnn}:{rnnsearch}", *VALID, "--print-alignment"), "H")
    assert sorted(mixed) == list(range(40))
    assert mixed != alone


def test_from_pretrained_translates(mc_rnn: Path, tiny_translation_data: TranslationData) -> None:
    model = RecurrentSeq2SeqModel.from_pretrained(
        str(mc_rnn.parent), mc_rnn.name, str(tiny_translation_data.joined), source_lang="xx", target_lang="yy"
    )
    assert model.translate("ba di fo") == "fo di ba"
    assert model.translate(["ba di fo", "lo ki na ga bo"]) == ["fo di ba", "bo ga na ki lo"]


def test_finetuning_starts_from_the_model(mc_rnn: Path, tiny_translation_data: TranslationData, tmp_path: Path) -> None:
    train_in_process(
        *training(tiny_translation_data, "mc_rnn_iwslt_de_en", tmp_path, "--finetune-from-model", str(mc_rnn)),
        *("--lr", "0", "--max-update", "1"),
    )
    before, after = (torch.load(path, weights_only=True)["model"] for path in (mc_rnn, tmp_path / "checkpoint_last.pt"))
    for name, value in before.items():
        assert value.equal(after[name]), name


@pytest.mark.parametrize(
    "arch, more",
    [
        ("mc_rnn_iwslt_de_en", ["--memory-efficient-fp16"]),
        ("rnnsearch_iwslt_de_en", ["--memory-efficient-fp16", "--share-all-embeddings"]),
        ("mc_rnn_4_iwslt_de_en", ["--memory-efficient-bf16", "--decoder-attention", "output"]),
        ("mc_rnn_iwslt_de_en", ["--cell", "gru", "--connection", "gate", "--share-decoder-input-output-embed"]),
    ],
)
def test_options_train_and_decode(
    arch: str, more: list[str], tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    train_in_process(*training(tiny_translation_data, arch, tmp_path, *more, "--max-update", "3"))
    halved = ["--fp16"] if "--memory-efficient-fp16" in more else []
    output = generate(tiny_translation_data, tmp_path / "checkpoint_last.pt", *FEW, *halved)
    assert sorted(output_lines(output, "H")) == list(range(40))


def test_two_processes_train_as_one_with_twice_the_update_frequency(
    tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    """Two CPU processes (gloo); 200 sentences in batches of 20 make an even number of batches."""
    curves = []
    for name, more in ("one", ["--update-freq", "2"]), ("two", ["--distributed-world-size", "2"]):
        command = training(tiny_translation_data, "mc_rnn_iwslt_de_en", tmp_path / name, *more, max_epoch=2)
        command += ["--ddp-backend", "legacy_ddp", "--distributed-backend", "gloo", "--no-save", "--log-interval", "1"]
        command += ["--max-sentences", "20", "--required-batch-size-multiple", "1", "--user-dir", USER_DIR]
        finished = run_command(["fairseq-train", *command])
        curves.append(losses(finished.stdout + finished.stderr))
        assert warnings_in(finished.stderr) == []
    assert len(curves[0]) == 10
    assert curves[1] == pytest.approx(curves[0], abs=2e-3)


def warnings_in(log: str) -> list[str]:
    """Python's warnings, without PyTorch's of 2.14, which comes before fairseq reads ``--user-dir``."""
    return [line for line in log.splitlines() if "Warning: " in line and "`torch.jit.script` is" not in line]


def losses(log: str) -> list[float]:
    """The losses of the single updates in fairseq's json log."""
    found = []
    for line in log.splitlines():
        _, marker, rest = line.partition("| INFO | train_inner | ")
        if marker:
            found.append(float(json.loads(rest)["loss"]))
    return found
