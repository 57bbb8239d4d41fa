"""Running text, for language models: words as they are, or characters, with an end of sentence at each line's end.

    fairseq-plugins prepare text --train train.txt --valid valid.txt --test test.txt \\
        --output work/mine/data

The output folder holds

    tokens/{train,valid,test,test1,…}.txt     the lines as fairseq reads them, tokens between spaces
    bin/                                      fairseq-preprocess's output: what fairseq-train reads
    preparation.json                          every step applied, and all that is needed to apply it to new text

The dictionary has no more rows than its types and fairseq's four symbols: ``</s>`` is the end of each line, ``<unk>``
every unknown word, and ``<s>`` and ``<pad>`` are in no text.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.codec import Codec
from fairseq_plugins.corpora.lines import map_lines, read_sentences, text_writer
from fairseq_plugins.corpora.pipeline import Run, add_run_arguments, note_unknown_metric
from fairseq_plugins.corpora.preparation import Preparation
from fairseq_plugins.corpora.tokenizers import TOKENIZERS, Tokenizer, note_moses_rules
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines
from fairseq_plugins.languages import moses_language
from fairseq_plugins.symbols import SPECIAL_SYMBOLS, UNKNOWN, check_symbols

UNITS = ("words", "characters")
METRICS = {"words": "perplexity", "characters": "bits_per_character"}
"""What models of each unit are scored by, unless it is said otherwise."""
SPACE = "\u2581"
"""What stands for a space among characters."""
_LOST = re.compile(SPACE)
_LOST_WITH_SPACES = re.compile(rf"[^\S ]|{SPACE}")


@dataclasses.dataclass
class RunningTextPreparation(Preparation):
    """What was done to a running text."""

    kind = "running_text"
    title = "running text"
    examples = count = "tokens"

    units: str = "words"
    """``words`` or ``characters``: what a token is."""
    language: str = "en"
    """Its code, by which Moses tokenises."""
    tokenizer: str = "none"
    lowercase: bool = False
    unknown_words: list[str] = dataclasses.field(default_factory=lambda: [UNKNOWN])
    """Words by which the text itself says that a word is unknown; to the model they are fairseq's ``<unk>``."""
    dictionary_size: int | None = None
    """The most types of the dictionary, fairseq's four symbols among them; None for all."""
    keeps_spaces: bool = False
    """Whether every character of a line is a token. Else runs of white space are a space, and none is at the ends: so
    in Penn Treebank, whose lines lie between spaces."""
    metric: str = dataclasses.field(default="perplexity", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.units not in UNITS:
            raise InputError(f"unknown units {self.units!r}: choose one of {', '.join(UNITS)}")
        if self.tokenizer not in TOKENIZERS:
            raise InputError(f"unknown tokenizer {self.tokenizer!r}: choose one of {', '.join(TOKENIZERS)}")
        if self.keeps_spaces and not (self.has_characters and self.tokenizer == "none"):
            raise InputError("spaces are kept among characters that no tokenizer has changed, and nowhere else")
        self.check_counts("dictionary_size")

    def dictionaries(self) -> list[str]:
        return ["bin/dict.txt"]

    @property
    def has_characters(self) -> bool:
        """Whether a token is a character."""
        return self.units == "characters"

    def check(self, place: str, line: str) -> None:
        """Raises InputError for a line of text with a character that would not come back; ``place`` says where it
        is."""
        if not self.has_characters:
            return
        lost = (_LOST_WITH_SPACES if self.keeps_spaces else _LOST).search(line)
        if lost:
            raise InputError(
                f"{place}: the character U+{ord(lost[0]):04X} cannot be a token: of white space only the space can, "
                f"and U+{ord(SPACE):04X} stands for it; write it differently"
            )

    def encode(self, line: str) -> str:
        """A line of text → tokens between spaces, without the line's end.

        Letters with their accents are one character (NFC), unless spaces are kept, and characters with them.
        """
        if not self.has_characters:
            return self._codec.encode(line)
        if not self.keeps_spaces:
            line = self._codec.tokenize(line)
        elif self.lowercase:
            line = line.lower()
        return " ".join(SPACE if character == " " else character for character in line)

    def decode(self, tokens: str) -> str:
        """Tokens between spaces → a line of text."""
        if self.has_characters:
            return "".join(tokens.split(" ")).replace(SPACE, " ")
        return self._codec.detokenize(self._codec.decode(tokens))

    @functools.cached_property
    def _codec(self) -> Codec:
        # As the record has it: those of earlier versions gave Moses names as they were.
        language = self.language.split("_")[0]
        tokenizer = Tokenizer(
            language,
            self.tokenizer,
            escape=False,
            lowercase=self.lowercase,
            normalization=["nfc"],
            moses_language=language,
        )
        return Codec(tokenizer, unknown_words=self.unknown_words)


class RunningTextRun(Run[RunningTextPreparation]):
    """The steps from text files to fairseq's binary form."""

    folders = ("tokens", "bin")

    def __init__(
        self,
        preparation: RunningTextPreparation,
        inputs: Mapping[str, Path],
        output: str | os.PathLike[str],
        workers: int = 1,
        read: Callable[[Path], Iterator[str]] = read_sentences,
    ) -> None:
        """
        Args:
            preparation: what to do; what is counted on the way is not read from it.
            inputs: split (``train``, ``valid``, ``test``, ``test1``, …) → its file, plain or ``.gz``.
            output: the folder to write; new, empty, or prepared already.
            workers: processes for tokenisation and fairseq-preprocess.
            read: the lines of text in a file.

        Raises:
            InputError: a file is missing, or there is no worker.
        """
        super().__init__(preparation, {split: [path] for split, path in inputs.items()}, output, workers)
        self._read = read

    def write(self, folder: Path) -> dict[str, Any]:
        texts = self._write_text(folder / "tokens")
        command = self._write_bin(folder)
        size = sum(1 for _ in read_lines(folder / "bin" / "dict.txt")) + SPECIAL_SYMBOLS
        print(f"{self.output / 'bin'}: a dictionary of {size:,} types, {SPECIAL_SYMBOLS} of them fairseq's own")
        return {
            "splits": {split: {**self.facts[split], **counts} for split, counts in texts.items()},
            "dictionary_sizes": {"text": size},
            "commands": [command],
        }

    def _write_text(self, folder: Path) -> dict[str, dict[str, int]]:
        counts = {}
        vocabulary: set[str] = set()
        folder.mkdir()
        for split in sorted(self.inputs, key=lambda split: split != "train"):
            [path] = self.inputs[split]
            counts[split] = self._write_split(path, folder / f"{split}.txt", vocabulary, split == "train")
        for split, count in counts.items():
            unknown = f", {count['unknown']:,} of them unknown" if count["unknown"] else ""
            print(f"{split}: {count['lines']:,} lines, {count['tokens']:,} tokens with the lines' ends{unknown}")
        return counts

    def _write_split(self, path: Path, output: Path, vocabulary: set[str], learns: bool) -> dict[str, int]:
        """Writes one set, and counts its tokens; the training text's types become the ``vocabulary``."""
        types: collections.Counter[str] = collections.Counter()
        lines = 0
        with text_writer(output) as stream:
            pairs = map_lines(self.preparation.encode, self._read(path), self.workers, f"tokens of {output.stem}")
            for lines, (text, line) in enumerate(pairs, start=1):
                self.preparation.check(f"{path}, line {lines}", text)
                tokens = line.split()
                self._check(path, lines, tokens, None if learns else vocabulary)
                types.update(tokens)
                stream.write(line + "\n")
        if not types:
            raise InputError(f"{path} is empty: a language model needs text")
        if learns:
            most = self.preparation.dictionary_size
            words = [word for word, _ in types.most_common() if word != UNKNOWN]
            # fairseq-preprocess orders words that are as frequent by themselves; which of them it drops is its choice.
            vocabulary.update(words[: None if most is None else most - SPECIAL_SYMBOLS])
        unknown = sum(count for word, count in types.items() if word not in vocabulary)
        return {"lines": lines, "tokens": types.total() + lines, "unknown": unknown}

    def _check(self, path: Path, line: int, tokens: Sequence[str], vocabulary: set[str] | None) -> None:
        check_symbols(f"{path}, line {line}", tokens)
        if vocabulary is not None and self.preparation.has_characters:
            for character in tokens:
                if character not in vocabulary:
                    raise InputError(
                        f"{path}, line {line}: the character '{character}' is not in the training text: "
                        f"remove it, or add it there"
                    )

    def _write_bin(self, folder: Path) -> str:
        arguments = ["--only-source", "--padding-factor", "1"]
        tests = [split for split in self.inputs if split.startswith("test")]
        for option, splits in (("train", ["train"]), ("valid", ["valid"]), ("test", tests)):
            if splits:
                arguments += [f"--{option}pref", ",".join(f"tokens/{split}.txt" for split in splits)]
        if self.preparation.dictionary_size is not None:
            arguments += ["--nwordssrc", str(self.preparation.dictionary_size)]
        return self.fairseq_preprocess(arguments, folder)


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare text",
        "Prepares running text for language models. FILE is UTF-8, plain or .gz; each line's end is a "
        "token too. Nothing is lower-cased or tokenised unless asked: words are what is between spaces.",
        (
            "--train train.txt --valid valid.txt --test test.txt --output work/mine/data",
            "--train train.txt --valid valid.txt --characters --output work/mine_characters/data",
        ),
    )
    options.add_argument("--train", required=True, type=Path, metavar="FILE")
    options.add_argument("--valid", required=True, type=Path, metavar="FILE")
    options.add_argument("--test", default="", metavar="FILE[,FILE...]", help="become test, test1, ...")
    options.add_argument("--characters", action="store_true", help="a token is a character, not a word")
    options.add_argument(
        "--words", type=int, metavar="N", help="the N most frequent words, 4 of them fairseq's symbols"
    )
    options.add_argument("--language", default="en", metavar="CODE", help="for Moses; default: %(default)s")
    options.add_argument("--tokenizer", choices=TOKENIZERS, default="none", help="default: %(default)s")
    options.add_argument("--lowercase", action="store_true")
    options.add_argument(
        "--unknown-words",
        default=UNKNOWN,
        metavar="WORD[,WORD]",
        help="by which the text says that a word is unknown; default: %(default)s",
    )
    options.add_argument("--metric", metavar="NAME", help="default: perplexity, or bits_per_character")
    add_run_arguments(options)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    if options.characters and options.words is not None:
        raise InputError("--words goes with words: of characters the dictionary holds all")
    units = "characters" if options.characters else "words"
    tests = [Path(name) for name in options.test.split(",") if name]
    inputs = {"train": options.train, "valid": options.valid}
    inputs |= {f"test{number or ''}": path for number, path in enumerate(tests)}
    metric = options.metric or METRICS[units]
    if options.tokenizer == "moses":
        note_moses_rules([options.language], "--language")
    note_unknown_metric(metric, METRICS.values(), "running text")
    preparation = RunningTextPreparation(
        units=units,
        language=moses_language(options.language),
        tokenizer=options.tokenizer,
        lowercase=options.lowercase,
        # Among characters, "<unk>" is five of them.
        unknown_words=[] if options.characters else list(filter(None, options.unknown_words.split(","))),
        dictionary_size=options.words,
        keeps_spaces=options.characters and options.tokenizer == "none",
        metric=metric,
    )
    RunningTextRun(preparation, inputs, options.output, options.workers).prepare()
