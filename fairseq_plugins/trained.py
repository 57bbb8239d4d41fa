"""A trained translation model in Python, text in and text out.

    fairseq_plugins.load("work/quickstart/mc_rnn_3").translate(["Der Hund schläft."])

fairseq's own ``from_pretrained`` loads the same checkpoints, and leaves tokens and BPE to its caller; see
docs/python.md.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq import checkpoint_utils
from fairseq.hub_utils import GeneratorHubInterface
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig
from torch import Tensor

from .checkpoints import architecture, checked_checkpoint, checkpoint_of, trained_on
from .corpora.codec import list_of_texts
from .corpora.pairs import PairsPreparation
from .errors import InputError
from .experiments import results
from .experiments.fairseq_commands import SOURCE_TOKENS
from .experiments.prepared_data import PreparedData
from .experiments.translate import MAX_LEN_A, MAX_LEN_B
from .patches.messages import quiet_warnings


@dataclass(frozen=True)
class Ensemble:
    """One model or several out of checkpoints, and how text becomes what they read.

    Attributes:
        architectures: the ``--arch`` of each
        models: in evaluation mode, on the CPU
        cfg: the configuration of the first one's training
        task: with the dictionaries
        folder: the prepared data
        preparation: how that was made
    """

    architectures: list[str]
    models: list[FairseqEncoderDecoderModel]
    cfg: DictConfig
    task: FairseqTask
    folder: Path
    preparation: PairsPreparation

    @classmethod
    def load(cls, paths: Sequence[str | Path], data: Path | None = None) -> Ensemble:
        """Reads checkpoints.

        Args:
            paths: the checkpoints, trained on the same data
            data: the prepared data; None for that of the first one's training

        Raises:
            InputError: one is not a checkpoint of a translation model, or was trained on other data, or the data is
                damaged or not there.
        """
        results.load_extensions_of(paths)
        states = [checked_checkpoint(path) for path in paths]
        folder = data or trained_on(states[0], str(paths[0]))
        preparation = PairsPreparation.load(folder)
        prepared = PreparedData.load(folder)
        prepared.verify("")
        for path, state in zip(paths, states, strict=True):
            prepared.check_trained_on(state, path)
        overrides = {"data": str(folder / "bin")}
        try:
            with _quietly():
                models, cfg, task = checkpoint_utils.load_model_ensemble_and_task(list(map(str, paths)), overrides)
        except RuntimeError as error:
            if "size mismatch" not in str(error):
                raise
            raise InputError(
                f"{paths[0]}: the dictionaries of {folder} are of another size; give its own data"
            ) from None
        for path, state, model in zip(paths, states, models, strict=True):
            if not isinstance(model, FairseqEncoderDecoderModel):
                raise InputError(
                    f"{path}: '{architecture(state)}' has no encoder and decoder; give a translation model's checkpoint"
                )
            model.eval()
        return cls([str(architecture(state)) for state in states], models, cfg, task, folder, preparation)

    def translate(
        self,
        lines: Sequence[str],
        beam: int = 5,
        length_penalty: float = 1.0,
        device: str = "cpu",
        no_repeat_ngram_size: int = 0,
    ) -> list[str]:
        """Translates text by beam search, as ``fairseq-plugins translate`` does, its limit of the length included.

        Args:
            lines: source text, a sentence each; what is empty stays empty
            beam: the number of hypotheses that are kept
            length_penalty: above 1 favours longer translations
            device: ``cpu``, ``cuda``, …
            no_repeat_ngram_size: of so many subwords no sequence comes twice in a translation; 0 for no limit

        Raises:
            TypeError: ``lines`` is one text, or one of them is no text.
            InputError: a sentence is longer than the models take.
        """
        pieces = [self.preparation.encode_source(line) for line in list_of_texts("translate", lines)]
        tokens = [self._tokens(number, line) for number, line in enumerate(pieces, 1) if line]
        if not tokens:
            return [""] * len(pieces)
        # The batches of the training were for other ends, and shorter than a sentence may be.
        self.cfg.dataset.max_tokens = max(SOURCE_TOKENS, *map(len, tokens))
        self.cfg.dataset.batch_size = None
        with _quietly():
            hub = self._hub.to(device)
            limits = {
                "lenpen": length_penalty,
                "no_repeat_ngram_size": no_repeat_ngram_size,
                "max_len_a": MAX_LEN_A,
                "max_len_b": MAX_LEN_B,
            }
            hypotheses = iter(hub.generate(tokens, beam=beam, **limits))
        return [self._text(next(hypotheses)[0]["tokens"].cpu()) if line else "" for line in pieces]

    @functools.cached_property
    def _hub(self) -> GeneratorHubInterface:
        # It prepares the models for decoding, which changes them: not before somebody translates.
        return GeneratorHubInterface(self.cfg, self.task, self.models)

    def _tokens(self, number: int, pieces: str) -> Tensor:
        tokens = self.task.source_dictionary.encode_line(pieces, add_if_not_exist=False).long()
        longest = min(model.max_positions()[0] for model in self.models)
        if len(tokens) > longest:
            raise InputError(f"sentence {number} has {len(tokens):,} tokens, but the model takes {longest:,}; split it")
        return tokens

    def _text(self, tokens: Tensor) -> str:
        return self.preparation.detokenize_target(
            self.preparation.decode_target(self.task.target_dictionary.string(tokens))
        )


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without what fairseq tells of dictionaries and batches."""
    logger = logging.getLogger("fairseq")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            quiet_warnings()
            yield
    finally:
        logger.setLevel(level)


def load(path: str | Path, data: str | Path | None = None) -> Ensemble:
    """A trained model, ready to translate.

    Args:
        path: a training's work folder, for its best checkpoint; a checkpoint; or several for an ensemble,
            ``a.pt:b.pt``
        data: the prepared data; None for that of the training

    Raises:
        InputError: there is no such checkpoint, it is not that of a translation model, or its data is not there.
    """
    paths = [checkpoint_of(path)] if Path(path).is_dir() else list(map(checkpoint_of, str(path).split(":")))
    return Ensemble.load(paths, None if data is None else Path(data))
