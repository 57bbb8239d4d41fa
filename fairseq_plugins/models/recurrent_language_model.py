"""Language models with any recurrent layer: with ``lstm`` layers AWD-LSTM (Merity, Keskar and Socher 2018,
"Regularizing and Optimizing LSTM Language Models"), with ``mc_rnn`` layers that of MC-RNN (AAAI 2019, Section 4.3), and
over characters those of DilatedRNN (Chang et al. 2017, Section 4.3).

What the papers leave open, and what is done here:

- Where the output layer shares the table of the embeddings (``--share-decoder-input-output-embed``), the top layer has
  their width and the others ``--decoder-hidden-size``. The output layer has a bias; it reads embeddings that no dropout
  has touched.
- Embeddings start in U(-0.1, 0.1), the output layer too where it has its own table; biases of the output layer at 0.
  ``--init-range`` starts everything in one range, as Zaremba, Sutskever and Vinyals (2014) do. ``--initialization``
  starts the network as DilatedRNN's experiments do (``modules/initialization.py``).
- Dropouts are locked in time (one mask for a window and stream), ``--plain-dropout`` draws one for each time step. That
  of the recurrent weights (DropConnect) is drawn once a window; for MC-RNN it covers W_j and the recurrent weights.
- fairseq's ``<s>`` and ``<pad>`` are in no text: they get no probability.

Symbols: B streams, T tokens of a window, E embedding size, H width of the top layer, V vocabulary.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import FairseqIncrementalDecoder, FairseqLanguageModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..errors import InputError
from ..kernels.linear import linear
from ..modules import LockedDropout, RecurrentNetwork, RecurrentStack, embedding_dropout, reorder_states
from ..modules.dropout import Dropout
from ..modules.initialization import standard_normal_
from ..modules.recurrent.registry import Needs
from .carried_states import CarriedStates
from .options import (
    check_dropouts,
    check_effects,
    check_layer_options,
    check_sizes,
    complete,
    recurrent_layer,
    recurrent_layer_options,
    refuse_dropout,
    start_by_glorot,
)

logger = logging.getLogger(__name__)

IMPOSSIBLE = -1e4
"""The logit of what cannot be; its probability is 0 in every precision, and its gradient too."""
_STARTS = ChoiceEnum(["layers", "glorot", "normal"])
DROPOUTS = ("embedding_dropout", "decoder_dropout_in", "dropout", "decoder_dropout_out", "weight_dropout")


@dataclass
class RecurrentLanguageModelConfig(recurrent_layer_options(), FairseqDataclass):  # type: ignore[misc]  # fairseq wants one class of all options
    """The options of ``recurrent_lm``; the defaults are AWD-LSTM's sizes for Penn Treebank, without dropouts."""

    decoder_embed_dim: int = field(
        default=400,
        metadata={"help": "size of the embeddings", "needs": Needs("beside --one-hot", lambda cfg: not cfg.one_hot)},
    )
    decoder_hidden_size: int = field(
        default=1150,
        metadata={
            "help": "width of the layers",
            "needs": Needs(
                "beside --share-decoder-input-output-embed and one layer, which has the embeddings' width",
                lambda cfg: (
                    cfg.decoder_layers > 1
                    or not cfg.share_decoder_input_output_embed
                    or cfg.decoder_hidden_size == cfg.decoder_embed_dim
                ),
            ),
        },
    )
    decoder_layers: int = field(default=3, metadata={"help": "number of layers"})
    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "one table for embeddings and output layer; the top layer has its width"}
    )
    one_hot: bool = field(
        default=False, metadata={"help": "the layers read one-hot vectors, and there are no embeddings"}
    )
    embedding_dropout: float = field(default=0.0, metadata={"help": "probability that a word is dropped in a window"})
    decoder_dropout_in: float = field(default=0.0, metadata={"help": "probability of dropout on the embeddings"})
    dropout: float = field(default=0.0, metadata={"help": "probability of dropout between layers"})
    decoder_dropout_out: float = field(
        default=0.0, metadata={"help": "probability of dropout on the last layer's output"}
    )
    weight_dropout: float = field(default=0.0, metadata={"help": "probability of DropConnect on the recurrent weights"})
    plain_dropout: bool = field(
        default=False,
        metadata={
            "help": "dropouts draw a mask for each time step, not one for a window",
            "needs": Needs(
                "without --dropout, --decoder-dropout-in or --decoder-dropout-out",
                lambda cfg: cfg.dropout or cfg.decoder_dropout_in or cfg.decoder_dropout_out,
            ),
        },
    )
    init_range: Optional[float] = field(  # noqa: UP045
        default=None, metadata={"help": "all parameters start in U(-x, x); default: each as its layer has it"}
    )
    initialization: _STARTS = field(  # type: ignore[valid-type]  # fairseq makes the class
        default="layers",
        metadata={
            "help": "glorot: recurrent layers as TensorFlow 1 starts them, the output layer from N(0, 1); normal: "
            "everything from N(0, 1); layers: each as its layer has it"
        },
    )
    reads_streams: bool = field(
        default=False, metadata={"help": "set by the task streaming_language_modeling, for its checkpoints"}
    )


@register_model("recurrent_lm", dataclass=RecurrentLanguageModelConfig)
class RecurrentLanguageModel(FairseqLanguageModel):
    """Embeddings, a stack of recurrent layers, softmax; see the head of this file."""

    @classmethod
    def build_model(cls, cfg: RecurrentLanguageModelConfig, task: FairseqTask) -> "RecurrentLanguageModel":
        """Raises InputError if the options contradict each other, or the task is not that of the training."""
        complete(cfg, RecurrentLanguageModelConfig)
        if cfg.reads_streams and not getattr(task, "reads_streams", False):
            raise InputError(
                "this language model was trained on streams of text, whose states it carries on: "
                "say --task streaming_language_modeling"
            )
        if len(task.target_dictionary) != len(task.source_dictionary):
            raise InputError("--output-dictionary-size: recurrent_lm reads and writes the same words; leave it out")
        check_layer_options(cfg, task)
        check_sizes(cfg, ("decoder_embed_dim", "decoder_hidden_size", "decoder_layers"))
        check_dropouts(cfg, DROPOUTS)
        if cfg.one_hot and (cfg.share_decoder_input_output_embed or cfg.embedding_dropout):
            raise InputError("--one-hot has no embeddings: leave out their sharing and their dropout")
        check_effects(cfg, RecurrentLanguageModelConfig, task)
        if cfg.dropout and cfg.decoder_layers == 1:
            # Bases of configurations have it for models of any depth.
            logger.warning(f"--dropout {cfg.dropout} has no effect with one layer, since it is between layers")
        start = str(cfg.initialization)
        if start != "layers" and cfg.init_range is not None:
            raise InputError(
                "--initialization and --init-range both say how the parameters start: leave out one of them"
            )
        model = cls(RecurrentLanguageModelDecoder(task.source_dictionary, cfg))
        if start == "glorot":
            start_by_glorot(model.decoder.stack, cfg)
            standard_normal_(model.decoder.output_projection)
        elif start == "normal":
            standard_normal_(model)
        if cfg.init_range is not None:
            for parameter in model.parameters():
                nn.init.uniform_(parameter, -cfg.init_range, cfg.init_range)
        return model


class RecurrentLanguageModelDecoder(FairseqIncrementalDecoder):
    """Predicts each token of a text from those before it."""

    def __init__(self, dictionary: Dictionary, cfg: RecurrentLanguageModelConfig) -> None:
        super().__init__(dictionary)
        self.embedding_dropout = cfg.embedding_dropout
        if cfg.one_hot:
            self.embed_tokens: nn.Embedding | OneHot = OneHot(len(dictionary))
        else:
            self.embed_tokens = nn.Embedding(len(dictionary), cfg.decoder_embed_dim, dictionary.pad())
            nn.init.uniform_(self.embed_tokens.weight, -0.1, 0.1)
            nn.init.zeros_(self.embed_tokens.weight[dictionary.pad()])
        dropout = Dropout if cfg.plain_dropout else LockedDropout
        self.dropout_in, self.dropout_out = dropout(cfg.decoder_dropout_in), dropout(cfg.decoder_dropout_out)
        is_tied = cfg.share_decoder_input_output_embed
        sizes = [cfg.decoder_hidden_size] * cfg.decoder_layers
        if is_tied:
            sizes[-1] = cfg.decoder_embed_dim
        kind, options = recurrent_layer(cfg)
        try:
            self.stack = RecurrentStack(
                kind,
                self.embed_tokens.embedding_dim,
                sizes,
                dropout=dropout(cfg.dropout),
                options=options,
                drop_connect=cfg.weight_dropout,
            )
        except ValueError as error:
            raise InputError(f"--recurrent-layer {kind}: {error}") from error
        if not self.stack.is_steppable:
            raise InputError(f"--recurrent-layer {kind}: these layers do not run step by step; choose others")
        if is_tied and self.stack.output_size != cfg.decoder_embed_dim:
            raise InputError(
                f"--share-decoder-input-output-embed: the layers' output is {self.stack.output_size} wide, "
                f"and the embeddings {cfg.decoder_embed_dim}"
            )
        self.output_projection = nn.Linear(self.stack.output_size, len(dictionary))
        nn.init.zeros_(self.output_projection.bias)
        if is_tied and isinstance(self.embed_tokens, nn.Embedding):
            self.output_projection.weight = self.embed_tokens.weight
        else:
            nn.init.uniform_(self.output_projection.weight, -0.1, 0.1)
        impossible = torch.tensor([dictionary.bos(), dictionary.pad()])
        self.register_buffer("impossible", impossible, persistent=False)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: None = None,
        incremental_state: dict[str, dict[str, Any]] | None = None,
        carried: CarriedStates | None = None,
        features_only: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Scores the token after each of ``prev_output_tokens`` (B, T); with ``incremental_state`` after the last.

        Args:
            carried: the states to go on from, which are then those after the window; None to begin with zeros.

        Returns:
            logits (B, T, V), T = 1 with ``incremental_state``, and the last layer's output, ``undropped_output``
            (T, B, H) as it is and ``dropped_output`` (T, B, H) as the output layer reads it.
        """
        features, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state, carried)
        return (features if features_only else self.output_layer(features)), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: None = None,
        incremental_state: dict[str, dict[str, Any]] | None = None,
        carried: CarriedStates | None = None,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """What the output layer reads (B, T, H), and the rest as :meth:`forward` returns it."""
        if incremental_state is not None:
            output = self._step(prev_output_tokens[:, -1], incremental_state).unsqueeze(0)
        else:
            x = self.dropout_in(self._embed(prev_output_tokens.t()))
            states = None if carried is None else carried.of(self, self._layers)
            if states is not None and states[0][0].size(0) != x.size(1):
                raise InputError(
                    f"the states are of {states[0][0].size(0)} streams, and the text has {x.size(1)}: "
                    "go on with the same --batch-size and number of processes"
                )
            result = self.stack(x, states=states)
            output = result.output
            if carried is not None:
                carried.keep(self, result.states)
        dropped = self.dropout_out(output)
        return dropped.transpose(0, 1).contiguous(), {
            "attn": [None],
            "undropped_output": output,
            "dropped_output": dropped,
        }

    def output_layer(self, features: Tensor, **unused: Any) -> Tensor:
        """(…, H) -> logits (…, V)."""
        return linear(features, *self.output_parameters())

    def output_parameters(self) -> tuple[Tensor, Tensor]:
        """Weight (V, H) and bias (V,) of :meth:`output_layer`, for criterions that compute it with the loss."""
        bias = self.output_projection.bias.index_fill(0, self.impossible, IMPOSSIBLE)
        return self.output_projection.weight, bias

    def reorder_incremental_state(self, incremental_state: dict[str, dict[str, Any]], new_order: Tensor) -> None:
        cached = self.get_incremental_state(incremental_state, "decoder")
        if cached is not None:
            cached["states"] = reorder_states(cached["states"], new_order)
            self.set_incremental_state(incremental_state, "decoder", cached)

    def make_generation_fast_(self, retain_dropout: bool = False, **unused: Any) -> None:
        """Raises InputError if dropout is wanted in generation."""
        refuse_dropout(retain_dropout)

    def max_positions(self) -> int:
        """There is no longest text."""
        return 1_000_000_000

    @property
    def _layers(self) -> Sequence[RecurrentNetwork[Any]]:
        return self.stack.layers

    def _embed(self, tokens: Tensor) -> Tensor:
        if isinstance(self.embed_tokens, OneHot):
            one_hot: Tensor = self.embed_tokens(tokens)
            return one_hot.type_as(self.output_projection.weight)
        return embedding_dropout(self.embed_tokens, tokens, self.embedding_dropout)

    def _step(self, tokens: Tensor, incremental_state: dict[str, dict[str, Any]]) -> Tensor:
        """The last layer's output (B, H) after one more token of each row (B,)."""
        cached = self.get_incremental_state(incremental_state, "decoder")
        if cached is None:
            states = tuple(layer.initial_state(tokens.size(0)) for layer in self._layers)
            cached = {"states": states, "step": self.stack.stepper(tokens.size(0))}
        output: Tensor
        output, states = cached["step"](self.dropout_in(self._embed(tokens).unsqueeze(0)).squeeze(0), cached["states"])
        self.set_incremental_state(incremental_state, "decoder", {**cached, "states": states})
        return output


class OneHot(nn.Module):
    """One-hot vectors in the place of embeddings: tokens (…) -> (…, V), integers."""

    def __init__(self, types: int) -> None:
        super().__init__()
        self.embedding_dim = types

    def forward(self, tokens: Tensor) -> Tensor:
        return F.one_hot(tokens, self.embedding_dim)
