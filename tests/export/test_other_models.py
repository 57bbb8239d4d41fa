"""The exported forms of language models and classifiers compute what the models compute."""

from __future__ import annotations

import pytest
import torch

from fairseq_plugins.errors import InputError
from fairseq_plugins.export.classifier import ExportedClassifier, classifier_graph
from fairseq_plugins.export.contract import flat
from fairseq_plugins.export.language_model import ExportedLanguageModel, language_model_graph
from fairseq_plugins.models.sequence_classifier import SequenceClassifier, SequenceClassifierConfig
from tests.models.labelled import PAD, batch, labelled_task
from tests.models.tasks import WORDS, build_architecture, make_task

ROWS = [[4, 5, 6, 7], [8], [9, 10], [PAD], [4, PAD, 5]]  # a text may say "<pad>"


@pytest.mark.parametrize("kind", ["lstm", "mc_rnn", "dilated_rnn"])
@torch.no_grad()
def test_a_language_model_goes_on_from_its_states(kind: str) -> None:
    torch.manual_seed(1)
    sizes = {"decoder_embed_dim": 6, "decoder_hidden_size": 5, "decoder_layers": 2}
    model = build_architecture("recurrent_lm", make_task(), recurrent_layer=kind, **sizes).eval()
    form = ExportedLanguageModel(model)
    tokens = torch.randint(4, WORDS, (1, 9))
    expected = torch.log_softmax(model(tokens)[0], dim=-1)
    states = list(flat(form.starts()).values())
    parts = []
    for window in tokens.split((4, 1, 4), dim=1):
        scores, *states = form(window, *states)
        parts.append(scores)
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, atol=1e-5, rtol=1e-4)


def classifier(**options: object) -> SequenceClassifier:
    torch.manual_seed(1)
    sizes = {"embed_dim": 6, "hidden_size": 5, "output_hidden_size": 7}
    return SequenceClassifier.build_model(SequenceClassifierConfig(**sizes, **options), labelled_task()).eval()


@pytest.mark.parametrize("options", [{}, {"recurrent_layer": "rcrn", "pooling": "max,mean,min,last"}], ids=str)
@torch.no_grad()
def test_a_classifier(options: dict[str, object]) -> None:
    model = classifier(**options)
    tokens, lengths = batch(ROWS, more_padding=1)
    [scores] = ExportedClassifier(model)(tokens, lengths)
    torch.testing.assert_close(scores, torch.log_softmax(model(tokens, lengths), dim=-1), atol=1e-5, rtol=1e-4)


def test_what_cannot_be_exported() -> None:
    with pytest.raises(InputError, match="characters, context vectors or tags beside words cannot be exported"):
        classifier_graph(classifier(character_hidden_size=3), "sequence_classifier", PAD, WORDS)
    with pytest.raises(InputError, match="'sequence_ranker' has no exported form: export a classifier of single texts"):
        classifier_graph(torch.nn.Linear(1, 1), "sequence_ranker", PAD, WORDS)
    derived = classifier()
    derived.__class__ = type("Derived", (SequenceClassifier,), {})
    with pytest.raises(InputError, match="'derived' has no exported form"):
        classifier_graph(derived, "derived", PAD, WORDS)
    with pytest.raises(InputError, match="a language model of the kind Derived has no exported form"):
        language_model_graph(derived, WORDS)  # type: ignore[arg-type]


def test_what_the_exported_form_does_not_compute_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, forward = classifier(), SequenceClassifier.forward
    monkeypatch.setattr(SequenceClassifier, "forward", lambda *arguments: 2 * forward(*arguments))
    with pytest.raises(InputError, match="the exported form differs from the model by"):
        classifier_graph(model, "sequence_classifier", PAD, WORDS)
