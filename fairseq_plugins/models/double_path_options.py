"""The options of ``double_path``, made from the registry of paths, and what they must be."""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import FairseqTask

from ..command_parser import flag
from ..errors import InputError
from ..modules.multi_path.registry import PATH_KINDS, PathKind, has_scale_of
from ..modules.recurrent.registry import Needs, option_type
from .options import (
    EmbeddingOptions,
    SharingOptions,
    check_dropouts,
    check_effects,
    check_layer_options,
    check_sharing,
    check_sizes,
    is_from_checkpoint,
    position_options,
    recurrent_layer_options,
    refuse_layer_options,
)
from .positions import embedding_of_positions_options

_CROSS_MEMORIES = ChoiceEnum(["matched", "plain"])
SIDES = ("encoder", "decoder")


def option_name(kind: PathKind, name: str, side: str) -> str:
    """What fairseq calls an option of a kind on a side."""
    return name if name in kind.shared_options else f"{side}_{name}"


def path_options(*others: type[FairseqDataclass]) -> type[FairseqDataclass]:
    """What the paths can be asked for: made from the registry, where each option has its name, default and help.

    Args:
        others: dataclasses whose options stand beside these
    """
    fields: list[tuple[str, Any, Any]] = []
    for kind in PATH_KINDS.values():
        for option in dataclasses.fields(kind.options):
            is_shared = option.name in kind.shared_options
            for sides in [SIDES] if is_shared else [(side,) for side in SIDES]:
                text = option.metadata["help"] if is_shared else f"{sides[0]}: {option.metadata['help']}"
                metadata = {"help": text, "needs": _has_path(sides, kind.name)}
                name = option_name(kind, option.name, sides[0])
                choices = option.metadata.get("choices")
                of_type = ChoiceEnum(choices) if choices else option_type(kind.options, option.name)
                if option.default is None:
                    of_type = Optional[of_type]  # noqa: UP045
                fields.append((name, of_type, field(default=option.default, metadata=metadata)))
    return dataclasses.make_dataclass("PathOptions", fields, bases=others or (FairseqDataclass,))


def _has_path(sides: Iterable[str], path: str) -> Needs:
    """What the options of a path need."""
    options = " or ".join(f"--{side}-paths" for side in sides)
    return Needs(f"without {path} in {options}", lambda cfg: any(path in paths_of(cfg, side) for side in sides))


def _has_gates(cfg: Any) -> bool:
    return any(len(paths_of(cfg, side)) > 1 for side in SIDES)


_GATES = Needs("without several --encoder-paths or several --decoder-paths, which gates fuse", _has_gates)
_PATHS = ", ".join(f"{kind.name} ({kind.description})" for kind in PATH_KINDS.values())


@dataclass
class DoublePathConfig(
    EmbeddingOptions,
    SharingOptions,
    path_options(  # type: ignore[misc]  # fairseq wants one class of all options
        recurrent_layer_options("encoder", "decoder"), position_options(1024), embedding_of_positions_options()
    ),
):
    """The options of ``double_path``; the sizes are those of IWSLT'14 German-English."""

    encoder_paths: str = field(
        default="cnn,san", metadata={"help": f"paths of the encoder, with commas between them: {_PATHS}"}
    )
    decoder_paths: str = field(
        default="cnn,san", metadata={"help": f"paths of the decoder, with commas between them: {_PATHS}"}
    )
    dropout: float = field(
        default=0.1,
        metadata={"help": "probability of dropout on embeddings and in the paths (convolutions' inputs, sublayers)"},
    )
    path_dropout: float = field(
        default=0.0,
        metadata={"help": "probability that a gate goes without a path in training, by sentence", "needs": _GATES},
    )
    cross_memory: _CROSS_MEMORIES = field(  # type: ignore[valid-type]  # fairseq makes the class
        default="matched",
        metadata={
            "help": "an encoder path's output, as a decoder path of another scale reads it: at that path's own scale "
            "(matched), or as it is (plain)",
            "needs": Needs(
                "without an encoder path and a decoder path of different scales, such as san and cnn",
                lambda cfg: not all(itertools.starmap(has_scale_of, flows_of(cfg))),
            ),
        },
    )
    gate_gradient_scale: float = field(
        default=1.0, metadata={"help": "factor of the gates' gradients; 0 keeps all shares equal", "needs": _GATES}
    )
    no_scale_cnn_gradient: bool = field(
        default=False,
        metadata={
            "help": "do not divide the gradient into the encoder's CNN path by twice the CNN decoder's layers",
            "needs": Needs(
                "without cnn in --encoder-paths and --decoder-paths",
                lambda cfg: all("cnn" in paths_of(cfg, side) for side in SIDES),
            ),
        },
    )
    checkpoint_activations: bool = field(
        default=False,
        metadata={
            "help": "keep no activations of the paths' layers for the backward pass, which computes them again: "
            "less memory, more time"
        },
    )


def paths_of(cfg: DoublePathConfig, side: str) -> tuple[str, ...]:
    """The paths of a side, in the order of :data:`PATH_KINDS`."""
    value = getattr(cfg, f"{side}_paths")
    names = [name.strip() for name in value.split(",") if name.strip()]
    unknown = sorted(set(names) - PATH_KINDS.keys())
    if unknown or not names:
        what = f"unknown path {unknown[0]!r}" if unknown else "no path"
        raise InputError(f"--{side}-paths {value!r}: {what}; give one or several of {','.join(PATH_KINDS)}")
    return tuple(path for path in PATH_KINDS if path in names)


def flows_of(cfg: DoublePathConfig) -> Iterator[tuple[str, str]]:
    """Of each attention flow the path of the decoder and that of the encoder."""
    return itertools.product(paths_of(cfg, "decoder"), paths_of(cfg, "encoder"))


def kinds_of(cfg: DoublePathConfig, side: str) -> list[PathKind]:
    """The same, with what each is."""
    return [PATH_KINDS[path] for path in paths_of(cfg, side)]


def check(cfg: DoublePathConfig, task: FairseqTask) -> None:
    """Raises InputError if options are out of range, do not go together, or would have no effect."""
    for side in SIDES:
        check_sizes(cfg, [f"{side}_embed_dim"])
        for kind in kinds_of(cfg, side):
            for option in dataclasses.fields(kind.options):
                name, least = option_name(kind, option.name, side), option.metadata.get("minimum")
                if least is not None and getattr(cfg, name) < least:
                    raise InputError(f"{flag(name)} must be at least {least}, not {getattr(cfg, name)}")
    check_sizes(cfg, ("max_source_positions", "max_target_positions"))
    check_dropouts(cfg, ("dropout", "activation_dropout", "path_dropout"))
    for name in ("gate_gradient_scale", "position_shift"):
        if getattr(cfg, name) < 0:
            raise InputError(f"{flag(name)} must be at least 0, not {getattr(cfg, name)}")
    if cfg.encoder_embed_dim != cfg.decoder_embed_dim:
        raise InputError(
            f"--encoder-embed-dim {cfg.encoder_embed_dim} and --decoder-embed-dim {cfg.decoder_embed_dim} must be "
            "equal: the CNN path compares its own states with the encoder's"
        )
    check_sharing(cfg, task)
    check_effects(cfg, DoublePathConfig, task)
    _check_recurrent_layers(cfg, task)


def _check_recurrent_layers(cfg: DoublePathConfig, task: FairseqTask) -> None:
    """Raises InputError if recurrent layers are asked for where no path has some, or asked for what they have not."""
    if is_from_checkpoint(task):
        return
    recurrent = [side for side in SIDES if any(kind.has_recurrent_layers for kind in kinds_of(cfg, side))]
    for side in SIDES:
        if side not in recurrent:
            refuse_layer_options(cfg, f"--{side}-paths {getattr(cfg, f'{side}_paths')}", f"{side}_")
    if recurrent:
        check_layer_options(cfg, task, *recurrent)
    else:
        refuse_layer_options(cfg, "a network without such a path")
