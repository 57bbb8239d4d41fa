"""Joey NMT's models beside ours: its recurrent model of RNNSearch's sizes, its transformer of DPN-S2S's.

    pip install --no-deps joeynmt==2.3.0 importlib_metadata lazy_importer tensorboard

installs as much of it as is needed beside this project's extras ``train`` and ``report``. Without ``--no-deps`` it
brings a protobuf that onnx does not take.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

INSTALL = "pip install --no-deps joeynmt==2.3.0 importlib_metadata lazy_importer tensorboard"
# fairseq has the same number for padding, and 2 for the end of a sentence; words are 4 and above in both.
UNKNOWN, PADDING, START, END = range(4)
_FAIRSEQ_END = 2

_EMBEDDINGS = {"embedding_dim": 256, "dropout": 0.3}
_RECURRENT = {"type": "recurrent", "rnn_type": "lstm", "hidden_size": 256, "num_layers": 2, "dropout": 0.3}
# As the Deeper SAN of DPN-S2S's Table 1.
_TRANSFORMER = {
    "type": "transformer",
    "embeddings": {"embedding_dim": 256, "dropout": 0.1},
    "hidden_size": 256,
    "ff_size": 1024,
    "num_layers": 4,
    "num_heads": 4,
    "dropout": 0.1,
    "layer_norm": "pre",
}
_FED = {"hidden_dropout": 0.3, "init_hidden": "bridge", "input_feeding": True, "attention": "bahdanau"}
SYSTEMS: dict[str, dict[str, Any]] = {
    "joeynmt_as_rnnsearch": {
        "encoder": {**_RECURRENT, "embeddings": _EMBEDDINGS, "bidirectional": True},
        "decoder": {**_RECURRENT, "embeddings": _EMBEDDINGS, **_FED},
    },
    "joeynmt_as_dpn": {
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": _TRANSFORMER,
        "decoder": _TRANSFORMER,
    },
}


def build(system: str, types: int) -> nn.Module:
    """A model of random parameters, with one dictionary of so many types for both sides.

    Raises:
        ModuleNotFoundError: Joey NMT is not installed.
    """
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    special = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>", "sep": None}
    numbers = {"unk": UNKNOWN, "pad": PADDING, "bos": START, "eos": END, "sep": None}
    names = {f"{name}_token": text for name, text in special.items()}
    names |= {f"{name}_id": number for name, number in numbers.items()}
    vocabulary = Vocabulary([f"w{i}" for i in range(types - 4)], SimpleNamespace(**names, lang_tags=[]))
    model: nn.Module = build_model(SYSTEMS[system], vocabulary, vocabulary)
    model.loss_function = ("crossentropy", 0.1)  # type: ignore[assignment]  # a property
    return model


def batch(sample: dict[str, Any]) -> dict[str, Any]:
    """The same sentences as in a sample of fairseq's translation task, as Joey NMT's models read them."""
    from joeynmt.batch import Batch

    target = _renumbered(sample["target"])
    target = torch.cat([torch.full_like(target[:, :1], START), target], dim=1)
    # fairseq pads sources on the left; all of them end with the end of the sentence, which is moved to their end.
    tokens, lengths = sample["net_input"]["src_tokens"], sample["net_input"]["src_lengths"]
    places = torch.arange(tokens.size(1), device=tokens.device) - lengths.unsqueeze(1)
    source = _renumbered(tokens.gather(1, places % tokens.size(1)))
    rows = torch.arange(len(tokens))
    return vars(Batch(source, lengths, None, target, None, rows, tokens.device, PADDING, END, True))


def loss(model: nn.Module, sample: dict[str, Any]) -> Callable[[], Tensor]:
    """Computes the label-smoothed cross entropy of a sample, for each token."""
    read = batch(sample)

    def for_each_token() -> Tensor:
        summed, *_ = model(return_type="loss", **read)
        return summed / sample["ntokens"]

    return for_each_token


def beam_search(model: nn.Module, sample: dict[str, Any], beam: int, length: int) -> Callable[[], None]:
    """Decodes the sources of a sample to so many tokens and the end."""
    from joeynmt import search

    read = batch(sample)
    options = {"max_output_length": length + 1, "min_output_length": length, "alpha": 1}

    @torch.no_grad()
    def decode() -> None:
        encoded, hidden, _, _ = model(return_type="encode", **read)
        search.beam_search(model, beam, encoded, hidden, read["src_mask"], **options)

    return decode


def _renumbered(tokens: Tensor) -> Tensor:
    return tokens.where(tokens != _FAIRSEQ_END, END)
