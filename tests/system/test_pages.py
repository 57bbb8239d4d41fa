"""What README and docs tell a reader to do, done as they say it in a copy of the checkout, on tiny data."""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
from pathlib import Path

import pytest

from tests.commands import CHECKOUT, PYTHON, run_command
from tests.conftest import TranslationData
from tests.documentation.markdown import blocks
from tests.preloaded import stub_of

DOCS = CHECKOUT / "docs"


@pytest.fixture(scope="module")
def clone(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with text of a reader's own, whose trainings are short."""
    folder = tmp_path_factory.mktemp("reader") / "fairseq-plugins"
    for room in ("fairseq_plugins", "scripts", "configs", "results"):
        shutil.copytree(CHECKOUT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", folder)
    (folder / "data").mkdir()
    for split in ("train", "valid", "test"):
        for own, language in (("xx", "de"), ("yy", "en")):
            shutil.copy(tiny_translation_data.raw / f"{split}.{own}", folder / "data" / f"{split}.{language}")
    (folder / "text").write_text("ba di\nfo ga\n", encoding="utf-8")
    base = folder / "configs" / "own_text" / "_base.yaml"
    shorter = re.sub(r"max-epoch: \d+", "max-epoch: 1", base.read_text(encoding="utf-8"))
    base.write_text(re.sub(r": 256\b", ": 16", shorter), encoding="utf-8")
    return folder


def do(clone: Path, text: str, **environment: str) -> str:
    """Runs lines of a shell in the copy; the scripts take the Python that runs the tests."""
    # The tiny text has no 2,000 or 8,000 subwords.
    text = re.sub(r"--bpe-size \d+", "--bpe-size 40", text)
    path = os.pathsep.join([str(Path(PYTHON).parent), sysconfig.get_path("scripts"), os.environ["PATH"]])
    environment = {"PYTHON": str(stub_of(clone)), "PATH": path, "PYTHONPATH": str(clone), **environment}
    return run_command(["bash", "-euo", "pipefail", "-c", text], cwd=clone, timeout=1200, **environment).stdout


def block(page: Path, containing: str) -> str:
    """The block of a page that has these words."""
    (found,) = [each.text for each in blocks(page) if containing in each.text and each.language in ("bash", "python")]
    return found


def save(clone: Path, page: Path) -> None:
    """Saves what a page says to save."""
    for each in blocks(page):
        if each.file is not None:
            (clone / each.file).parent.mkdir(parents=True, exist_ok=True)
            (clone / each.file).write_text(each.text, encoding="utf-8")


@pytest.fixture(scope="module")
def own_text(clone: Path) -> Path:
    """The copy after the page on text of one's own."""
    do(clone, block(DOCS / "own_text.md", "configs/own_text/mc_rnn_3.yaml"))
    return clone


def test_own_text(own_text: Path) -> None:
    assert len((own_text / "translation").read_text(encoding="utf-8").splitlines()) == 2
    assert (own_text / "work" / "own_text" / "mc_rnn_3" / "results.json").is_file()
    program = block(DOCS / "own_text.md", "fairseq_plugins.load")
    finished = run_command(["python", "-c", program], cwd=own_text)
    assert finished.stdout.startswith("['")


@pytest.mark.slow  # tests/system/test_sequence_tasks.py has the commands
def test_labels_of_ones_own(clone: Path) -> None:
    for split in ("train", "valid", "test"):
        (clone / "data" / f"{split}.tsv").write_text("text\tlabel\nba ba di\ta\nfo ga ba\tb\n", encoding="utf-8")
    text = block(DOCS / "classification.md", "configs/own_labels/rcrn.yaml")
    short = "scripts/train.sh configs/own_labels/rcrn.yaml"
    output = do(clone, text.replace(short, f"{short} --max-epoch 1 --hidden-size 8"))
    assert re.search(r"^[ab]\b", output.splitlines()[-1])


@pytest.mark.slow  # tests/system/test_language_models.py has the commands
def test_a_language_model_of_ones_own(clone: Path) -> None:
    for split in ("train", "valid", "test"):
        (clone / "grammar").mkdir(exist_ok=True)
        (clone / "grammar" / f"{split}.txt").write_text("ba di ga\nfo ga ba ba\n" * 400, encoding="utf-8")
    page = DOCS / "language_models.md"
    _, words, characters, *_ = block(page, "prepare_text.sh").splitlines()
    trainings = [
        (block(page, "--data work/mine_text/data"), "--max-update 1 --decoder-embed-dim 8 --decoder-hidden-size 8"),
        (block(page, "--data work/mine_text_characters/data"), "--max-update 1 --tokens-per-sample 10"),
    ]
    text = "\n".join([words, characters])
    for commands, short in trainings:
        *train, evaluate = commands.splitlines()
        text += "\n" + "\n".join(train) + f" {short}\n{evaluate}"
    do(clone, text)
    for name in "mine_text/mc_rnn_3", "mine_text_characters/lstm":
        assert (clone / "work" / name / "results.json").is_file()


@pytest.mark.slow  # the page's own_text has the commands
def test_a_configuration_of_ones_own(own_text: Path) -> None:
    page = DOCS / "configurations.md"
    save(own_text, page)
    short = "scripts/train.sh configs/mine/mc_rnn_2.yaml"
    # Of its 512 units a few are enough for text that means nothing.
    sizes = " ".join(f"--{side}-{size} 8" for side in ("encoder", "decoder") for size in ("embed-dim", "hidden-size"))
    text = block(page, short).replace(short, f"{short} --max-update 1 {sizes}")
    assert "mine/mc_rnn_2" in do(own_text, text)
    assert (own_text / "work" / "mine" / "mc_rnn_2" / "results.json").is_file()


@pytest.mark.slow
def test_adding_a_layer(own_text: Path) -> None:
    pages = DOCS / "add_a_layer.md", DOCS / "add_a_path.md"
    for page in pages:
        save(own_text, page)
    commands = [each.text for page in pages for each in blocks(page) if each.language == "bash"]
    # Not preloaded: the configuration's extension is imported before the models are.
    output = [do(own_text, text, PYTHON=PYTHON) for text in commands]
    assert "--leak LEAK" in output[0]
    assert ["1 passed" in text for text in output].count(True) == 2
    assert any("--encoder-word-layers" in text for text in output)
    assert (own_text / "work" / "words" / "checkpoints" / "checkpoint_last.pt").is_file()
    assert "--leak 0.3" in (own_text / "work" / "leaky" / "results.json").read_text(encoding="utf-8")


def test_adding_a_task(own_text: Path) -> None:
    page = DOCS / "add_a_task.md"
    save(own_text, page)
    output = "".join(do(own_text, each.text) for each in blocks(page) if each.language == "bash")
    assert "length ratio" in output and "NumbersPreparation(" in output and "largest=9" in output


@pytest.mark.slow
def test_fairseqs_other_commands(own_text: Path) -> None:
    page = DOCS / "training.md"
    hydra = (
        block(page, "fairseq-hydra-train")
        .replace("work/mine", "work/own_text")
        .replace("max_update=100", "max_update=1")
    )
    do(own_text, hydra)
    validate = block(page, "fairseq-validate").replace("work/iwslt14_de_en", "work/own_text")
    do(own_text, f"{validate.rstrip()} --cpu")
    generate = block(page, "fairseq-generate").replace("work/iwslt14_de_en", "work/own_text")
    output = do(own_text, f"{generate.rstrip()} --cpu".replace("subword_nmt", "sentencepiece"))
    assert len(re.findall(r"^D-\d+\t", output, re.MULTILINE)) > 1


def test_a_layer_in_python(clone: Path) -> None:
    program = block(DOCS / "overview.md", "MultiChannelRNN") + "print(tuple(output.shape))"
    assert run_command(["python", "-c", program], cwd=clone).stdout == "(25, 8, 256)\n"


def test_an_analysis(clone: Path) -> None:
    (line,) = [line for line in block(DOCS / "analysis.md", "analysis memory").splitlines() if "memory" in line]
    do(clone, line)
    assert (clone / "work" / "memory.json").is_file()
