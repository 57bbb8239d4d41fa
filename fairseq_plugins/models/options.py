"""The options of fairseq's models, in groups to inherit, and what models that share a group do with it.

The options of recurrent layers are made from the registry of their kinds, where each has its name, default and help.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configurations' fields.
import contextlib
import dataclasses
import math
from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig, open_dict
from torch import nn

from ..command_parser import flag
from ..errors import InputError
from ..modules import RECURRENT_KINDS, RecurrentKind
from ..modules.initialization import glorot_
from ..modules.recurrent.registry import Needs, option_type


@dataclass
class EmbeddingOptions(FairseqDataclass):
    """Sizes of the embeddings of an encoder and a decoder."""

    encoder_embed_dim: int = field(
        default=256, metadata={"help": "size of the source embeddings and of the paths of double_path's encoder"}
    )
    decoder_embed_dim: int = field(
        default=256,
        metadata={"help": "size of the target embeddings, of the readout, and of the paths of double_path's decoder"},
    )


@dataclass
class PretrainedEmbeddingOptions(EmbeddingOptions):
    """Embeddings that can start from vectors in a file."""

    encoder_embed_path: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "pre-trained source embeddings: a token and its vector on each line, as GloVe has them"},
    )
    encoder_freeze_embed: bool = field(default=False, metadata={"help": "do not train the source embeddings"})
    decoder_embed_path: Optional[str] = field(  # noqa: UP045
        default=None, metadata={"help": "pre-trained target embeddings, in the form of --encoder-embed-path"}
    )
    decoder_freeze_embed: bool = field(default=False, metadata={"help": "do not train the target embeddings"})


@dataclass
class SharingOptions(FairseqDataclass):
    """Which tables are one."""

    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "one table for target embeddings and output layer"}
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "one table for source embeddings, target embeddings and output layer (joined dictionary)"},
    )


def position_options(longest: int) -> type[FairseqDataclass]:
    """The longest source and target, by default of so many tokens."""
    fields = [
        (f"max_{side}_positions", int, field(default=longest, metadata={"help": f"longest {side} in tokens"}))
        for side in ("source", "target")
    ]
    return dataclasses.make_dataclass("PositionOptions", fields, bases=(FairseqDataclass,))


def recurrent_layer_options(*sides: str) -> type[FairseqDataclass]:
    """The kind of the recurrent layers, and what each kind can be asked for.

    Args:
        sides: ``encoder``, ``decoder``: each has a kind of its own (``--encoder-recurrent-layer``); an option of a kind
            holds for all (``--channels``) unless it is given for one (``--encoder-channels``). With no sides there is
            one kind (``--recurrent-layer``).
    """
    kinds = ChoiceEnum(list(RECURRENT_KINDS))
    fields: list[tuple[str, Any, Any]] = [
        (f"{prefix}recurrent_layer", kinds, field(default="lstm", metadata={"help": f"kind of the {owner}layers"}))
        for prefix, owner in [(f"{side}_", f"{side}'s ") for side in sides] or [("", "recurrent ")]
    ]
    for name, of_kinds in _options_by_name().items():
        optional_type, metadata = _merged(name, of_kinds)
        fields.append((name, optional_type, field(default=None, metadata=metadata)))
        for side in sides:
            text = {"help": f"{flag(name)} of the {side} alone"}
            fields.append((f"{side}_{name}", optional_type, field(default=None, metadata=text)))
    return dataclasses.make_dataclass("RecurrentLayerOptions", fields, bases=(FairseqDataclass,))


def recurrent_layer(cfg: Namespace | DictConfig, side: str = "") -> tuple[str, Any]:
    """The kind of a side's layers and the options that it is asked for, which are written into the configuration: so a
    checkpoint says what its layers are, also when defaults have changed.

    Args:
        cfg: holds :func:`recurrent_layer_options`, and how many layers there are.
        side: ``encoder`` or ``decoder``; empty where there are no sides.

    Raises:
        InputError: a kind does not take what it is asked for.
    """
    prefix = f"{side}_" if side else ""
    name = str(getattr(cfg, f"{prefix}recurrent_layer"))
    if name not in RECURRENT_KINDS:
        raise InputError(
            f"there is no recurrent layer {name!r}; choose from {', '.join(RECURRENT_KINDS)}, or name the file that "
            "defines it in FAIRSEQ_PLUGINS_EXTENSIONS"
        )
    kind = RECURRENT_KINDS[name]
    options = kind.options(**{name: value for name, (_, value) in _asked_for(cfg, prefix, kind).items()})
    idle = _idle(options, _layers(cfg, prefix))
    names_of_options = (option.name for option in dataclasses.fields(options))
    keep(cfg, **{prefix + name: None if name in idle else getattr(options, name) for name in names_of_options})
    return kind.name, options


def _asked_for(cfg: Namespace | DictConfig, prefix: str, kind: RecurrentKind) -> dict[str, tuple[str, Any]]:
    """What a side's layers are asked for: of each option the name that it was given by, and the value."""
    by_name = {option.name: option for option in dataclasses.fields(kind.options)}
    values = {}
    for name in _options_by_name():
        for full_name in dict.fromkeys((name, prefix + name)):
            value = getattr(cfg, full_name)
            if value is None:
                continue
            if name in by_name:
                values[name] = full_name, _checked(full_name, value, by_name[name], kind)
            elif full_name != name:
                raise InputError(f"{flag(full_name)} is no option of {kind.name} layers; leave it out")
    return values


def _idle(options: Any, layers: int) -> dict[str, Needs]:
    """Those of a kind's options that have no effect in so many layers, with what they need."""
    needs = {
        option.name: option.metadata["needs"] for option in dataclasses.fields(options) if "needs" in option.metadata
    }
    return {name: needed for name, needed in needs.items() if layers < needed.layers or not needed.are_met(options)}


def _layers(cfg: Namespace | DictConfig, prefix: str) -> int:
    """How many recurrent layers a side has; of a language model they are the decoder's."""
    names = (f"{prefix}layers", f"{prefix}rnn_layers", "decoder_layers")
    layers: int = next(getattr(cfg, name) for name in names if hasattr(cfg, name))
    return layers


def refuse_dropout(is_retained: bool) -> None:
    """Raises InputError if ``--retain-dropout`` asks for dropout where a trained model is used."""
    if is_retained:
        raise InputError("--retain-dropout: this model has no dropout but in training; leave it out")


def check_layer_options(cfg: Namespace | DictConfig, task: FairseqTask, *sides: str) -> None:
    """Raises InputError if an option is given that no side's layers have, or that has no effect in any.
    A checkpoint holds values of all of them."""
    if is_from_checkpoint(task):
        return
    prefixes = [f"{side}_" for side in sides] or [""]
    kind_of = {prefix: str(getattr(cfg, f"{prefix}recurrent_layer")) for prefix in prefixes}
    kinds = set(kind_of.values())
    if not kinds <= RECURRENT_KINDS.keys():
        return  # :func:`recurrent_layer` says so
    for name, of_kinds in _options_by_name().items():
        takers = [kind.name for kind, _ in of_kinds]
        if getattr(cfg, name) is not None and kinds.isdisjoint(takers):
            raise InputError(
                f"{flag(name)} is an option of {', '.join(takers)} layers, not of {' or '.join(sorted(kinds))}: "
                "leave it out, or choose other layers"
            )
    idle: dict[str, tuple[Any, Needs]] = {}
    acting: set[tuple[str, str]] = set()
    for prefix, kind in kind_of.items():
        asked_for = _asked_for(cfg, prefix, RECURRENT_KINDS[kind])
        options = RECURRENT_KINDS[kind].options(**{name: value for name, (_, value) in asked_for.items()})
        idle_here = _idle(options, _layers(cfg, prefix))
        for name, (full_name, value) in asked_for.items():
            if name in idle_here:
                idle[full_name] = value, idle_here[name]
            else:
                # What holds for all sides may have been written down for this one.
                acting |= {(full_name, str(value)), (name, str(value))}
    _refuse_idle(cfg, {name: what for name, what in idle.items() if (name, str(what[0])) not in acting})


def check_effects(cfg: Namespace | DictConfig, options: type[FairseqDataclass], task: FairseqTask) -> None:
    """Raises InputError if an option is not at its default and has no effect beside the others: what it needs is
    ``needs`` in its field's metadata. A checkpoint holds values of all of them."""
    if not is_from_checkpoint(task):
        _refuse_idle(cfg, idle_options(cfg, options))


def idle_options(cfg: Namespace | DictConfig, options: type[FairseqDataclass]) -> dict[str, tuple[Any, Needs]]:
    """The options that :func:`check_effects` looks for, each with its value and with what it needs."""
    default = options()
    idle = {}
    for option in dataclasses.fields(options):
        needs, value = option.metadata.get("needs"), getattr(cfg, option.name)
        # fairseq's choices are no strings, though they look like them.
        if needs and str(value) != str(getattr(default, option.name)) and not needs.are_met(cfg):
            idle[option.name] = value, needs
    return idle


def _refuse_idle(cfg: Namespace | DictConfig, idle: dict[str, tuple[Any, Needs]]) -> None:
    """Raises InputError if the user gave one of these options; what the architecture sets may have no effect beside
    what the user gave."""
    of_architecture = Namespace()
    # What fairseq calls so is the architecture.
    architecture = getattr(cfg, "_name", None)
    if architecture in ARCH_CONFIG_REGISTRY:
        ARCH_CONFIG_REGISTRY[architecture](of_architecture)
    for name, (value, needs) in idle.items():
        if value != getattr(of_architecture, name, None):
            shown = flag(name) if value is True else f"{flag(name)} {value}"
            raise InputError(f"{shown} has no effect {needs.text}: leave it out")


def refuse_layer_options(cfg: Namespace | DictConfig, chosen: str, prefix: str = "") -> None:
    """Raises InputError if recurrent layers or an option of theirs are asked for, of a side where its ``prefix`` is
    given, beside ``chosen``, which has none."""
    named = [prefix + name for name in _options_by_name() if getattr(cfg, prefix + name) is not None]
    layer = f"{prefix}recurrent_layer"
    if hasattr(cfg, layer) and str(getattr(cfg, layer)) != recurrent_layer_options()().recurrent_layer:
        named = [layer, *named]
    if named:
        raise InputError(f"{flag(named[0])} is of recurrent layers, and {chosen} has none: leave one of them out")


def start_by_glorot(network: nn.Module, cfg: Namespace | DictConfig) -> None:
    """``--initialization glorot`` of the recurrent layers in a network.

    Raises:
        InputError: there are none that it could start.
    """
    try:
        glorot_(network)
    except ValueError as error:
        kind = cfg.recurrent_layer
        raise InputError(f"--recurrent-layer {kind}: {error}; give --initialization layers") from None


def takes_layer_option(kinds: Iterable[str], name: str) -> bool:
    """Whether an option of layers is one of any of these kinds, or is no option of layers."""
    of_kinds = _options_by_name().get(name)
    return of_kinds is None or not {kind.name for kind, _ in of_kinds}.isdisjoint(kinds)


def keep(cfg: Namespace | DictConfig, **values: Any) -> None:
    """Writes into the configuration what a checkpoint has to say of its model."""
    original = _copied_from(cfg)
    for written in (cfg,) if original is None else (cfg, original):
        with _growing(written):
            for name, value in values.items():
                setattr(written, name, value)


def is_from_checkpoint(task: FairseqTask) -> bool:
    """Whether the model that a task builds now gets its weights from a checkpoint, and needs no file of vectors."""
    return getattr(task, "is_from_checkpoint", False)


def _options_by_name() -> dict[str, list[tuple[RecurrentKind, dataclasses.Field[Any]]]]:
    """The options of all kinds: for each name the kinds that have it, with their fields."""
    by_name: dict[str, list[tuple[RecurrentKind, dataclasses.Field[Any]]]] = {}
    for kind in RECURRENT_KINDS.values():
        for option in dataclasses.fields(kind.options):
            by_name.setdefault(option.name, []).append((kind, option))
    return by_name


def _merged(name: str, of_kinds: list[tuple[RecurrentKind, dataclasses.Field[Any]]]) -> tuple[Any, dict[str, Any]]:
    """The type, which may be None, and the metadata of an option that several kinds may have."""
    types = {option_type(kind.options, name) for kind, _ in of_kinds}
    if len(types) > 1:
        names = ", ".join(kind.name for kind, _ in of_kinds)
        raise InputError(f"the recurrent layers {names} have an option {name!r} of different types; rename it in one")
    [merged_type] = types
    choices = [option.metadata["choices"] for _, option in of_kinds if option.metadata.get("choices")]
    if len(choices) == len(of_kinds):
        merged_type = ChoiceEnum(list(dict.fromkeys(choice for some in choices for choice in some)))
    meanings: dict[tuple[str, Any], list[str]] = {}
    for kind, option in of_kinds:
        meanings.setdefault((option.metadata["help"], option.default), []).append(kind.name)
    texts = [
        f"{text} ({', '.join(kinds)}{'' if default is None else f': {default}'})"
        for (text, default), kinds in meanings.items()
    ]
    return Optional[merged_type], {"help": "; ".join(texts)}  # noqa: UP045


def _checked(name: str, value: Any, of_kind: dataclasses.Field[Any], kind: RecurrentKind) -> Any:
    """The value of an option as its kind reads it."""
    choices = of_kind.metadata.get("choices")
    if choices is not None:
        # fairseq's choices are no strings, though they look like them.
        value = str(value)
        if value not in choices:
            raise InputError(f"{flag(name)} {value}: {kind.name} layers take {', '.join(choices)}")
    minimum = of_kind.metadata.get("minimum")
    if minimum is not None and value < minimum:
        raise InputError(f"{flag(name)} must be at least {minimum}, not {value}")
    return value


def set_defaults(args: Namespace | DictConfig, **defaults: Any) -> None:
    """What the user did not give on the command line takes the architecture's value."""
    for name, value in defaults.items():
        setattr(args, name, getattr(args, name, value))


def complete(cfg: Namespace | DictConfig, options: type[FairseqDataclass]) -> None:
    """Options that a checkpoint does not know, since they came after it, take their defaults.

    fairseq gives a model no default of its dataclass where ``--arch`` is not the model's own name.
    """
    default = options()
    missing = [option.name for option in dataclasses.fields(options) if not hasattr(cfg, option.name)]
    with _growing(cfg):
        for name in missing:
            setattr(cfg, name, getattr(default, name))


def _copied_from(cfg: Namespace | DictConfig) -> DictConfig | None:
    """The options as a checkpoint or the command line has them, where ``cfg`` is a copy of them in which fairseq has
    filled in today's defaults: that is so where ``--arch`` is the model's own name."""
    whole = cfg._get_parent() if isinstance(cfg, DictConfig) else None
    if not isinstance(whole, DictConfig) or "model" not in whole:
        return None
    return None if whole["model"] is cfg else whole["model"]


def _growing(cfg: Namespace | DictConfig) -> contextlib.AbstractContextManager[object]:
    """Has ``cfg`` take options that it did not have."""
    return open_dict(cfg) if isinstance(cfg, DictConfig) else contextlib.nullcontext()


def check_sizes(cfg: Namespace | DictConfig, names: Iterable[str]) -> None:
    """Raises InputError if one of the options is below 1."""
    for name in names:
        if getattr(cfg, name) < 1:
            raise InputError(f"{flag(name)} must be at least 1, not {getattr(cfg, name)}")


def check_dropouts(cfg: Namespace | DictConfig, names: Iterable[str]) -> None:
    """Raises InputError if one of the options is no probability below 1."""
    for name in names:
        if not 0 <= getattr(cfg, name) < 1:
            raise InputError(f"{flag(name)} must be at least 0 and below 1, not {getattr(cfg, name)}")


def check_deviation(cfg: Namespace | DictConfig, name: str) -> None:
    """Raises InputError if the option is no standard deviation."""
    if not 0 <= getattr(cfg, name) < math.inf:
        raise InputError(f"{flag(name)} must be at least 0, not {getattr(cfg, name)}")


def check_sharing(cfg: Namespace | DictConfig, task: FairseqTask) -> None:
    """Raises InputError if ``--share-all-embeddings`` contradicts the task or the embeddings' options."""
    if not cfg.share_all_embeddings:
        return
    if task.source_dictionary != task.target_dictionary:
        raise InputError(
            "--share-all-embeddings needs a joined dictionary (fairseq-preprocess --joined-dictionary); "
            "with separate dictionaries take an --arch that does not share them, or the model's own name and its sizes"
        )
    if cfg.encoder_embed_dim != cfg.decoder_embed_dim:
        raise InputError(
            f"--share-all-embeddings needs equal sizes, not --encoder-embed-dim {cfg.encoder_embed_dim} "
            f"and --decoder-embed-dim {cfg.decoder_embed_dim}"
        )
    if getattr(cfg, "decoder_embed_path", None) not in (None, getattr(cfg, "encoder_embed_path", None)):
        raise InputError(
            "--share-all-embeddings takes its table from --encoder-embed-path; leave out --decoder-embed-path"
        )
    if getattr(cfg, "decoder_freeze_embed", False) and not cfg.encoder_freeze_embed:
        raise InputError("--share-all-embeddings: its table is frozen by --encoder-freeze-embed")


def build_embeddings(
    cfg: Namespace | DictConfig, task: FairseqTask, make: Callable[[Dictionary, str], nn.Embedding]
) -> tuple[nn.Embedding, nn.Embedding]:
    """The tables of the encoder and the decoder, one where all are shared, out of ``make(dictionary, side)``."""
    encoder = make(task.source_dictionary, "encoder")
    return encoder, encoder if cfg.share_all_embeddings else make(task.target_dictionary, "decoder")


def tie_output(cfg: Namespace | DictConfig, projection: nn.Linear, embedding: nn.Embedding) -> bool:
    """Gives the output layer the table of the target embeddings if the options say so; returns whether they do."""
    is_tied: bool = cfg.share_decoder_input_output_embed or cfg.share_all_embeddings
    if is_tied:
        projection.weight = embedding.weight
    return is_tied
