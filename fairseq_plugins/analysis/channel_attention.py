"""Channel attention: which channels of an MC-RNN encoder are attended to at each step (MC-RNN, Figure 3).

A channel connects a step directly with its last m predecessors (Eq. 1), so that a large weight stands for the phrase
that those tokens make up.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from ..decoding.forced_decoding import layer_details
from ..decoding.translation import Sentence, TranslationModel
from ..errors import InputError
from ..kernels import in_degree
from ..models.shown_attention import LayerDetail
from ..symbols import END
from .result import Analysis
from .sentences import add_model_arguments, add_sentences_argument, analysis_of_sentences, chosen, read_sources


@dataclass(frozen=True)
class LayerAttention:
    """One layer and direction; steps are in the order of the sentence, whatever the direction.

    Attributes:
        layer: from 1
        direction: ``forwards`` or ``backwards``
        attention: T rows of C weights alpha that sum to 1 (Eq. 5), channels 1 to C
        in_degree: T rows of C numbers m (Eq. 1)
        phrases: T rows of C texts: the step's token and its last m predecessors in reading direction
    """

    layer: int
    direction: str
    attention: list[list[float]]
    in_degree: list[list[int]]
    phrases: list[list[str]]


@dataclass(frozen=True)
class ChannelAttention:
    """A sentence.

    Attributes:
        pieces: its T BPE tokens, the end of sentence being the last one: a step each
        words: the words that they make up: text, first token, last token + 1
        layers: each layer, forwards and backwards in turn
    """

    pieces: list[str]
    words: list[tuple[str, int, int]]
    layers: list[LayerAttention]


def channel_attention(trained: TranslationModel, sentences: Sequence[Sentence]) -> list[ChannelAttention]:
    """The channel attention of an encoder.

    Raises:
        InputError: the model's encoder is not an MC-RNN.
    """
    results = []
    for sentence in sentences:
        layers = layer_details(trained, sentence, "channel_attention")
        if not layers:
            raise InputError(
                f"{trained.path}: the encoder of '{trained.architecture}' has no channels; give an MC-RNN's checkpoint"
            )
        words = [(word.text, word.start, word.stop) for word in sentence.words_and_end]
        by_layer = [_layer(trained, sentence, layer) for layer in layers]
        results.append(ChannelAttention([*sentence.pieces, END], words, by_layer))
    return results


def _layer(trained: TranslationModel, sentence: Sentence, layer: LayerDetail) -> LayerAttention:
    is_backward, attention = layer.direction == "backwards", layer.values.tolist()
    steps, channels = len(attention), len(attention[0])
    degrees, phrases = [], []
    for position in range(steps):
        # In the backward direction time counts from the sentence's last token.
        time = steps - position if is_backward else position + 1
        row = [int(in_degree(time, channel, channels)) for channel in range(1, channels + 1)]
        spans = [(position, position + m) if is_backward else (position - m, position) for m in row]
        degrees.append(row)
        phrases.append([_text(trained, sentence, max(0, first), min(steps - 1, last)) for first, last in spans])
    return LayerAttention(layer.layer, layer.direction, attention, degrees, phrases)


def _text(trained: TranslationModel, sentence: Sentence, first: int, last: int) -> str:
    """The text of the tokens ``first`` to ``last``; the one after the sentence's last is its end."""
    words = trained.words(trained.preparation.source_lang, sentence.pieces[first : last + 1])
    return " ".join([*(word.text for word in words), *([END] if last == len(sentence.pieces) else [])])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_model_arguments(parser, target=False)
    add_sentences_argument(parser)
    parser.add_argument("--phrases", type=int, default=5, metavar="N", help="how many phrases to print (5 by default)")


def run(arguments: argparse.Namespace) -> Analysis:
    """The channel attention of some sentences, a figure for each, and the phrases most attended to."""
    trained = TranslationModel.load([arguments.checkpoint], arguments.data)
    sentences = channel_attention(trained, chosen(read_sources(trained, arguments), arguments.sentences))
    return analysis_of_sentences(
        trained,
        arguments.sentences,
        sentences,
        lambda sentence: [f"  {line}" for line in strongest(sentence, arguments.phrases)],
    )


def strongest(sentence: ChannelAttention, count: int) -> list[str]:
    """The ``count`` largest weights, with the layer, direction and channel, and the phrase that is covered there."""
    cells = [
        (-weight, layer.layer, layer.direction, channel, phrase)
        for layer in sentence.layers
        for weights, phrases in zip(layer.attention, layer.phrases, strict=True)
        for channel, (weight, phrase) in enumerate(zip(weights, phrases, strict=True), 1)
    ]
    return [
        f"{-weight:.2f}  layer {layer}, {direction}, channel {channel}: {phrase}"
        for weight, layer, direction, channel, phrase in sorted(cells)[:count]
    ]
