"""Times whole models against each other in the same run: training (target tokens/s) and beam search (sentences/s).

    python benchmarks/models.py [--systems ARCH ...] [--train-peer ARCH] [--decode-peer ARCH] [--threads 2]
    python benchmarks/models.py --systems ARCH ... --types 8000 --peer joeynmt [--exported]

The default are the systems of DPN-S2S's Table 1: dictionaries of 8,848 and 6,632 types for the baselines, a joined one
of 10,152 for DPN-S2S. Sentences are random, 20 to 25 tokens long. A training step is forward, label-smoothed cross
entropy, backward, clipping and a NAG update on a batch of about 4,000 target tokens. Beam search (beam 5) decodes 32
sentences to 25 tokens each, whatever the untrained models prefer. The systems take turns within each repetition;
printed are the median, the spread (half the distance between the quartiles, in percent), and the ratio of speeds to the
peer: above 1 is faster. ``lstm_as_rnnsearch`` is fairseq's ``lstm`` with the layers, sizes and directions of
``rnnsearch_iwslt_de_en``; ``rnnsearch_output_attention`` and ``mc_rnn_output_attention`` are ours for IWSLT'14 with
``--decoder-attention output``; ``transformer_as_dpn`` and ``fconv_as_dpn`` are fairseq's about as large as
``dpn_iwslt_de_en`` (configs/multi30k_de_en); ``dpn_checkpointed`` is ``dpn_iwslt_de_en`` with
``--checkpoint-activations``.

``--peer joeynmt`` adds Joey NMT's recurrent model of RNNSearch's sizes, to which all are compared, and its transformer
of DPN-S2S's (``joeynmt_models.py``, which says what to install); they read the same sentences. ``--exported`` adds to
beam search each of our models as ``fairseq-plugins export`` writes it, run by onnxruntime; ``--medium`` adds each of
our models with ``--matmul-precision medium``.
``--task language_modeling`` times language models (``language_models.py``).
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joeynmt_models
import language_models
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from timing import REPETITIONS, at_least, device_here, take_turns, versions, write_json
from torch import Tensor, nn
from untrained import build_architecture, exported, make_task

from fairseq_plugins.criterions.output_cross_entropy import OutputCrossEntropyCriterion
from fairseq_plugins.exported.beam_search import SearchOptions, search
from fairseq_plugins.exported.translation import ExportedTranslationModel
from fairseq_plugins.models.beam_search import FewTokensGenerator, searches_faster
from fairseq_plugins.models.double_path import DoublePathModel
from fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqModel
from fairseq_plugins.versions import versions as package_versions

SYSTEMS = [
    "dpn_iwslt_de_en",
    "san_wider_iwslt_de_en",
    "san_deeper_iwslt_de_en",
    "cnn_wider_iwslt_de_en",
    "cnn_deeper_iwslt_de_en",
]
# Architectures with other sizes or options than their own.
PRESETS = {
    "rnnsearch_output_attention": ("rnnsearch_iwslt_de_en", {"decoder_attention": "output"}),
    "mc_rnn_output_attention": ("mc_rnn_iwslt_de_en", {"decoder_attention": "output"}),
    "lstm_as_rnnsearch": (
        "lstm",
        {
            "encoder_embed_dim": 256,
            "encoder_hidden_size": 256,
            "encoder_layers": 2,
            "encoder_bidirectional": True,
            "decoder_embed_dim": 256,
            "decoder_hidden_size": 256,
            "decoder_layers": 2,
            "decoder_out_embed_dim": 256,
            "dropout": 0.3,
        },
    ),
    "dpn_checkpointed": ("dpn_iwslt_de_en", {"checkpoint_activations": True}),
    "transformer_as_dpn": ("san_deeper_iwslt_de_en", {"share_all_embeddings": True}),
    "fconv_as_dpn": ("cnn_deeper_iwslt_de_en", {"share_input_output_embed": True}),
}
LENGTHS = (20, 25)
BEAM = 5


def task_of(arch: str, types: int | None) -> SimpleNamespace:
    """A task with dictionaries of the sizes of IWSLT'14: one for both sides for DPN-S2S, two for the others."""
    if types is not None:
        sizes = (types, None)
    elif arch.startswith("dpn"):
        sizes = (10_152, None)
    else:
        sizes = (8_848, 6_632)
    return make_task(*sizes, left_pad_target=False)


def model_of(system: str, task: SimpleNamespace) -> nn.Module:
    torch.manual_seed(1)
    if system in joeynmt_models.SYSTEMS:
        return joeynmt_models.build(system, len(task.source_dictionary))
    arch, sizes = PRESETS.get(system, (system, {}))
    return build_architecture(arch, task, **sizes)


def batch(
    task: SimpleNamespace, sentences: int, device: str, shortest_and_longest: tuple[int, int] = LENGTHS
) -> dict[str, Any]:
    """A sample as the translation task makes it: sources padded on the left, targets on the right."""
    shortest, longest_of_all = shortest_and_longest
    generator = torch.Generator().manual_seed(1)
    # The longest first, as fairseq sorts them: its lstm relies on it.
    lengths = torch.randint(shortest, longest_of_all + 1, (sentences,), generator=generator).sort(descending=True)[0]
    longest = int(lengths[0])
    real = torch.arange(longest) < lengths.unsqueeze(1)

    def words(types: int) -> Tensor:
        return torch.randint(4, types, (sentences, longest), generator=generator)

    pad, eos = 1, 2
    source = words(len(task.source_dictionary)).masked_fill(~real.flip(1), pad)
    source[:, -1] = eos
    target = words(len(task.target_dictionary)).masked_fill(~real, pad)
    target[torch.arange(sentences), lengths - 1] = eos
    previous = torch.cat([torch.full((sentences, 1), eos), target[:, :-1]], dim=1).masked_fill(~real, pad)
    sample = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": previous}
    return {
        "net_input": {name: value.to(device) for name, value in sample.items()},
        "target": target.to(device),
        "ntokens": int(lengths.sum()),
    }


def loss(model: BaseFairseqModel, task: SimpleNamespace, sample: dict[str, Any]) -> Callable[[], Tensor]:
    """Computes the loss for each token."""
    # That of the recipes; for fairseq's own architectures it is fairseq's label_smoothed_cross_entropy.
    criterion = OutputCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)

    def for_each_token() -> Tensor:
        summed, tokens, _ = criterion(model, sample)
        return summed / tokens

    return for_each_token


def training_step(model: nn.Module, task: SimpleNamespace, sample: dict[str, Any]) -> Callable[[], None]:
    mean_loss = loss(model, task, sample) if isinstance(model, BaseFairseqModel) else joeynmt_models.loss(model, sample)
    # So small that random sentences do no harm to the weights.
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.99, nesterov=True)

    def step() -> None:
        model.train()
        computed = mean_loss()
        optimizer.zero_grad()
        computed.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    return step


def beam_search(
    model: nn.Module, task: SimpleNamespace, sample: dict[str, Any], length: int = LENGTHS[1]
) -> Callable[[], None]:
    if not isinstance(model, BaseFairseqModel):
        return joeynmt_models.beam_search(model, sample, BEAM, length)
    # As fairseq's tasks build it (patches/decoding.py).
    generator_class = FewTokensGenerator if searches_faster([model]) else SequenceGenerator
    generator = generator_class(
        [model], task.target_dictionary, beam_size=BEAM, max_len_a=0, max_len_b=length, min_len=length
    )
    net_input = {name: sample["net_input"][name] for name in ("src_tokens", "src_lengths")}
    return lambda: generator.generate([model], {"net_input": net_input})


def at_medium_precision(step: Callable[[], None]) -> Callable[[], None]:
    """A step whose products have ``--matmul-precision medium``."""

    def run() -> None:
        torch.set_float32_matmul_precision("medium")
        try:
            step()
        finally:
            torch.set_float32_matmul_precision("highest")

    return run


def exported_beam_search(
    model: ExportedTranslationModel, sample: dict[str, Any], length: int = LENGTHS[1]
) -> Callable[[], None]:
    sources = [row[row != model.padding].tolist() for row in sample["net_input"]["src_tokens"]]
    options = SearchOptions(BEAM, max_len_a=0, max_len_b=length, min_len=length)
    return lambda: search(model, sources, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--systems", nargs="+", choices=sorted({*ARCH_CONFIG_REGISTRY, *PRESETS}), default=SYSTEMS, metavar="ARCH"
    )
    parser.add_argument("--train-peer", default="san_wider_iwslt_de_en", help="default: %(default)s")
    parser.add_argument("--decode-peer", default="san_deeper_iwslt_de_en", help="default: %(default)s")
    parser.add_argument("--types", type=at_least(1), help="size of a joined dictionary for every system")
    parser.add_argument(
        "--sentences", type=at_least(1), nargs=2, default=[176, 32], help="of a batch, training and decoding"
    )
    parser.add_argument("--peer", choices=["joeynmt"], help="add its models, and compare all to the recurrent one")
    parser.add_argument(
        "--exported", action="store_true", help="decode with our models as they are exported, too; needs --types"
    )
    parser.add_argument("--medium", action="store_true", help="our models with --matmul-precision medium, too")
    parser.add_argument("--threads", type=at_least(1), default=2)
    parser.add_argument("--device", type=device_here, default="cpu")
    parser.add_argument("--repetitions", type=REPETITIONS, default=7)
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    parser.add_argument("--task", choices=("translation", "language_modeling"), default="translation")
    args = parser.parse_args()
    if args.task == "language_modeling":
        language_models.compare(args.threads, args.device, args.repetitions, args.types, args.json)
        return
    if args.exported and args.types is None:
        parser.error("--exported needs --types: exported models have one dictionary here")
    if args.peer:
        if importlib.util.find_spec(args.peer) is None:
            parser.error(f"{args.peer} is not installed: {joeynmt_models.INSTALL}")
        args.systems = [*args.systems, *joeynmt_models.SYSTEMS]
        args.train_peer = args.decode_peer = next(iter(joeynmt_models.SYSTEMS))
    for option, peer in ("--train-peer", args.train_peer), ("--decode-peer", args.decode_peer):
        if peer not in args.systems:
            parser.error(f"{option} {peer} is not among the --systems")
    torch.set_num_threads(args.threads)
    environment = {**versions(args.device), **package_versions([args.peer] if args.peer else [])}
    print(
        ", ".join(f"{name} {version}" for name, version in environment.items()) + f", {args.threads} threads, float32"
    )

    tasks = {arch: task_of(arch, args.types) for arch in args.systems}
    models = {arch: model_of(arch, tasks[arch]).to(args.device) for arch in args.systems}
    parameters = {arch: sum(p.numel() for p in model.parameters()) for arch, model in models.items()}
    ours = [arch for arch in args.systems if isinstance(models[arch], (DoublePathModel, RecurrentSeq2SeqModel))]
    graphs = {arch: exported(models[arch].eval(), arch, tasks[arch], args.threads) for arch in ours if args.exported}
    rows = []
    for work, sentences, peer in (
        ("training", args.sentences[0], args.train_peer),
        ("beam search", args.sentences[1], args.decode_peer),
    ):
        samples = {arch: batch(tasks[arch], sentences, args.device) for arch in args.systems}
        if work == "training":
            make, unit, amounts = training_step, "tokens/s", {arch: s["ntokens"] for arch, s in samples.items()}
        else:
            make, unit, amounts = beam_search, "sentences/s", dict.fromkeys(args.systems, sentences)
            for model in models.values():
                model.eval()
                if isinstance(model, BaseFairseqModel):
                    model.make_generation_fast_(beamable_mm_beam_size=None, need_attn=False)
        runs = {arch: make(models[arch], tasks[arch], samples[arch]) for arch in args.systems}
        if work == "beam search":
            for arch, model in graphs.items():
                name = f"{arch}, exported"
                runs[name] = exported_beam_search(model, samples[arch])
                amounts[name], parameters[name] = sentences, parameters[arch]
        for arch in ours if args.medium else []:
            name = f"{arch}, medium"
            runs[name] = at_medium_precision(runs[arch])
            amounts[name], parameters[name] = amounts[arch], parameters[arch]
        timings = take_turns(runs, args.repetitions, args.device)
        speeds = {arch: amounts[arch] / timing.median for arch, timing in timings.items()}
        print(f"\n{work}, {sentences} sentences of {LENGTHS[0]} to {LENGTHS[1]} tokens; peer: {peer}")
        for arch in runs:
            ratio = speeds[arch] / speeds[peer]
            print(
                f"{arch:32} {parameters[arch]:>12,} parameters {speeds[arch]:10.1f} {unit} "
                f"± {timings[arch].spread_percent:4.1f} %  {ratio:5.2f} x"
            )
            rows.append(
                {
                    "work": work,
                    "arch": arch,
                    "parameters": parameters[arch],
                    "sentences": sentences,
                    "threads": args.threads,
                    "speed": speeds[arch],
                    "unit": unit,
                    "spread_percent": timings[arch].spread_percent,
                    "peer": peer,
                    "ratio_to_peer": ratio,
                }
            )
    write_json(args.json, environment, rows)


if __name__ == "__main__":
    main()
