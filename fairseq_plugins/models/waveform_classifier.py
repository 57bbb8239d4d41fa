"""``waveform_classifier``: what ``long_memory_network`` is, over a waveform or its log-mel features.

DilatedRNN (Chang et al. 2017), Section 4.4: the class, such as the speaker, is read from the last step alone.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field

from fairseq.models import register_model
from fairseq.tasks import FairseqTask
from torch import Tensor

from ..errors import InputError
from ..modules import RecurrentStack
from ..modules.dilated_convolution import DilatedCNN
from ..modules.log_mel import LogMel
from .long_memory_network import LongMemoryNetwork, LongMemoryNetworkConfig, build_network
from .options import complete


@dataclass
class WaveformClassifierConfig(LongMemoryNetworkConfig):
    """The options of ``waveform_classifier``."""

    log_mel: int = field(
        default=0,
        metadata={"help": "log-mel features of frames of 25 ms, one every 5 ms; 0: the samples of the waveform"},
    )


@register_model("waveform_classifier", dataclass=WaveformClassifierConfig)
class WaveformClassifier(LongMemoryNetwork):
    """See the head of this file."""

    data_kind = "labelled_audio"

    def __init__(self, network: RecurrentStack | DilatedCNN, features: LogMel | None, size: int, classes: int) -> None:
        super().__init__(network, size, 1, classes)
        self.features = features

    @classmethod
    def build_model(cls, cfg: WaveformClassifierConfig, task: FairseqTask) -> "WaveformClassifier":
        """Raises InputError if the options contradict each other or the task."""
        complete(cfg, WaveformClassifierConfig)
        if not hasattr(task, "sampling_rate"):
            raise InputError("waveform_classifier needs --task waveform_classification")
        if cfg.log_mel < 0:
            raise InputError(f"--log-mel must be at least 0, not {cfg.log_mel}")
        try:
            features = LogMel(cfg.log_mel, task.sampling_rate) if cfg.log_mel else None
        except ValueError as error:
            raise InputError(f"--log-mel {cfg.log_mel}: {error}") from None
        if features is not None and task.window < features.frame:
            raise InputError(
                f"--log-mel {cfg.log_mel}: a window of {task.window:,} samples is shorter than a frame, "
                f"{features.frame:,}; prepare longer windows"
            )
        size = cfg.log_mel or 1
        return cls(build_network(cfg, task, size, 1), features, size, task.classes)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, N), samples -> logits (B, classes)."""
        return self.logits(x.t().unsqueeze(-1) if self.features is None else self.features(x))
