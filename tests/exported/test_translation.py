"""An exported model translates as the model does, without PyTorch and fairseq, out of a folder that is data alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import fairseq_plugins
from benchmarks import exported_models
from fairseq_plugins import exported
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.decoding.translation import GenerationOptions, TranslationModel, limited_generation
from fairseq_plugins.errors import InputError
from fairseq_plugins.export.graphs import nodes_of, quantized
from fairseq_plugins.export.scores import development_scores
from fairseq_plugins.exported.beam_search import SearchOptions
from fairseq_plugins.exported.folder import write_card
from fairseq_plugins.exported.translation import ExportedTranslationModel, batches
from fairseq_plugins.missing import explain_missing_packages
from fairseq_plugins.scoring.bleu import bleu
from tests.commands import run_command

pytestmark = pytest.mark.system  # they share what is trained and exported in seconds

LINES = ["ba da fa", "", "ga ga ni no", "zzz ba", "ma", "ka la bo do fo go"]


@pytest.fixture(scope="module")
def work(tiny_work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a work folder, with a score."""
    folder = shutil.copytree(tiny_work, tmp_path_factory.mktemp("trained") / "work")
    (folder / "results.json").write_text('{"bleu": 12.5, "checkpoint": "/somewhere"}', encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(work: Path) -> TranslationModel:
    return fairseq_plugins.load(work)


@pytest.fixture(scope="module")
def folder(work: Path) -> Path:
    """The exported model, by the command."""
    command = ["python", "-m", "fairseq_plugins", "export", str(work), "--output", str(work / "exported")]
    assert "exported: 0." in run_command(command).stdout
    return work / "exported"


@pytest.fixture(scope="module")
def model(folder: Path) -> ExportedTranslationModel:
    return exported.load(folder, threads=1)


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(folder, tmp_path / "copy")
    yield tmp_path / "copy"


def test_it_translates_as_the_model_does(trained: TranslationModel, model: ExportedTranslationModel) -> None:
    """With limits that do not depend on the batch, all hypotheses and their scores."""
    limits = {"max_len_a": 0.0, "max_len_b": 9}
    for beam, length_penalty, ngram in (5, 1.0, 0), (2, 0.5, 1):
        generation = limited_generation(beam=beam, lenpen=length_penalty, no_repeat_ngram_size=ngram)
        generation.max_len_a, generation.max_len_b = limits["max_len_a"], limits["max_len_b"]
        expected = trained.translations(LINES, GenerationOptions(generation))
        options = SearchOptions(beam, length_penalty, ngram, 0.0, 9)
        results = model.translations(LINES, options, count=beam, need_attention=True)
        assert [result.text for result in results] == expected.texts
        assert {place: 9 for place, result in enumerate(results) if result.is_cut} == expected.cut
    first = results[0].translations[0]
    assert first.attention is not None and first.attention.shape == (len(first.pieces) + 1, results[0].length)
    np.testing.assert_allclose(first.attention.sum(1), 1, atol=1e-5)
    assert first.score == pytest.approx(sum(first.log_probabilities) / (len(first.pieces) + 1) ** 0.5, abs=1e-5)
    assert [len(result.translations) for result in results] == [2, 0, 2, 2, 2, 2]


def test_unknown_words_are_copied_from_where_they_are_looked_for(
    trained: TranslationModel, model: ExportedTranslationModel
) -> None:
    projection = trained.model.decoder.output_projection
    generation = limited_generation(beam=2, replace_unk="", unkpen=-9.0)
    generation.max_len_a, generation.max_len_b = 0.0, 5
    assert projection.bias.size(0) == model.types
    expected = trained.translations(LINES, GenerationOptions(generation))
    options = SearchOptions(2, max_len_a=0.0, max_len_b=5, unknown_penalty=-9.0)
    results = model.translations(LINES, options, replaces_unknown=True)
    assert [result.text for result in results] == expected.texts
    assert "<unk>" not in " ".join(expected.texts)
    assert "<unk>" in model.translations(LINES, options)[0].text
    assert model.unknown_words("ba zzz da") == ["zzz"]


def test_the_runtime_imports_neither_pytorch_nor_fairseq(folder: Path, model: ExportedTranslationModel) -> None:
    program = f"""
import sys
sys.modules |= dict.fromkeys(["torch", "fairseq", "onnx", "onnxscript"])  # as if they were not installed
from fairseq_plugins import exported
print(exported.load({str(folder)!r}).translate({LINES!r}))
"""
    assert run_command(["python", "-c", program], is_fresh=True).stdout == f"{model.translate(LINES)}\n"


def test_the_command_translates_a_folder(folder: Path, model: ExportedTranslationModel) -> None:
    """In an environment without what trains."""
    program = f"""
import sys
sys.modules |= dict.fromkeys(["torch", "fairseq", "omegaconf", "sacrebleu", "sklearn", "scipy", "lxml", "nltk"])
from fairseq_plugins.command import run
run(["translate", {str(folder)!r}, *sys.argv[1:]])
"""

    everything = "".join(f"{line}\n" for line in LINES)

    def translated(*options: str, status: int = 0, text: str = everything) -> subprocess.CompletedProcess[str]:
        return run_command(["python", "-c", program, *options], is_fresh=True, stdin=text, status=status)

    finished = translated("--beam", "2", "--max-len-a", "0", "--max-len-b", "1", "--lenpen", "0.5")
    options = SearchOptions(2, 0.5, max_len_a=0.0, max_len_b=1)
    results = model.translations(LINES, options)
    assert finished.stdout.splitlines() == [result.text for result in results]
    cut = [number for number, result in enumerate(results, 1) if result.is_cut]
    assert finished.stderr.splitlines() == [
        f"warning: the translation of line {number} ends at 1 tokens, its limit; raise --max-len-b" for number in cut
    ]
    assert cut
    with_paragraphs = translated("--paragraphs", text="ba da fa.  ka la.\n\n ma ni\n").stdout
    first, second, third = model.translate(["ba da fa.", "ka la.", "ma ni"])
    assert with_paragraphs == f"{first}  {second}\n\n {third}\n"
    refused = translated("--sampling", status=1).stderr
    assert "--sampling: an exported model has no such option; there are --lenpen" in refused


def test_the_card_says_what_the_model_is(folder: Path, work: Path) -> None:
    card = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    assert card["architectures"] == ["mc_rnn_iwslt_de_en"]
    assert card["results"] == [{"bleu": 12.5}]
    assert (card["source_language"], card["target_language"]) == ("xx", "yy")
    assert card["data"] == PreparedData.load(work / "data").training_checksums()
    assert card["versions"]["torch"] == torch.__version__
    assert str(work) not in json.dumps(card)
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == {*card["files"], "model.json"}


def test_weights_of_all_products_become_integers(copy: Path, folder: Path) -> None:
    """Those in loops included."""
    for name in "encoder", "step":
        path = copy / f"{name}.onnx"
        onnx.save(quantized(onnx.load(path)), path)
        before, after = (onnx.load(file).graph for file in (folder / path.name, path))
        weights = {weight.name: min(weight.dims) for weight in before.initializer if weight.dims}
        products = [node for node in nodes_of(before) if node.op_type == "MatMul"]
        wide = [node for node in products if weights.get(node.input[1], 0) >= 4]
        counts = Counter(node.op_type for node in nodes_of(after))
        assert counts["MatMulInteger"] == len(wide)
        assert counts.get("MatMul", 0) == len(products) - len(wide)
        in_loops = [node for part in before.node if part.op_type == "Scan" for node in nodes_of(part.attribute[0].g)]
        assert name == "step" or any(node.op_type == "MatMul" for node in in_loops)
    card = json.loads((copy / "model.json").read_text(encoding="utf-8"))
    write_card(copy, {name: value for name, value in card.items() if name not in ("files", "format")})
    integers = exported.load(copy)
    scores = [
        [result.translations[0].score for result in one.translations(LINES) if result.translations]
        for one in (integers, exported.load(folder))
    ]
    np.testing.assert_allclose(*scores, atol=0.2)


def test_scores_are_those_of_the_development_set(folder: Path, trained: TranslationModel, work: Path) -> None:
    scores = development_scores(folder, trained.preparation)
    sources, targets = (
        (work / "data" / "raw" / f"valid.{language}").read_text(encoding="utf-8").splitlines()
        for language in ("xx", "yy")
    )
    expected = bleu().corpus_score(trained.translate(sources), [targets]).score
    assert scores is not None and scores["bleu_tokenized"] == round(expected, 2)


def test_a_folder_that_cannot_be_used(copy: Path, tmp_path: Path) -> None:
    def refusal(path: Path) -> str:
        with pytest.raises(InputError) as error:
            exported.load(path)
        return str(error.value)

    card = json.loads((copy / "model.json").read_text(encoding="utf-8"))

    def write(**changes: object) -> None:
        (copy / "model.json").write_text(json.dumps({**card, **changes}), encoding="utf-8")

    assert "no such file; give a folder that 'fairseq-plugins export' wrote" in refusal(tmp_path / "nowhere")
    write(format=2)
    assert "of format 2, newer than 1, which this version reads; install a newer fairseq-plugins" in refusal(copy)
    write(kind="painter")
    assert "there is no kind of model 'painter' here; export the model again" in refusal(copy)
    with pytest.raises(InputError, match="a model of the kind 'painter', not 'translation'"):
        ExportedTranslationModel.load(copy)
    write(files={**card["files"], "../outside": {}})
    assert "names ../outside, which is not in the folder" in refusal(copy)
    (copy / "model.json").write_text("{", encoding="utf-8")
    assert "model.json: damaged" in refusal(copy)
    (copy / "model.json").write_text("[]", encoding="utf-8")
    assert "not the card of an exported model" in refusal(copy)
    write(files={**card["files"], "encoder.onnx": "x"})
    assert "not the card of an exported model" in refusal(copy)
    for limits in None, [], {}, {"source_tokens": "a", "target_tokens": 9}, {"source_tokens": 9, "target_tokens": 0}:
        write(limits=limits)
        assert "model.json: 'limits' is missing or damaged; export the model again" in refusal(copy)
    write()
    graph = copy / "step.onnx"
    content = graph.read_bytes()
    graph.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "step.onnx: damaged, its checksum is another one; export the model again" in refusal(copy)
    graph.unlink()
    assert "step.onnx: missing; export the model again" in refusal(copy)


def test_a_tokenizer_that_is_missing_shows_when_the_model_is_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in "subword_nmt", "subword_nmt.apply_bpe":
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match="subword_nmt is not installed for .*"), explain_missing_packages():
        exported.load(folder)


def test_text_that_cannot_be_translated(model: ExportedTranslationModel) -> None:
    with pytest.raises(TypeError, match="translate takes a list of texts"):
        model.translate("ba")  # type: ignore[arg-type]
    model.longest_source = 4
    try:
        with pytest.raises(InputError, match="sentence 2 has 5 tokens, but the model takes 4; split it"):
            model.translate(["ba", "da da da da"])
        [long] = model.translations(["da da da da"])
        assert (long.text, long.is_too_long) == ("", True)
    finally:
        model.longest_source = int(model.folder.card["limits"]["source_tokens"])


def test_the_command_refuses(work: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    def refusal(checkpoint: Path, output: Path) -> str:
        command = ["python", "-m", "fairseq_plugins", "export", str(checkpoint), "--output", str(output)]
        return run_command(command, status=1).stderr

    assert "no such checkpoint" in refusal(tmp_path / "none.pt", tmp_path / "new")
    assert "is there already, and is no exported model; name another --output" in refusal(work, work / "data")
    assert not (tmp_path / "new").exists()


def test_the_benchmark_prints_ratios(
    work: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("ba da fa\nka la bo do\nma\n", encoding="utf-8")
    exported_models.main([str(work), str(folder), "--text", str(tmp_path / "text"), "--rounds", "1", "--batch", "2"])
    heading, *_, checkpoint, of_folder = capsys.readouterr().out.splitlines()
    assert "times as fast" in heading and "s to the first" in heading
    assert "1.00" in checkpoint and "3 of 3" in of_folder


def test_batches_hold_texts_of_like_lengths() -> None:
    lengths = [5, 1, 4, 9, 2]
    assert list(batches([0, 1, 2, 4], lengths, 8)) == [[0], [2, 4], [1]]
    assert list(batches([3], lengths, 8)) == [[3]]
    assert list(batches([], lengths, 8)) == []
