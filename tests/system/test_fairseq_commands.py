"""fairseq's own commands and ``lstm`` with ``--user-dir fairseq_plugins``: the patches, end to end."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils, options

from fairseq_plugins import patches
from tests.commands import CHECKOUT, USER_DIR, output_lines, run_command, train_in_process
from tests.conftest import TranslationData

LSTM = (
    "--arch lstm --encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-hidden-size 16 --decoder-hidden-size 16 "
    "--decoder-out-embed-dim 16 --dropout 0 --optimizer adam --lr 0.01 --max-tokens 200 --no-progress-bar --cpu "
    "--eval-bleu --best-checkpoint-metric bleu --maximize-best-checkpoint-metric --no-epoch-checkpoints "
    "--num-workers 0 --eval-bleu-args"
).split() + ['{"max_len_b": 12}']
TWO_PROCESSES = ["--distributed-world-size", "2", "--distributed-backend", "gloo", "--log-interval", "1"]


@pytest.fixture(scope="module")
def trained(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with checkpoint_last.pt after one epoch of two processes."""
    folder = tmp_path_factory.mktemp("trained")
    train = ["fairseq-train", tiny_translation_data.separate, "--user-dir", USER_DIR, *LSTM, *TWO_PROCESSES]
    run_command([*train, "--ddp-backend", "pytorch_ddp", "--max-epoch", "1", "--save-dir", folder], is_fresh=True)
    return folder


def parameters(checkpoint: Path) -> dict[str, torch.Tensor]:
    return checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))["model"]


@pytest.mark.slow
def test_two_processes_resume_and_train_as_one(trained, tiny_translation_data, tmp_path) -> None:
    train = ["fairseq-train", tiny_translation_data.separate, "--user-dir", USER_DIR, *LSTM, *TWO_PROCESSES]
    resumed = run_command(
        [*train, "--ddp-backend", "legacy_ddp", "--max-epoch", "2", "--save-dir", tmp_path / "two"]
        + ["--restore-file", trained / "checkpoint_last.pt"],
    )
    assert "(epoch 2 @ 5 updates)" in resumed.stdout
    assert resumed.stdout.count("done training in") == 1, "one process writes the log"

    one_process = [*LSTM, "--update-freq", "2", "--max-epoch", "2", "--save-dir", tmp_path / "one"]
    train_in_process(tiny_translation_data.separate, *one_process)
    two, one = (parameters(tmp_path / name / "checkpoint_last.pt") for name in ("two", "one"))
    start = parameters(trained / "checkpoint_last.pt")
    assert two.keys() == one.keys()
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-5)
        assert not torch.equal(two[name], start[name])


def test_every_sentence_comes_out(trained, tiny_translation_data) -> None:
    finished = run_command(
        ["fairseq-generate", tiny_translation_data.separate, "--user-dir", "fairseq_plugins/", "--cpu"]
        + ["--path", trained / "checkpoint_last.pt", "--max-tokens", "300", "--beam", "2", "--max-len-b", "12"],
        cwd=CHECKOUT,
    )
    assert sorted(output_lines(finished.stdout, "H")) == list(range(101))
    assert "Translated 101 sentences" in finished.stdout + finished.stderr


# -------------------------------------------------------------------------------------------------------- replace-unk

SOURCES = ["X1 X2@@ X3", "Y1 Y2 Y3 Y4@@ Y5 Y6", "ba Z1 bi", "ba Z2 bi"]


def write_unknown_words_only(checkpoint: Path, output_bias: str, louder: list[str], path: Path) -> Path:
    """A copy of a checkpoint whose model writes nothing but ``<unk>``, and attends now here and now there."""
    state = torch.load(checkpoint, weights_only=True)
    unknown = 3
    state["model"][output_bias][unknown] = 1e4
    for name in louder:
        state["model"][name] *= 100
    torch.save(state, path)
    return path


@pytest.fixture(scope="module")
def unknown_words_only(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An lstm, which turns the padding of its sources round."""
    louder = ["decoder.attention.input_proj.weight", "encoder.lstm.weight_ih_l0"]
    path = tmp_path_factory.mktemp("unknown") / "checkpoint.pt"
    return write_unknown_words_only(trained / "checkpoint_last.pt", "decoder.fc_out.bias", louder, path)


@pytest.fixture(scope="module")
def unknown_words_only_mc_rnn(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mc_rnn")
    sizes = "--encoder-embed-dim 8 --encoder-hidden-size 8 --decoder-embed-dim 8 --decoder-hidden-size 8".split()
    train_in_process(
        *[tiny_translation_data.separate, "--arch", "mc_rnn_iwslt_de_en", *sizes],
        *["--optimizer", "adam", "--lr", "0.01", "--max-tokens", "400", "--cpu", "--max-update", "1"],
        *["--disable-validation", "--save-dir", folder],
    )
    louder = ["decoder.attention.key_projection.weight"]
    path = folder / "unknown.pt"
    return write_unknown_words_only(folder / "checkpoint_last.pt", "decoder.output_projection.bias", louder, path)


def generation_options(checkpoint: Path) -> list[str]:
    lengths = ["--beam", "2", "--max-len-a", "1", "--max-len-b", "0", "--num-workers", "0"]
    return ["--user-dir", USER_DIR, "--cpu", "--path", str(checkpoint), "--replace-unk", *lengths]


def aligned_pieces(source: str, alignment: str) -> list[str]:
    """The source tokens that an A- line (``source-target ...``) names, in target order."""
    pairs = [tuple(map(int, pair.split("-"))) for pair in alignment.split()]
    return [source.split()[position] for position, _ in sorted(pairs, key=lambda pair: pair[1])]


def test_interactive_copies_unknown_words(unknown_words_only, tiny_translation_data, tmp_path) -> None:
    dictionary = tmp_path / "dictionary"
    dictionary.write_text("ba BA\nbi BI\nZ1 z-one\n", encoding="utf-8")
    options = generation_options(unknown_words_only)
    options.insert(options.index("--replace-unk") + 1, str(dictionary))
    finished = run_command(
        ["fairseq-interactive", tiny_translation_data.separate, *options, "--buffer-size", "4", "--batch-size", "4"]
        + ["--print-alignment", "--post-process", "subword_nmt"],
        stdin="\n".join(SOURCES) + "\n",
        is_fresh=True,
    )
    alignments = output_lines(finished.stdout, "A")
    translations = output_lines(finished.stdout, "H")
    translated_to = {"ba": "BA", "bi": "BI", "Z1": "z-one"}
    for number, source in enumerate(SOURCES):
        pieces = [translated_to.get(piece, piece) for piece in aligned_pieces(source, alignments[number])]
        assert len(pieces) >= 2
        assert translations[number].split("\t")[1] == (" ".join(pieces) + " ").replace("@@ ", "").rstrip()
    assert len({piece for number in alignments for piece in alignments[number].split()}) > 2


def generate_in_process(*arguments: str) -> None:
    from fairseq_cli import generate

    patches.apply()  # the command has just been imported
    parser = options.get_generation_parser()
    generate.main(options.parse_args_and_arch(parser, list(arguments)))


@pytest.fixture
def raw_data(tiny_translation_data, tmp_path) -> str:
    for language in "xx", "yy":
        dictionary = tiny_translation_data.separate / f"dict.{language}.txt"
        (tmp_path / dictionary.name).write_bytes(dictionary.read_bytes())
        (tmp_path / f"test.xx-yy.{language}").write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
    return str(tmp_path)


@pytest.mark.parametrize(
    "checkpoint, alignment",
    [
        ("unknown_words_only", ["--print-alignment"]),
        ("unknown_words_only", ["--print-alignment", "soft"]),
        ("unknown_words_only", []),
        ("unknown_words_only_mc_rnn", ["--print-alignment"]),
        ("unknown_words_only_mc_rnn", []),
    ],
)
def test_generate_copies_unknown_words_of_raw_text(checkpoint, alignment, request, raw_data, capsys) -> None:
    raw = [raw_data, "--dataset-impl", "raw", "-s", "xx", "-t", "yy", "--batch-size", "4"]
    generate_in_process(*raw, *generation_options(request.getfixturevalue(checkpoint)), *alignment)
    output = capsys.readouterr().out
    assert output_lines(output, "S") == dict(enumerate(SOURCES))
    alignments = output_lines(output, "A")
    assert len(alignments) == (len(SOURCES) if alignment else 0)
    for number, line in output_lines(output, "H").items():
        words = line.split("\t")[1].split()
        assert words and set(words) <= set(SOURCES[number].split())
        if alignment == ["--print-alignment"]:
            assert words == aligned_pieces(SOURCES[number], alignments[number])


def test_generate_says_what_binarised_data_cannot_replace(
    unknown_words_only, tiny_translation_data, tmp_path, capsys, caplog
) -> None:
    data = tiny_translation_data
    generate_in_process(str(data.separate), "--max-tokens", "300", *generation_options(unknown_words_only))
    output = capsys.readouterr().out
    sources = output_lines(output, "S")
    for number, line in output_lines(output, "H").items():
        assert set(line.split("\t")[1].split()) <= set(sources[number].split())
    assert not [record for record in caplog.records if "--replace-unk" in record.message]

    from tests.conftest import preprocess

    for split in "train", "valid", "test":
        for language in "xx", "yy":
            (tmp_path / f"{split}.{language}").write_text("\n".join(SOURCES[:2]) + "\n", encoding="utf-8")
    dictionaries = [f"--{side}dict" for side in ("src", "tgt")]
    paths = [str(data.separate / f"dict.{language}.txt") for language in ("xx", "yy")]
    preprocess(tmp_path, tmp_path / "bin", *(item for pair in zip(dictionaries, paths, strict=True) for item in pair))
    caplog.clear()
    generate_in_process(str(tmp_path / "bin"), "--batch-size", "4", *generation_options(unknown_words_only))
    translations = [line.split("\t")[1].split() for line in output_lines(capsys.readouterr().out, "H").values()]
    assert {word for words in translations for word in words} == {"<unk>"}
    message = next(record.message for record in caplog.records if "--replace-unk" in record.message)
    assert f"{sum(map(len, translations))} unknown words stay" in message


# ------------------------------------------------------------------------------------------------------ registering


@pytest.mark.parametrize("first", ["register", "user-dir"])
def test_register_and_user_dir_in_either_order(first: str) -> None:
    program = """
import os, sys
from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY
def register():
    import fairseq_plugins
    fairseq_plugins.register()
def user_dir(*path):
    "As fairseq-train reads --user-dir."
    sys.argv[1:] = ["--user-dir", *path] if path else []
    options.get_training_parser()
steps = [register, lambda: user_dir("fairseq_plugins")]
steps = steps if sys.argv[1] == "register" else steps[::-1]
user_dir()
assert "mc_rnn_iwslt_de_en" not in ARCH_MODEL_REGISTRY
for step in steps:
    step()
registered = dict(ARCH_MODEL_REGISTRY)
assert "mc_rnn_iwslt_de_en" in registered
user_dir("./fairseq_plugins/")
user_dir(os.path.abspath("fairseq_plugins"))
assert registered == ARCH_MODEL_REGISTRY
assert [name for name in sys.modules if name.endswith("plugins.patches")] == ["fairseq_plugins.patches"]
print("registered once")
"""
    finished = run_command(["python", "-c", program, first], cwd=CHECKOUT)
    assert finished.stdout.endswith("registered once\n")


@pytest.mark.parametrize("size", ["same", "other"])
def test_another_dictionary_is_refused(trained, tiny_translation_data, tmp_path, size) -> None:
    """One of the same size would give nonsense in silence."""
    data = tmp_path / "data"
    shutil.copytree(tiny_translation_data.separate, data)
    path = next(data.glob("dict.yy.txt"))
    lines = path.read_text(encoding="utf-8").splitlines()
    other = lines[::-1] if size == "same" else [*lines, "unheard 1"]
    path.write_text("".join(line + "\n" for line in other), encoding="utf-8")
    checkpoint = trained / "checkpoint_last.pt"
    generate = [
        "fairseq-generate",
        data,
        "--user-dir",
        USER_DIR,
        "--path",
        checkpoint,
        "--cpu",
        "--gen-subset",
        "valid",
    ]
    failed = run_command(generate, status=1)
    sentence = (
        "was trained with another dictionary of the target side: give the data of its training, or new text prepared "
        "with its dictionaries (fairseq-preprocess --srcdict FILE --tgtdict FILE)"
    )
    assert "Traceback" not in failed.stderr
    assert failed.stderr.splitlines()[-1] == f"error: {checkpoint} {sentence}"
