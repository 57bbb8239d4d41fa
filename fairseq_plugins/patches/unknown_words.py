"""``--replace-unk [DICTIONARY]`` of fairseq-generate and fairseq-interactive, with any model with attention."""

from __future__ import annotations

import argparse
import copy
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import omegaconf
import torch
from fairseq import utils
from fairseq.data import data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from fairseq.tokenizer import tokenize_line

from ..files import read_lines
from .replacing import replace_once

logger = logging.getLogger(__name__)


def replace_unknown_words() -> None:
    """Makes ``--replace-unk [DICTIONARY]`` work.

    Each unknown token of a translation becomes the source token that it attends to most, or what the alignment
    dictionary says for that token. Tokens are those that the model sees, so with BPE pieces of words are copied before
    ``--post-process`` joins them. fairseq looks up positions of pieces among words, fails with ``--print-alignment``
    and without, takes the option without a dictionary for a file named "@@ ", and in fairseq-interactive copies
    ``<unk>``.

    The text of an unknown source token is what fairseq-interactive reads, or what ``--dataset-impl raw`` holds.
    Binarised data do not keep it: fairseq-generate takes it from ``bpe/`` beside them, where the preparation left it.
    Where there is none, it replaces what attends to a known source token, leaves the rest ``<unk>``, and warns with
    their number.

    For fairseq 0.12.
    """
    replace_once(utils, "load_align_dict", _without_dictionary)
    replace_once(BaseFairseqModel, "prepare_for_inference_", _showing_attention)
    replace_once(FairseqTask, "inference_step", _attaching_sources)
    replace_once(utils, "post_process_prediction", _replacing_unknown_words)
    # The command that runs has been imported before its --user-dir, as __main__ with python -m. Importing the others
    # from here would set up logging for them.
    commands = {name: sys.modules.get(name) for name in ("fairseq_cli.generate", "fairseq_cli.interactive")}
    main = sys.modules["__main__"]
    if getattr(getattr(main, "__spec__", None), "name", None) in commands:
        commands["__main__"] = main
    for module in filter(None, commands.values()):
        replace_once(module, "main", _remembering_replacement)
        if hasattr(module, "make_batches"):
            replace_once(module, "make_batches", _remembering_lines)


class Replacement:
    """What ``--replace-unk`` of the command that runs asks for.

    Attributes:
        dictionary: from a source token to what replaces it, for those that are not copied
        lines: the source texts of the present batch, as the model's tokens, where they are known without the data set
        prepared: split → its source texts, where :func:`_prepared_text` has found them
        left: how many unknown tokens had to stay
    """

    def __init__(self, dictionary: dict[str, str]) -> None:
        self.dictionary = dictionary
        self.lines: list[str] | None = None
        self.prepared: dict[str, list[str]] = {}
        self.left = 0


_replacement: Replacement | None = None


class _SourceAlignment(list):
    """A hypothesis' alignment as fairseq prints it, and with it what replacing needs.

    Attributes:
        source: the source tokens; None where an unknown token's text is not known
        position: from the position of an unknown target token to that of the source token
    """

    def __init__(self, printed: Any, source: list[str | None], position: dict[int, int]) -> None:
        super().__init__(printed if isinstance(printed, list) else [])
        self.source = source
        self.position = position


def _without_dictionary(load_align_dict: Callable) -> Callable:
    def load(replace_unk: str | None) -> dict[str, str] | None:
        return load_align_dict("" if replace_unk == "@@ " else replace_unk)

    return load


@contextmanager
def replacing_unknown_words(dictionary: str | None) -> Iterator[Replacement | None]:
    """Replaces unknown words of what is translated meanwhile.

    Args:
        dictionary: what ``--replace-unk`` names; None where it is not given, and nothing is replaced
    """
    global _replacement
    if dictionary is None:
        yield None
        return
    _replacement = Replacement(utils.load_align_dict(dictionary))
    try:
        yield _replacement
    finally:
        _replacement = None


def _remembering_replacement(main: Callable) -> Callable:
    def run(cfg: argparse.Namespace | omegaconf.DictConfig, *rest: Any, **keywords: Any) -> Any:
        if isinstance(cfg, argparse.Namespace):
            cfg = convert_namespace_to_omegaconf(cfg)
        with replacing_unknown_words(cfg.generation.replace_unk) as replacement:
            if replacement is not None and main.__module__ != "fairseq_cli.interactive":
                if cfg.dataset.dataset_impl != "raw":
                    cfg = copy.deepcopy(cfg)
                    cfg.generation.replace_unk = None  # fairseq-generate refuses it without raw text
            result = main(cfg, *rest, **keywords)
            if replacement is not None and replacement.left:
                logger.warning(
                    f"--replace-unk: {unknown_words_left(replacement.left)}; "
                    f"use fairseq-interactive, or --dataset-impl raw with data preprocessed so"
                )
            return result

    return run


def unknown_words_left(count: int) -> str:
    """Why some unknown words stay."""
    return (
        f"{count} unknown words stay, because the words that they attend to are unknown too and binarised data do not "
        f"keep their text"
    )


def _remembering_lines(make_batches: Callable) -> Callable:
    def make(lines: list[str], cfg: Any, task: FairseqTask, max_positions: Any, encode_fn: Callable) -> Iterator[Any]:
        for batch in make_batches(lines, cfg, task, max_positions, encode_fn):
            if _replacement is not None:
                _replacement.lines = [encode_fn(lines[number]) for number in batch.ids.tolist()]
            yield batch

    return make


def _showing_attention(prepare_for_inference_: Callable) -> Callable:
    def prepare(self: BaseFairseqModel, cfg: omegaconf.DictConfig) -> None:
        if _replacement is not None:
            cfg = copy.deepcopy(cfg)
            cfg.generation.print_alignment = "hard"  # what makes models such as lstm compute it
        prepare_for_inference_(self, cfg)

    return prepare


def _attaching_sources(inference_step: Callable) -> Callable:
    def infer(self: FairseqTask, generator: Any, models: Any, sample: dict[str, Any], *rest: Any, **keywords: Any):
        hypotheses = inference_step(self, generator, models, sample, *rest, **keywords)
        if _replacement is None:
            return hypotheses
        dictionary = self.target_dictionary
        pad, eos, unknown = dictionary.pad(), dictionary.eos(), dictionary.unk()
        for row, tokens in enumerate(sample["net_input"]["src_tokens"].cpu()):
            source = _source_tokens(_replacement, self, sample, row, tokens)
            for hypothesis in hypotheses[row]:
                position: dict[int, int] = {}
                if hypothesis["tokens"].eq(unknown).any():
                    pairs = hypothesis["alignment"]
                    if not (isinstance(pairs, list) and pairs and isinstance(pairs[0], tuple)):
                        pairs = _hard_alignment(hypothesis, tokens, pad, eos)
                    position = {target: source for source, target in pairs}
                hypothesis["alignment"] = _SourceAlignment(hypothesis["alignment"], source, position)
        return hypotheses

    return infer


def _hard_alignment(hypothesis: dict[str, Any], source: torch.Tensor, pad: int, eos: int) -> list[tuple[int, int]]:
    attention = hypothesis["attention"]
    if attention is None or attention.numel() == 0:
        raise ValueError("--replace-unk needs a model with attention to the source, and this one shows none")
    return utils.extract_hard_alignment(attention.t().cpu(), source, hypothesis["tokens"].cpu(), pad, eos)


def _source_tokens(
    replacement: Replacement, task: FairseqTask, sample: dict[str, Any], row: int, tokens: torch.Tensor
) -> list[str | None]:
    """The source tokens of a batch's row, without padding and end of sentence; None for an unknown text."""
    dictionary = task.source_dictionary
    kept = [token for token in tokens.tolist() if token not in (dictionary.pad(), dictionary.eos())]
    text = None
    if replacement.lines is not None:
        text = replacement.lines[row]
    else:
        for split, dataset in task.datasets.items():
            if hasattr(getattr(dataset, "src", None), "get_original_text"):
                text = dataset.src.get_original_text(int(sample["id"][row]))
            elif texts := _prepared_text(replacement, task, split, len(dataset)):
                text = texts[int(sample["id"][row])]
    words = None if text is None else tokenize_line(text)
    if words is not None and len(words) == len(kept):
        return words
    return [None if token == dictionary.unk() else dictionary[token] for token in kept]


def _prepared_text(replacement: Replacement, task: FairseqTask, split: str, count: int) -> list[str]:
    """The ``count`` source texts of a split, which a preparation left beside the binarised data; none where it did not.

    Raises:
        InputError: the file is damaged.
    """
    if split not in replacement.prepared:
        data, language = (getattr(task.cfg, name, None) or "" for name in ("data", "source_lang"))
        path = Path(data).parent / "bpe" / f"{split}.{language}"
        lines = list(read_lines(path)) if path.is_file() else []
        # Of another preparation they would be other sentences.
        replacement.prepared[split] = lines if len(lines) == count else []
    return replacement.prepared[split]


def _replacing_unknown_words(post_process_prediction: Callable) -> Callable:
    def post_process(
        hypo_tokens, src_str, alignment, align_dict, tgt_dict, remove_bpe=None, extra_symbols_to_ignore=None
    ):
        if _replacement is None or alignment is None:
            return post_process_prediction(
                hypo_tokens, src_str, alignment, align_dict, tgt_dict, remove_bpe, extra_symbols_to_ignore
            )
        if not isinstance(alignment, _SourceAlignment):
            raise ValueError("--replace-unk does not work with this task, which decodes in a way of its own")
        hidden = {tgt_dict.eos(), tgt_dict.bos(), *(extra_symbols_to_ignore or ())}
        words = []
        position = 0
        for token in hypo_tokens.tolist():
            if token not in hidden:
                word = tgt_dict[token]
                if token == tgt_dict.unk():
                    word = alignment.source[alignment.position[position]] if position in alignment.position else None
                    if word is None:
                        word = tgt_dict.unk_string()
                        _replacement.left += 1
                    else:
                        word = _replacement.dictionary.get(word, word)
                words.append(word)
            position += token not in (tgt_dict.eos(), tgt_dict.pad())
        hypo_str = data_utils.post_process(" ".join(words), remove_bpe)
        return tgt_dict.encode_line(hypo_str, add_if_not_exist=True), hypo_str, alignment

    return post_process
