"""``fairseq-plugins prepare parallel``: prepares any parallel text (:mod:`.pairs`).

    fairseq-plugins prepare parallel --src-lang de --tgt-lang en --train data/train --valid data/valid \\
        --test data/test --output data/prepared --lowercase --tokenizer moses --bpe-size 8000
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.lines import side_files
from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.corpora.pipeline import add_run_arguments, note_unknown_metric
from fairseq_plugins.corpora.subwords import add_bpe_arguments, check_bpe_arguments
from fairseq_plugins.corpora.tokenizers import TOKENIZERS, note_moses_rules
from fairseq_plugins.errors import InputError
from fairseq_plugins.languages import MOSES, language_code, moses_language

METRICS = ("bleu", "chrf", "ter", "rouge", "rouge_lsum", "exact_match", "cer")
"""Those that are known here; an extension may have others."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare parallel",
        "Prepares parallel text for fairseq. Nothing is lower-cased or tokenised unless asked. PREFIX "
        "stands for the files PREFIX.SRC and PREFIX.TGT (or PREFIX.SRC.gz), UTF-8, line by line translations.",
        (
            "--src-lang de --tgt-lang en --train data/train --valid data/valid --test data/test "
            "--lowercase --tokenizer moses --bpe-size 8000 --output data/prepared",
        ),
    )
    options.add_argument("--src-lang", required=True, metavar="SRC", help="source language's code, such as de")
    options.add_argument("--tgt-lang", required=True, metavar="TGT", help="target language's code, such as en")
    options.add_argument("--train", required=True, metavar="PREFIX")
    valid = options.add_mutually_exclusive_group(required=True)
    valid.add_argument("--valid", metavar="PREFIX")
    valid.add_argument("--valid-every", type=int, metavar="N", help="take every N-th cleaned training pair instead")
    options.add_argument("--test", default="", metavar="PREFIX[,PREFIX...]", help="become test, test1, ...")
    options.add_argument("--lowercase", action="store_true", help="both sides, so that translations are lower case too")
    options.add_argument("--tokenizer", choices=TOKENIZERS, default="none", help="default: %(default)s")
    options.add_argument(
        "--source-tokenizer", choices=TOKENIZERS, help="the source's, where it is another: jieba for Chinese"
    )
    options.add_argument(
        "--source-normalization",
        default="nfc",
        metavar="NAME[,NAME]",
        help="of the source before tokenisation: nfc (composed accents, the default), nfkc (half-width letters and "
        "punctuation), simplified (Chinese); '' for nothing. With nfc or nfkc the target's accents are composed too",
    )
    options.add_argument(
        "--moses-language",
        metavar="CODE[,CODE]",
        help="whose rules Moses has, for both sides or for SRC and TGT; default: those of SRC and TGT",
    )
    options.add_argument("--no-escape", action="store_true", help="Moses tokens with & < > ' \" | [ ] as they are")
    options.add_argument(
        "--metric",
        default="bleu",
        metavar="NAME",
        help=f"{', '.join(METRICS)}, or an extension's; default: %(default)s",
    )
    cleaning = options.add_argument_group("cleaning", "training pairs that are dropped, by tokens before BPE")
    cleaning.add_argument("--min-length", type=int, default=1, metavar="N", help="a side shorter; default: %(default)s")
    cleaning.add_argument("--max-length", type=int, metavar="N", help="a side longer")
    cleaning.add_argument("--ratio", type=float, metavar="R", help="a side more than R times as long as the other")
    joint = options.add_mutually_exclusive_group()
    joint.add_argument("--joint", action="store_true", default=True, help="one BPE and dictionary (the default)")
    joint.add_argument("--separate", dest="joint", action="store_false", help="a BPE and dictionary for each side")
    joint.add_argument("--separate-dictionaries", action="store_true", help="one BPE, but a dictionary for each side")
    add_bpe_arguments(options, size=8000)
    add_run_arguments(options)
    return options


def _moses_languages(options: argparse.Namespace) -> dict[str, str]:
    """Language → that whose rules Moses has for it, as ``--moses-language`` says.

    Raises:
        InputError: it names none, or more than two, or neither side has Moses' tokens.
    """
    languages = (options.src_lang, options.tgt_lang)
    kinds = (options.source_tokenizer or options.tokenizer, options.tokenizer)
    sides = [language for language, kind in zip(languages, kinds, strict=True) if kind == "moses"]
    if options.moses_language is None:
        note_moses_rules(sides, "--moses-language")
        return {}
    if not sides:
        raise InputError("--moses-language is for Moses' tokens: give --tokenizer moses too, or leave it out")
    codes = options.moses_language.split(",")
    if len(codes) > 2:
        raise InputError(f"--moses-language {options.moses_language}: give one code, or two as SOURCE,TARGET")
    for code in codes:
        if language_code(code) not in MOSES:
            raise InputError(
                f"--moses-language {code}: Moses has no rules for it; there are {', '.join(sorted(MOSES))}"
            )
    named = zip(languages, codes * (3 - len(codes)), strict=True)
    return {language: moses_language(code) for language, code in named if language in sides}


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    check_bpe_arguments(parser(), options)
    languages = (options.src_lang, options.tgt_lang)
    moses_languages = _moses_languages(options)
    inputs = {"train": side_files(options.train, languages)}
    if options.valid:
        inputs["valid"] = side_files(options.valid, languages)
    for number, prefix in enumerate(filter(None, options.test.split(","))):
        inputs[f"test{number or ''}"] = side_files(prefix, languages)
    note_unknown_metric(options.metric, METRICS, "pairs of texts")
    preparation = PairsPreparation(
        source_lang=options.src_lang,
        target_lang=options.tgt_lang,
        lowercase=options.lowercase,
        tokenizer=options.tokenizer,
        source_tokenizer=options.source_tokenizer,
        moses_languages=moses_languages,
        source_normalization=list(filter(None, options.source_normalization.split(","))),
        escape=not options.no_escape,
        min_length=options.min_length,
        max_length=options.max_length,
        ratio=options.ratio,
        valid_every=options.valid_every,
        bpe=options.bpe,
        bpe_size=options.bpe_size,
        metric=options.metric,
        joint=options.joint,
        separate_dictionaries=options.separate_dictionaries,
    )
    prepare(preparation, inputs, options.output, options.workers)
