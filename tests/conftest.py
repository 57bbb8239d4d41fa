"""Fixtures that several test modules share."""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

from fairseq_plugins import extensions
from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.corpora.running_text import RunningTextPreparation, RunningTextRun
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.patches.deferred_imports import defer_imports
from fairseq_plugins.scoring.metrics import Metric, metric_named
from tests import texts
from tests.browser import browser  # noqa: F401 - a fixture
from tests.commands import CHECKOUT, train_in_process
from tests.preloaded import stub_of

WHOLE_COMMANDS = ("system", "faults", "benchmarks")
"""Folders of the tests that run whole commands."""
LONGEST = (
    "quickstart several_processes pages reproduce cuda_graph graphs on_meta gpu shapes effects fairseq_commands".split()
)
"""Files whose slow tests take minutes of a processor, the longest first."""
LONG_FIXTURES = {"prepared", "tiny_work", "unpatched"}
"""Fixtures that take seconds, of tests in many files."""
TOY_PERPLEXITY = Path(__file__).resolve().parent / "extensions" / "toy_perplexity.py"
TINY_UPDATES = 8
"""Those of ``tiny_checkpoint``."""
SYLLABLES = [consonant + vowel for consonant in "bdfgklmn" for vowel in "aio"]

# The same examples in every run, and no time limit of theirs: a first example may compile a kernel.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tests")
defer_imports()  # whichever test is the first to import fairseq


@dataclass(frozen=True)
class TranslationData:
    """A tiny parallel corpus: the target is the source backwards. Both sides have the same 24 words.

    Attributes:
        raw: folder with ``train``, ``valid``, ``test`` (200, 40, 101 pairs), each as ``.xx`` and ``.yy``
        separate: what fairseq-preprocess made of it, a dictionary for each language
        joined: the same with one dictionary for both
        source, target: the languages' names
    """

    raw: Path
    separate: Path
    joined: Path
    source: str = "xx"
    target: str = "yy"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests as ``system`` by their folder or by what they need, and puts what is long first: at the end one
    process would wait for another that has just begun it."""
    for item in items:
        is_whole = item.path.parent.name in WHOLE_COMMANDS or LONG_FIXTURES & {*getattr(item, "fixturenames", ())}
        if is_whole and item.get_closest_marker("slow") is None:
            item.add_marker("system")
    items.sort(key=lambda item: item.path.parent.name not in WHOLE_COMMANDS)
    items.sort(key=lambda item: item.get_closest_marker("system") is None)
    places = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(
        key=lambda item: places.get(item.path.stem, len(places)) if item.get_closest_marker("slow") else len(places)
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Seeds the random numbers of a test and of its fixtures: what they are must not depend on the tests before it."""
    random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def _preloaded_commands(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the commands that code in a test's own process starts preloaded too."""
    if request.node.path.parent.name == "system":
        monkeypatch.setattr(sys, "executable", str(stub_of(CHECKOUT)))


@pytest.fixture(autouse=True)
def _denormal_numbers() -> Iterator[None]:
    """Undoes what a command of fairseq's in a test's own process has set for the process."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


@pytest.fixture
def hang_ups() -> Iterator[None]:
    """A hang-up ends what a test starts, though nohup has started the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def toy_perplexity(monkeypatch: pytest.MonkeyPatch) -> Metric:
    """A metric of a user's own, out of its file."""
    monkeypatch.setenv(extensions.VARIABLE, str(TOY_PERPLEXITY))
    extensions.load()
    return metric_named("toy_perplexity")


@pytest.fixture(scope="session")
def tiny_translation_data(tmp_path_factory: pytest.TempPathFactory) -> TranslationData:
    """The corpus, written once for a test session; sentences of 2 to 9 words, all different."""
    folder = tmp_path_factory.mktemp("tiny_translation_data")
    raw = folder / "raw"
    raw.mkdir()
    generator = random.Random(1)
    sentences: dict[tuple[str, ...], None] = {}
    while len(sentences) < 341:
        sentences[tuple(generator.choices(SYLLABLES, k=generator.randint(2, 9)))] = None
    remaining = iter(sentences)
    for split, size in ("train", 200), ("valid", 40), ("test", 101):
        pairs = [next(remaining) for _ in range(size)]
        (raw / f"{split}.xx").write_text("".join(" ".join(words) + "\n" for words in pairs), encoding="utf-8")
        (raw / f"{split}.yy").write_text("".join(" ".join(words[::-1]) + "\n" for words in pairs), encoding="utf-8")
    data = TranslationData(raw, folder / "separate", folder / "joined")
    preprocess(data.raw, data.separate)
    preprocess(data.raw, data.joined, "--joined-dictionary")
    return data


@pytest.fixture(scope="session")
def tiny_checkpoint(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last checkpoint of an RNNSearch of 16 features, trained for a moment and once for a test session."""
    folder = tmp_path_factory.mktemp("tiny_checkpoint")
    sizes = [f"--{side}-{name}=16" for side in ("encoder", "decoder") for name in ("embed-dim", "hidden-size")]
    training = "--optimizer adam --lr 5e-3 --batch-size 25 --cpu --disable-validation --no-epoch-checkpoints"
    train_in_process(
        *[str(tiny_translation_data.separate), "--arch", "rnnsearch_iwslt_de_en", *sizes, *training.split()],
        *["--max-update", str(TINY_UPDATES), "--save-dir", str(folder)],
    )
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def tiny_work(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with an MC-RNN of 12 features that has learned a little, and its data in ``data`` beside it."""
    folder = tmp_path_factory.mktemp("tiny_work")
    raw = tiny_translation_data.raw
    files = {split: (raw / f"{split}.xx", raw / f"{split}.yy") for split in ("train", "valid", "test")}
    prepare(PairsPreparation("xx", "yy", tokenizer="moses", bpe="subword-nmt", bpe_size=10), files, folder / "data")
    sizes = [
        f"--{side}-{name}={1 if name == 'layers' else 12}"
        for side in ("encoder", "decoder")
        for name in ("embed-dim", "hidden-size", "layers")
    ]
    training = "--optimizer adam --lr 0.02 --batch-size 20 --max-epoch 2 --cpu --max-source-positions 90"
    train_in_process(
        *[*PreparedData.load(folder / "data").arguments(), "--arch", "mc_rnn_iwslt_de_en", *sizes, *training.split()],
        *["--save-dir", str(folder / "checkpoints")],
    )
    return folder


@pytest.fixture(scope="session")
def running_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny prepared text (``tests/texts.py``): the folder of its ``preparation.json``."""
    folder = tmp_path_factory.mktemp("running_text")
    inputs = {split: folder / f"{split}.txt" for split in texts.SIZES}
    for seed, (split, number) in enumerate(texts.SIZES.items()):
        inputs[split].write_text("".join(f"{line}\n" for line in texts.lines_of(number, seed)), encoding="utf-8")
    RunningTextRun(RunningTextPreparation(), inputs, folder / "data").prepare()
    return folder / "data"


def preprocess(raw: Path, binarised: Path, *options: str, source: str = "xx", target: str = "yy") -> None:
    """fairseq-preprocess of ``raw/{train,valid,test}`` in this process."""
    from fairseq import options as fairseq_options
    from fairseq_cli.preprocess import main

    parser = fairseq_options.get_preprocessing_parser()
    arguments = ["--source-lang", source, "--target-lang", target, "--destdir", str(binarised), *options]
    for split in "train", "valid", "test":
        arguments += [f"--{split}pref", str(raw / split)]
    main(parser.parse_args(arguments))
