"""Generated pages are as they would be written today, and say what the records say."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_plugins.documentation import __main__ as update_docs
from fairseq_plugins.documentation import pages, paper_tables, results_pages
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import recorded_runs
from fairseq_plugins.experiments.configuration import Configuration
from fairseq_plugins.experiments.groups_of_runs import groups
from fairseq_plugins.experiments.recorded_runs import Record, checkpoint_name

IWSLT = "configs/iwslt14_de_en/mc_rnn_3.yaml"


@pytest.fixture(autouse=True)
def own_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(recorded_runs.VARIABLE, raising=False)


def iwslt(seed: int, score: float, **others) -> Record:
    return Record(
        "iwslt14_de_en",
        "mc_rnn_3",
        IWSLT,
        seed,
        scores={"test": {"bleu_tokenized": score, "bleu_tokenized_signature": "nrefs:1"}},
        **others,
    )


@pytest.mark.system
def test_no_page_is_stale(capsys: pytest.CaptureFixture[str]) -> None:
    update_docs.main(["--check"])
    assert capsys.readouterr().out == "every page is as it would be written\n"


def test_extensions_of_what_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A metric that is a user's own has to be known before its column is looked for."""
    loaded: list[str] = []
    monkeypatch.setattr(update_docs, "ROOT", tmp_path)
    monkeypatch.setattr(update_docs.configurations, "load", lambda path: Configuration(path))
    monkeypatch.setattr(Configuration, "load_extensions", lambda own: loaded.append(own.path.name))
    monkeypatch.setattr(update_docs.recorded_runs, "load_all", lambda: [iwslt(1, 30.0), iwslt(2, 31.0)])
    monkeypatch.setattr(update_docs, "generated", lambda *_: {} if loaded else pytest.fail("too early"))
    update_docs.main([])
    assert loaded == ["mc_rnn_3.yaml"] and capsys.readouterr().out == "every page is as it would be written\n"


def test_pages_are_written_and_those_that_nothing_makes_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, obsolete = (tmp_path / "docs" / "results" / name for name in ("trec.md", "old.md"))
    obsolete.parent.mkdir(parents=True)
    obsolete.write_text("an older page", encoding="utf-8")
    monkeypatch.setattr(update_docs, "ROOT", tmp_path)
    monkeypatch.setattr(update_docs.recorded_runs, "load_all", list)
    monkeypatch.setattr(update_docs, "generated", lambda *_: {page: "new\n"})
    with pytest.raises(SystemExit, match=r"stale: docs/results/trec.md, docs/results/old.md; run scripts/update_docs"):
        update_docs.main(["--check"])
    assert obsolete.is_file() and not page.exists()
    update_docs.main([])
    assert page.read_text(encoding="utf-8") == "new\n" and not obsolete.exists()
    assert capsys.readouterr().out == "written: docs/results/trec.md, docs/results/old.md\n"


def test_a_readme_without_a_place_for_its_table(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("<!-- generated: families -->\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"README.md: has no '<!-- generated: families -->' with its '<!-- end -->'"):
        pages.generated(tmp_path, [])


def test_a_row_for_each_system() -> None:
    other = iwslt(1, 20.0, differs={"train": {"max-update": "20", "clip-norm": None}})
    averaged = iwslt(1, 33.0, checkpoint=checkpoint_name(5))
    carried = iwslt(3, 10.0, carried_over="a page.", note="An old run.")
    runs = [iwslt(1, 32.0, updates=700, parameters=2900), iwslt(2, 33.0, updates=800, parameters=2900)]
    text = results_pages.page("iwslt14_de_en", [*runs, averaged, other, carried])
    current, others = text.split("## With other options")
    assert "| `mc_rnn_3` | best | 32.50 ± 0.71 | 2 | 2,900 | 700 to 800 |" in current
    assert "| `mc_rnn_3` | mean of the last 5 epochs | 33.00 | 1 | – | – |" in current
    assert "| `mc_rnn_3` | without `--clip-norm`, `--max-update 20` | best | 20.00 | 1 |  |" in others
    assert "| `mc_rnn_3` |  | best | 10.00 | 1 | carried over |" in others
    assert text.endswith("- BLEU (tokenised) was computed so: `nrefs:1`.\n- An old run.\n- Carried over: a page.\n")


def test_further_sets_have_their_main_number() -> None:
    scores = {"bleu_tokenized": 34.0, "bleu_sacrebleu": 35.0}
    several = Record("nist_zh_en", "dpn", "configs/nist_zh_en/dpn.yaml", 1, scores={"nist05": scores, "nist06": scores})
    table = results_pages.rows(groups([several]), ["nist05", "nist06"])
    assert list(table) == [
        *("system", "checkpoint", "nist05: BLEU (tokenised)", "nist05: sacreBLEU", "nist06: BLEU (tokenised)", "runs")
    ]


def test_groups_that_have_different_scores() -> None:
    def multi30k(seed: int, differs: dict[str, dict[str, str | None]], **scores: float) -> Record:
        return Record("multi30k_de_en", "rnnsearch", "multi30k.yaml", seed, differs, scores={"test": scores})

    own = {"train": {"lr": "1e-3"}}
    runs = [
        multi30k(1, {}, bleu_tokenized=34.0, bleu_sacrebleu=35.0),
        multi30k(2, own, bleu_sacrebleu=39.0),
        multi30k(3, own, bleu_sacrebleu=40.0),
    ]
    table = results_pages.rows(groups(runs), ["test"])
    assert (table["BLEU (tokenised)"], table["sacreBLEU"]) == (["34.00", "–"], ["35.00", "39.50 ± 0.71"])
    assert table["runs"] == ["1", "2"]


def test_the_cache_is_a_column_and_trials_are_left_out() -> None:
    def run(seed: int, differs: dict[str, dict[str, str | None]], **scores: float) -> Record:
        found = {name.replace("_", " "): {"perplexity": score} for name, score in scores.items()}
        return Record("ptb", "mc_rnn_3", "configs/ptb/mc_rnn_3.yaml", seed, differs, scores=found)

    cache, trial = {"generate": {"cache": "true"}}, {"train": {"lr": "10"}}
    runs = [run(1, {}, test=60.0, valid=65.0), run(1, cache, test_with_cache=55.0), run(1, trial, valid=90.0)]
    text = results_pages.page("ptb", runs)
    assert "| system | checkpoint | test: perplexity | test with cache: perplexity | runs |" in text
    assert "| `mc_rnn_3` | best | 60.00 | 55.00 | 1 |" in text
    assert "65.00" not in text and "90.00" not in text
    assert "- `results/ptb` has 1 more: they chose settings, and were scored on the validation set alone." in text


def test_an_index_without_records() -> None:
    text = pages.index([], paper_tables.pages([]))
    assert "None yet." in text and "- [MC-RNN (AAAI 2019)](mc_rnn_tables.md)\n" in text


def test_the_papers_tables_show_recorded_runs() -> None:
    (table,) = (table for table in paper_tables.tables() if table.name == "mc_rnn_table_2")
    cells = {row.system: paper_tables.our_figures(table, row, [iwslt(1, 32.0), iwslt(2, 33.0)]) for row in table.rows}
    assert cells["MC-RNN-3"] == "32.50 ± 0.71 (2 runs)"
    assert cells["MC-RNN-4"] == "not recorded yet"
    assert cells["Actor-critic"] == "quoted by the paper"
    several = Record("nist_zh_en", "dpn", "configs/nist_zh_en/dpn.yaml", 1, scores={"nist05": {"bleu_tokenized": 40.0}})
    made = paper_tables.pages([iwslt(1, 32.0), several])
    assert "| MC-RNN-3 | 32.23 | 32.00 (one run) | 29M | [iwslt14_de_en/mc_rnn_3.yaml]" in made["mc_rnn_tables"]
    row = "| DPN-S2S | 41.26 / 41.12 / 38.87 / 32.66 / 31.17 | – / 40.00 / – / – / – (one run) |"
    assert row in made["dpn_tables"]


def test_a_table_of_systems_by_data_sets_has_a_column_for_each_system() -> None:
    """Else RCRN's Table 1 has 51 rows and more."""
    path = "configs/reviews/rcrn.yaml"
    books = Record("reviews", "rcrn_books", path, 1, scores={"test": {"accuracy": 80.0}})
    text = paper_tables.pages([books])["rcrn_tables"].partition("## Table 1")[2].partition("\n## ")[0]
    heading, _, *rows = [line for line in text.splitlines() if line.startswith("|")]
    assert heading.startswith("|  | BiLSTM") and heading.endswith("| RCRN |")
    (row,) = (row for row in rows if row.startswith("| Books |"))
    assert row.endswith("| 88.00; ours 80.00 (one run) |")
    assert len(rows) == 17 and "Configurations: [reviews](../../configs/reviews)." in text
    (unequal,) = (table for table in paper_tables.tables() if table.name == "dilated_rnn_table_1")
    assert paper_tables.crossed(unequal.rows) is None


def test_what_a_paper_only_draws_has_no_table() -> None:
    text = paper_tables.pages([])["dilated_rnn_tables"].partition("## Figure 3: copy memory\n")[2].partition("\n## ")[0]
    assert "Its 20 systems: [copy_memory](../../configs/copy_memory)." in text and "|" not in text


def test_runs_that_trained_for_another_time_than_their_configuration_says() -> None:
    def run(accuracy: float, updates: int, **options: str) -> Record:
        differs = {"train": {name.replace("_", "-"): value for name, value in options.items()}}
        scores = {"test": {"accuracy": accuracy}}
        path = "configs/pixel_mnist/gru.yaml"
        return Record("pixel_mnist", "gru", path, 1, differs=differs, scores=scores, updates=updates)

    (paper,) = (table for table in paper_tables.tables() if table.name == "dilated_rnn_table_1")
    (row,) = (row for row in paper.rows if row.system == "GRU, 1 layer of 256, plain")
    others = [run(10.0, 9000, lr="1"), run(11.0, 9000, stop_time_hours="2", lr="1")]
    assert paper_tables.our_figures(paper, row, others) == "not recorded yet"
    short, long = run(12.5, 600, max_update="600"), run(13.5, 700, stop_time_hours="2")
    current = results_pages.page("pixel_mnist", [*others, short, long]).partition("## With other options")[0]
    assert "| `--max-update 600` | best | 12.50 |" in current and "| `--stop-time-hours 2` | best | 13.50 |" in current
    assert "10.00" not in current and "11.00" not in current
    cell = paper_tables.our_figures(paper, row, [*others, short, long])
    assert cell == "13.50 (one run, `--stop-time-hours 2`)"
    whole = Record("pixel_mnist", "gru", "configs/pixel_mnist/gru.yaml", 1, scores={"test": {"accuracy": 14.5}})
    assert paper_tables.our_figures(paper, row, [short, long, whole]) == "14.50 (one run)"


def test_a_variant_has_a_row_of_its_own() -> None:
    (table,) = (table for table in paper_tables.tables() if table.name == "mc_rnn_table_4")
    path = "configs/ptb/mc_rnn_3.yaml"
    plain = Record("ptb", "mc_rnn_3", path, 1, scores={name: {"perplexity": 60.0} for name in ("valid", "test")})
    differs = {"generate": {"cache": "true"}}
    cached = Record("ptb", "mc_rnn_3", path, 1, differs, scores={"test with cache": {"perplexity": 55.0}})
    cells = {row.system: paper_tables.our_figures(table, row, [plain, cached]) for row in table.rows}
    assert cells["MC-RNN"] == "60.00 / 60.00 (one run)"
    assert cells["MC-RNN + continuous cache pointer"] == "– / 55.00 (one run)"
