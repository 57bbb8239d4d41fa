"""fairseq copies checkpoints inside an ``assert`` statement, which Python leaves out with PYTHONOPTIMIZE or ``-O``.

There would be no checkpoint_last.pt and no checkpoint_best.pt. Of fairseq's other ``assert`` statements one alone does
something, in a task on audio.
"""

from __future__ import annotations

import inspect
import sys

from fairseq import checkpoint_utils


def copy_checkpoints_without_assertions() -> None:
    """Compiles the function that does so with its ``assert`` statements. Further calls change nothing.

    For fairseq 0.12.
    """
    function = inspect.unwrap(checkpoint_utils.save_checkpoint)  # other patches are around it
    if sys.flags.optimize and "copy" not in function.__code__.co_names:
        lines, number = inspect.getsourcelines(function)
        source = "\n" * (number - 1) + "".join(lines)
        exec(compile(source, function.__code__.co_filename, "exec", optimize=0), vars(checkpoint_utils))
