"""All repairs together."""

from __future__ import annotations

from fairseq import checkpoint_utils, options, utils
from fairseq.data import Dictionary, data_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.models import distributed_fairseq_model
from fairseq.search import DiverseBeamSearch
from fairseq.tasks import FairseqTask
from fairseq.trainer import Trainer

from fairseq_plugins import compat, features


def test_applying_again_changes_nothing() -> None:
    places = [
        (data_utils, "batch_by_size"),
        (options, "parse_args_and_arch"),
        (distributed_utils, "call_main"),
        (distributed_utils, "all_gather_list"),
        (distributed_fairseq_model, "DistributedDataParallel"),
        (utils, "post_process_prediction"),
        (utils, "extract_hard_alignment"),
        (FairseqTask, "inference_step"),
        (FairseqTask, "get_batch_iterator"),
        (DiverseBeamSearch, "step"),
        (Dictionary, "add_from_file"),
        (checkpoint_utils, "save_checkpoint"),
        (Trainer, "state_dict"),
        (Trainer, "save_checkpoint"),
        (Trainer, "load_checkpoint"),
    ]
    before = [getattr(*place) for place in places]
    compat.apply()
    features.apply()
    assert [getattr(*place) for place in places] == before
