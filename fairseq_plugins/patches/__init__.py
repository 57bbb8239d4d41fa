"""What fairseq 0.12 needs or lacks. A patch is a function that changes fairseq, or a library that it calls.

Its docstring says the fault that it mends and the versions that have it. Its test in ``tests/patches/`` shows the fault
in fairseq without the patch, passes with it, and says when fairseq no longer needs it. Nothing is changed by importing
this room: :func:`apply` does it when the package registers itself. A patch does nothing where it is not needed, or when
it was made before.

fairseq 0.12 means fairseq 0.12.2 and fairseq-fixed 0.12.3.1, with which the patches were tried.
"""

from __future__ import annotations

from collections.abc import Callable


def apply() -> None:
    """Makes every patch. Further calls change nothing."""
    from .deferred_imports import defer_imports
    from .messages import quiet_loggers

    for patch in defer_imports, quiet_loggers:
        patch()  # before anything imports fairseq's parts
    for patch in all_patches():
        patch()


def all_patches() -> list[Callable[[], None]]:
    """The patches, in the order in which they are made. Imports fairseq."""
    from .asserted_copies import copy_checkpoints_without_assertions
    from .averaged_weights import use_averaged_weights
    from .batches import (
        end_data_threads_before_the_process,
        end_data_workers_with_their_epoch,
        keep_last_batch,
    )
    from .copied_models import copy_models_and_tasks
    from .data_parallel import train_data_parallel_on_cpu
    from .decoding import (
        avoid_transformer_fast_path,
        repair_alignments,
        repair_diverse_beam_search,
        search_among_few_tokens,
        write_no_padding_words,
    )
    from .deferred_imports import defer_imports
    from .epochs import tell_networks_of_epochs
    from .half_precision import (
        allow_bfloat16_without_tpu,
        allow_float16_without_gpu,
        keep_float32_weights_when_resuming,
        keep_steps_of_the_loss_scale_when_resuming,
    )
    from .kernels_line import say_kernels
    from .loading import allow_checkpoint_types, tell_models_of_checkpoints
    from .matmul_precision import add_matmul_precision
    from .messages import quiet_loggers
    from .numpy_aliases import restore_numpy_aliases
    from .parameter_counts import keep_parameter_counts
    from .repeated_ngrams import repair_repeated_ngrams
    from .resuming import (
        keep_batches_when_resuming,
        keep_limits_when_resuming,
        keep_patience_of_schedulers_when_resuming,
        tell_schedulers_when_resuming,
    )
    from .saving import keep_as_many_of_the_best, name_updates_that_end_epochs, prefer_numbers, save_the_end
    from .speed import defer_compiler, flush_denormals, fuse_adam
    from .trained_with import keep_dictionary_checksums, refuse_other_starts
    from .unknown_words import replace_unknown_words
    from .validation_bleu import repair_validation_bleu

    return [
        defer_imports,
        quiet_loggers,
        defer_compiler,
        copy_checkpoints_without_assertions,
        allow_checkpoint_types,
        tell_models_of_checkpoints,
        restore_numpy_aliases,
        keep_last_batch,
        keep_batches_when_resuming,
        end_data_workers_with_their_epoch,
        end_data_threads_before_the_process,
        keep_limits_when_resuming,
        tell_schedulers_when_resuming,
        keep_patience_of_schedulers_when_resuming,
        save_the_end,
        keep_as_many_of_the_best,
        prefer_numbers,
        name_updates_that_end_epochs,
        allow_bfloat16_without_tpu,
        allow_float16_without_gpu,
        keep_float32_weights_when_resuming,
        keep_steps_of_the_loss_scale_when_resuming,
        add_matmul_precision,
        repair_alignments,
        repair_diverse_beam_search,
        search_among_few_tokens,
        write_no_padding_words,
        repair_repeated_ngrams,
        repair_validation_bleu,
        avoid_transformer_fast_path,
        train_data_parallel_on_cpu,
        replace_unknown_words,
        keep_dictionary_checksums,
        refuse_other_starts,
        keep_parameter_counts,
        copy_models_and_tasks,
        say_kernels,
        flush_denormals,  # around all of them
        fuse_adam,
        tell_networks_of_epochs,
        use_averaged_weights,
    ]
