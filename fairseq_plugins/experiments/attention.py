"""Where a trained model with several attention flows, or gates, looks in the development set."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from ..checkpoints import architecture, read_checkpoint
from ..decoding.prepared_data import PreparedData
from . import processes
from .run import Run

_FIGURES = ("checkpoint", "entropy", "uniform", "gates", "warnings")


def over_development_set(checkpoint: str, data: PreparedData, run: Run) -> dict[str, Any] | None:
    """Runs ``fairseq-plugins analysis entropy``, which leaves its figure in the work folder.

    Args:
        checkpoint: of the model; several of them (``a.pt:b.pt``) are looked at no further
        data: the prepared data
        run: whose model it is; files go to ``analysis`` in its folder

    Returns:
        ``entropy`` of each flow and ``uniform``, that of looking everywhere alike, in nats; ``gates``, the mean of each
        layer's; ``warnings``, a sentence each. None where the model has one attention only, or the command failed; then
        it has said why.
    """
    from fairseq.models import ARCH_MODEL_REGISTRY

    if ":" in checkpoint:
        return None
    # The protocol of models/shown_attention.py, asked for by name: experiments know no models.
    if not hasattr(ARCH_MODEL_REGISTRY[architecture(read_checkpoint(checkpoint))], "show_attention"):
        return None
    output = run.folder / "analysis" / "development_entropy"
    command = [*processes.own_command("analysis", "entropy"), checkpoint, "--subset", "valid"]
    command += ["--data", str(data.folder), "--output", str(output)]
    if processes.run(command, lambda _: None, stderr=None if sys.stderr.isatty() else subprocess.STDOUT) != 0:
        print(f"note: where the model looks is not known: this failed: {processes.shown(command)}")
        return None
    content = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    return {key: content[key] for key in _FIGURES}
