"""Byte-pair encoding behind one interface, with an adapter for SentencePiece and one for subword-nmt.

Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units". Both adapters are deterministic,
and ``decode(encode(line)) == line`` for every line without a leading, trailing or double space.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from fairseq_plugins.errors import InputError
from fairseq_plugins.files import atomic_file, read_lines
from fairseq_plugins.symbols import SYMBOLS

# SentencePiece and subword-nmt are imported where they are used: --help and refusals need not wait for them.

# What a subword model uses as a mark of its own is escaped in its pieces, or decoding would take it for the mark.
# The escape character is the last one of the first private use area: no font, no keyboard and no corpus uses it.
_ESCAPE = "\uf8ff"
_MOST_WORDS = 1 << 18


class SubwordModel(ABC):
    """One learned segmentation of words into subwords."""

    name: ClassVar[str]
    suffix: ClassVar[str]
    """The end of a model file's name."""
    mark: ClassVar[str]
    """The characters by which the pieces say where words end."""

    @classmethod
    @abstractmethod
    def learn(cls, lines: Iterable[str], size: int, path: str | os.PathLike[str]) -> None:
        """Learns a model from lines and writes it to ``path``.

        Args:
            size: the vocabulary (SentencePiece) or the number of merge operations (subword-nmt).

        Raises:
            InputError: the lines do not allow that size; the message names the largest or smallest possible one.
        """

    @abstractmethod
    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Loads a model that :meth:`learn` wrote."""

    @abstractmethod
    def encode(self, line: str) -> str:
        """A line's pieces, separated by single spaces; none is one of fairseq's :data:`SYMBOLS`."""

    @abstractmethod
    def decode(self, pieces: str) -> str:
        """The line that pieces separated by spaces stand for."""

    @classmethod
    @abstractmethod
    def starts_word(cls, pieces: Sequence[str], index: int) -> bool:
        """Whether a word begins with ``pieces[index]``."""

    @classmethod
    def _escape(cls, line: str) -> str:
        return line.replace(_ESCAPE, _ESCAPE + "0").replace(cls.mark, _ESCAPE + "1")

    @classmethod
    def _unescape(cls, line: str) -> str:
        if _ESCAPE not in line:
            return line
        originals = {"0": _ESCAPE, "1": cls.mark}
        return re.sub(f"{_ESCAPE}([01])", lambda match: originals[match[1]], line)


class SentencePieceModel(SubwordModel):
    """SentencePiece's BPE of the text as it is: not normalised, each character of the training text in the vocabulary.

    Kudo and Richardson 2018. Spaces are part of the pieces, so languages without spaces need no tokenisation. Letters
    and brackets are never in one piece, so none is ``<s>``.
    """

    name = "sentencepiece"
    suffix = ".model"
    mark = "\u2581"

    @classmethod
    def learn(cls, lines: Iterable[str], size: int, path: str | os.PathLike[str]) -> None:
        import sentencepiece

        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(cls._escape(line) for line in lines if line),
                model_writer=model,
                model_type="bpe",
                vocab_size=size,
                character_coverage=1.0,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                max_sentence_length=1 << 20,  # bytes; the default of 4,192 leaves out long lines without an error
                bos_id=-1,  # fairseq has its own symbols for these
                eos_id=-1,
                minloglevel=2,
            )
        except (RuntimeError, OSError) as error:
            message = str(error)
            if largest := re.search(r"too high \(\d+\).*<= (\d+)", message):
                raise InputError(
                    f"a vocabulary of {size} pieces is more than the training text allows: "
                    f"the largest possible --bpe-size is {largest[1]}"
                ) from None
            if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
                raise InputError(
                    f"a vocabulary of {size} pieces cannot hold the characters of the training text: the smallest "
                    f"possible --bpe-size is {smallest[1]}"
                ) from None
            raise
        with atomic_file(path, "wb") as stream:
            stream.write(model.getvalue())

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import sentencepiece

        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_file=os.fspath(path))
        except (RuntimeError, OSError):
            raise InputError(f"{path}: missing, or not a SentencePiece model; prepare the corpus again") from None

    def encode(self, line: str) -> str:
        return " ".join(self._processor.encode(self._escape(line), out_type=str))

    def decode(self, pieces: str) -> str:
        # The one space in front is the mark of the first word.
        return self._unescape(pieces.replace(" ", "").replace(self.mark, " ").removeprefix(" "))

    @classmethod
    def starts_word(cls, pieces: Sequence[str], index: int) -> bool:
        return index == 0 or pieces[index].startswith(cls.mark)


class SubwordNMTModel(SubwordModel):
    """subword-nmt's merge operations within the words of tokenised text, as the papers use it."""

    name = "subword-nmt"
    suffix = ".codes"
    mark = "@@"

    @classmethod
    def learn(cls, lines: Iterable[str], size: int, path: str | os.PathLike[str]) -> None:
        from subword_nmt import learn_bpe

        codes = io.StringIO()
        # The library reports its progress and where it stops on standard error; the count below says the same.
        with contextlib.redirect_stderr(io.StringIO()):
            try:
                learn_bpe.learn_bpe((cls._escape(line) for line in lines), codes, size)
            except ValueError:  # max() of no pairs: every word is one character long
                pass
        learned = max(0, codes.getvalue().count("\n") - 1)  # the first line is the version
        if learned < size:
            raise InputError(
                f"{size} merge operations are more than the training text allows: "
                f"the largest possible --bpe-size is {learned}"
            )
        with atomic_file(path) as stream:
            stream.write(codes.getvalue())

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from subword_nmt import apply_bpe

        try:
            # Not the default universal line ends: a merge may hold a carriage return.
            codes = Path(path).read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{path}: missing, or not subword-nmt's codes; prepare the corpus again") from None
        if not codes.startswith("#version:"):
            raise InputError(f"{path}: not subword-nmt's codes; prepare the corpus again")
        self._bpe = apply_bpe.BPE(io.StringIO(codes, newline="\n"))

    def encode(self, line: str) -> str:
        # It keeps every word that it has seen; a server sees ever more. Another thread may be reading the old one.
        if len(self._bpe.cache) > _MOST_WORDS:
            self._bpe.cache = {}
        pieces = self._bpe.segment_tokens(self._escape(line).split(" "))
        # A word that is often in the text may be one piece, "<s>" too, which fairseq would take for its own.
        return " ".join(f"{self.mark} ".join(piece) if piece in SYMBOLS else piece for piece in pieces)

    def decode(self, pieces: str) -> str:
        return self._unescape((pieces + " ").replace("@@ ", "").removesuffix(" "))

    @classmethod
    def starts_word(cls, pieces: Sequence[str], index: int) -> bool:
        return index == 0 or not pieces[index - 1].endswith(cls.mark)


SUBWORD_MODELS: dict[str, type[SubwordModel]] = {model.name: model for model in (SentencePieceModel, SubwordNMTModel)}
BPES = (*SUBWORD_MODELS, "none")


def learn_subwords(bpe: str, size: int, texts: Sequence[Path], names: Sequence[str], folder: Path) -> Path:
    """Learns one model of tokenised texts and writes it into a folder, under a name that says what it is of.

    Args:
        bpe: one of :data:`SUBWORD_MODELS`.
        size: as in :meth:`SubwordModel.learn`.
        texts: the files.
        names: what they are called (``de``, ``en``).
        folder: where the model goes.
    """
    kind = SUBWORD_MODELS[bpe]
    print(f"learning {bpe} of {' and '.join(names)} ({size:,})", flush=True)
    lines = sum(1 for _ in read_lines(texts[0]))
    if size > lines:
        print(
            f"warning: {size:,} subwords for {lines:,} lines, so that most are too rare to be learned; a --bpe-size "
            f"below the number of lines serves better",
            flush=True,
        )
    path = folder / f"{bpe}.{'-'.join(names)}{kind.suffix}"
    kind.learn(itertools.chain.from_iterable(map(read_lines, texts)), size, path)
    return path


def add_bpe_arguments(parser: argparse.ArgumentParser, size: int) -> None:
    """The options of the BPE; ``size`` is its default size."""
    parser.add_argument("--bpe", choices=BPES, default="sentencepiece", help="default: %(default)s")
    parser.add_argument(
        "--bpe-size",
        type=int,
        default=size,
        metavar="N",
        help="vocabulary of SentencePiece, merge operations of subword-nmt; default: %(default)s",
    )


def check_bpe_arguments(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Raises InputError if a size is given that no BPE has."""
    if arguments.bpe == "none" and arguments.bpe_size != parser.get_default("bpe_size"):
        raise InputError(
            f"--bpe-size {arguments.bpe_size} has no effect with --bpe none: leave it out, or give a --bpe"
        )
