"""``long_memory_network``: recurrent layers, or the dilated CNN, whose last outputs are classified.

DilatedRNN (Chang et al. 2017), Section 4: in one direction, no dropout, an output layer drawn from N(0, 1) on the last
step (copy memory: on the last ten). See ``modules/initialization.py`` for the start of the cells.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field

import torch.nn.functional as F
from fairseq.dataclass import ChoiceEnum
from fairseq.models import BaseFairseqModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..errors import InputError
from ..modules import DilatedRNN, RecurrentStack
from ..modules.dilated_convolution import DilatedCNN
from ..modules.initialization import standard_normal_
from .options import (
    check_layer_options,
    check_sizes,
    complete,
    recurrent_layer,
    recurrent_layer_options,
    refuse_layer_options,
    start_by_glorot,
)

_NETWORKS = ChoiceEnum(["recurrent", "dilated_cnn"])
_STARTS = ChoiceEnum(["glorot", "normal", "layers"])


@dataclass
class LongMemoryNetworkConfig(recurrent_layer_options()):  # type: ignore[misc]  # fairseq wants one class of all options
    """The options of ``long_memory_network``."""

    network: _NETWORKS = field(  # type: ignore[valid-type]  # fairseq makes the class
        default="recurrent", metadata={"help": "recurrent layers, or the dilated CNN"}
    )
    hidden_size: int = field(default=20, metadata={"help": "hidden size, or filters, of each layer"})
    layers: int = field(default=9, metadata={"help": "number of layers"})
    initialization: _STARTS = field(  # type: ignore[valid-type]  # fairseq makes the class
        default="glorot",
        metadata={
            "help": "glorot: as in the authors' code; normal: all weights from N(0, 1), as the paper says; "
            "layers: each as its layer has it"
        },
    )


@register_model("long_memory_network", dataclass=LongMemoryNetworkConfig)
class LongMemoryNetwork(BaseFairseqModel):
    """See the head of this file."""

    data_kind = "generated_sequences"

    def __init__(self, network: RecurrentStack | DilatedCNN, input_size: int, output_steps: int, classes: int) -> None:
        super().__init__()
        self.network = network
        self.input_size, self.output_steps = input_size, output_steps
        self.output = nn.Linear(network.output_size, classes)
        standard_normal_(self.output)

    @classmethod
    def build_model(cls, cfg: LongMemoryNetworkConfig, task: FairseqTask) -> "LongMemoryNetwork":
        """Raises InputError if the options contradict each other or the task."""
        complete(cfg, LongMemoryNetworkConfig)
        if not hasattr(task, "output_steps"):
            raise InputError("long_memory_network needs --task long_memory")
        network = build_network(cfg, task, task.input_size, task.output_steps)
        return cls(network, task.input_size, task.output_steps, task.classes)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T), values or numbers of symbols -> logits (B, classes), or (B, steps, classes) of several steps."""
        steps = x.t().unsqueeze(-1)
        if not x.is_floating_point():
            steps = F.one_hot(x.t(), self.input_size)
        return self.logits(steps)

    def logits(self, steps: Tensor) -> Tensor:
        """steps (T, B, D) -> logits (B, classes), or (B, steps, classes) of several steps."""
        result = self.network(steps.to(self.output.weight.dtype))
        output = result if isinstance(result, Tensor) else result.output
        logits: Tensor = self.output(output[-self.output_steps :]).transpose(0, 1)
        return logits.squeeze(1) if self.output_steps == 1 else logits


def build_network(
    cfg: LongMemoryNetworkConfig, task: FairseqTask, input_size: int, output_steps: int
) -> RecurrentStack | DilatedCNN:
    """The layers that the options describe.

    Args:
        cfg: with all of them
        task: that the model is built for
        input_size: of each step
        output_steps: how many of the last outputs are read

    Raises:
        InputError: the options contradict each other.
    """
    check_sizes(cfg, ("hidden_size", "layers"))
    if str(cfg.network) == "dilated_cnn":
        refuse_layer_options(cfg, "--network dilated_cnn")
        network: RecurrentStack | DilatedCNN = DilatedCNN(input_size, cfg.hidden_size, cfg.layers)
    else:
        check_layer_options(cfg, task)
        kind, options = recurrent_layer(cfg)
        try:
            network = RecurrentStack(kind, input_size, [cfg.hidden_size] * cfg.layers, options=options)
        except ValueError as error:
            raise InputError(f"--recurrent-layer {kind}: {error}") from None
        if isinstance(last := network.layers[-1], DilatedRNN):
            last.fused_steps = output_steps
        if str(cfg.initialization) == "glorot":
            start_by_glorot(network, cfg)
    if str(cfg.initialization) == "normal":
        standard_normal_(network)
    return network
