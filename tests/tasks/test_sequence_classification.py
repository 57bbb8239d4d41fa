"""What the tasks of labelled texts refuse of folders that our preparations did not make."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairseq.data import Dictionary, FairseqDataset, ListDataset
from torch import Tensor, tensor

from fairseq_plugins.errors import InputError
from fairseq_plugins.tasks.sequence_classification import SequenceClassificationConfig, SequenceClassificationTask


def test_an_empty_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be pooled to what is no number."""
    (tmp_path / "input0").mkdir()
    dictionary = Dictionary()
    task = SequenceClassificationTask(SequenceClassificationConfig(data=str(tmp_path)), dictionary, dictionary, None)

    def indexed(_: object, name: str, split: str, dictionary: Dictionary) -> FairseqDataset:
        texts: list[Tensor] = [tensor([5, 2]), tensor([2]), tensor([7, 8, 2])]
        texts = texts[:1] if split == "train" else texts
        return ListDataset(texts, [len(text) for text in texts])

    monkeypatch.setattr(SequenceClassificationTask, "indexed", indexed)
    assert [len(text) for text in task.texts("train")[0]] == [1]
    with pytest.raises(InputError, match="input0: text 2 of 'valid' is empty; leave it out"):
        task.texts("valid")
