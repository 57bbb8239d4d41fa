"""Every option that docs/options.md has of a layer or a model changes what comes out, or is refused.

Each is tried with two values, under the same seed. A new option of a layer or a model needs a row in the tables here.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import re
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    BaseFairseqModel,
)
from torch import Tensor

from fairseq_plugins.command_parser import flag
from fairseq_plugins.documentation import options_page
from fairseq_plugins.documentation.options_page import fields_of
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration
from fairseq_plugins.models.options import check_effects, check_layer_options
from fairseq_plugins.modules import RECURRENT_KINDS
from fairseq_plugins.tables.tables import SMALL, as_arguments, load_small_scale
from tests.commands import CHECKOUT
from tests.experiments.test_configuration import CONFIGURATIONS
from tests.models.labelled import labelled_task, reading_task
from tests.models.tasks import make_task, saved_bytes
from tests.models.transfers import META, Transfers

WIDTH = 6
"""Of the word vectors that files here have."""
TOKENS = torch.tensor([[4, 5, 6, 7, 8, 9, 10, 2], [6, 4, 9, 5, 2, 1, 1, 1]])
LENGTHS = torch.tensor([8, 5])
OWNERS = torch.tensor([0, 1])
WAVEFORMS = torch.sin(torch.arange(60.0)).expand(2, -1)


class Trial(NamedTuple):
    """How an option is tried.

    Attributes:
        second: arguments with which something else comes out than …
        first: … with these.
        beside: arguments that both have.
        idle: arguments beside which ``second`` is refused, since it would have no effect.
        refusal: what ``second`` is refused with in any case.
        is_from_checkpoint: both are of models whose weights are in a checkpoint.
    """

    second: str
    first: str = ""
    beside: str = ""
    idle: str | None = None
    refusal: str | None = None
    is_from_checkpoint: bool = False


# Of recurrent layers. SIDE is encoder-, decoder- or nothing; LAYERS 2 makes two of them.
LAYERS: dict[str, Trial] = {
    "cell": Trial("--SIDEcell gru"),
    "dilation-base": Trial("--SIDEdilation-base 3", beside="LAYERS 2", idle="LAYERS 1"),
    "first-dilation": Trial("--SIDEfirst-dilation 2"),
    "fusion": Trial("--SIDEfusion concat", beside="--SIDEfirst-dilation 2", idle="--SIDEfirst-dilation 1"),
    "connection": Trial("--SIDEconnection gate"),
    "connection-rate": Trial(
        "--SIDEconnection-rate 0.1", beside="--SIDEconnection-init identity", idle="--SIDEconnection gate"
    ),
    "order": Trial("--SIDEorder 2", idle="--SIDElags 1,4"),
    "connection-init": Trial(
        "--SIDEconnection-init orthogonal", "--SIDEconnection-init identity", idle="--SIDEconnection gate"
    ),
    "lags": Trial("--SIDElags 1,4"),
    "channels": Trial("--SIDEchannels 2"),
    "rcrn-output-gate": Trial("--SIDErcrn-output-gate linear"),
}

_SIDES = {
    "--max-source-positions": Trial("--max-source-positions 30"),
    "--max-target-positions": Trial("--max-target-positions 30"),
    "--share-decoder-input-output-embed": Trial("--share-decoder-input-output-embed"),
    "--share-all-embeddings": Trial("--share-all-embeddings"),
    "--dropout": Trial("--dropout 0.5"),
}
_TEXTS = {
    "--recurrent-layer": Trial("--recurrent-layer gru"),
    "--embed-dim": Trial("--embed-dim 7"),
    "--embed-path": Trial("--embed-path VECTORS"),
    "--train-embed": Trial("--train-embed", beside="--embed-path VECTORS", idle=""),
    "--embed-init-std": Trial("--embed-init-std 0.1"),
    "--character-hidden-size": Trial("--character-hidden-size 3"),
    "--character-embed-dim": Trial("--character-embed-dim 4", beside="--character-hidden-size 3", idle=""),
    "--context-encoder": Trial("--context-encoder CONTEXT"),
    "--context-hidden-size": Trial(
        "--context-hidden-size 3", beside="--context-encoder CONTEXT", idle="", is_from_checkpoint=True
    ),
    "--tag-embed-dim": Trial("--tag-embed-dim 4"),
    "--hidden-size": Trial("--hidden-size 5"),
    "--layers": Trial("--layers 2"),
    "--unidirectional": Trial("--unidirectional"),
    "--projection-size": Trial("--projection-size 7"),
    "--highway-layers": Trial("--highway-layers 1", beside="--projection-size 7", idle=""),
    "--dropout": Trial("--dropout 0.5"),
}

_MEMORY = {
    "--recurrent-layer": Trial("--recurrent-layer gru"),
    "--network": Trial("--network dilated_cnn"),
    "--hidden-size": Trial("--hidden-size 5"),
    "--layers": Trial("--layers 3"),
    "--initialization": Trial("--initialization glorot"),
}
TRIALS: dict[str, dict[str, Trial]] = {
    "recurrent_seq2seq": {
        **_SIDES,
        "--encoder-embed-dim": Trial("--encoder-embed-dim 7"),
        "--decoder-embed-dim": Trial("--decoder-embed-dim 7"),
        "--encoder-recurrent-layer": Trial("--encoder-recurrent-layer gru"),
        "--decoder-recurrent-layer": Trial("--decoder-recurrent-layer gru"),
        "--encoder-embed-path": Trial("--encoder-embed-path VECTORS"),
        "--encoder-freeze-embed": Trial("--encoder-freeze-embed"),
        "--decoder-embed-path": Trial("--decoder-embed-path VECTORS"),
        "--decoder-freeze-embed": Trial("--decoder-freeze-embed"),
        "--encoder-hidden-size": Trial("--encoder-hidden-size 4"),
        "--encoder-layers": Trial("--encoder-layers 1"),
        "--decoder-hidden-size": Trial("--decoder-hidden-size 4"),
        "--decoder-layers": Trial("--decoder-layers 1"),
        "--decoder-attention": Trial("--decoder-attention output"),
        "--embed-init-std": Trial("--embed-init-std 0.1"),
    },
    "double_path": {
        **_SIDES,
        # The two are equal, or refused.
        "--encoder-embed-dim": Trial("--encoder-embed-dim 12 --decoder-embed-dim 12"),
        "--decoder-embed-dim": Trial("--decoder-embed-dim 12", refusal="must be equal"),
        **{
            f"--{side}-{name}": trial
            for side in ("encoder", "decoder")
            for name, trial in {
                "paths": Trial(f"--{side}-paths cnn"),
                "cnn-layers": Trial(f"--{side}-cnn-layers 3", idle=f"--{side}-paths san"),
                "kernel-width": Trial(f"--{side}-kernel-width 5", idle=f"--{side}-paths san"),
                "san-layers": Trial(f"--{side}-san-layers 1", idle=f"--{side}-paths cnn"),
                "attention-heads": Trial(f"--{side}-attention-heads 2", idle=f"--{side}-paths cnn"),
                "ffn-embed-dim": Trial(f"--{side}-ffn-embed-dim 12", idle=f"--{side}-paths cnn"),
                "san-output-norm-init": Trial(f"--{side}-san-output-norm-init 0.5", idle=f"--{side}-paths cnn"),
                "rnn-layers": Trial(f"--{side}-rnn-layers 1", beside=f"--{side}-paths rnn", idle=f"--{side}-paths cnn"),
                "recurrent-layer": Trial(f"--{side}-recurrent-layer gru", beside=f"--{side}-paths rnn"),
            }.items()
        },
        "--rnn-input-scale": Trial("--rnn-input-scale 1.5", beside="--encoder-paths rnn", idle="--encoder-paths cnn"),
        "--path-dropout": Trial("--path-dropout 0.5", idle="--encoder-paths san --decoder-paths cnn"),
        "--positions": Trial("--positions sinusoidal"),
        "--position-shift": Trial("--position-shift 9"),
        "--activation-dropout": Trial("--activation-dropout 0.5", idle="--encoder-paths cnn --decoder-paths cnn"),
        "--san-input-scale": Trial("--san-input-scale 1.5", idle="--encoder-paths cnn --decoder-paths cnn"),
        "--cross-memory": Trial("--cross-memory plain", idle="--encoder-paths cnn --decoder-paths cnn"),
        "--gate-gradient-scale": Trial("--gate-gradient-scale 0.5", idle="--encoder-paths san --decoder-paths cnn"),
        "--checkpoint-activations": Trial("--checkpoint-activations"),
        "--no-scale-cnn-gradient": Trial("--no-scale-cnn-gradient", idle="--encoder-paths cnn --decoder-paths san"),
    },
    "recurrent_lm": {
        "--recurrent-layer": Trial("--recurrent-layer gru"),
        "--decoder-embed-dim": Trial("--decoder-embed-dim 7", idle="--one-hot"),
        "--decoder-hidden-size": Trial(
            "--decoder-hidden-size 7", idle="--share-decoder-input-output-embed --decoder-layers 1"
        ),
        "--decoder-layers": Trial("--decoder-layers 1"),
        "--share-decoder-input-output-embed": Trial("--share-decoder-input-output-embed"),
        "--one-hot": Trial("--one-hot"),
        "--embedding-dropout": Trial("--embedding-dropout 0.5"),
        "--decoder-dropout-in": Trial("--decoder-dropout-in 0.5"),
        "--dropout": Trial("--dropout 0.5"),
        "--decoder-dropout-out": Trial("--decoder-dropout-out 0.5"),
        "--weight-dropout": Trial("--weight-dropout 0.5"),
        "--plain-dropout": Trial("--plain-dropout", beside="--dropout 0.5", idle=""),
        "--init-range": Trial("--init-range 0.2"),
        "--initialization": Trial("--initialization normal"),
        "--reads-streams": Trial("--reads-streams", refusal="say --task streaming_language_modeling"),
    },
    "sequence_classifier": {
        **_TEXTS,
        "--pooling": Trial("--pooling max"),
        "--output-hidden-size": Trial("--output-hidden-size 9"),
    },
    "sequence_pair_classifier": {
        **_TEXTS,
        # There is a projection always.
        "--highway-layers": Trial("--highway-layers 1"),
        "--pooling": Trial("--pooling max"),
        "--cross-sentence-attention": Trial("--cross-sentence-attention"),
    },
    "sequence_ranker": {
        **_TEXTS,
        "--tag-embed-dim": Trial("--tag-embed-dim 4", refusal="no effect on data without part-of-speech tags"),
        "--attentive-pooling": Trial("--attentive-pooling"),
    },
    "reading_comprehension": {
        **_TEXTS,
        "--tag-embed-dim": Trial("--tag-embed-dim 4", refusal="no effect on data without part-of-speech tags"),
        "--attention-size": Trial("--attention-size 3"),
        "--shared-encoder": Trial("--shared-encoder"),
        "--no-self-matching": Trial("--no-self-matching"),
    },
    "long_memory_network": _MEMORY,
    "waveform_classifier": {**_MEMORY, "--log-mel": Trial("--log-mel 3")},
}


@dataclass(frozen=True)
class Harness:
    """How a model is tried.

    Attributes:
        arguments: that keep it small.
        make_task: what it is built for.
        run: what it returns for a batch.
    """

    arguments: str
    make_task: Callable[[], SimpleNamespace]
    run: Callable[[Any], Tensor]


def _translate(model: Any) -> Tensor:
    return model(TOKENS, LENGTHS, TOKENS.roll(1, dims=1))[0]


def _rank(model: Any) -> Tensor:
    return model(TOKENS, LENGTHS, TOKENS.flip(0), LENGTHS.flip(0), OWNERS)


def _read(model: Any) -> Tensor:
    pointed = model(TOKENS, LENGTHS, TOKENS.flip(0), LENGTHS.flip(0), OWNERS)
    # At padding logarithms are not finite.
    return torch.cat([part.exp() for part in pointed])


_TAGS = TOKENS.clamp(max=5)
_TEXTS_ARGUMENTS = f"--embed-dim {WIDTH} --hidden-size 4"
HARNESSES = {
    "recurrent_seq2seq": Harness(
        " ".join(f"--{side}-embed-dim {WIDTH} --{side}-hidden-size 5" for side in ("encoder", "decoder")),
        lambda: make_task(left_pad_target=False),
        _translate,
    ),
    "double_path": Harness("--encoder-embed-dim 8 --decoder-embed-dim 8", make_task, _translate),
    "recurrent_lm": Harness("--decoder-hidden-size 5 --decoder-layers 2", make_task, lambda model: model(TOKENS)[0]),
    "sequence_classifier": Harness(
        _TEXTS_ARGUMENTS, lambda: labelled_task(tags=True), lambda model: model(TOKENS, LENGTHS, _TAGS)
    ),
    "sequence_pair_classifier": Harness(
        f"{_TEXTS_ARGUMENTS} --projection-size 6",
        lambda: labelled_task(2, tags=True),
        lambda model: model(TOKENS, LENGTHS, TOKENS.flip(0), LENGTHS.flip(0), _TAGS, _TAGS.flip(0)),
    ),
    "sequence_ranker": Harness(_TEXTS_ARGUMENTS, lambda: labelled_task(2, has_candidates=True), _rank),
    "reading_comprehension": Harness(
        f"{_TEXTS_ARGUMENTS} --attention-size 5 --character-hidden-size 0", reading_task, _read
    ),
    "long_memory_network": Harness(
        "--hidden-size 4 --layers 2 --initialization layers",
        lambda: SimpleNamespace(input_size=12, output_steps=1, classes=3),
        lambda model: model(TOKENS),
    ),
    "waveform_classifier": Harness(
        "--hidden-size 4 --layers 2 --initialization layers",
        lambda: SimpleNamespace(sampling_rate=1_000, window=60, classes=3),
        lambda model: model(WAVEFORMS),
    ),
}


def documented() -> Iterator[tuple[str, str, str]]:
    """Each layer's and each model's options, also those that a model has of its layers: the layer or the model, the
    option, and what docs/options.md has it under."""
    for kind in RECURRENT_KINDS.values():
        if options_page.is_ours(kind.options):
            yield from ((kind.name, flag(field.name), "Recurrent layers") for field in fields_of(kind.options))
    for name, options in sorted(MODEL_DATACLASS_REGISTRY.items()):
        if options_page.is_ours(options):
            yield from ((name, flag(field.name), "Models") for field in fields_of(options))


OPTIONS = list(documented())


def trial_of(heading: str, option: str, above: str) -> tuple[str, Trial]:
    """The model that an option is tried in, and how."""
    name = option.removeprefix("--")
    if above == "Recurrent layers" and name in LAYERS:
        return "recurrent_seq2seq", _of_layers("recurrent_seq2seq", name, "", heading)
    if option in TRIALS.get(heading, {}):
        return heading, TRIALS[heading][option]
    side = next((side for side in ("encoder-", "decoder-") if name.startswith(side)), "")
    if name.removeprefix(side) in LAYERS:
        return heading, _of_layers(heading, name.removeprefix(side), side)
    pytest.fail(
        f"docs/options.md has {option} of {heading}, and nothing tries it: add a row to LAYERS or TRIALS in "
        f"{Path(__file__).relative_to(CHECKOUT)}, with two values of which something else must come out"
    )


# And what has them make a recurrent layer on either side.
_OF_TWO_SIDES = {"recurrent_seq2seq": "", "double_path": "--encoder-paths rnn --decoder-paths rnn"}


def _of_layers(model: str, name: str, side: str, kind: str | None = None) -> Trial:
    """How an option of layers is tried in a model, in all its layers or in those of a side; of the first kind that has
    the option where none is given."""
    if kind is None:
        kind = next(kind.name for kind in RECURRENT_KINDS.values() if name.replace("-", "_") in _names(kind.options))
    sides = ("encoder-", "decoder-") if model in _OF_TWO_SIDES else ("",)
    layers = {"recurrent_lm": "decoder-layers", "double_path": "rnn-layers"}.get(model, "layers")

    def written(arguments: str) -> str:
        number = re.sub(
            r"LAYERS (\d)", lambda found: " ".join(f"--{each}{layers} {found[1]}" for each in sides), arguments
        )
        return number.replace("SIDE", side)

    trial = LAYERS[name]
    kinds = " ".join([_OF_TWO_SIDES.get(model, ""), *(f"--{each}recurrent-layer {kind}" for each in sides)]).strip()
    return Trial(
        written(trial.second),
        written(trial.first),
        f"{kinds} {written(trial.beside)}".strip(),
        None if trial.idle is None else f"{kinds} {written(trial.idle)}",
    )


def _names(options: type) -> set[str]:
    return {field.name for field in dataclasses.fields(options)}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What stands for the names of files in arguments."""
    folder = tmp_path_factory.mktemp("files")
    vectors, context = folder / "vectors.txt", folder / "context.pt"
    rows = [f"w{number} {' '.join(str(number + place) for place in range(WIDTH))}" for number in range(3)]
    vectors.write_text("\n".join([f"3 {WIDTH}", *rows, ""]), encoding="utf-8")
    torch.save(torch.nn.LSTM(WIDTH, 4, num_layers=2, bidirectional=True).state_dict(), context)
    return {"VECTORS": str(vectors), "CONTEXT": str(context)}


@cache
def parser_of(model: str, has_defaults: bool = True) -> ArgumentParser:
    """What reads a model's options; without defaults, those that are given alone."""
    parser = ArgumentParser(allow_abbrev=False, argument_default=None if has_defaults else SUPPRESS)
    gen_parser_from_dataclass(parser, MODEL_DATACLASS_REGISTRY[model](), delete_default=not has_defaults)
    return parser


def build(model: str, arguments: str, files: dict[str, str], is_from_checkpoint: bool = False) -> BaseFairseqModel:
    """A model as fairseq's own parser reads its options."""
    words = f"{HARNESSES[model].arguments} {arguments}".split()
    cfg = parser_of(model).parse_args([files.get(word, word) for word in words])
    task = HARNESSES[model].make_task()
    task.is_from_checkpoint = is_from_checkpoint
    torch.manual_seed(0)
    return ARCH_MODEL_REGISTRY[model].build_model(cfg, task)


def results(model: BaseFairseqModel, run: Callable[[Any], Tensor]) -> dict[str, Any]:
    """All that a model's options can change: parameters, outputs with and without dropout, what is saved for the
    backward pass, gradients, an update."""
    everything: dict[str, Any] = {"longest": model.max_positions() if hasattr(model, "encoder") else None}
    everything |= {f"start of {name}": tensor for name, tensor in copy.deepcopy(model.state_dict()).items()}
    with torch.no_grad():
        everything["output"] = run(model.eval())
    torch.manual_seed(1)
    everything["bytes saved"], output = saved_bytes(lambda: run(model.train()))
    (output * torch.linspace(-1, 1, output.numel()).view_as(output)).sum().backward()
    everything["output in training"] = output.detach()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    everything |= {f"gradient of {name}": each.grad for name, each in model.named_parameters()}
    optimizer.step()
    with torch.no_grad():
        everything["output after an update"] = run(model.eval())
    return everything


def differences(first: dict[str, Any], second: dict[str, Any]) -> set[str]:
    """The names of the results that differ."""

    def are_equal(one: Any, other: Any) -> bool:
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            return one.shape == other.shape and torch.equal(one, other)
        return type(one) is type(other) and one == other

    return {name for name in first.keys() | second.keys() if not are_equal(first.get(name), second.get(name))}


def tried(model: str, arguments: str, files: dict[str, str], is_from_checkpoint: bool = False) -> dict[str, Any]:
    return results(build(model, arguments, files, is_from_checkpoint), HARNESSES[model].run)


@pytest.fixture(scope="module")
def tried_once(files: dict[str, str]) -> Callable[[str, str, bool], dict[str, Any]]:
    """:func:`tried`, which many options share for their first value."""
    return cache(lambda model, arguments, is_from_checkpoint: tried(model, arguments, files, is_from_checkpoint))


@pytest.mark.system
@pytest.mark.parametrize(("heading", "option", "above"), OPTIONS, ids=[f"{each[0]} {each[1]}" for each in OPTIONS])
def test_it_has_an_effect(
    heading: str,
    option: str,
    above: str,
    files: dict[str, str],
    tried_once: Callable[[str, str, bool], dict[str, Any]],
) -> None:
    model, trial = trial_of(heading, option, above)
    assert option in trial.second.split()
    second = f"{trial.beside} {trial.second}"
    if trial.refusal is not None:
        with pytest.raises(InputError, match=trial.refusal):
            build(model, second, files)
        return
    of_first = tried_once(model, f"{trial.beside} {trial.first}".strip(), trial.is_from_checkpoint)
    of_second = tried(model, second, files, trial.is_from_checkpoint)
    assert differences(of_first, of_second), f"{second} and {trial.first or 'nothing'} give the same"
    if trial.idle is not None:
        with pytest.raises(InputError, match=rf"^{option}( \S+)? has no effect (beside|with|without) "):
            build(model, f"{trial.idle} {trial.second}", files)


# Each once: options of layers are in every model that has layers.
DIFFERENT = [each for each in OPTIONS if each[2] == "Recurrent layers" or each[1] in TRIALS[each[0]]]


@pytest.mark.slow
@pytest.mark.skipif("FAIRSEQ_PLUGINS_META" not in os.environ, reason="takes minutes: say FAIRSEQ_PLUGINS_META=1")
@pytest.mark.parametrize(("heading", "option", "above"), DIFFERENT, ids=[f"{each[0]} {each[1]}" for each in DIFFERENT])
def test_it_leaves_nothing_on_the_cpu(
    heading: str, option: str, above: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training and an evaluation on the ``meta`` device (``transfers.py``), in which nothing is read back."""
    model, trial = trial_of(heading, option, above)
    if trial.refusal is not None:
        pytest.skip("it is refused")
    network = build(model, f"{trial.beside} {trial.second}", files, trial.is_from_checkpoint).to(META)
    # Of three steps: each operation takes its time there.
    shapes = {"TOKENS": (2, 3), "_TAGS": (2, 3), "LENGTHS": (2,), "OWNERS": (2,)}
    for name, shape in shapes.items():
        monkeypatch.setitem(globals(), name, torch.zeros(shape, dtype=torch.long, device=META))
    monkeypatch.setitem(globals(), "WAVEFORMS", WAVEFORMS.to(META))
    with Transfers() as transfers:
        HARNESSES[model].run(network.train()).sum().backward()
        with torch.no_grad():
            assert HARNESSES[model].run(network.eval()).is_meta
    assert not transfers.read_back and not transfers.copied


@pytest.mark.parametrize("model", HARNESSES)
def test_the_same_options_give_the_same(model: str, files: dict[str, str]) -> None:
    """Else all would seem to have an effect."""
    assert not differences(tried(model, "", files), tried(model, "", files))


def test_what_needs_another_option_is_tried_without_it() -> None:
    of_layers = {field.name: field for kind in RECURRENT_KINDS.values() for field in dataclasses.fields(kind.options)}
    needing = {name.replace("_", "-") for name, field in of_layers.items() if "needs" in field.metadata}
    assert needing == {name for name, trial in LAYERS.items() if trial.idle is not None}
    for model, trials in TRIALS.items():
        fields = dataclasses.fields(MODEL_DATACLASS_REGISTRY[model])
        needing = {f"--{field.name.replace('_', '-')}" for field in fields if "needs" in field.metadata}
        idle = {option for option, trial in trials.items() if trial.idle is not None}
        assert idle <= needing and (needing == idle or model == "sequence_pair_classifier")


def configured() -> Iterator[tuple[str, dict[str, Any]]]:
    """The training options of every configuration of our models, as they are and as ``--scale small`` changes them."""
    for path in CONFIGURATIONS:
        texts = {key: value.text for key, value in configuration.load(path).train.items()}
        options = {key: text == "true" or text for key, text in texts.items() if text != "false"}
        if ARCH_MODEL_NAME_REGISTRY.get(options.get("arch")) in HARNESSES:
            yield f"{path.parent.name}/{path.name}", options
            if (SMALL / f"{path.parent.name}.yaml").is_file():
                small = load_small_scale(path.parent.name).train_options(path.stem)
                yield f"{path.parent.name}/{path.name} at small scale", options | small


def test_no_configuration_has_an_option_without_effect() -> None:
    count = 0
    for name, options in configured():
        model = ARCH_MODEL_NAME_REGISTRY[options["arch"]]
        dataclass_of_model = MODEL_DATACLASS_REGISTRY[model]
        cfg, _ = parser_of(model, has_defaults=False).parse_known_args(as_arguments(options))
        ARCH_CONFIG_REGISTRY[options["arch"]](cfg)
        cfg = Namespace(**vars(dataclass_of_model()) | vars(cfg) | {"_name": options["arch"]})
        try:
            check_effects(cfg, dataclass_of_model, SimpleNamespace())
            if hasattr(cfg, "cell") and str(getattr(cfg, "network", "recurrent")) == "recurrent":
                check_layer_options(cfg, SimpleNamespace(), *(("encoder", "decoder") * hasattr(cfg, "encoder_cell")))
        except InputError as error:
            pytest.fail(f"configs/{name}: {error}")
        count += 1
    assert count > 100
