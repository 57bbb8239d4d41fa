"""Options of fairseq's own commands that it has, and that do nothing or fail; a file for each.

``--cpu --distributed-world-size N`` trains with N processes, ``--replace-unk`` copies unknown words. And checkpoints
keep checksums of their dictionaries, and need no files of word vectors. On CPUs the smallest numbers count as zero, and
Adam is one kernel. A training says which kernels it runs on. ``apply()`` is called when the package registers itself,
after ``compat.apply()``.
"""

from __future__ import annotations


def apply() -> None:
    """Puts all of them into fairseq. Further calls change nothing."""
    from .checkpoint_models import tell_models_of_checkpoints
    from .cpu_data_parallel import train_data_parallel_on_cpu
    from .dictionary_checksums import keep_dictionary_checksums
    from .flushed_denormals import flush_denormals
    from .fused_adam import fuse_adam
    from .kernels_line import say_kernels
    from .unknown_words import replace_unknown_words

    train_data_parallel_on_cpu()
    replace_unknown_words()
    keep_dictionary_checksums()
    tell_models_of_checkpoints()
    say_kernels()
    flush_denormals()  # around all of them
    fuse_adam()
