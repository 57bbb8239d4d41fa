"""Parallel text files, from raw text through cleaning, tokens and BPE to fairseq's binary form.

    python -m fairseq_plugins.corpora.parallel --src-lang de --tgt-lang en --train data/train --valid data/valid \\
        --test data/test --output data/prepared --lowercase --tokenizer moses --bpe-size 8000

``scripts/prepare_parallel.sh`` runs this. The output folder holds, line by line the same sentences,

    raw/{train,valid,test,test1,…}.{de,en}    the text as given (absent when tokens were given)
    tokens/…                                  cleaned, tokenised, lower-cased: whatever was asked for
    bpe/…                                     the same in subwords, and the learned model
    bin/                                      fairseq-preprocess's output: what fairseq-train reads
    preparation.json                          every step applied, and all that is needed to apply it to new text
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import functools
import importlib.metadata
import itertools
import json
import multiprocessing
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from fairseq_plugins.corpora.subwords import SUBWORD_MODELS, SubwordModel
from fairseq_plugins.corpora.tokenizers import NORMALIZATIONS, TOKENIZERS, Tokenizer
from fairseq_plugins.errors import InputError, report_input_errors
from fairseq_plugins.files import atomic_directory, atomic_file, read_lines, sha256

FORMAT = 1
"""The version of ``preparation.json``: raised when its meaning changes."""
PREPARATION = "preparation.json"
DOWNLOAD = "download"
"""The one thing that may stand in an output folder before its preparation: what was downloaded for it."""
BPES = (*SUBWORD_MODELS, "none")
METRICS = ("bleu", "rouge")
UNKNOWN = "<unk>"
"""fairseq's symbol for a word that its dictionary does not hold."""
SPECIAL_SYMBOLS = 4
"""``<s> <pad> </s> <unk>``: in every dictionary, and not in its file."""

_PROGRESS = ".progress.json"
_FOLDERS = ("raw", "tokens", "bpe", "bin")
_RESULTS = {"origin", "bpe_models", "splits", "dictionary_sizes", "commands", "versions"}
_BLOCK = 1 << 14


class Word(NamedTuple):
    """A word and the BPE tokens, ``start`` to ``stop`` - 1, that make it up."""

    text: str
    start: int
    stop: int


@dataclasses.dataclass
class Preparation:
    """Every step that was applied to a corpus, and how to apply it to new text: the content of ``preparation.json``."""

    source_lang: str
    target_lang: str
    given: str = "raw"
    """``raw`` text, or ``tokens``: then tokenisation and lower-casing were somebody else's, and are only replayed."""
    lowercase: bool = False
    tokenizer: str = "none"
    source_tokenizer: str | None = None
    """The source's, where it is another than ``tokenizer``."""
    source_normalization: list[str] = dataclasses.field(default_factory=list)
    """What is done to source text before tokenisation (``nfkc``, ``simplified``)."""
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
    metric: str = "bleu"
    """What translations are scored by: ``bleu`` or ``rouge``."""
    origin: dict[str, str] = dataclasses.field(default_factory=dict)
    """What the given files were taken from, such as an archive and its checksum."""
    bpe_models: dict[str, str] = dataclasses.field(default_factory=dict)
    """Language → model file, relative to the folder."""
    splits: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    """train, valid, test, test1, …: the given files' names and checksums; pairs read, dropped and kept; the number of
    references where there are several, and the name that the set goes by where it has one."""
    dictionary_sizes: dict[str, int] = dataclasses.field(default_factory=dict)
    """Language → lines of ``bin/dict.<language>.txt``."""
    commands: list[str] = dataclasses.field(default_factory=list)
    """The fairseq commands that were run, in the output folder."""
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    format: int = FORMAT

    def __post_init__(self) -> None:
        self._folder: Path | None = None
        for language in (self.source_lang, self.target_lang):
            # fairseq writes and reads names like train.de-en.de
            if not re.fullmatch(r"\w+", language):
                raise InputError(f"language {language!r}: use letters, digits and _ only, such as de or zh_CN")
        if self.source_lang == self.target_lang:
            raise InputError(f"source and target language are both {self.source_lang!r}: give each its own code")
        for name, known in (
            ("tokenizer", TOKENIZERS),
            ("source_tokenizer", (*TOKENIZERS, None)),
            ("bpe", BPES),
            ("given", ("raw", "tokens")),
            ("metric", METRICS),
        ):
            if getattr(self, name) not in known:
                raise InputError(
                    f"unknown {name.replace('_', '-')} {getattr(self, name)!r}: choose one of "
                    f"{', '.join(filter(None, known))}"
                )
        for name in self.source_normalization:
            if name not in NORMALIZATIONS:
                raise InputError(f"unknown normalization {name!r}: choose from {', '.join(NORMALIZATIONS)}")
        for name in ("min_length", "max_length", "ratio", "bpe_size", "dictionary_size"):
            if (value := getattr(self, name)) is not None and value <= 0:
                raise InputError(f"{name.replace('_', '-')} is {value}: it must be positive")
        if self.max_length is not None and self.max_length < self.min_length:
            raise InputError(f"max-length is {self.max_length}, less than min-length, {self.min_length}")
        if self.ratio is not None and self.ratio < 1:
            raise InputError(f"ratio is {self.ratio}: the longer side is at least 1 times as long as the shorter")
        if self.valid_every is not None and self.valid_every < 2:
            raise InputError(f"valid-every is {self.valid_every}: it must be at least 2")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Preparation:
        """Reads ``preparation.json`` of an output folder.

        Raises:
            InputError: there is none, or it is not one that this version reads.
        """
        path = Path(folder) / PREPARATION
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(f"{path}: no such file; give the folder that a scripts/prepare_*.sh wrote") from None
        except ValueError as error:
            raise InputError(f"{path}: not JSON ({error}); prepare the corpus again") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(f"{path}: not a preparation of format {FORMAT}; prepare the corpus again")
        try:
            preparation = cls(**content)
        except TypeError as error:
            raise InputError(f"{path}: {error}; prepare the corpus again") from None
        preparation._folder = Path(folder)
        return preparation

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes ``preparation.json`` into a folder, which this preparation then belongs to."""
        _write_json(Path(folder) / PREPARATION, dataclasses.asdict(self))
        self._folder = Path(folder)

    def tokenize_source(self, line: str) -> str:
        """Raw source text → tokens, as in ``tokens/``."""
        return self._source_tokenizer(line)

    def tokenize_target(self, line: str) -> str:
        """Raw target text → tokens, as in ``tokens/``."""
        return self._target_tokenizer(line)

    def encode_source(self, line: str) -> str:
        """Raw source text → what fairseq-interactive reads: BPE tokens separated by spaces, as in ``bpe/``."""
        return self.encode_tokens(self.source_lang, self.tokenize_source(line))

    def encode_target(self, line: str) -> str:
        """Raw target text → BPE tokens separated by spaces."""
        return self.encode_tokens(self.target_lang, self.tokenize_target(line))

    def decode_target(self, bpe_tokens: str) -> str:
        """BPE tokens, as a model predicts them → tokens."""
        if self.bpe == "none":
            return self.from_unknown(bpe_tokens)
        # A model may put spaces where no text has them.
        return " ".join(self._subword_model(self.target_lang).decode(bpe_tokens).split())

    def to_unknown(self, tokens: str) -> str:
        """Tokens with fairseq's ``<unk>`` for every one of ``unknown_words``."""
        if not self.unknown_words:
            return tokens
        return " ".join(UNKNOWN if token in self.unknown_words else token for token in tokens.split(" "))

    def from_unknown(self, tokens: str) -> str:
        """Tokens with the first of ``unknown_words`` for every ``<unk>``, as the text would say it."""
        if not self.unknown_words:
            return tokens
        return " ".join(self.unknown_words[0] if token == UNKNOWN else token for token in tokens.split(" "))

    def join_pieces(self, language: str, pieces: Sequence[str]) -> list[Word]:
        """The words that BPE tokens of one of the two languages make up, and where each of them stands."""
        if self.bpe == "none":
            return [Word(piece, index, index + 1) for index, piece in enumerate(pieces)]
        model = self._subword_model(language)
        starts = [index for index in range(len(pieces)) if model.starts_word(pieces, index)]
        ends = [*starts[1:], len(pieces)] if starts else []
        spans = zip(starts, ends, strict=True)
        return [Word(model.decode(" ".join(pieces[start:stop])), start, stop) for start, stop in spans]

    def detokenize_target(self, tokens: str) -> str:
        """Tokens → text: attached punctuation, unescaped characters."""
        return self._target_tokenizer.detokenize(tokens)

    def fairseq_bpe_arguments(self) -> list[str]:
        """The arguments by which fairseq-generate and fairseq-interactive undo the BPE."""
        return [] if self.bpe == "none" else list(SUBWORD_MODELS[self.bpe].fairseq_arguments)

    def split_of(self, name: str) -> str:
        """The split (``test1``) that a set's own name (``nist05``) stands for; any other name as it is."""
        return next((split for split, facts in self.splits.items() if facts.get("name") == name), name)

    @functools.cached_property
    def _source_tokenizer(self) -> Tokenizer:
        kind = self.source_tokenizer or self.tokenizer
        return Tokenizer(self.source_lang, kind, self.escape, self.lowercase, self.source_normalization)

    @functools.cached_property
    def _target_tokenizer(self) -> Tokenizer:
        return Tokenizer(self.target_lang, self.tokenizer, self.escape, self.lowercase)

    @functools.cached_property
    def _subword_models(self) -> dict[str, SubwordModel]:
        return {}

    def _subword_model(self, language: str) -> SubwordModel:
        if language not in self._subword_models:
            if self._folder is None:
                raise InputError("this preparation belongs to no folder yet: save() or load() it first")
            path = self._folder / self.bpe_models[language]
            self._subword_models[language] = SUBWORD_MODELS[self.bpe](path)
        return self._subword_models[language]

    def encode_tokens(self, language: str, tokens: str) -> str:
        """Tokens of one of the two languages → BPE tokens."""
        return self.to_unknown(tokens) if self.bpe == "none" else self._subword_model(language).encode(tokens)


def prepare(
    steps: Preparation,
    inputs: Mapping[str, tuple[Path, Path]],
    output: str | os.PathLike[str],
    workers: int = 1,
    check: Callable[[dict[str, int]], None] | None = None,
    references: Mapping[str, Sequence[Path]] | None = None,
    names: Mapping[str, str] | None = None,
) -> Preparation:
    """Prepares a corpus: text, tokens, BPE, fairseq-preprocess.

    A folder that already holds the same preparation of the same files is left as it is. An interrupted preparation goes
    on with the first step that is not finished, and ends with the same bytes as an uninterrupted one.

    Args:
        steps: what to do; what is counted and learned on the way is not read from it.
        inputs: split (``train``, ``valid``, ``test``, ``test1``, …) → its source and target file (plain or ``.gz``).
        output: the folder to write; new, empty, or from an earlier run.
        workers: processes for tokenisation, BPE and fairseq-preprocess.
        check: gets the number of pairs left in each split after cleaning; raises InputError to go no further.
        references: split → further references of its sources, as many lines each; they become ``<split>.ref1.en``,
            ``<split>.ref2.en``, … beside ``<split>.en``, in ``raw/`` and ``tokens/``.
        names: split → the name that the set goes by (``test1`` → ``nist05``).

    Returns:
        The steps with everything that was counted and learned, as saved in ``preparation.json``.

    Raises:
        InputError: for any input or choice that cannot be used; the message says which and what to do.
    """
    if workers < 1:
        raise InputError(f"workers is {workers}: it must be at least 1")
    if ("valid" in inputs) == (steps.valid_every is not None):
        raise InputError("give either validation files or how to split them off the training files")
    output = Path(output)
    plan = dataclasses.asdict(steps)
    references = {split: list(paths) for split, paths in (references or {}).items()}
    plan["splits"] = {}
    for split, pair in inputs.items():
        paths = [*pair, *references.get(split, [])]
        facts = {"files": [path.name for path in paths], "sha256": [_checksum(path) for path in paths]}
        facts |= {"references": len(paths) - 1} if len(paths) > 2 else {}
        facts |= {"name": names[split]} if names and split in names else {}
        plan["splits"][split] = facts
    with _claimed(output, plan) as progress:
        if progress is None:
            print(f"{output} is up to date")
            return Preparation.load(output)
        return _Run(steps, inputs, references, output, workers, plan, progress).run(check)


class _Run:
    """One run of :func:`prepare` in a folder that it has for itself."""

    def __init__(
        self,
        steps: Preparation,
        inputs: Mapping[str, tuple[Path, Path]],
        references: Mapping[str, Sequence[Path]],
        output: Path,
        workers: int,
        plan: dict[str, Any],
        progress: dict[str, Any],
    ) -> None:
        self.steps, self.inputs, self.references = steps, inputs, references
        self.output, self.workers, self.plan = output, workers, plan
        self.progress = progress
        self.languages = (steps.source_lang, steps.target_lang)

    def run(self, check: Callable[[dict[str, int]], None] | None) -> Preparation:
        counts = self._step("text", self._write_text)
        if check is not None:
            check({split: count["kept"] for split, count in counts.items()})
        bpe_models = self._step("bpe", self._write_bpe)
        command = self._step("bin", self._write_bin)
        splits = {split: {**self.plan["splits"].get(split, {}), **counts[split]} for split in counts}
        self.steps = dataclasses.replace(
            self.steps,
            bpe_models=bpe_models,
            splits=splits,
            dictionary_sizes={
                language: sum(1 for _ in read_lines(self.output / "bin" / f"dict.{language}.txt"))
                for language in self.languages
            },
            commands=[command],
            versions=_versions(),
        )
        self.steps.save(self.output)
        (self.output / _PROGRESS).unlink()
        sizes = ", ".join(f"{language} {size:,}" for language, size in self.steps.dictionary_sizes.items())
        print(f"{self.output / 'bin'}: dictionary {sizes}")
        for language, size in self.steps.dictionary_sizes.items():
            most = self.steps.dictionary_size
            types = size + SPECIAL_SYMBOLS
            if most is not None and types < most:
                print(f"note: {language} has {types:,} types, not {most:,}: the training text has no more")
        return self.steps

    def _step(self, name: str, function: Callable[[], Any]) -> Any:
        """Runs one step unless an earlier run finished it; returns what the step found out, which JSON can hold."""
        if name not in self.progress:
            self.progress[name] = function()
            _write_json(self.output / _PROGRESS, {"plan": self.plan, **self.progress})
        return self.progress[name]

    # Step 1: raw/ and tokens/

    def _write_text(self) -> dict[str, dict[str, int]]:
        counts: dict[str, dict[str, int]] = {}
        with contextlib.ExitStack() as stack:
            folders = {"tokens": stack.enter_context(atomic_directory(self.output / "tokens"))}
            if self.steps.given == "raw":
                folders["raw"] = stack.enter_context(atomic_directory(self.output / "raw"))
            for split, paths in self.inputs.items():
                counts |= self._write_split(split, paths, folders)
                for number, path in enumerate(self.references.get(split, []), start=1):
                    self._write_reference(split, number, path, counts[split]["read"], folders)
        for split, count in counts.items():
            dropped = ", ".join(f"{number:,} {reason}" for reason, number in count["dropped"].items() if number)
            print(f"{split}: {count['kept']:,} pairs" + f" (dropped: {dropped})" * bool(dropped))
            if count["kept"] == 0:
                raise InputError(f"no pair of {split} is left after cleaning: check min-length, max-length and ratio")
        return counts

    def _write_split(
        self, split: str, paths: tuple[Path, Path], folders: Mapping[str, Path]
    ) -> dict[str, dict[str, Any]]:
        steps = self.steps
        tokenize = _PairFunction(*self._tokenizers())
        clean = split == "train"
        counts = {split: _new_count()}
        if clean and steps.valid_every is not None:
            counts["valid"] = _new_count()
        with contextlib.ExitStack() as stack:
            writers = {
                name: [
                    [stack.enter_context(_text_writer(folder / f"{name}.{language}")) for language in self.languages]
                    for folder in folders.values()
                ]
                for name in counts
            }
            kept = 0
            for raw, tokens in _map(tokenize, read_pairs(paths), self.workers, f"tokens of {split}"):
                counts[split]["read"] += 1
                if clean and (reason := self._reason_to_drop(tokens)):
                    counts[split]["dropped"][reason] += 1
                    continue
                kept += 1
                name = "valid" if clean and steps.valid_every is not None and kept % steps.valid_every == 0 else split
                counts[name]["kept"] += 1
                for files, lines in zip(writers[name], (tokens, raw), strict=False):
                    for file, line in zip(files, lines, strict=True):
                        file.write(line + "\n")
        if "valid" in counts and split == "train":
            counts["valid"]["read"] = counts["valid"]["kept"]
        return counts

    def _tokenizers(self) -> tuple[Callable[[str], str], Callable[[str], str]]:
        if self.steps.given == "raw":
            return self.steps._source_tokenizer, self.steps._target_tokenizer
        return Tokenizer(self.steps.source_lang), Tokenizer(self.steps.target_lang)

    def _write_reference(self, split: str, number: int, path: Path, expected: int, folders: Mapping[str, Path]) -> None:
        lines = list(read_lines(path))
        if len(lines) != expected:
            raise InputError(f"{path} has {len(lines):,} lines, but {split} has {expected:,} sentences to refer to")
        _, tokenize = self._tokenizers()
        for folder, function in zip(folders.values(), (tokenize, str), strict=False):
            with _text_writer(folder / f"{split}.ref{number}.{self.steps.target_lang}") as stream:
                stream.writelines(function(line) + "\n" for line in lines)

    def _reason_to_drop(self, tokens: tuple[str, str]) -> str | None:
        source, target = (len(side.split()) for side in tokens)
        if min(source, target) < self.steps.min_length:
            return "too short"
        if self.steps.max_length is not None and max(source, target) > self.steps.max_length:
            return "too long"
        if self.steps.ratio is not None and max(source, target) > self.steps.ratio * min(source, target):
            return "ratio"
        return None

    # Step 2: bpe/

    def _write_bpe(self) -> dict[str, str]:
        steps, tokens = self.steps, self.output / "tokens"
        models: dict[str, str] = {}
        with atomic_directory(self.output / "bpe") as folder:
            encoders: dict[str, Callable[[str], str]] = dict.fromkeys(self.languages, steps.to_unknown)
            if steps.bpe != "none":
                kind = SUBWORD_MODELS[steps.bpe]
                for languages in [self.languages] if steps.joint else [(language,) for language in self.languages]:
                    name = f"{steps.bpe}.{'-'.join(languages)}{kind.suffix}"
                    print(f"learning {steps.bpe} of {' and '.join(languages)} ({steps.bpe_size:,})", flush=True)
                    lines = itertools.chain.from_iterable(
                        read_lines(tokens / f"train.{language}") for language in languages
                    )
                    kind.learn(lines, steps.bpe_size, folder / name)
                    model = kind(folder / name)
                    encoders |= {language: model.encode for language in languages}
                    models |= {language: f"bpe/{name}" for language in languages}
            encode = _PairFunction(*(encoders[language] for language in self.languages))
            for split in self.progress["text"]:
                paths = tuple(tokens / f"{split}.{language}" for language in self.languages)
                writers = [_text_writer(folder / path.name) for path in paths]
                with writers[0] as source_writer, writers[1] as target_writer:
                    # Without BPE there is less to do than to hand over.
                    workers = 1 if steps.bpe == "none" else self.workers
                    for _, (source, target) in _map(encode, read_pairs(paths), workers, f"BPE of {split}"):
                        source_writer.write(source + "\n")
                        target_writer.write(target + "\n")
        return models

    # Step 3: bin/

    def _write_bin(self) -> str:
        tests = [split for split in self.progress["text"] if split.startswith("test")]
        arguments = ["--source-lang", self.steps.source_lang, "--target-lang", self.steps.target_lang]
        arguments += ["--trainpref", "bpe/train", "--validpref", "bpe/valid"]
        if tests:
            arguments += ["--testpref", ",".join(f"bpe/{split}" for split in tests)]
        joins_subwords = self.steps.bpe != "none" and self.steps.joint and not self.steps.separate_dictionaries
        if joins_subwords or self.steps.joined_words:
            arguments += ["--joined-dictionary"]
        if self.steps.dictionary_size is not None:
            for side in ("src", "tgt"):
                arguments += [f"--nwords{side}", str(self.steps.dictionary_size)]
        command = shlex.join(["fairseq-preprocess", *arguments, "--destdir", "bin"])
        print(f"fairseq-preprocess: {command}", flush=True)
        with atomic_directory(self.output / "bin") as folder:
            result = subprocess.run(
                [sys.executable, "-m", "fairseq_cli.preprocess", *arguments]
                + ["--destdir", folder.name, "--workers", str(self.workers)],
                cwd=self.output,
                env=os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if result.returncode:
                print(result.stdout, file=sys.stderr)
                raise InputError(f"fairseq-preprocess failed with status {result.returncode}: its output stands above")
            # Its times and temporary names would make every run's bytes differ; preparation.json has the command.
            (folder / "preprocess.log").unlink(missing_ok=True)
            if self.steps.bpe == "none":
                self._add_text(folder, tests)
        return command

    def _add_text(self, folder: Path, tests: Sequence[str]) -> None:
        """Puts the words of the test sets beside their numbers: fairseq-generate --replace-unk copies from them."""
        for split in tests:
            for language in self.languages:
                pair = f"{self.steps.source_lang}-{self.steps.target_lang}"
                shutil.copyfile(self.output / "bpe" / f"{split}.{language}", folder / f"{split}.{pair}.{language}")


@contextlib.contextmanager
def _claimed(output: Path, plan: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
    """Has a folder for itself, and yields what an earlier run with the same plan finished, or ``None`` for everything.

    After an :class:`InputError` in the block the folder is as if there had been no run.

    Raises:
        InputError: the folder holds something else, or another run is at work in it.
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file: name a folder for --output")
    created = not output.exists()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{output}: cannot make this folder ({error.strerror}): name another for --output") from None
    with _locked(output):
        names = set(os.listdir(output)) - {DOWNLOAD}
        if names and not names & {PREPARATION, _PROGRESS}:
            raise InputError(f"{output} is not empty and holds no preparation: name another folder for --output")
        if PREPARATION in names:
            if differing := _differences(plan, dataclasses.asdict(Preparation.load(output))):
                raise InputError(
                    f"{output} was prepared otherwise ({', '.join(differing)}): remove it, or name another folder"
                )
            yield None
            return
        progress: dict[str, Any] = {}
        if _PROGRESS in names:
            progress = json.loads((output / _PROGRESS).read_text(encoding="utf-8"))
            if _differences(plan, progress.pop("plan")):
                progress = {}
        for leftover in itertools.chain(output.glob(".*.tmp"), output.glob(".*.old")):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        if not progress:
            _remove_stages(output)
            _write_json(output / _PROGRESS, {"plan": plan})
        try:
            yield progress
        except InputError:
            _remove_stages(output)
            (output / _PROGRESS).unlink()
            if created:
                output.rmdir()
            raise


def _remove_stages(output: Path) -> None:
    for name in _FOLDERS:
        shutil.rmtree(output / name, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(f"{folder}: another preparation is at work in this folder") from None
    finally:
        os.close(descriptor)


def _differences(plan: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """In words, what of a plan is otherwise in another plan or preparation."""
    differing = [name for name in plan if name not in _RESULTS and other.get(name) != plan[name]]
    for split in sorted({*plan["splits"], *other["splits"]}):
        checksums = [splits.get(split, {}).get("sha256") for splits in (plan["splits"], other["splits"])]
        if checksums[0] != checksums[1]:
            differing.append(f"the {split} files")
    return differing


def read_pairs(paths: tuple[Path, Path]) -> Iterator[tuple[str, str]]:
    """The pairs of lines of two files.

    Raises:
        InputError: a file is empty, or they differ in length; the message names both counts.
    """
    counts = [0, 0]
    for source, target in itertools.zip_longest(*map(read_lines, paths)):
        counts[0] += source is not None
        counts[1] += target is not None
        if source is not None and target is not None:
            yield source, target
    for path, count in zip(paths, counts, strict=True):
        if count == 0:
            raise InputError(f"{path} is empty")
    if counts[0] != counts[1]:
        raise InputError(
            f"{paths[0]} has {counts[0]:,} lines and {paths[1]} has {counts[1]:,}: "
            f"line n of one must be the translation of line n of the other"
        )


def side_files(prefix: str | os.PathLike[str], languages: tuple[str, str]) -> tuple[Path, Path]:
    """The two files ``prefix.de`` and ``prefix.en``, or ``prefix.de.gz`` and ``prefix.en.gz``."""
    paths = []
    for language in languages:
        plain, packed = Path(f"{prefix}.{language}"), Path(f"{prefix}.{language}.gz")
        if not plain.is_file() and not packed.is_file():
            raise InputError(f"{plain}: no such file, nor {packed.name}")
        paths.append(plain if plain.is_file() else packed)
    return paths[0], paths[1]


@dataclasses.dataclass(frozen=True)
class _PairFunction:
    """One function for each side of a pair. Worker processes receive it whole."""

    source: Callable[[str], str]
    target: Callable[[str], str]

    def __call__(self, pair: tuple[str, str]) -> tuple[str, str]:
        return self.source(pair[0]), self.target(pair[1])


def _map(
    function: _PairFunction, pairs: Iterable[tuple[str, str]], workers: int, description: str
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yields each pair with what the function makes of it, in order. Shows a progress bar on a terminal."""
    pairs = iter(pairs)
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(tqdm(desc=description, unit=" pairs", disable=None))
        if workers > 1:
            pool = stack.enter_context(multiprocessing.Pool(workers, _set_worker_function, (function,)))
        # In blocks, so that a corpus of any size fits into memory and only this thread reads the files.
        while block := list(itertools.islice(pairs, _BLOCK)):
            results = pool.map(_call_worker_function, block, _BLOCK // 32) if workers > 1 else map(function, block)
            for pair, result in zip(block, results, strict=True):
                yield pair, result
                progress.update()


def _set_worker_function(function: _PairFunction) -> None:
    global _worker_function
    _worker_function = function


def _call_worker_function(pair: tuple[str, str]) -> tuple[str, str]:
    return _worker_function(pair)


def _text_writer(path: Path) -> Any:
    return open(path, "w", encoding="utf-8", newline="\n")


def _new_count() -> dict[str, Any]:
    return {"read": 0, "kept": 0, "dropped": {"too short": 0, "too long": 0, "ratio": 0}}


def _checksum(path: Path) -> str:
    try:
        return sha256(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None


def _write_json(path: Path, content: Any) -> None:
    with atomic_file(path) as stream:
        json.dump(content, stream, ensure_ascii=False, indent=2)
        stream.write("\n")


def _versions() -> dict[str, str]:
    packages = ("fairseq-fixed", "jieba", "opencc", "sacremoses", "sentencepiece", "subword-nmt")
    versions = {"python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


def add_bpe_arguments(parser: argparse.ArgumentParser, size: int) -> None:
    """The options of the steps that every parallel corpus shares."""
    parser.add_argument("--bpe", choices=BPES, default="sentencepiece", help="default: %(default)s")
    parser.add_argument(
        "--bpe-size",
        type=int,
        default=size,
        metavar="N",
        help="vocabulary of SentencePiece, merge operations of subword-nmt; default: %(default)s",
    )
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes; default: the number of CPUs"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="a new folder, or one of an earlier run")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="prepare_parallel.sh",
        description="Prepares parallel text for fairseq. Nothing is lower-cased or tokenised unless asked. PREFIX "
        "stands for the files PREFIX.SRC and PREFIX.TGT (or PREFIX.SRC.gz), UTF-8, line by line translations.",
    )
    parser.add_argument("--src-lang", required=True, metavar="SRC", help="source language's code, such as de")
    parser.add_argument("--tgt-lang", required=True, metavar="TGT", help="target language's code, such as en")
    parser.add_argument("--train", required=True, metavar="PREFIX")
    valid = parser.add_mutually_exclusive_group(required=True)
    valid.add_argument("--valid", metavar="PREFIX")
    valid.add_argument("--valid-every", type=int, metavar="N", help="take every N-th cleaned training pair instead")
    parser.add_argument("--test", default="", metavar="PREFIX[,PREFIX...]", help="become test, test1, ...")
    parser.add_argument("--lowercase", action="store_true")
    parser.add_argument("--tokenizer", choices=TOKENIZERS, default="none", help="default: %(default)s")
    parser.add_argument(
        "--source-tokenizer", choices=TOKENIZERS, help="the source's, where it is another: jieba for Chinese"
    )
    parser.add_argument(
        "--source-normalization",
        default="",
        metavar="NAME[,NAME]",
        help="of the source before tokenisation: nfkc (half-width letters and punctuation), simplified (Chinese)",
    )
    parser.add_argument("--no-escape", action="store_true", help="Moses tokens with & < > ' \" | [ ] as they are")
    parser.add_argument("--metric", choices=METRICS, default="bleu", help="what it is scored by; default: %(default)s")
    cleaning = parser.add_argument_group("cleaning", "training pairs that are dropped, by tokens before BPE")
    cleaning.add_argument("--min-length", type=int, default=1, metavar="N", help="a side shorter; default: %(default)s")
    cleaning.add_argument("--max-length", type=int, metavar="N", help="a side longer")
    cleaning.add_argument("--ratio", type=float, metavar="R", help="a side more than R times as long as the other")
    joint = parser.add_mutually_exclusive_group()
    joint.add_argument("--joint", action="store_true", default=True, help="one BPE and dictionary (the default)")
    joint.add_argument("--separate", dest="joint", action="store_false", help="a BPE and dictionary for each side")
    joint.add_argument("--separate-dictionaries", action="store_true", help="one BPE, but a dictionary for each side")
    add_bpe_arguments(parser, size=8000)
    return parser


def main() -> None:
    """The command line: see ``--help``."""
    arguments = _parser().parse_args()
    languages = (arguments.src_lang, arguments.tgt_lang)
    inputs = {"train": side_files(arguments.train, languages)}
    if arguments.valid:
        inputs["valid"] = side_files(arguments.valid, languages)
    for number, prefix in enumerate(filter(None, arguments.test.split(","))):
        inputs[f"test{number or ''}"] = side_files(prefix, languages)
    steps = Preparation(
        source_lang=arguments.src_lang,
        target_lang=arguments.tgt_lang,
        lowercase=arguments.lowercase,
        tokenizer=arguments.tokenizer,
        source_tokenizer=arguments.source_tokenizer,
        source_normalization=list(filter(None, arguments.source_normalization.split(","))),
        escape=not arguments.no_escape,
        min_length=arguments.min_length,
        max_length=arguments.max_length,
        ratio=arguments.ratio,
        valid_every=arguments.valid_every,
        bpe=arguments.bpe,
        bpe_size=arguments.bpe_size,
        metric=arguments.metric,
        joint=arguments.joint,
        separate_dictionaries=arguments.separate_dictionaries,
    )
    prepare(steps, inputs, arguments.output, arguments.workers)


if __name__ == "__main__":
    report_input_errors(main)
