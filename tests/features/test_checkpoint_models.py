"""Models of checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairseq.models import build_model

from benchmarks.untrained import make_configuration
from fairseq_plugins.errors import InputError
from tests.models.tasks import make_task

TINY = dict.fromkeys(["encoder_embed_dim", "encoder_hidden_size", "decoder_embed_dim", "decoder_hidden_size"], 6)


def test_vectors_are_not_read_again(tmp_path: Path) -> None:
    path, task = tmp_path / "vectors.txt", make_task(left_pad_target=False)
    path.write_text("1 6\nw3 1 2 3 4 5 6\n")
    options = {"encoder_embed_path": str(path), "encoder_freeze_embed": True}
    whole = make_configuration("recurrent_seq2seq", **options, **TINY)
    weights = build_model(whole.model, task).state_dict()
    path.unlink()
    with pytest.raises(InputError, match="cannot be read as embeddings"):
        build_model(whole.model, task)
    model = build_model(whole.model, task, from_checkpoint=True)
    model.load_state_dict(weights)
    assert not model.encoder.embed_tokens.weight.requires_grad
