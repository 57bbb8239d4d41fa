"""Pairs of texts: parallel text files, from raw text through cleaning, tokens and BPE to fairseq's binary form.

The output folder holds, line by line the same sentences,

    raw/{train,valid,test,test1,…}.{de,en}    the text as given (absent when tokens were given)
    tokens/…                                  cleaned, tokenised, lower-cased: whatever was asked for
    bpe/…                                     the same in subwords, and the learned model
    bin/                                      fairseq-preprocess's output: what fairseq-train reads
    preparation.json                          every step applied, and all that is needed to apply it to new text
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairseq_plugins.corpora.codec import Codec, Word
from fairseq_plugins.corpora.lines import EachSide, map_lines, read_aligned, read_pairs, text_writer
from fairseq_plugins.corpora.pipeline import Run
from fairseq_plugins.corpora.preparation import Preparation, result
from fairseq_plugins.corpora.subwords import BPES, SUBWORD_MODELS, SubwordModel, learn_subwords
from fairseq_plugins.corpora.tokenizers import NORMALIZATIONS, TOKENIZERS, Tokenizer, composed
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines
from fairseq_plugins.languages import moses_language
from fairseq_plugins.symbols import SPECIAL_SYMBOLS, check_symbols, symbols_as_unknown

# Those of Moses' that sacrebleu's own tokenisation takes apart.
_ESCAPE = re.compile("&(?:apos|#91|#93|#124);")
# What a side may not be called: files are named after it.
_ENDINGS = {"log": "logs, of fairseq too", "gz": "packed ones"}


@dataclasses.dataclass
class PairsPreparation(Preparation):
    """What was done to pairs of texts, line by line translations (or summaries, …) of each other."""

    kind = "pairs"
    title = "pairs of texts"
    examples = "sentence pairs"

    source_lang: str
    target_lang: str
    given: str = "raw"
    """``raw`` text, or ``tokens``: then tokenisation and lower-casing were somebody else's, and are only replayed."""
    lowercase: bool = False
    tokenizer: str = "none"
    source_tokenizer: str | None = None
    """The source's, where it is another than ``tokenizer``."""
    source_normalization: list[str] = dataclasses.field(default_factory=list)
    """What is done to source text before tokenisation (``nfc``, ``nfkc``, ``simplified``). With one of the first two
    the target is composed (``nfc``) too, in ``raw/`` already: references are what a model can write."""
    moses_languages: dict[str, str] = dataclasses.field(default_factory=dict)
    """Side → the language whose rules Moses has for it, as sacremoses calls it; by the side's name where it is left
    out."""
    escape: bool = True
    min_length: int = 1
    """Training pairs with fewer tokens than this on a side were dropped."""
    max_length: int | None = None
    ratio: float | None = None
    """Training pairs with a side more than this many times as long as the other were dropped."""
    valid_every: int | None = None
    """Every n-th of the cleaned training pairs was taken out for validation."""
    bpe: str = "sentencepiece"
    bpe_size: int = 8000
    """The vocabulary (sentencepiece) or the number of merge operations (subword-nmt); of each side when not joint."""
    joint: bool = True
    """One subword model for both sides, and one dictionary."""
    separate_dictionaries: bool = False
    """A dictionary for each side, though the subword model is joint."""
    joined_words: bool = False
    """One dictionary for both sides where there is no BPE."""
    dictionary_size: int | None = None
    """The types of each dictionary at most, fairseq's four special symbols among them; None for all."""
    unknown_words: list[str] = dataclasses.field(default_factory=list)
    """Tokens by which the text itself says that a word is unknown; to the model they are fairseq's ``<unk>``."""
    metric: str = dataclasses.field(default="bleu", kw_only=True)
    bpe_models: dict[str, str] = result(dict)
    """Language → model file, relative to the folder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for language in self.languages:
            # fairseq writes and reads names like train.de-en.de
            if not re.fullmatch(r"\w+", language):
                raise InputError(f"language {language!r}: use letters, digits and _ only, such as de or zh_CN")
            if language in _ENDINGS:
                raise InputError(
                    f"language {language!r}: files that end in .{language} are {_ENDINGS[language]}; give the side "
                    f"another name, such as {language}s"
                )
        if self.source_lang == self.target_lang:
            raise InputError(f"source and target language are both {self.source_lang!r}: give each its own code")
        for name, choices in (
            ("tokenizer", TOKENIZERS),
            ("source_tokenizer", (*TOKENIZERS, None)),
            ("bpe", BPES),
            ("given", ("raw", "tokens")),
        ):
            if getattr(self, name) not in choices:
                raise InputError(
                    f"unknown {name.replace('_', '-')} {getattr(self, name)!r}: choose one of "
                    f"{', '.join(filter(None, choices))}"
                )
        for name in self.source_normalization:
            if name not in NORMALIZATIONS:
                raise InputError(f"unknown normalization {name!r}: choose from {', '.join(NORMALIZATIONS)}")
        self.moses_languages = {
            name: self.moses_languages.get(name) or moses_language(name) for name in self._moses_sides()
        }
        for name in ("min_length", "max_length", "ratio", "bpe_size", "dictionary_size"):
            if (value := getattr(self, name)) is not None and not 0 < value < math.inf:
                raise InputError(f"{name.replace('_', '-')} is {value}: it must be positive, and a number")
        if self.dictionary_size is not None and self.dictionary_size <= SPECIAL_SYMBOLS:
            raise InputError(f"dictionary-size is {self.dictionary_size}: {SPECIAL_SYMBOLS} are fairseq's own symbols")
        if self.max_length is not None and self.max_length < self.min_length:
            raise InputError(f"max-length is {self.max_length}, less than min-length, {self.min_length}")
        if self.ratio is not None and self.ratio < 1:
            raise InputError(f"ratio is {self.ratio}: the longer side is at least 1 times as long as the shorter")
        if self.valid_every is not None and self.valid_every < 2:
            raise InputError(f"valid-every is {self.valid_every}: it must be at least 2")

    @property
    def languages(self) -> tuple[str, str]:
        """The source's and the target's."""
        return self.source_lang, self.target_lang

    def fairseq_arguments(self, folder: str | os.PathLike[str]) -> list[str]:
        languages = ["--source-lang", self.source_lang, "--target-lang", self.target_lang]
        return [*super().fairseq_arguments(folder), *languages]

    def dictionaries(self) -> list[str]:
        return [f"bin/dict.{language}.txt" for language in self.languages]

    @functools.cached_property
    def source(self) -> Codec:
        """The source's text ↔ what fairseq reads."""
        kind = self.source_tokenizer or self.tokenizer
        moses_language = self.moses_languages.get(self.source_lang)
        tokenizer = Tokenizer(
            self.source_lang, kind, self.escape, self.lowercase, self.source_normalization, moses_language
        )
        return self._codec(self.source_lang, tokenizer)

    @functools.cached_property
    def target(self) -> Codec:
        """The target's text ↔ what fairseq reads."""
        moses_language = self.moses_languages.get(self.target_lang)
        tokenizer = Tokenizer(
            self.target_lang, self.tokenizer, self.escape, self.lowercase, self.composition, moses_language
        )
        return self._codec(self.target_lang, tokenizer)

    @property
    def composition(self) -> list[str]:
        """What is done to both sides: that letters with their accents are one character, where anything is."""
        return ["nfc"] if {"nfc", "nfkc"} & {*self.source_normalization} else []

    def codec(self, language: str) -> Codec:
        """That of one of the two languages."""
        return {self.source_lang: self.source, self.target_lang: self.target}[language]

    def _moses_sides(self) -> list[str]:
        """The languages that Moses tokenises."""
        kinds = (self.source_tokenizer or self.tokenizer, self.tokenizer)
        return [language for language, kind in zip(self.languages, kinds, strict=True) if kind == "moses"]

    def _codec(self, language: str, tokenizer: Tokenizer) -> Codec:
        load_subwords = None if self.bpe == "none" else functools.partial(self._load_subwords, language)
        return Codec(tokenizer, load_subwords, self.unknown_words)

    def _load_subwords(self, language: str) -> SubwordModel:
        return SUBWORD_MODELS[self.bpe](self.file(self.bpe_models[language]))

    def tokenize_target(self, text: str) -> str:
        """Raw target text → tokens, as in ``tokens/``."""
        return self.target.tokenize(text)

    def encode_source(self, text: str) -> str:
        """Raw source text → what fairseq-interactive reads: BPE tokens separated by spaces, as in ``bpe/``."""
        return symbols_as_unknown(self.source.encode(text))

    def encode_target(self, text: str) -> str:
        """Raw target text → BPE tokens separated by spaces."""
        return symbols_as_unknown(self.target.encode(text))

    def encode_tokens(self, language: str, tokens: str) -> str:
        """Tokens of one of the two languages → BPE tokens."""
        return self.codec(language).encode_tokens(tokens)

    def decode_target(self, pieces: str) -> str:
        """BPE tokens, as a model predicts them → tokens; :meth:`detokenize_target` makes text of those."""
        return self.target.decode(pieces)

    def detokenize_target(self, tokens: str) -> str:
        """Tokens → text: attached punctuation, unescaped characters."""
        return self.target.detokenize(tokens)

    def join_pieces(self, language: str, pieces: Sequence[str]) -> list[Word]:
        """The words that BPE tokens of one of the two languages make up, and where each of them is."""
        return self.codec(language).join_pieces(pieces)

    def to_unknown(self, tokens: str) -> str:
        """Tokens with fairseq's ``<unk>`` for every one of ``unknown_words``."""
        return self.target.to_unknown(tokens)


def prepare(
    preparation: PairsPreparation,
    inputs: Mapping[str, tuple[Path, Path]],
    output: str | os.PathLike[str],
    workers: int = 1,
    check: Callable[[dict[str, int]], None] | None = None,
    references: Mapping[str, Sequence[Path]] | None = None,
    names: Mapping[str, str] | None = None,
) -> PairsPreparation:
    """Prepares pairs of texts: text, tokens, BPE, fairseq-preprocess; see :meth:`Run.prepare`.

    Args:
        preparation: what to do; what is counted and learned on the way is not read from it.
        inputs: split (``train``, ``valid``, ``test``, ``test1``, …) → its source and target file (plain or ``.gz``).
        output: the folder to write; new, empty, or prepared already.
        workers: processes for tokenisation, BPE and fairseq-preprocess.
        check: gets the number of pairs left in each split after cleaning; raises InputError to go no further.
        references: split → further references of its sources, as many lines each; they become ``<split>.ref1.en``,
            ``<split>.ref2.en``, … beside ``<split>.en``, in ``raw/`` and ``tokens/``.
        names: split → the name that the set goes by (``test1`` → ``nist05``).

    Returns:
        The preparation with everything that was counted and learned, as saved in ``preparation.json``.

    Raises:
        InputError: for any input or choice that cannot be used; the message says which and what to do.
    """
    if ("valid" in inputs) == (preparation.valid_every is not None):
        raise InputError("give either validation files or how to split them off the training files")
    files = {split: [*pair, *(references or {}).get(split, [])] for split, pair in inputs.items()}
    return PairsRun(preparation, files, output, workers, check, names).prepare()


class PairsRun(Run[PairsPreparation]):
    """The steps from pairs of text files to fairseq's binary form."""

    folders = ("raw", "tokens", "bpe", "bin")

    def __init__(
        self,
        preparation: PairsPreparation,
        inputs: Mapping[str, Sequence[Path]],
        output: str | os.PathLike[str],
        workers: int = 1,
        check: Callable[[dict[str, int]], None] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """As :func:`prepare`; the files of a split are its source, its target, and further references."""
        super().__init__(preparation, inputs, output, workers)
        self.check = check
        self._training_pairs: set[int] = set()
        """Their hashes: a held-out pair is looked for among them."""
        self.languages = preparation.languages
        for split, paths in inputs.items():
            if len(paths) > 2:
                self.facts[split]["references"] = len(paths) - 1
        for split, name in (names or {}).items():
            self.facts[split]["name"] = name

    def write(self, folder: Path) -> dict[str, Any]:
        counts = self._write_text(folder)
        models = self._write_bpe(folder, counts)
        command = self._write_bin(folder, counts)
        sizes = {
            language: sum(1 for _ in read_lines(folder / "bin" / f"dict.{language}.txt")) for language in self.languages
        }
        print(f"{self.output / 'bin'}: dictionary " + ", ".join(f"{name} {size:,}" for name, size in sizes.items()))
        most = self.preparation.dictionary_size
        for language, size in sizes.items():
            types = size + SPECIAL_SYMBOLS
            if most is not None and types < most:
                print(f"note: {language} has {types:,} types, not {most:,}: the training text has no more")
        return {
            "bpe_models": models,
            "splits": {split: {**self.facts.get(split, {}), **counts[split]} for split in counts},
            "dictionary_sizes": sizes,
            "commands": [command],
        }

    # Step 1: raw/ and tokens/

    def _write_text(self, folder: Path) -> dict[str, dict[str, Any]]:
        """Returns what was read and kept of each split."""
        counts: dict[str, dict[str, Any]] = {}
        folders = [folder / "tokens", *([folder / "raw"] if self.preparation.given == "raw" else [])]
        for path in folders:
            path.mkdir()
        for split, paths in self.inputs.items():
            counts |= self._write_split(split, (paths[0], paths[1]), folders)
            for number, path in enumerate(paths[2:], start=1):
                self._write_reference(split, number, path, counts[split]["read"], folders)
        for split, count in counts.items():
            dropped = ", ".join(f"{number:,} {reason}" for reason, number in count["dropped"].items() if number)
            print(f"{split}: {count['kept']:,} pairs" + f" (dropped: {dropped})" * bool(dropped))
            if count["kept"] == 0:
                raise InputError(f"no pair of {split} is left after cleaning: check min-length, max-length and ratio")
        if self.check is not None:
            self.check({split: count["kept"] for split, count in counts.items()})
        return counts

    def _write_split(self, split: str, paths: tuple[Path, Path], folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
        steps = self.preparation
        tokenize = EachSide(self._tokenizers())
        clean = split == "train"
        counts = {split: _new_count()}
        if clean and steps.valid_every is not None:
            counts["valid"] = _new_count()
        with contextlib.ExitStack() as stack:
            writers = {
                name: [
                    [stack.enter_context(text_writer(folder / f"{name}.{language}")) for language in self.languages]
                    for folder in folders
                ]
                for name in counts
            }
            kept = shared = 0
            empty = [0, 0]
            escapes: list[str] = []
            pairs = ((source, self._target_text(target)) for source, target in read_pairs(paths))
            for raw, tokens in map_lines(tokenize, pairs, self.workers, f"tokens of {split}", "pairs"):
                counts[split]["read"] += 1
                if not clean and (escape := _ESCAPE.search(raw[1])):
                    escapes.append(escape[0])
                if clean and (reason := self._reason_to_drop(tokens)):
                    counts[split]["dropped"][reason] += 1
                    continue
                kept += 1
                if steps.bpe == "none":
                    # Subword models write no such token, whatever the text holds.
                    for path, side in zip(paths, tokens, strict=True):
                        check_symbols(f"{path}, line {counts[split]['read']}", side.split())
                empty = [count + (not side) for count, side in zip(empty, tokens, strict=True)]
                name = "valid" if clean and steps.valid_every is not None and kept % steps.valid_every == 0 else split
                counts[name]["kept"] += 1
                if name == "train":
                    self._training_pairs.add(hash(tokens))
                else:
                    shared += hash(tokens) in self._training_pairs
                for files, lines in zip(writers[name], (tokens, raw), strict=False):
                    for file, line in zip(files, lines, strict=True):
                        file.write(line + "\n")
        for path, count in zip(paths, empty, strict=True):
            if 0 < count == kept:
                raise InputError(f"{path}: all lines are empty")
            if count:
                print(f"warning: {path}: {count:,} of {kept:,} lines are empty")
        if shared:
            name = "valid" if clean else split
            print(
                f"warning: {shared:,} of the {counts[name]['kept']:,} pairs of {name} are in the training set too, "
                f"word for word: scores are higher for it"
            )
        if escapes and steps.given == "raw" and steps.metric == "bleu":
            print(
                f"warning: {paths[1]}: {len(escapes):,} of {kept:,} lines are Moses' tokens with escapes, such as "
                f"{escapes[0]}: sacreBLEU, which is for plain text, takes an escape for several tokens and comes out "
                "too high, and tokenised BLEU does not; if you have the plain text, give that with --tokenizer moses"
            )
        if "valid" in counts and split == "train":
            counts["valid"]["read"] = counts["valid"]["kept"]
        return counts

    def _tokenizers(self) -> tuple[Callable[[str], str], Callable[[str], str]]:
        if self.preparation.given == "raw":
            return self.preparation.source.tokenize, self.preparation.target.tokenize
        composition = self.preparation.composition
        source, target = (Tokenizer(language, normalization=composition) for language in self.languages)
        return source, target

    def _target_text(self, line: str) -> str:
        """A line of the target or of a reference, as ``raw/`` has it."""
        return composed(line) if self.preparation.composition else line

    def _write_reference(self, split: str, number: int, path: Path, expected: int, folders: Sequence[Path]) -> None:
        lines = list(map(self._target_text, read_lines(path)))
        if len(lines) != expected:
            raise InputError(f"{path} has {len(lines):,} lines, but {split} has {expected:,} sentences to refer to")
        _, tokenize = self._tokenizers()
        functions: tuple[Callable[[str], str], ...] = (tokenize, str)
        for folder, function in zip(folders, functions, strict=False):
            with text_writer(folder / f"{split}.ref{number}.{self.languages[1]}") as stream:
                stream.writelines(function(line) + "\n" for line in lines)

    def _reason_to_drop(self, tokens: tuple[str, ...]) -> str | None:
        steps = self.preparation
        source, target = (len(side.split()) for side in tokens)
        if min(source, target) < steps.min_length:
            return "too short"
        if steps.max_length is not None and max(source, target) > steps.max_length:
            return "too long"
        if steps.ratio is not None and max(source, target) > steps.ratio * min(source, target):
            return "ratio"
        return None

    # Step 2: bpe/

    def _write_bpe(self, folder: Path, splits: Iterable[str]) -> dict[str, str]:
        """Returns language → model file."""
        steps, tokens, pieces = self.preparation, folder / "tokens", folder / "bpe"
        models: dict[str, str] = {}
        pieces.mkdir()
        encoders: dict[str, Callable[[str], str]] = dict.fromkeys(self.languages, steps.to_unknown)
        if steps.bpe != "none":
            groups = [self.languages] if steps.joint else [(language,) for language in self.languages]
            for languages in groups:
                texts = [tokens / f"train.{language}" for language in languages]
                path = learn_subwords(steps.bpe, steps.bpe_size, texts, languages, pieces)
                model = SUBWORD_MODELS[steps.bpe](path)
                encoders |= {language: model.encode for language in languages}
                models |= {language: f"bpe/{path.name}" for language in languages}
        encode = EachSide(tuple(encoders[language] for language in self.languages))
        # Without BPE there is less to do than to hand over.
        workers = 1 if steps.bpe == "none" else self.workers
        for split in splits:
            source, target = (tokens / f"{split}.{language}" for language in self.languages)
            with text_writer(pieces / source.name) as source_file, text_writer(pieces / target.name) as target_file:
                pairs = read_aligned((source, target))
                for _, pair in map_lines(encode, pairs, workers, f"BPE of {split}", "pairs"):
                    source_file.write(pair[0] + "\n")
                    target_file.write(pair[1] + "\n")
        return models

    # Step 3: bin/

    def _write_bin(self, folder: Path, splits: Iterable[str]) -> str:
        """Returns the command."""
        steps = self.preparation
        tests = [split for split in splits if split.startswith("test")]
        arguments = ["--source-lang", steps.source_lang, "--target-lang", steps.target_lang]
        arguments += ["--trainpref", "bpe/train", "--validpref", "bpe/valid"]
        if tests:
            arguments += ["--testpref", ",".join(f"bpe/{split}" for split in tests)]
        joins_subwords = steps.bpe != "none" and steps.joint and not steps.separate_dictionaries
        if joins_subwords or steps.joined_words:
            arguments += ["--joined-dictionary"]
        if steps.dictionary_size is not None:
            for side in ("src", "tgt"):
                arguments += [f"--nwords{side}", str(steps.dictionary_size)]
        command = self.fairseq_preprocess(arguments, folder)
        if steps.bpe == "none":
            # The words of the test sets beside their numbers: fairseq-generate --replace-unk copies from them.
            for split in tests:
                for language in self.languages:
                    name = f"{split}.{'-'.join(self.languages)}.{language}"
                    shutil.copyfile(folder / "bpe" / f"{split}.{language}", folder / "bin" / name)
        return command


def _new_count() -> dict[str, Any]:
    return {"read": 0, "kept": 0, "dropped": {"too short": 0, "too long": 0, "ratio": 0}}
