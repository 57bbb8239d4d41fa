"""The recipe ``paper`` builds the equations as they are printed, and trains as ``docs/paper_recipes.md`` says."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models import build_model
from omegaconf import DictConfig
from torch import Tensor, nn

from fairseq_plugins.criterions.output_cross_entropy import OutputCrossEntropyCriterion
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration as configurations
from fairseq_plugins.experiments import fairseq_commands as commands
from fairseq_plugins.experiments.configuration import CONFIGURATIONS, Configuration
from fairseq_plugins.kernels.multi_channel import reference as multi_channel_reference
from fairseq_plugins.models.text_encoder import TextEncoder, TextEncoderConfig
from fairseq_plugins.modules.multi_path import reference
from fairseq_plugins.modules.recurrent.connected import ConnectedRNN
from fairseq_plugins.package_files import ROOT
from tests.models.labelled import labelled_task
from tests.models.tasks import make_task

Train = Callable[..., dict[str, Any]]
SMALL = ("--encoder-embed-dim", "8", "--decoder-embed-dim", "8")
TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


def slow(*names: str) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


DOUBLE_PATH = [
    *("multi30k_de_en/dpn", "multi30k_de_en/dpn_m1", "multi30k_de_en/dpn_m5"),
    *slow(
        "iwslt14_sample/dpn",
        "own_text/dpn",
        "own_text/dpn_m1",
        "gigaword/dpn",
        "nist_zh_en/dpn",
        "iwslt14_de_en_10k/dpn",
    ),
    *slow(*(f"iwslt14_de_en_10k/dpn_m{number}" for number in range(1, 9))),
]
CONNECTED = [
    *("multi30k_de_en/mc_rnn_3", "multi30k_de_en/ho_rnn", "ptb/mc_rnn_3"),
    *slow(
        "iwslt14_sample/mc_rnn_3", *(f"iwslt14_de_en/{name}" for name in ("ho_rnn", "mc_rnn_2", "mc_rnn_3", "mc_rnn_4"))
    ),
    *slow("gigaword_sample/mc_rnn_3"),
    *slow(*(f"gigaword/{name}" for name in ("ho_rnn", "mc_rnn_2", "mc_rnn_3", "mc_rnn_4"))),
]


def test_every_configuration_that_has_the_recipe_is_tried() -> None:
    tried = {name if isinstance(name, str) else name.values[0] for name in DOUBLE_PATH + CONNECTED}
    for path in CONFIGURATIONS.glob("*/[!_]*.yaml"):
        name = path.relative_to(CONFIGURATIONS).with_suffix("").as_posix()
        if name.startswith(("tables/", "slurm/")):
            continue
        try:
            options = configurations.load(path, "paper").train
        except InputError as error:
            assert "there is no recipe 'paper'" in str(error)
            continue
        gates = "connection" in options and options["connection"].text == "gate"  # these have no W_j
        if re.match("dpn|mc_rnn|ho_rnn", options["arch"].text) and not gates:
            assert name in tried


@pytest.fixture
def train(tmp_path: Path, data_for: Callable[[Configuration], PreparedData]) -> Train:
    """Every option of the training of a configuration, by fairseq's own parser, with further options."""

    def options_of(name: str, recipe: str | None, *extra: str) -> dict[str, Any]:
        configuration = configurations.load(name, recipe)
        command = commands.train_command(configuration, data_for(configuration), tmp_path, 0, extra)
        return commands.resolved_options(command.options)

    return options_of


def randomized(model: nn.Module) -> nn.Module:
    """The model in float64, with parameters far from how they start, so that nothing hides in the tolerance."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.double().eval()


def double_path(options: dict[str, Any], **task: int) -> nn.Module:
    torch.manual_seed(1)
    return randomized(build_model(DictConfig(options["model"]), make_task(**task)))


def logits_as_printed(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """Eq. 5 to 10 for one sentence, without the scales of our own recipe, whatever the model was told: (T, V).

    Those of ConvS2S's code, in the CNN paths, are by every recipe.
    """
    model = copy.deepcopy(model)
    for module in model.modules():
        for name, printed in (("input_scale", 1.0), ("memory_scale", 1.0), ("normalized_memories", [])):
            if hasattr(module, name):
                setattr(module, name, printed)

    def embedded(side: nn.Module, tokens: Tensor) -> Tensor:
        return side.embed_tokens.weight[tokens] + side.embed_positions.weight[2 : 2 + len(tokens)]

    of_encoder = {"cnn": reference.convolutional_encoder, "san": reference.self_attention_encoder}
    of_decoder = {"cnn": reference.convolutional_decoder, "san": reference.self_attention_decoder}
    words = embedded(model.encoder, source)
    memories = {name: of_encoder[name](path, words) for name, path in model.encoder.paths.items()}
    words = embedded(model.decoder, target)
    outputs = [of_decoder[name](path, words, memories)[0] for name, path in model.decoder.paths.items()]
    rows = []
    for position in zip(*outputs, strict=True):
        z = position[0] if len(position) == 1 else reference.gate(model.decoder.gate, *position)[0]
        rows.append(model.decoder.output_projection.weight @ z + model.decoder.output_projection.bias)
    return torch.stack(rows)


def is_as_printed(options: dict[str, Any]) -> bool:
    """Whether the model's logits are those of the printed equations."""
    model = double_path(options)
    source, target = torch.tensor([5, 6, 7, 2]), torch.tensor([2, 8, 9])
    logits = model.decoder(target[None], model.encoder(source[None], None))[0][0]
    return torch.allclose(logits, logits_as_printed(model, source, target), **TOLERANCE)


@pytest.mark.system
@pytest.mark.parametrize("name", DOUBLE_PATH)
def test_double_paths_are_the_printed_equations(name: str, train: Train) -> None:
    assert is_as_printed(train(name, "paper", *SMALL))


@pytest.mark.system
@pytest.mark.parametrize(("name", "has_scales"), [("dpn", True), ("dpn_m1", False), ("dpn_m5", True)])
def test_our_own_double_paths_have_scales(name: str, has_scales: bool, train: Train) -> None:
    assert is_as_printed(train(f"multi30k_de_en/{name}", None, *SMALL)) is not has_scales


@pytest.mark.system
@pytest.mark.parametrize("name", ["multi30k_de_en/dpn", "multi30k_de_en/mc_rnn_3", "iwslt14_de_en_10k/san_deeper"])
def test_the_loss_is_the_likelihood(name: str, train: Train) -> None:
    """DPN-S2S, Eq. 1 and 2, and of its baselines alike; MC-RNN's paper has no other."""
    options = train(name, "paper")
    criterion = options["criterion"]
    assert criterion["_name"] == "output_cross_entropy"
    model = double_path(train("multi30k_de_en/dpn", "paper", *SMALL))
    source, target = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[8, 9, 2]])
    net_input = {
        "src_tokens": source,
        "src_lengths": torch.tensor([4]),
        "prev_output_tokens": torch.tensor([[2, 8, 9]]),
    }
    sample = {"net_input": net_input, "target": target, "ntokens": 3, "id": torch.tensor([0])}
    loss, *_ = OutputCrossEntropyCriterion(make_task(), False, criterion["label_smoothing"])(model, sample)
    likelihood = torch.log_softmax(model(**net_input)[0], -1)[0, torch.arange(3), target[0]].sum()
    torch.testing.assert_close(loss, -likelihood, **TOLERANCE)


@pytest.mark.system
@pytest.mark.parametrize("name", CONNECTED)
def test_connections_are_learned_themselves(name: str, train: Train) -> None:
    """W_j of Eq. 2 is a parameter, and not mixed with the identity; the layer is Eq. 1 to 6 with it."""
    side = "decoder" if name.startswith("ptb") else "encoder"
    small = (f"--{side}-hidden-size", "4", f"--{side}-embed-dim", "4", f"--{side}-layers", "1")
    for recipe in "paper", None:
        options = train(name, recipe, *small)["model"]
        network = build_layers(options)
        layers = [module for module in network.modules() if isinstance(module, ConnectedRNN)]
        assert layers and {layer.has_rate for layer in layers} == {recipe is None}
        layer = randomized(layers[0])
        x = torch.randn(7, 2, layer.input_size, dtype=torch.float64)
        parameters = layer._layer().parameters._replace(weight_connection=layer.weight_connection)
        printed = layer._layer()._replace(parameters=parameters)
        expected = multi_channel_reference.multi_channel_rnn(printed, x, None, layer.initial_state(2)).output
        assert torch.allclose(layer(x).output, expected, **TOLERANCE) is (recipe == "paper")


def build_layers(options: dict[str, Any]) -> nn.Module:
    task = make_task(tokens_per_sample=7)
    task.reads_streams, task.dictionary = True, task.source_dictionary
    return build_model(DictConfig(options), task)


PAGE = (ROOT / "docs" / "paper_recipes.md").read_text(encoding="utf-8")
OF_ONE_DATA_SET = {
    " on NIST": "nist_zh_en/dpn",
    " on Gigaword": "gigaword/dpn",
    ", headlines": "gigaword/mc_rnn_3",
    ", translation": "iwslt14_de_en/mc_rnn_3",
}
"""How rows of the page go on that are of one data set → its configuration."""
WITHOUT_A_ROW = {
    *("arch", "criterion", "seed", "keep-last-epochs", "no-epoch-checkpoints", "log-interval"),
    "maximize-best-checkpoint-metric",
}
"""Options that change nothing of what is learned, or that the page has in words."""


@pytest.mark.parametrize("name", ["trec/rcrn", "sst_2/bilstm_3", "snli/rcrn", "reviews/rcrn"])
def test_words_have_glove_cove_and_characters(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = {key: value.text for key, value in configurations.load(name, "paper").train.items()}
    files = recipe["embed-path"], recipe["context-encoder"]
    size = int(recipe["character-hidden-size"])
    cfg = TextEncoderConfig(
        embed_path=files[0], context_encoder=files[1], character_hidden_size=size, recurrent_layer="rcrn"
    )
    task = labelled_task()
    with pytest.raises(InputError, match=f"^{files[0]}: no such file of word vectors; name another, in GloVe's"):
        TextEncoder(cfg, task)
    Path(files[0]).write_text("w0 " + " ".join(["0.5"] * 300) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"^{files[1]}: no such file; --context-encoder names weights laid out as"):
        TextEncoder(cfg, task)
    torch.save(nn.LSTM(300, 300, num_layers=2, bidirectional=True).state_dict(), files[1])
    encoder = TextEncoder(cfg, task)
    assert encoder.words.output_size == 300 + 600 + 2 * size
    trained = {name for name, parameter in encoder.words.named_parameters() if parameter.requires_grad}
    assert {name.partition(".")[0] for name in trained} == {"characters"}


@pytest.mark.parametrize(
    ("heading", "name", "others"),
    [
        ("DPN-S2S", "iwslt14_de_en_10k/dpn", (" on NIST", " on Gigaword")),
        ("MC-RNN", "iwslt14_de_en/mc_rnn_3", (", headlines",)),
        ("RCRN", "trec/rcrn", ()),
    ],
)
def test_the_page_has_the_values_of_the_recipe(heading: str, name: str, others: tuple[str, ...]) -> None:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)`([^|]*) \| `?([\w.-]+)`?[^|]*\| (printed|chosen) \|", section, re.MULTILINE)
    assert len(rows) > 5
    for option, more, value, _ in rows:
        said = recipe_values(OF_ONE_DATA_SET[more] if more else name).get(option)
        if said is None and option == "dropout":
            continue  # the architecture's
        assert said is not None and float_or_text(said) == float_or_text(value), option
    options = {option for option, *_ in rows}
    for path in (name, *(OF_ONE_DATA_SET[other] for other in others)):
        assert recipe_values(path).keys() - options == set(), path


def recipe_values(name: str) -> dict[str, str]:
    """The options of a configuration by the recipe ``paper`` that the page has rows for."""
    configuration = configurations.load(name, "paper")
    # How many sentences are decoded at a time changes no translation.
    decoding = {key: value for key, value in configuration.generate.items() if key not in ("max-tokens", "batch-size")}
    values = configuration.train | decoding
    return {key: value.text for key, value in values.items() if key not in WITHOUT_A_ROW}


def float_or_text(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value
