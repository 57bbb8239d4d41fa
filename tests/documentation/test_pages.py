"""Generated pages are as they would be written today, and say what the records say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairseq_plugins.documentation import __main__ as update_docs
from fairseq_plugins.documentation import pages, results_page
from fairseq_plugins.documentation.blocks import filled
from fairseq_plugins.documentation.pages import generated
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import records
from fairseq_plugins.experiments.configuration import Configuration
from fairseq_plugins.experiments.records import Record
from tests.commands import CHECKOUT, run_command

IWSLT = "configs/iwslt14_de_en/mc_rnn_3.yaml"


@pytest.fixture(autouse=True)
def own_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(records.VARIABLE, raising=False)


@pytest.mark.system
def test_no_page_is_stale() -> None:
    stale = [
        str(path.relative_to(CHECKOUT))
        for path, text in generated(CHECKOUT, records.load_all()).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, "run scripts/update_docs.sh"


def test_extensions_of_what_is_recorded(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A metric that is a user's own has to be known before its column is looked for."""
    loaded: list[str] = []
    monkeypatch.setattr(Configuration, "load_extensions", lambda own: loaded.append(own.path.name))
    monkeypatch.setattr(update_docs.records, "load_all", lambda: [iwslt(1, 30.0), iwslt(2, 31.0)])
    monkeypatch.setattr(update_docs, "generated", lambda *_: {} if loaded else pytest.fail("too early"))
    update_docs.main([])
    assert loaded == ["mc_rnn_3.yaml"] and capsys.readouterr().out == "every page is as it would be written\n"


def test_runs_that_trained_for_another_time_than_their_configuration_says() -> None:
    def run(accuracy: float, updates: int, **options: str) -> Record:
        differs = {"train": {name.replace("_", "-"): value for name, value in options.items()}}
        scores = {"test": {"accuracy": accuracy}}
        path = "configs/pixel_mnist/gru.yaml"
        return Record("pixel_mnist", "gru", path, 1, differs=differs, scores=scores, updates=updates)

    (paper,) = (table for table in results_page.tables() if table.name == "dilated_rnn_table_1")
    (row,) = (row for row in paper.rows if row.system == "GRU, 1 layer of 256, plain")
    others = [run(10.0, 9000, lr="1"), run(11.0, 9000, stop_time_hours="2", lr="1")]
    assert pages.recorded(others, "pixel_mnist") == "Not recorded yet."
    assert results_page.our_figures(paper, row, others) == "not recorded yet"
    short, long = run(12.5, 600, max_update="600"), run(13.5, 700, stop_time_hours="2")
    text = pages.recorded([*others, short, long], "pixel_mnist")
    assert "| `--max-update 600` | best | 12.50 |" in text and "| `--stop-time-hours 2` | best | 13.50 |" in text
    assert "10.00" not in text and "11.00" not in text
    cell = results_page.our_figures(paper, row, [*others, short, long])
    assert cell == "13.50 (one run, `--stop-time-hours 2`)"
    whole = Record("pixel_mnist", "gru", "configs/pixel_mnist/gru.yaml", 1, scores={"test": {"accuracy": 14.5}})
    assert results_page.our_figures(paper, row, [short, long, whole]) == "14.50 (one run)"


def iwslt(seed: int, score: float, **others) -> Record:
    return Record(
        "iwslt14_de_en",
        "mc_rnn_3",
        IWSLT,
        seed,
        scores={"test": {"bleu_tokenized": score, "bleu_tokenized_signature": "nrefs:1"}},
        **others,
    )


def test_the_papers_tables_show_recorded_runs() -> None:
    (table,) = (table for table in results_page.tables() if table.name == "mc_rnn_table_2")
    cells = {row.system: results_page.our_figures(table, row, [iwslt(1, 32.0), iwslt(2, 33.0)]) for row in table.rows}
    assert cells["MC-RNN-3"] == "32.50 ± 0.71 (2 runs)"
    assert cells["MC-RNN-4"] == "not recorded yet"
    assert cells["Actor-critic"] == "quoted by the paper"
    text = results_page.page([iwslt(1, 32.0)])
    assert "| MC-RNN-3 | 32.23 | 32.00 (one run) | 29M | [iwslt14_de_en/mc_rnn_3.yaml]" in text


def test_runs_with_other_options_or_several_sets_have_rows_of_their_own() -> None:
    other = iwslt(1, 20.0, differs={"train": {"max-update": "20", "clip-norm": None}})
    carried = iwslt(3, 10.0, carried_over="a page.", note="An old run.")
    several = Record("nist_zh_en", "dpn", "configs/nist_zh_en/dpn.yaml", 1, scores={"nist05": {"bleu_tokenized": 40.0}})
    text = results_page.page([iwslt(1, 32.0, updates=7, train_seconds=61.0), other, carried, several])
    assert "| `mc_rnn_3` |  | best | 32.00 |" in text
    assert "| `mc_rnn_3` | without `--clip-norm`, `--max-update 20` | best | 20.00 |" in text
    assert "- Carried over: a page.\n" in text and "- An old run.\n" in text
    assert "Set: nist05.\n\n| system | checkpoint | BLEU (tokenised) |" in text
    assert "- BLEU (tokenised): `nrefs:1`.\n" in text
    assert "| DPN-S2S | 41.26 / 41.12 / 38.87 / 32.66 / 31.17 | – / 40.00 / – / – / – (one run) |" in text


def test_groups_that_have_different_scores() -> None:
    def multi30k(seed: int, **scores: float) -> Record:
        return Record("multi30k_de_en", "rnnsearch", "multi30k.yaml", seed, others[seed], scores={"test": scores})

    others = {1: {}, 2: {"train": {"lr": "1e-3"}}, 3: {"train": {"lr": "1e-3"}}}
    records = [
        multi30k(1, bleu_tokenized=34.0, bleu_sacrebleu=35.0),
        multi30k(2, bleu_sacrebleu=39.0),
        multi30k(3, bleu_sacrebleu=40.0),
    ]
    table = results_page.recorded_rows(records, "test")
    assert (table["BLEU (tokenised)"], table["sacreBLEU"]) == (["34.00", "–"], ["35.00", "39.50 ± 0.71"])
    assert (table["range"], table["runs"]) == (["", "39.00 to 40.00"], ["one run", "2 runs"])


def test_runs_that_stopped_at_different_updates() -> None:
    table = results_page.recorded_rows([iwslt(1, 32.0, updates=1860), iwslt(2, 33.0, updates=2480)], "test")
    assert table["updates"] == ["1,860 to 2,480"]
    assert "sentences a second" not in table


def test_the_speed_of_decoding_is_shown_where_it_is_recorded() -> None:
    speeds = {1: 143.4, 2: 126.0}
    some = [iwslt(seed, 32.0, decode_sentences_per_second=speed) for seed, speed in speeds.items()]
    assert results_page.recorded_rows(some, "test")["sentences a second"] == ["126 to 143"]


def test_a_variant_has_a_row_of_its_own() -> None:
    (table,) = (table for table in results_page.tables() if table.name == "mc_rnn_table_4")
    path = "configs/ptb/mc_rnn_3.yaml"
    plain = Record("ptb", "mc_rnn_3", path, 1, scores={name: {"perplexity": 60.0} for name in ("valid", "test")})
    differs = {"generate": {"cache": "true"}}
    cached = Record("ptb", "mc_rnn_3", path, 1, differs, scores={"test with cache": {"perplexity": 55.0}})
    cells = {row.system: results_page.our_figures(table, row, [plain, cached]) for row in table.rows}
    assert cells["MC-RNN"] == "60.00 / 60.00 (one run)"
    assert cells["MC-RNN + continuous cache pointer"] == "– / 55.00 (one run)"


def test_an_empty_page() -> None:
    text = results_page.page([])
    assert text.count("None yet.") == 2 and "32.23" in text


def test_parts_of_a_page() -> None:
    page = "before\n<!-- generated: x -->\nold\n<!-- end -->\nafter\n"
    expected = "before\n<!-- generated: x -->\nnew\n<!-- end -->\nafter\n"
    assert filled(page, {"x": lambda: "new\n"}, "README.md") == expected
    assert filled(expected, {"x": lambda: "new\n"}, "README.md") == expected
    with pytest.raises(InputError, match="README.md: nothing makes the part 'x'; there are y"):
        filled(page, {"y": lambda: ""}, "README.md")
    with pytest.raises(InputError, match="no <!-- end -->"):
        filled("<!-- generated: x -->\n", {"x": lambda: ""}, "README.md")


def test_the_script_says_what_is_stale(tmp_path: Path) -> None:
    (tmp_path / "quickstart" / "rnnsearch").mkdir(parents=True)
    script = CHECKOUT / "scripts" / "update_docs.sh"
    finished = run_command([script, "--check"], status=1, timeout=800, FAIRSEQ_PLUGINS_RESULTS=str(tmp_path))
    stale = "docs/results.md, README.md, docs/classification.md, docs/language_models.md, docs/notes/sequence_tasks.md"
    # All other notes that have a recorded run follow.
    assert re.fullmatch(
        rf"error: stale: {stale}(, docs/notes/\w+\.md)*; run scripts/update_docs\.sh\n", finished.stderr
    )
