"""DPN-S2S and its baselines through fairseq's own commands, trained as the paper trains them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from fairseq_plugins.models.double_path import DoublePathModel
from tests.commands import USER_DIR, output_lines, run_command, train_in_process
from tests.conftest import TranslationData
from tests.system.test_recurrent_seq2seq import FEW, generate, references

SIZES = (
    "--encoder-embed-dim 48 --decoder-embed-dim 48 --encoder-ffn-embed-dim 96 --decoder-ffn-embed-dim 96 --dropout 0"
).split()
TRAINING = (
    "--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --clip-norm 0.1 --max-sentences 16 --seed 1 --cpu "
    "--num-workers 0 --log-format json --no-epoch-checkpoints"
).split()
NAG = "--optimizer nag --lr 0.25 --momentum 0.99 --lr-scheduler reduce_lr_on_plateau --lr-shrink 0.1".split()
SMALL_SAN = (
    "--encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-ffn-embed-dim 64 --decoder-ffn-embed-dim 64".split()
)
LAYERS = "--encoder-cnn-layers 2 --decoder-cnn-layers 1 --encoder-san-layers 1 --decoder-san-layers 1".split()
ADAM = "--optimizer adam --lr 3e-3 --clip-norm 1.0 --disable-validation".split()


def training(data: TranslationData, folder: Path, *more: str, arch: str = "dpn_iwslt_de_en") -> list[str]:
    return [str(data.joined), "--arch", arch, *SIZES, *TRAINING, "--save-dir", str(folder), *more]


@pytest.fixture(scope="module")
def dpn(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a DPN-S2S that turns many sentences round."""
    folder = tmp_path_factory.mktemp("dpn")
    train_in_process(*training(tiny_translation_data, folder, *LAYERS, *ADAM, "--max-epoch", "30"))
    return folder / "checkpoint_last.pt"


def test_generate_and_score_every_sentence(dpn: Path, tiny_translation_data: TranslationData) -> None:
    command = ["fairseq-generate", tiny_translation_data.joined, "--user-dir", USER_DIR, "--path", dpn, "--cpu"]
    finished = run_command([*command, "--beam", "5", "--max-sentences", "32"])
    hypotheses = output_lines(finished.stdout, "H")
    expected = references(tiny_translation_data)
    assert sorted(hypotheses) == list(range(101)) == list(range(len(expected)))
    right = sum(hypotheses[i].split("\t")[1] == expected[i] for i in range(101))
    assert right >= 30, f"{right} of 101 sentences turned round"


@pytest.fixture(scope="module")
def translations(dpn: Path, tiny_translation_data: TranslationData) -> list[str]:
    """What fairseq-generate makes of the test set, in its order."""
    hypotheses = output_lines(generate(tiny_translation_data, dpn), "H")
    return [hypotheses[i].split("\t")[1] for i in range(101)]


def test_interactive_translates_as_generate_does(
    dpn: Path, tiny_translation_data: TranslationData, translations: list[str]
) -> None:
    command = ["fairseq-interactive", tiny_translation_data.joined, "--user-dir", USER_DIR, "--path", dpn, "--cpu"]
    sentences = (tiny_translation_data.raw / f"test.{tiny_translation_data.source}").read_text(encoding="utf-8")
    finished = run_command([*command, "--beam", "5", "--buffer-size", "16", "--max-sentences", "16"], stdin=sentences)
    hypotheses = output_lines(finished.stdout, "H")
    assert [hypotheses[i].split("\t")[1] for i in range(101)] == translations


def test_search_options(dpn: Path, tiny_translation_data: TranslationData, translations: list[str]) -> None:
    data = tiny_translation_data
    aligned = generate(data, dpn, "--print-alignment")
    plain = output_lines(aligned, "H")
    assert [plain[i].split("\t")[1] for i in range(101)] == translations
    assert sorted(output_lines(aligned, "A")) == list(range(101))
    scored = output_lines(generate(data, dpn, "--score-reference"), "H")
    same = [i for i in range(101) if scored[i].split("\t")[1] == plain[i].split("\t")[1]]
    assert len(same) >= 30
    for i in same:
        assert float(scored[i].split("\t")[0]) == pytest.approx(float(plain[i].split("\t")[0]), abs=1e-4)
    assert sorted(output_lines(generate(data, f"{dpn}:{dpn}", *FEW), "H")) == list(range(40))


def test_from_pretrained_translates_as_generate_does(
    dpn: Path, tiny_translation_data: TranslationData, translations: list[str]
) -> None:
    data = tiny_translation_data
    model = DoublePathModel.from_pretrained(
        str(dpn.parent), dpn.name, str(data.joined), source_lang="xx", target_lang="yy"
    )
    sentences = (data.raw / f"test.{data.source}").read_text(encoding="utf-8").splitlines()
    assert model.translate(sentences[:20], beam=5) == translations[:20]


def test_training_of_the_paper_resumes_to_the_same_model(
    tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    for name, epochs in ("whole", ["2"]), ("resumed", ["1", "2"]):
        for max_epoch in epochs:
            options = [*LAYERS, *NAG, "--max-sentences", "50", "--max-epoch", max_epoch]
            train_in_process(*training(tiny_translation_data, tmp_path / name, *options))
    whole, resumed = (
        torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True) for name in ("whole", "resumed")
    )
    for name, value in whole["model"].items():
        assert value.isfinite().all()
        assert value.equal(resumed["model"][name]), name


@pytest.mark.parametrize(
    "more",
    [
        [*LAYERS, "--memory-efficient-fp16"],
        [*LAYERS, "--memory-efficient-bf16"],
        # An absent path's filter size has to be the default.
        "--encoder-paths cnn --decoder-paths san --encoder-kernel-width 5 --encoder-ffn-embed-dim 1024".split(),
        "--encoder-paths san --decoder-paths cnn --decoder-cnn-layers 1 --decoder-ffn-embed-dim 1024".split(),
        "--encoder-paths cnn,san,rnn --decoder-paths cnn,san,rnn --encoder-recurrent-layer mc_rnn --channels 2 "
        "--path-dropout 0.1 --position-shift 20 --positions sinusoidal --checkpoint-activations".split(),
    ],
)
def test_options_train_and_decode(more: list[str], tiny_translation_data: TranslationData, tmp_path: Path) -> None:
    train_in_process(*training(tiny_translation_data, tmp_path, *ADAM, *more, "--max-update", "3"))
    halved = ["--fp16"] if "--memory-efficient-fp16" in more else []
    output = generate(tiny_translation_data, tmp_path / "checkpoint_last.pt", *FEW, *halved)
    assert sorted(output_lines(output, "H")) == list(range(40))


@pytest.mark.parametrize(
    "arch, sizes",
    [
        ("cnn_deeper_iwslt_de_en", ["--encoder-layers", "[(32, 3)] * 2", "--decoder-layers", "[(32, 3)] * 2"]),
        ("cnn_nist_zh_en", ["--encoder-layers", "[(32, 3)] * 2", "--decoder-layers", "[(32, 3)] * 2"]),
        ("san_deeper_iwslt_de_en", ["--encoder-layers", "2", "--decoder-layers", "2", *SMALL_SAN]),
        ("san_nist_zh_en", ["--encoder-layers", "1", "--decoder-layers", "1", *SMALL_SAN]),
    ],
)
def test_baselines_train_and_decode(
    arch: str, sizes: list[str], tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    options = [*TRAINING, *NAG, *sizes, "--save-dir", str(tmp_path), "--max-update", "3"]
    train_in_process(str(tiny_translation_data.separate), "--arch", arch, *options)
    output = generate(tiny_translation_data, tmp_path / "checkpoint_last.pt", *FEW)
    assert sorted(output_lines(output, "H")) == list(range(40))


UNROUNDED = """
import fairseq_plugins
from fairseq.logging import meters

fairseq_plugins.register()

# fairseq rounds a loss to three decimals before it logs it.
meters.safe_round = lambda number, digits: number
"""


def test_two_processes_train_as_one_with_twice_the_update_frequency(
    tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    """Two CPU processes (gloo), 10 updates; 200 sentences in batches of 20 make an even number of batches."""
    user_dir = tmp_path / "unrounded_plugins"
    user_dir.mkdir()
    (user_dir / "__init__.py").write_text(UNROUNDED)
    curves = []
    for name, more in ("one", ["--update-freq", "2"]), ("two", ["--distributed-world-size", "2"]):
        command = training(tiny_translation_data, tmp_path / name, *NAG, "--activation-dropout", "0", *LAYERS, *more)
        command += ["--ddp-backend", "legacy_ddp", "--distributed-backend", "gloo", "--no-save", "--log-interval", "1"]
        command += ["--max-sentences", "20", "--required-batch-size-multiple", "1", "--max-update", "10"]
        finished = run_command(["fairseq-train", *command, "--disable-validation", "--user-dir", user_dir])
        curves.append(losses(finished.stdout + finished.stderr))
    assert len(curves[0]) == 10
    assert curves[0][-1] < curves[0][0]
    assert curves[1] == pytest.approx(curves[0], abs=1e-4)


def losses(log: str) -> list[float]:
    """The losses of the single updates in fairseq's json log."""
    lines = [line.partition("| INFO | train_inner | ")[2] for line in log.splitlines()]
    return [float(json.loads(line)["loss"]) for line in lines if line]


@pytest.mark.parametrize(
    "options, sentence",
    [
        (
            ["--encoder-paths", "cnn,xyz"],
            "--encoder-paths 'cnn,xyz': unknown path 'xyz'; give one or several of cnn,san,rnn",
        ),
        (["--decoder-paths", ""], "--decoder-paths '': no path; give one or several of cnn,san,rnn"),
        (["--encoder-attention-heads", "5"], "--encoder-paths san: 5 heads do not divide 48 features"),
    ],
)
def test_bad_options_end_training_with_one_sentence(
    options: list[str], sentence: str, tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    command = training(tiny_translation_data, tmp_path / "checkpoints", *ADAM, *options)
    finished = run_command(["fairseq-train", *command, "--user-dir", USER_DIR], status=1)
    assert sentence in finished.stderr.splitlines()[-1]
    assert not (tmp_path / "checkpoints" / "checkpoint_last.pt").exists()
