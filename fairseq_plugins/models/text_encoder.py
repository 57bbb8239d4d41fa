"""What models of texts share: words as vectors, an optional projection, recurrent layers in both directions.

RCRN (Tay, Luu and Hui 2018), Section 4.2. Symbols: B batch, T tokens, E what is read of a word, H hidden size.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configurations' fields.
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig
from torch import Tensor, nn

from ..errors import InputError
from ..modules import CharacterEncoder, ContextEncoder, Highway, Linear, RecurrentStack
from ..modules.dropout import Dropout
from ..modules.recurrent.registry import Needs
from .options import (
    check_deviation,
    check_dropouts,
    check_effects,
    check_layer_options,
    check_sizes,
    is_from_checkpoint,
    keep,
    recurrent_layer,
    recurrent_layer_options,
)
from .word_vectors import read_word_vectors


@dataclass
class WordOptions(FairseqDataclass):
    """What is read of words."""

    embed_dim: int = field(default=300, metadata={"help": "size of the word vectors"})
    embed_path: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "given word vectors: a word and its numbers on each line, as GloVe's; they are not trained"},
    )
    train_embed: bool = field(
        default=False,
        metadata={
            "help": "train the vectors of --embed-path too",
            "needs": Needs("without --embed-path", lambda cfg: cfg.embed_path is not None),
        },
    )
    embed_init_std: float = field(
        default=1.0,
        metadata={"help": "standard deviation of learned word vectors at the start; --embed-path brings its own"},
    )
    character_hidden_size: int = field(
        default=0, metadata={"help": "size of each direction of a GRU over the characters of words; 0 for none"}
    )
    character_embed_dim: int = field(
        default=50,
        metadata={
            "help": "size of the vectors of characters",
            "needs": Needs("without --character-hidden-size", lambda cfg: cfg.character_hidden_size),
        },
    )
    context_encoder: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "weights of two bidirectional LSTM layers over the word vectors, laid out as CoVe's"},
    )
    context_hidden_size: int = field(
        default=300,
        metadata={
            "help": "size of each direction of --context-encoder; set from its file, for checkpoints",
            "needs": Needs("without --context-encoder", lambda cfg: cfg.context_encoder is not None),
        },
    )
    tag_embed_dim: int = field(default=50, metadata={"help": "size of the vectors of part-of-speech tags, if any"})


@dataclass
class TextEncoderConfig(WordOptions, recurrent_layer_options()):  # type: ignore[misc]  # fairseq wants one class of all options
    """The options of an encoder of texts; the defaults are RCRN's of classification."""

    hidden_size: int = field(default=200, metadata={"help": "hidden size of each direction"})
    layers: int = field(default=1, metadata={"help": "number of recurrent layers"})
    unidirectional: bool = field(default=False, metadata={"help": "read texts forwards only"})
    projection_size: int = field(
        default=0, metadata={"help": "size of a projection and highway layers below the recurrent layers; 0 for none"}
    )
    highway_layers: int = field(
        default=2,
        metadata={
            "help": "highway layers after a projection",
            "needs": Needs("without --projection-size", lambda cfg: cfg.projection_size),
        },
    )
    dropout: float = field(
        default=0.3, metadata={"help": "probability of dropout on word vectors, between layers and before the output"}
    )


class EncodedTexts(NamedTuple):
    """What a :class:`TextEncoder` returns."""

    output: Tensor  # (T, B, output_size), zero at padding
    lengths: Tensor  # (B,)


class TextEncoder(nn.Module):
    """Tokens → the outputs of recurrent layers.

    Args:
        cfg: the options.
        task: with the dictionaries of words and, where there are some, of part-of-speech tags. Where it builds the
            model of a checkpoint, no file of vectors or weights is read again.
        words: those of another encoder, which both share; None for its own.

    Raises:
        InputError: an option that makes no sense, or a file that cannot be used.
    """

    def __init__(
        self,
        cfg: Namespace | DictConfig,
        task: FairseqTask,
        words: Optional["WordRepresentation"] = None,  # noqa: UP045
    ) -> None:
        super().__init__()
        check_sizes(cfg, ("embed_dim", "hidden_size", "layers"))
        check_dropouts(cfg, ("dropout",))
        check_deviation(cfg, "embed_init_std")
        for name, other in (("projection_size", "highway_layers"), ("character_hidden_size", "character_embed_dim")):
            if getattr(cfg, name):
                check_sizes(cfg, (name, other))
        check_layer_options(cfg, task)
        check_effects(cfg, TextEncoderConfig, task)
        reads_files = not is_from_checkpoint(task)
        if reads_files and task.tag_dictionary is None and cfg.tag_embed_dim != TextEncoderConfig.tag_embed_dim:
            raise InputError(
                f"--tag-embed-dim {cfg.tag_embed_dim} has no effect on data without part-of-speech tags: leave it out"
            )
        if words is None:
            words = WordRepresentation(cfg, task.source_dictionary, task.tag_dictionary, reads_files)
        self.words = words
        size = self.words.output_size
        self.dropout = Dropout(cfg.dropout)
        self.projection: nn.Module = nn.Identity()
        if cfg.projection_size:
            projected = Linear(size, cfg.projection_size)
            self.projection = nn.Sequential(projected, Highway(cfg.projection_size, cfg.highway_layers))
            size = cfg.projection_size
        kind, options = recurrent_layer(cfg)
        try:
            self.stack = RecurrentStack(
                kind, size, [cfg.hidden_size] * cfg.layers, not cfg.unidirectional, Dropout(cfg.dropout), options
            )
        except ValueError as error:
            raise InputError(f"--recurrent-layer {kind}: {error}") from None
        self.output_size = self.stack.output_size

    def forward(self, tokens: Tensor, lengths: Tensor, tags: Tensor | None = None) -> EncodedTexts:
        """tokens and tags (B, T), right-padded, lengths (B,)."""
        words = self.projection(self.dropout(self.words(tokens, lengths, tags)))
        return EncodedTexts(self.stack(words, lengths).output, lengths)


class WordRepresentation(nn.Module):
    """Word vectors, given or learned; beside them, where asked for, characters, context and tags.

    Given vectors of which no word has its own start like learned ones of their standard deviation.
    """

    def __init__(
        self, cfg: Namespace | DictConfig, dictionary: Dictionary, tags: Dictionary | None, reads_files: bool
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(dictionary), cfg.embed_dim, padding_idx=dictionary.pad())
        nn.init.normal_(self.embedding.weight, std=cfg.embed_init_std)
        if cfg.embed_path is not None:
            if reads_files:
                words, vectors = read_word_vectors(cfg.embed_path, dictionary, cfg.embed_dim, "--embed-dim")
                with torch.no_grad():
                    nn.init.normal_(self.embedding.weight, std=float(vectors.std(unbiased=False)))
                    self.embedding.weight[words] = vectors
            self.embedding.weight.requires_grad_(cfg.train_embed)
        nn.init.zeros_(self.embedding.weight[dictionary.pad()])
        self.characters = self.context = self.tags = None
        self.output_size = cfg.embed_dim
        if cfg.character_hidden_size:
            # fairseq's own symbols are no spelling.
            special = dictionary.nspecial
            words = ["�"] * special + dictionary.symbols[special:]
            self.characters = CharacterEncoder(words, cfg.character_embed_dim, cfg.character_hidden_size)
            self.output_size += self.characters.output_size
        if cfg.context_encoder is not None:
            if reads_files:
                self.context = load_context_encoder(cfg.context_encoder, cfg.embed_dim)
                if cfg.context_hidden_size not in (WordOptions.context_hidden_size, self.context.hidden_size):
                    raise InputError(
                        f"--context-hidden-size {cfg.context_hidden_size}: {cfg.context_encoder} says it, and has "
                        f"{self.context.hidden_size}; leave it out"
                    )
                keep(cfg, context_hidden_size=self.context.hidden_size)
            else:
                self.context = ContextEncoder(cfg.embed_dim, cfg.context_hidden_size)
            self.output_size += self.context.output_size
        if tags is not None:
            self.tags = nn.Embedding(len(tags), cfg.tag_embed_dim, padding_idx=tags.pad())
            self.output_size += cfg.tag_embed_dim

    def forward(self, tokens: Tensor, lengths: Tensor, tags: Tensor | None = None) -> Tensor:
        """tokens and tags (B, T), right-padded -> (T, B, output_size)."""
        tokens = tokens.t()
        vectors = self.embedding(tokens)
        parts = [vectors]
        if self.characters is not None:
            parts.append(self.characters(tokens))
        if self.context is not None:
            parts.append(self.context(vectors, lengths))
        if self.tags is not None:
            if tags is None:
                raise ValueError("the model reads a tag for each token, and there are no tags")
            parts.append(self.tags(tags.t()))
        return torch.cat(parts, dim=-1)


def load_context_encoder(path: str, embed_dim: int) -> ContextEncoder:
    """An encoder out of a file of tensors by name.

    Raises:
        InputError: the file cannot be read, or its weights are not those that are expected.
    """
    expected = "--context-encoder names weights laid out as CoVe's"
    try:
        weights: Any = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {expected}") from None
    except Exception:  # whatever a damaged file leads torch.load to; what it says is how to load it unsafely
        weights = None
    if not isinstance(weights, Mapping) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise InputError(f"{path}: not a file of tensors by name that torch.save wrote; {expected}")
    try:
        encoder = ContextEncoder.of({name.removeprefix("rnn."): tensor for name, tensor in weights.items()})
    except ValueError as error:
        raise InputError(f"{path}: cannot be read as a context encoder's weights: {error}") from None
    if encoder.input_size != embed_dim:
        raise InputError(f"{path}: it reads word vectors of {encoder.input_size}, but --embed-dim is {embed_dim}")
    return encoder
