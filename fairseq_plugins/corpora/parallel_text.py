"""``scripts/prepare_parallel.sh``: prepares any parallel text (:mod:`.pairs`).

    python -m fairseq_plugins.corpora.parallel_text --src-lang de --tgt-lang en --train data/train --valid data/valid \\
        --test data/test --output data/prepared --lowercase --tokenizer moses --bpe-size 8000
"""

from __future__ import annotations

import argparse

from fairseq_plugins.corpora.lines import side_files
from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.corpora.pipeline import add_run_arguments, note_unknown_metric
from fairseq_plugins.corpora.subwords import add_bpe_arguments, check_bpe_arguments
from fairseq_plugins.corpora.tokenizers import TOKENIZERS
from fairseq_plugins.errors import report_input_errors

METRICS = ("bleu", "rouge")
"""Those that are known here; an extension may have others."""


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
    parser.add_argument("--lowercase", action="store_true", help="both sides, so that translations are lower case too")
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
    parser.add_argument(
        "--metric", default="bleu", metavar="NAME", help="bleu, rouge, or an extension's; default: %(default)s"
    )
    cleaning = parser.add_argument_group("cleaning", "training pairs that are dropped, by tokens before BPE")
    cleaning.add_argument("--min-length", type=int, default=1, metavar="N", help="a side shorter; default: %(default)s")
    cleaning.add_argument("--max-length", type=int, metavar="N", help="a side longer")
    cleaning.add_argument("--ratio", type=float, metavar="R", help="a side more than R times as long as the other")
    joint = parser.add_mutually_exclusive_group()
    joint.add_argument("--joint", action="store_true", default=True, help="one BPE and dictionary (the default)")
    joint.add_argument("--separate", dest="joint", action="store_false", help="a BPE and dictionary for each side")
    joint.add_argument("--separate-dictionaries", action="store_true", help="one BPE, but a dictionary for each side")
    add_bpe_arguments(parser, size=8000)
    add_run_arguments(parser)
    return parser


def main() -> None:
    """The command line: see ``--help``."""
    parser = _parser()
    arguments = parser.parse_args()
    check_bpe_arguments(parser, arguments)
    languages = (arguments.src_lang, arguments.tgt_lang)
    inputs = {"train": side_files(arguments.train, languages)}
    if arguments.valid:
        inputs["valid"] = side_files(arguments.valid, languages)
    for number, prefix in enumerate(filter(None, arguments.test.split(","))):
        inputs[f"test{number or ''}"] = side_files(prefix, languages)
    note_unknown_metric(arguments.metric, METRICS, "pairs of texts")
    preparation = PairsPreparation(
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
    prepare(preparation, inputs, arguments.output, arguments.workers)


if __name__ == "__main__":
    report_input_errors(main)
