"""``scripts/evaluate.sh``: translates a set with fairseq-generate and scores every one of its sentences.

Translation has two figures: 'tokenised BLEU' is that of Moses' multi-bleu.perl on the tokens (sacrebleu without
tokenisation and smoothing), which the papers report; 'sacreBLEU' is that of the text, against the raw reference. Where
a set has several references both use them all, with the reference length that is closest to a hypothesis' own, as
mteval does. Summarisation has ROUGE-1, -2 and -L. The preparation of a corpus says which it is.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..analysis.tables import table
from ..checkpoints import average_checkpoints, checked_checkpoint, last_checkpoints
from ..errors import InputError
from ..files import atomic_file, read_lines
from ..scoring.bleu import bleu
from ..scoring.rouge import METRICS, corpus_rouge
from . import commands, config, results


def main(arguments: list[str]) -> None:
    """Translates and scores, and writes the evaluation's part of ``results.json``."""
    parser = argparse.ArgumentParser(prog="scripts/evaluate.sh", allow_abbrev=False)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--checkpoint")
    parser.add_argument("--average", type=int)
    parser.add_argument("--subset", default="test")
    parser.add_argument("--gpus", type=int, choices=(0, 1))
    options, extra = parser.parse_known_args(arguments[1:])
    configuration = config.load(arguments[0])
    work = Path(os.path.abspath(options.work or configuration.default_work))
    data = commands.PreparedData.load(options.data or configuration.data_folder)
    subset = data.preparation.split_of(options.subset)
    name = data.preparation.splits.get(subset, {}).get("name", subset)
    references = References.load(data, subset)
    average = configuration.average if options.average is None else options.average
    checkpoint = options.checkpoint or own_checkpoint(work / "checkpoints", average)
    for path in checkpoint.split(":"):
        checked_checkpoint(path, None if options.checkpoint else commands.architecture(configuration))
    if "--replace-unk" in extra and commands.option(extra, "--print-alignment") is None:
        # Without it fairseq asks the model for no attention to copy by.
        extra = [*extra, "--print-alignment", "hard"]
    command = commands.generate_command(configuration, data, checkpoint, subset, options.gpus, extra)
    print(commands.shown(command), flush=True)

    log = work / "generate" / f"{subset}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    unfinished = log.with_name(f"{subset}.unfinished.log")
    count = len(references.tokens[0])
    with open(unfinished, "w", encoding="utf-8") as stream, tqdm(total=count, unit=" sentences", disable=None) as bar:

        def write(line: str) -> None:
            stream.write(line)
            bar.update(line.startswith("S-"))

        # fairseq-generate's own bar would count batches, and its log goes to the standard error.
        status = commands.run(command, write, stderr=subprocess.STDOUT)
    if status != 0:
        sys.exit(f"error: fairseq-generate ended with exit status {status}; its output stands in {unfinished}")
    tokens = [data.preparation.from_unknown(line) for line in hypotheses(read_lines(unfinished), count, unfinished)]
    os.replace(unfinished, log)
    text = [data.preparation.detokenize_target(line) for line in tokens]
    language = data.preparation.target_lang
    for file, lines in ((f"{subset}.tok.{language}", tokens), (f"{subset}.{language}", text)):
        with atomic_file(log.parent / file) as stream:
            stream.writelines(line + "\n" for line in lines)

    scores = {
        **references.scores(tokens, text),
        "decode_sentences_per_second": decoding_speed(log),
        "checkpoint": checkpoint,
        "generate_command": commands.shown(command),
    }
    # The top level is the test set's: another set must not overwrite what tables are made of.
    if subset == "test":
        results.update(work, **scores)
    else:
        results.update(work, subsets={**results.load(work).get("subsets", {}), name: scores})
    # A table's figures are of its test sets.
    paper = configuration.paper_row() if subset.startswith("test") else None
    row = {"system": f"{configuration.dataset}/{configuration.model}", "set": name, "sentences": len(tokens)}
    if data.preparation.metric == "rouge":
        row |= {shown: scores[metric] for metric, shown in METRICS.items()}
        row |= {"paper": " / ".join(str(paper[metric]) for metric in METRICS)} if paper else {}
    else:
        row |= {"BLEU (tokenised)": scores["bleu_tokenized"], "sacreBLEU": scores["bleu_sacrebleu"]}
        row |= {"paper": paper.get(name, paper.get("bleu"))} if paper else {}
    print(table([{**row, "sentences/s": scores["decode_sentences_per_second"]}]))
    if data.preparation.metric == "rouge":
        intervals = (f"{shown} {low:.2f}-{high:.2f}" for shown, (low, high) in scores["rouge_intervals"].items())
        print(f"ROUGE: {scores['rouge_signature']}; 95 % intervals: {', '.join(intervals)}")
    else:
        print(f"tokenised: {scores['bleu_tokenized_signature']}\nsacreBLEU: {scores['sacrebleu_signature']}")
    print(f"translations: {log.parent}; scores: {work / 'results.json'}")


def own_checkpoint(checkpoints: Path, average: int) -> str:
    """The best checkpoint of a training, or the mean of its last ``average`` epochs' (written beside them)."""
    if average == 0:
        return str(checkpoints / "checkpoint_best.pt")
    output = checkpoints / f"checkpoint_average_{average}.pt"
    average_checkpoints(last_checkpoints(checkpoints, average), output)
    return str(output)


@dataclass(frozen=True)
class References:
    """A set's references, one or several for each sentence, as tokens and as text, and how scores are computed."""

    tokens: Sequence[Sequence[str]]
    text: Sequence[Sequence[str]]
    lowercase: bool
    metric: str = "bleu"

    @classmethod
    def load(cls, data: commands.PreparedData, subset: str) -> References:
        """The references of one of the prepared sets; where only tokens were given, the text is made of them.

        Raises:
            InputError: there is no such set.
        """
        language, splits = data.preparation.target_lang, data.preparation.splits
        count = splits.get(subset, {}).get("references", 1)
        names = [f"{subset}.{language}", *(f"{subset}.ref{number}.{language}" for number in range(1, count))]
        folder = data.folder / "tokens"
        if not (folder / names[0]).is_file():
            prepared = sorted(path.stem for path in folder.glob(f"*.{language}") if ".ref" not in path.stem)
            known = ", ".join(splits.get(split, {}).get("name", split) for split in prepared)
            raise InputError(f"{folder / names[0]}: no such file; the prepared sets are {known}")
        tokens = [list(read_lines(folder / name)) for name in names]
        if (data.folder / "raw" / names[0]).is_file():
            text = [list(read_lines(data.folder / "raw" / name)) for name in names]
        else:
            text = [[data.preparation.detokenize_target(line) for line in lines] for lines in tokens]
        return cls(tokens, text, data.preparation.lowercase, data.preparation.metric)

    def scores(self, tokens: Sequence[str], text: Sequence[str]) -> dict[str, Any]:
        """Both BLEU scores of a translation, given as tokens and as text, with sacrebleu's signatures; or its ROUGE."""
        if self.metric == "rouge":
            rouge = corpus_rouge(text, self.text)
            return {
                **{metric: round(interval.score, 2) for metric, interval in rouge.scores.items()},
                "rouge_intervals": {
                    shown: [round(rouge.scores[metric].low, 2), round(rouge.scores[metric].high, 2)]
                    for metric, shown in METRICS.items()
                },
                "rouge_signature": rouge.signature,
            }
        tokenized, plain = (bleu(tokenize, self.lowercase) for tokenize in ("none", "13a"))
        return {
            "bleu_tokenized": round(tokenized.corpus_score(tokens, self.tokens).score, 2),
            "bleu_tokenized_signature": str(tokenized.get_signature()),
            "bleu_sacrebleu": round(plain.corpus_score(text, self.text).score, 2),
            "sacrebleu_signature": str(plain.get_signature()),
        }


def hypotheses(log: Iterable[str], count: int, name: str | Path) -> list[str]:
    """The best hypothesis of each sentence in fairseq-generate's output, without BPE, in the order of the set.

    Raises:
        InputError: the sentences are not exactly 0 … ``count`` - 1: a score of some of them would be wrong.
    """
    best: dict[int, str] = {}
    for line in log:
        # D-<number> TAB <score> TAB <tokens>; of --nbest hypotheses the first is the best.
        if found := re.match(r"D-(\d+)\t[^\t]*\t(.*)", line):
            best.setdefault(int(found[1]), found[2])
    missing = [number for number in range(count) if number not in best]
    if missing or len(best) != count:
        which = f"; the first missing is sentence {missing[0] + 1}" if missing else ""
        raise InputError(f"{name}: {len(best):,} sentences were translated, but there are {count:,}{which}")
    return [best[number] for number in range(count)]


def decoding_speed(log: Path) -> float | None:
    """Sentences per second of beam search, as fairseq-generate reports it."""
    for line in read_lines(log):
        if found := re.search(r"Translated .* sentences .* \(([\d.]+) sentences/s", line):
            return float(found[1])
    return None


if __name__ == "__main__":
    commands.main_of(main)
