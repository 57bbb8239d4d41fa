"""What the cache takes off the perplexity, from recorded runs."""

from __future__ import annotations

from fairseq_plugins.documentation import cache_gains
from fairseq_plugins.experiments.records import Record, checkpoint_name

CACHE = {"generate": {"cache": "true"}}


def record(seed: int, subset: str, perplexity: float, **options: object) -> Record:
    return Record("ptb", "lstm", seed=seed, scores={subset: {"perplexity": perplexity}}, **options)


def test_each_network_with_and_without_the_cache() -> None:
    runs = [record(1, "test", 100.0), record(2, "test", 102.0)]
    cached = [record(seed, "test with cache", value, differs=CACHE) for seed, value in ((1, 90.0), (2, 91.0))]
    lines = cache_gains.table([*runs, *cached], "ptb").splitlines()
    assert lines[0] == "| network | perplexity | with the cache | runs |"
    assert lines[2:] == ["| `lstm` | 101.00 ± 1.41 | 90.50 ± 0.71 | 2 runs |"]


def test_other_options_checkpoints_and_data_sets_do_not_count() -> None:
    others = [
        record(1, "test", 100.0, checkpoint=checkpoint_name(5)),
        record(1, "test with cache", 90.0, differs={"train": {"lr": "1"}, **CACHE}),
        record(1, "valid with cache", 90.0, differs=CACHE),
    ]
    assert cache_gains.table(others, "ptb") == "Not recorded yet."
    both = [record(1, "test", 100.0), record(1, "test with cache", 90.0, differs=CACHE)]
    assert cache_gains.table(both, "ptb_small") == "Not recorded yet."
