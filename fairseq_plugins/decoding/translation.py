"""Translation by beam search, of a prepared set or of text.

    fairseq_plugins.load("work/quickstart/mc_rnn_3").translate(["Der Hund schläft."])

fairseq's own ``from_pretrained`` loads the same checkpoints, and leaves tokens and BPE to its caller; see
docs/python.md.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import FairseqDataset
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel, FairseqEncoderDecoderModel
from fairseq.search import Search
from torch import Tensor

from ..checkpoints import checkpoints_of
from ..corpora.codec import Word, list_of_texts
from ..corpora.pairs import PairsPreparation
from ..errors import InputError
from ..exported.beam_search import (
    LENGTH_FACTORS,
    LENGTH_PENALTIES,
    UNKNOWN_PENALTIES,
    check_lengths,
    check_range,
    check_whole_numbers,
)
from ..exported.language_model import LEAST_TEMPERATURE
from ..patches.unknown_words import replacing_unknown_words
from ..symbols import END
from .trained_model import (
    WHOLE,
    BatchOptions,
    Hypothesis,
    Share,
    Stopwatch,
    TrainedModel,
    class_of,
    model_overrides,
    named_options,
    quietly,
)

SOURCE_TOKENS = 4000
"""In a batch of text that is translated: larger ones are hardly faster (docs/speed.md)."""
MAX_LEN_A, MAX_LEN_B = 1.5, 10
"""A translation of text has at most so many tokens for each of its source's, and so many more. fairseq's own are 0 and
200, so that a model that repeats words without end does so for 200 tokens."""
SET_TOKENS = 12000
"""In a batch of a prepared set, as fairseq-generate has it."""


@dataclass(frozen=True)
class GenerationOptions:
    """How beam search is done.

    Attributes:
        generation: fairseq's
        batches: how sentences are put together
        task: options of the task, by their names, that win over the training's
        overrides: options of the training that are replaced (``--model-overrides``)
    """

    generation: GenerationConfig = field(default_factory=GenerationConfig)
    batches: BatchOptions = BatchOptions()
    task: dict[str, Any] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, parsed: argparse.Namespace, arguments: Sequence[str] = ()) -> GenerationOptions:
        """Those that fairseq's parser made.

        Args:
            parsed: all of them
            arguments: those that were parsed, of which those of the task count
        """
        batches = BatchOptions.of(parsed)
        if parsed.no_seed_provided:
            batches = replace(batches, seed=None)
        return cls(
            GenerationConfig.from_namespace(parsed),
            batches,
            named_options(parsed, arguments),
            model_overrides(parsed),
        )


@dataclass(frozen=True)
class Sentence:
    """One side of a pair as a model reads it.

    Attributes:
        pieces: BPE tokens, without the end of sentence
        words: the words that they make up
    """

    pieces: list[str]
    words: list[Word]

    @property
    def words_and_end(self) -> list[Word]:
        """The words, and the end of sentence as the last one."""
        return [*self.words, Word(END, len(self.pieces), len(self.pieces) + 1)]


@dataclass(frozen=True)
class Translations:
    """What became of lines of text.

    Attributes:
        texts: of each line its translation; empty where the line is empty or too long
        too_long: the place of each line that is longer than the models take, from 0 → its tokens
        cut: the place of each translation that reached the limit of its length → the limit, in tokens
        unknown: how many unknown words were to be replaced and stayed
    """

    texts: list[str]
    too_long: dict[int, int]
    cut: dict[int, int]
    unknown: int


@dataclass
class Generated:
    """What else a beam search has to say.

    Attributes:
        stopwatch: of the search alone
        unknown: how many unknown words were to be replaced and stayed
    """

    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    unknown: int = 0


class TranslationModel(TrainedModel):
    """A translation model, or an ensemble of several; headlines are translations too."""

    models: list[FairseqEncoderDecoderModel]
    preparation_class = PairsPreparation

    @classmethod
    def check_architecture(cls, name: str, path: str | Path) -> None:
        if not issubclass(class_of(name), FairseqEncoderDecoderModel):
            raise InputError(f"{path}: '{name}' has no encoder and decoder; give a translation model's checkpoint")

    @property
    def preparation(self) -> PairsPreparation:
        """How text becomes what the models read."""
        return self.data.pairs

    def longest_source(self, options: Mapping[str, Any] = MappingProxyType({})) -> int:
        """The tokens, the end of the sentence among them, that all of the models take, or fewer if the task's options
        say so."""
        limits = [model.max_positions()[0] for model in self.models]
        return int(min([*limits, options.get("max_source_positions", limits[0])]))

    def dataset(self, subset: str, options: Mapping[str, Any] = MappingProxyType({})) -> FairseqDataset:
        """A prepared set.

        Raises:
            InputError: a source sentence of it is longer than the models take.
        """
        dataset = super().dataset(subset, options)
        longest = self.longest_source(options)
        lengths = np.asarray(dataset.src_sizes)
        if (too_long := np.flatnonzero(lengths > longest)).size:
            raise InputError(
                f"{self.data.folder}: sentence {too_long[0] + 1:,} of '{subset}' has {lengths[too_long[0]]:,} tokens, "
                f"but the model takes {longest:,}; shorten it, or train with a larger --max-source-positions"
            )
        return dataset

    def on(self, device: str | torch.device) -> TranslationModel:
        """The same models on a device."""
        for model in self.models:
            model.to(device)
        return replace(self, device=torch.device(device))

    def translate(
        self,
        lines: Sequence[str],
        beam: int = 5,
        length_penalty: float = 1.0,
        device: str = "cpu",
        no_repeat_ngram_size: int = 0,
    ) -> list[str]:
        """Translates text by beam search, as ``fairseq-plugins translate`` does.

        Args:
            lines: source text, a sentence each; what is empty stays empty
            beam: the number of hypotheses that are kept
            length_penalty: above 1 favours longer translations
            device: ``cpu``, ``cuda``, …
            no_repeat_ngram_size: of so many subwords no sequence comes twice in a translation; 0 for no limit

        Raises:
            TypeError: ``lines`` is one text, or one of them is no text.
            InputError: a sentence is longer than the models take, or has half a character, or a number is none that can
                be.
        """
        limits = {"lenpen": length_penalty, "no_repeat_ngram_size": no_repeat_ngram_size}
        generation = limited_generation(beam=beam, **limits)
        model = self.on(device)
        return model.translations(lines, GenerationOptions(generation), is_strict=True).texts

    def translations(
        self,
        lines: Sequence[str],
        options: GenerationOptions,
        progress: Callable[[], object] = lambda: None,
        is_strict: bool = False,
    ) -> Translations:
        """Translates text, and says what else there is to know.

        Args:
            lines: source text, a sentence each; what is empty, or longer than the models take, becomes empty
            options: of beam search
            progress: called after each sentence
            is_strict: refuse a line that is longer than the models take

        Raises:
            TypeError: ``lines`` is one text, or one of them is no text.
            InputError: a line is longer than the models take, and ``is_strict``.
        """
        encoded = [self.preparation.encode_source(line) for line in list_of_texts("translate", lines)]
        longest = self.longest_source(options.task)
        lengths = [len(pieces.split()) + 1 for pieces in encoded]
        too_long = {place: length for place, length in enumerate(lengths) if length > longest}
        if is_strict and too_long:
            place, length = next(iter(too_long.items()))
            raise InputError(f"sentence {place + 1} has {length:,} tokens, but the model takes {longest:,}; split it")
        places = [place for place, pieces in enumerate(encoded) if pieces and place not in too_long]
        if not places:
            return Translations([""] * len(encoded), too_long, {}, 0)
        sources = [encoded[place] for place in places]
        tokens = [self.source_dictionary.encode_line(line, add_if_not_exist=False).long() for line in sources]
        sizes = torch.tensor([len(line) for line in tokens])
        dataset = self.task.build_dataset_for_inference(tokens, sizes)
        generated = Generated()
        texts, cut = [""] * len(encoded), {}
        limits = self._limits(sizes, options.generation)
        for number, hypothesis in self.generate(dataset, options, generated, sources=sources, limits=limits):
            place, most = places[number], int(limits[number])
            texts[place] = self.text(hypothesis.pieces)
            if len(hypothesis.log_probabilities) > most:
                cut[place] = most
            progress()
        return Translations(texts, too_long, dict(sorted(cut.items())), generated.unknown)

    def generate(
        self,
        dataset: FairseqDataset,
        options: GenerationOptions,
        generated: Generated,
        share: Share = WHOLE,
        sources: Sequence[str] | None = None,
        limits: Tensor | None = None,
    ) -> Iterator[tuple[int, Hypothesis]]:
        """Beam search over a data set of source sentences.

        Args:
            dataset: fairseq's
            options: of beam search
            generated: is told what else there is to know, when all is done
            share: which of the batches
            sources: the sentences' subwords, from which unknown words are copied; None where the data has them
            limits: (N,), the tokens of each sentence's longest translation, its end not included; None for fairseq's
                limit, which is that of the longest source in the batch

        Yields:
            the number of a sentence, in no particular order, and its best hypothesis
        """
        generation = options.generation
        check_generation(generation, min(model.max_decoder_positions() for model in self.models))
        language_model = self._language_model(generation)
        batches = options.batches.fitted(dataset, SET_TOKENS if sources is None else SOURCE_TOKENS)
        for model in (*self.models, *language_model):
            model.prepare_for_inference_(SimpleNamespace(generation=generation))
        with quietly():
            generator = self.task.build_generator(
                self.models,
                generation,
                extra_gen_cls_kwargs={
                    "lm_model": next(iter(language_model), None),
                    "lm_weight": generation.lm_weight,
                },
            )
        if limits is not None:
            _limit_each_sentence(generator.search, limits.to(self.device), self.target_dictionary.eos())
        ignored = generator.symbols_to_strip_from_output
        is_copying = generation.replace_unk is not None
        with replacing_unknown_words(generation.replace_unk) as replacement, _attention(self.models, is_copying):
            for batch in self.batches(dataset, batches, share):
                numbers = batch["id"].tolist()
                if replacement is not None and sources is not None:
                    replacement.lines = [sources[number] for number in numbers]
                with generated.stopwatch:
                    hypotheses = self.task.inference_step(generator, self.models, batch)
                for number, [best, *_] in zip(numbers, hypotheses, strict=True):
                    _, pieces, _ = utils.post_process_prediction(
                        best["tokens"].int().cpu(),
                        "",
                        best["alignment"],
                        replacement and replacement.dictionary,
                        self.target_dictionary,
                        extra_symbols_to_ignore=ignored,
                    )
                    yield number, Hypothesis(pieces, best["positional_scores"].tolist())
            generated.unknown = replacement.left if replacement is not None else 0

    def _limits(self, sizes: Tensor, generation: GenerationConfig) -> Tensor:
        longest = min(model.max_decoder_positions() for model in self.models) - 1
        return (generation.max_len_a * sizes.double() + generation.max_len_b).long().clamp(generation.min_len, longest)

    def _language_model(self, generation: GenerationConfig) -> list[BaseFairseqModel]:
        """The one that ``--lm-path`` names for shallow fusion; none where it names none."""
        if generation.lm_path is None:
            return []
        if not Path(generation.lm_path).is_file():
            raise InputError(f"--lm-path {generation.lm_path}: no such file")
        with quietly():
            models, _, _ = checkpoint_utils.load_model_ensemble_and_task(
                [generation.lm_path], {"data": str(self.data.folder / "bin")}
            )
        return [model.eval().to(self.device) for model in models]

    def text(self, pieces: str) -> str:
        """Subwords of the target as text."""
        return self.preparation.detokenize_target(self.preparation.decode_target(pieces))

    def source(self, pieces: str) -> Sentence:
        """A source sentence out of BPE tokens separated by spaces."""
        return self._sentence(self.preparation.source_lang, pieces)

    def target(self, pieces: str) -> Sentence:
        """A target sentence out of BPE tokens separated by spaces."""
        return self._sentence(self.preparation.target_lang, pieces)

    def _sentence(self, language: str, pieces: str) -> Sentence:
        split = pieces.split()
        return Sentence(split, self.words(language, split))

    def words(self, language: str, pieces: Sequence[str]) -> list[Word]:
        """The words that BPE tokens make up, as they are read: ``'s``, where Moses' tokens have ``&apos;s``."""
        words = self.preparation.join_pieces(language, pieces)
        if self.preparation.tokenizer != "moses":
            return words
        return [word._replace(text=html.unescape(word.text)) for word in words]


def _limit_each_sentence(search: Search, limits: Tensor, end: int) -> None:
    """Has a search end the hypotheses of each sentence at that sentence's own limit, whatever is in its batch.

    Args:
        search: of a generator
        limits: (N,), by the numbers of the sentences
        end: the token that ends a hypothesis
    """
    step_of_fairseq, least = search.step, int(limits.min())

    def limited_step(
        step: int, lprobs: Tensor, scores: Tensor, prev_output_tokens: Tensor, original_batch_idxs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        if step >= least:
            is_at_limit = (limits[original_batch_idxs] <= step)[:, None, None]
            is_going_on = torch.arange(lprobs.size(2), device=lprobs.device) != end
            lprobs = lprobs.masked_fill(is_at_limit & is_going_on, -torch.inf)
        return step_of_fairseq(step, lprobs, scores, prev_output_tokens, original_batch_idxs)

    search.step = limited_step


@contextlib.contextmanager
def _attention(models: Sequence[BaseFairseqModel], is_needed: bool) -> Iterator[None]:
    """Has models hand out their attention in decoding, or not; afterwards they do, since analyses ask for it."""
    showing = [module for model in models for module in model.modules() if hasattr(module, "need_attn")]
    for module in showing:
        module.need_attn = is_needed
    try:
        yield
    finally:
        for module in showing:
            module.need_attn = True


def check_generation(generation: GenerationConfig, longest: int) -> None:
    """Raises InputError where numbers of beam search cannot be; ``longest`` is that of a model's translations, their
    end counted."""
    check_whole_numbers(generation, beam=1, nbest=1, no_repeat_ngram_size=0, max_len_b=0, min_len=0)
    check_range(generation, "lenpen", LENGTH_PENALTIES)
    check_range(generation, "max_len_a", LENGTH_FACTORS)
    check_range(generation, "unkpen", UNKNOWN_PENALTIES)
    check_range(generation, "temperature", (LEAST_TEMPERATURE, math.inf))
    check_lengths(generation.min_len, generation.max_len_a, generation.max_len_b, longest)


def limited_generation(**options: Any) -> GenerationConfig:
    """fairseq's options of beam search, with our limit of a translation's length."""
    return GenerationConfig(max_len_a=MAX_LEN_A, max_len_b=MAX_LEN_B, **options)


def load(path: str | Path, data: str | Path | None = None) -> TranslationModel:
    """A trained model, ready to translate.

    Args:
        path: a training's work folder, for its best checkpoint; a checkpoint; or several for an ensemble,
            ``a.pt:b.pt``
        data: the prepared data; None for that of the training

    Raises:
        InputError: there is no such checkpoint, it is not that of a translation model, or its data is not there.
    """
    return TranslationModel.load(checkpoints_of(path), None if data is None else Path(data))
