"""What fairseq 0.12 needs on today's Python and PyTorch, a file for each matter, and nothing else.

``apply()`` is called when the package registers itself, which fairseq makes it do with ``--user-dir`` before it parses
the command line. Each repair does nothing where it is not needed, or when it was made before. Tried with fairseq-fixed
0.12.3.1; the code of fairseq 0.12.2 that is concerned is the same unless a docstring says so.
"""

from __future__ import annotations


def apply() -> None:
    """Makes every repair that fairseq needs here. Further calls change nothing."""
    from .deferred_imports import defer_imports

    defer_imports()  # before anything imports fairseq's parts

    from fairseq.modules import transformer_layer

    from .asserted_copies import copy_checkpoints_without_assertions
    from .bfloat16 import allow_bfloat16_without_tpu
    from .checkpoint_types import allow_checkpoint_types
    from .data_workers import end_data_workers_with_their_epoch
    from .deferred_compiler import defer_compiler
    from .diverse_beam_search import repair_diverse_beam_search
    from .last_batch import keep_last_batch
    from .numpy_aliases import restore_numpy_aliases
    from .padded_alignments import repair_alignments
    from .resumed_batches import keep_batches_when_resuming
    from .resumed_limits import keep_limits_when_resuming
    from .resumed_schedulers import tell_schedulers_when_resuming
    from .transformer_fast_path import avoid_transformer_fast_path

    defer_compiler()
    copy_checkpoints_without_assertions()
    allow_checkpoint_types()
    restore_numpy_aliases()
    keep_last_batch()
    keep_batches_when_resuming()
    end_data_workers_with_their_epoch()
    keep_limits_when_resuming()
    tell_schedulers_when_resuming()
    allow_bfloat16_without_tpu()
    repair_alignments()
    repair_diverse_beam_search()
    avoid_transformer_fast_path(transformer_layer.TransformerEncoderLayerBase)
