"""The exported forms of translation models: what a step gives is what the model's decoder gives for the whole."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_plugins.errors import InputError
from fairseq_plugins.export.translation import check_models, exported_models, graphs_of
from fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqModel
from fairseq_plugins.modules.multi_path.self_attention import SelfAttentionDecoderPath
from fairseq_plugins.modules.recurrent.contract import RecurrentOutput
from fairseq_plugins.modules.recurrent.conventional import ConventionalRNN
from tests.models.tasks import WORDS, build_architecture, make_task

RECURRENT = {
    f"{side}_{name}": size
    for side in ("encoder", "decoder")
    for name, size in (("embed_dim", 8), ("hidden_size", 6), ("layers", 2))
}
CNN = {"cnn_layers": 2}
SAN = {"san_layers": 2, "ffn_embed_dim": 6, "attention_heads": 2}


def paths(encoder: dict[str, int], decoder: dict[str, int]) -> dict[str, Any]:
    """Options of networks of several paths."""
    sides = {"encoder": {"embed_dim": 8, **encoder}, "decoder": {"embed_dim": 8, **decoder}}
    return {f"{side}_{name}": value for side, options in sides.items() for name, value in options.items()}


BOTH_PATHS = paths({**CNN, **SAN}, {**CNN, **SAN})
RNN = {"paths": "rnn", "rnn_layers": 1}
ALL = {**CNN, **SAN, "rnn_layers": 1, "paths": "cnn,san,rnn"}
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("rnnsearch_iwslt_de_en", RECURRENT),
    ("mc_rnn_iwslt_de_en", {**RECURRENT, "encoder_layers": 1, "decoder_attention": "output"}),
    ("recurrent_seq2seq", {**RECURRENT, "encoder_recurrent_layer": "hm_rnn", "decoder_recurrent_layer": "dilated_rnn"}),
    ("recurrent_seq2seq", {**RECURRENT, "encoder_recurrent_layer": "rcrn", "decoder_recurrent_layer": "ho_rnn"}),
    ("dpn_iwslt_de_en", {**BOTH_PATHS, "checkpoint_activations": True}),
    ("double_path", paths({**CNN, "paths": "cnn"}, {**SAN, "paths": "san"})),
    ("double_path", paths({**SAN, "paths": "san"}, RNN)),
    ("double_path", paths(RNN, RNN)),
    ("double_path", paths(ALL, ALL)),
]
BEAM = 3


def make(architecture: str, options: dict[str, Any], seed: int = 1) -> BaseFairseqModel:
    """A model of random parameters, of which none is zero."""
    torch.manual_seed(seed)
    model = build_architecture(architecture, make_task(), **options).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def scored(model: BaseFairseqModel, sources: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities (N, K, T, V) and attention (N, K, T, S) of the model's own decoder, all at once."""
    repeated = sources.repeat_interleave(BEAM, dim=0)
    logits, extra = model(repeated, repeated.ne(1).sum(1), targets.flatten(0, 1))
    log_probabilities = model.get_normalized_probs((logits, extra), log_probs=True)
    return log_probabilities.unflatten(0, targets.shape[:2]), extra["attn"][0].unflatten(0, targets.shape[:2])


def compare(models: list[BaseFairseqModel], architectures: list[str]) -> None:
    """As an export does it."""
    check_models(exported_models(models, architectures), models, 1, 2, [WORDS, WORDS])


@torch.no_grad()
def check(models: list[BaseFairseqModel], architectures: list[str]) -> None:
    """Decodes hypotheses that change places from step to step."""
    form = exported_models(models, architectures)
    sources = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 1, 1], [2, 1, 1, 1, 1]])
    targets = torch.randint(4, WORDS, (len(sources), BEAM, 6))
    targets[:, :, 0] = 2
    # Hypothesis k of each sentence lies at row k + 1 of its states after the first step, at k + 2 after the second.
    memory, states = form.encode(sources)
    rows = torch.arange(len(sources)).repeat_interleave(BEAM)
    results = [scored(model, sources, targets) for model in models]
    expected = torch.stack([log_probabilities.exp() for log_probabilities, _ in results]).mean(0).log()
    attention = torch.stack([weights for _, weights in results]).mean(0)
    order = torch.arange(BEAM)
    for t in range(targets.size(2)):
        chosen = {name: state.index_select(0, rows) for name, state in states.items()}
        tokens = targets[:, order, t]
        result = form.step(tokens, torch.tensor(t), memory, chosen)
        torch.testing.assert_close(result.log_probabilities, expected[:, order, t], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(result.attention, attention[:, order, t], atol=1e-5, rtol=1e-4)
        states = result.states
        moved = order.roll(1)
        places = torch.tensor([order.tolist().index(k) for k in moved.tolist()])
        rows = (torch.arange(len(sources))[:, None] * BEAM + places).flatten()
        order = moved


@pytest.mark.parametrize(("architecture", "options"), MODELS)
def test_steps_are_the_models(architecture: str, options: dict[str, Any]) -> None:
    model = make(architecture, options)
    check([model], [architecture])
    compare([model], [architecture])


@pytest.mark.slow
@pytest.mark.parametrize("options", [BOTH_PATHS, paths(ALL, ALL)], ids=["two paths", "three"])
def test_graphs_are_made_where_modules_are_shared(options: dict[str, Any]) -> None:
    """PyTorch's tracer puts classes of its own in the place of theirs. A graph is run and compared as it is made."""
    model = make("double_path", {**options, "share_all_embeddings": True})
    graphs = graphs_of(exported_models([model], ["double_path"]), 1, 2, WORDS)
    read = {part.name.removeprefix("state.") for part in graphs.step.graph.input}
    assert graphs.states and read >= set(graphs.states)


def test_an_ensemble_is_the_mean_of_its_models() -> None:
    names = ["dpn_iwslt_de_en", "mc_rnn_iwslt_de_en"]
    models = [make(names[0], BOTH_PATHS), make(names[1], RECURRENT, seed=2)]
    check(models, names)
    compare(models, names)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["mc_rnn_iwslt_de_en", "rnnsearch_iwslt_de_en"])
def test_graphs_of_an_ensemble_of_one_architecture(architecture: str) -> None:
    """Whose loops are called the same in each model. A graph is run and compared as it is made."""
    models = [make(architecture, RECURRENT, seed=seed) for seed in (1, 2)]
    graphs = graphs_of(exported_models(models, [architecture] * 2), 1, 2, WORDS)
    assert {name.split(".")[0] for name in graphs.states} == {"0", "1"}


def test_other_models_are_refused() -> None:
    model = build_architecture("transformer_iwslt_de_en", make_task())
    with pytest.raises(InputError, match="'transformer_iwslt_de_en' has no exported form"):
        exported_models([model], ["transformer_iwslt_de_en"])


class Reversed(RecurrentSeq2SeqModel):
    """A user's own, derived from one of ours."""


class Halved(SelfAttentionDecoderPath):
    """The same, of a path."""


class DoubledSequences(ConventionalRNN):
    """A layer of a user's own, whose step does something else."""

    def forward(self, *args: Any, **keywords: Any) -> RecurrentOutput:
        result = super().forward(*args, **keywords)
        return result._replace(output=2 * result.output)


def test_what_is_derived_from_ours_is_refused_or_compared() -> None:
    model = make("rnnsearch_iwslt_de_en", RECURRENT)
    model.__class__ = Reversed
    with pytest.raises(InputError, match="'reversed' has no exported form"):
        exported_models([model], ["reversed"])
    model = make("double_path", BOTH_PATHS)
    model.decoder.paths["san"].__class__ = Halved
    with pytest.raises(InputError, match="a decoder path of the kind Halved has no exported form"):
        compare([model], ["double_path"])
    model = make("recurrent_seq2seq", {**RECURRENT, "encoder_recurrent_layer": "lstm"})
    compare([model], ["recurrent_seq2seq"])
    model.encoder.stack.layers[0].__class__ = DoubledSequences
    with pytest.raises(InputError, match="the exported form differs from the model by .*: most likely a layer of your"):
        compare([model], ["recurrent_seq2seq"])
