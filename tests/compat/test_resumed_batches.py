"""Batches do not depend on the epoch that makes them."""

from __future__ import annotations

from fairseq.tasks.translation import TranslationConfig, TranslationTask

import fairseq_plugins  # noqa: F401


def test_batches_are_the_same_whichever_epoch_makes_them(tiny_translation_data) -> None:
    def batches(epoch: int, **keywords: bool) -> tuple[list[list[int]], list[list[int]]]:
        config = TranslationConfig(
            data=str(tiny_translation_data.separate),
            source_lang="xx",
            target_lang="yy",
            train_subset="train",
            dataset_impl="mmap",
            required_seq_len_multiple=1,
        )
        task = TranslationTask.setup_task(config)
        task.load_dataset("train")
        iterator = task.get_batch_iterator(task.dataset("train"), max_tokens=100, epoch=epoch, **keywords)
        in_order = [sample["id"].tolist() for sample in iterator.next_epoch_itr(shuffle=True)]
        return [list(batch) for batch in iterator.frozen_batches], in_order

    first, third = batches(1), batches(3)
    assert first[0] == third[0] and first[1] != third[1]
    assert batches(1, update_epoch_batch_itr=True) == first
    assert batches(3, update_epoch_batch_itr=True)[0] != first[0]
