"""A table with our figures beside the paper's, out of experiments whose results are made up."""

from __future__ import annotations

import csv
import json
import random
import statistics
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.corpora.running_text import RunningTextPreparation
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration as configurations
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.experiments.training_identity import TrainingIdentity
from fairseq_plugins.scoring.bleu import Bleu, bleu
from fairseq_plugins.scoring.metrics import Outputs, References
from fairseq_plugins.scoring.rouge import Rouge, corpus_rouge, sentence_rouge
from fairseq_plugins.scoring.significance import Comparison
from fairseq_plugins.tables import tables, writing
from fairseq_plugins.tables.tables import load_table
from tests.conftest import TOY_PERPLEXITY

WORDS = "the old bridge that my sister saw in paris is very long and clean".split()
SENTENCES = 40


def sentences(seed: int, like: list[str] | None = None, errors: float = 0.0) -> list[str]:
    """Sentences, or those given with some of their words exchanged."""
    generator = random.Random(seed)
    made = like or [" ".join(generator.choices(WORDS, k=generator.randint(4, 14))) for _ in range(SENTENCES)]
    return [" ".join(generator.choice(WORDS) if generator.random() < errors else w for w in s.split()) for s in made]


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def compared(baseline: list[str], system: list[str], references: list[str]) -> dict[str, Comparison]:
    """By tokenised BLEU."""
    outputs = (Outputs(lines, lines) for lines in (baseline, system))
    return Bleu().compare(*outputs, References([references], [references]))


def paths_of(table: str) -> list[Path]:
    """The configurations of a table's rows."""
    return [configuration.path for configuration in load_table(table).systems.values()]


class Work:
    """A work folder with prepared data, in which experiments appear as scripts/evaluate.sh would leave them."""

    def __init__(self, root: Path, metric: str = "bleu", sets: dict[str, str] | None = None) -> None:
        self.root, self.metric, self.data = root, metric, root / "data"
        self.sets = sets or {"test": "test"}
        self.references = {split: sentences(place) for place, split in enumerate(self.sets)}
        for split, lines in self.references.items():
            for folder in "raw", "tokens":
                write(self.data / folder / f"{split}.en", lines)
                write(self.data / folder / f"{split}.de", sentences(7))
        for language in "de", "en":
            write(self.data / "bin" / f"dict.{language}.txt", ["the 1"])
        splits = {"train": {"kept": 12345}, **{split: {"name": name} for split, name in self.sets.items()}}
        PairsPreparation("de", "en", bpe="none", metric=metric, splits=splits).save(self.data)

    def add(self, path: Path, seed: int, errors: float, with_options: str = "") -> dict[str, list[str]]:
        """One experiment; returns its translations of each set."""
        configuration = configurations.load(path)
        work = self.root / configuration.dataset / f"{configuration.model}{with_options}" / f"seed_{seed}"
        found = {"config": str(path), "data": str(self.data), "parameters": 2_000_000}
        found |= {
            "updates": 1000 + seed,
            "train_seconds": 3600.0 * seed,
            "train_tokens_per_second": 100.0,
            "seed": seed,
        }
        written = {}
        for split, name in self.sets.items():
            made = sentences(100 * seed + len(path.stem), self.references[split], errors)
            written[split] = made
            write(work / "generate" / f"{split}.tok.en", made)
            write(work / "generate" / f"{split}.en", made)
            write(work / "generate" / f"{split}.log_probabilities.en", ["-1"] * len(made))
            scores = {"checkpoint": "gone.pt", "evaluate_command": "fairseq-plugins evaluate x"}
            if self.metric == "rouge":
                rouge = corpus_rouge(made, [self.references[split]])
                scores |= {key: round(value.score, 2) for key, value in rouge.scores.items()}
                scores |= {"rouge_signature": rouge.signature}
            else:
                score = round(bleu().corpus_score(made, [self.references[split]]).score, 2)
                scores |= {"bleu_tokenized": score, "bleu_sacrebleu": score, "sacrebleu_signature": "s"}
            if split == "test":
                found |= scores
            else:
                found["subsets"] = {**found.get("subsets", {}), name: scores}
        Run(work).write(found)
        write(work / "train.jsonl", [json.dumps({"split": "valid", "epoch": 1, "num_updates": 10, "loss": 2.0})])
        return written

    def table(self, name: str, *arguments: str) -> Path:
        data = [] if "small" in arguments else ["--data", str(self.data)]
        writing.main([name, "--work", str(self.root), *data, *arguments])
        return self.root / "tables" / name


@pytest.mark.system
def test_two_seeds_at_the_papers_scale(tmp_path: Path) -> None:
    work = Work(tmp_path)
    table = load_table("mc_rnn_table_2")
    written = {
        (path.stem, seed): work.add(path, seed, 0.3 if path.stem == "rnnsearch" else 0.1 * len(path.stem) / 8)
        for path in paths_of("mc_rnn_table_2")
        for seed in (1, 2)
    }
    folder = work.table("mc_rnn_table_2", "--seeds", "1", "2")
    content = json.loads((folder / "table.json").read_text())
    assert content["notice"] is None
    rows = {row["system"]: row for row in content["rows"]}
    assert list(rows) == [row.system for row in table.rows]
    assert rows["Actor-critic"]["note"] == "quoted by the paper" and not rows["Actor-critic"]["ours"]
    assert not rows["HM-RNN"]["note"] and rows["HM-RNN"]["ours"]
    three = rows["MC-RNN-3"]
    reference = work.references["test"]
    scores = [round(bleu().corpus_score(written["mc_rnn_3", seed]["test"], [reference]).score, 2) for seed in (1, 2)]
    assert three["ours"]["bleu"] == pytest.approx(statistics.mean(scores))
    assert three["deviation"]["bleu"] == pytest.approx(statistics.stdev(scores))
    assert three["difference"]["bleu"] == pytest.approx(statistics.mean(scores) - 32.23)
    assert (three["paper_parameters"], three["parameters"], three["updates"]) == (29, 2_000_000, 1002)
    assert three["hours"] == pytest.approx(1.5)
    for seed in 1, 2:
        expected = compared(written["rnnsearch", seed]["test"], written["mc_rnn_3", seed]["test"], reference)[
            "bleu_tokenized"
        ]
        assert three["significance"]["Baseline-RNN"][str(seed)]["bleu"]["p_value"] == expected.p_value
        assert three["significance"]["Baseline-RNN"][str(seed)]["bleu"]["difference"] == pytest.approx(
            expected.difference
        )
    assert rows["Baseline-RNN"]["significance"] == {}

    markdown = (folder / "table.md").read_text()
    assert "Not the paper's setting" not in markdown
    line = next(line for line in markdown.splitlines() if line.startswith("| MC-RNN-3 |"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1] == "32.23"
    assert cells[2] == f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"
    assert cells[4:8] == ["29M", "2,000,000", "1,002", "1.50"]
    assert "Trained on 12,345 sentence pairs." in markdown and "mean ± standard deviation" in markdown
    with open(folder / "table.csv", newline="") as stream:
        by_system = {row["system"]: row for row in csv.DictReader(stream)}
    assert by_system["MC-RNN-3"]["paper_bleu"] == "32.23"
    assert float(by_system["MC-RNN-3"]["ours_bleu"]) == pytest.approx(statistics.mean(scores))
    assert by_system["Actor-critic"]["ours_bleu"] == ""
    report = (folder / "report.html").read_text()
    assert "MC-RNN-3" in report and "BLEU by source length" in report and "Learning curves" in report


@pytest.mark.system
def test_small_scale_says_that_it_is_not_the_papers_setting(tmp_path: Path) -> None:
    work = Work(tmp_path)
    for path in paths_of("dpn_table_2"):
        work.add(path, 1, 0.2)
    folder = work.table("dpn_table_2", "--scale", "small")
    for name in "table.md", "report.html":
        assert "Not the paper" in (folder / name).read_text()
    content = json.loads((folder / "table.json").read_text())
    dpn = content["rows"][-1]
    assert dpn["paper"]["nist04"] == 41.26 and list(dpn["ours"]) == ["test"] and dpn["difference"] == {}


@pytest.mark.system
def test_several_sets(tmp_path: Path) -> None:
    names = ["nist04", "nist05", "nist06", "nist08", "nist12"]
    splits = dict(zip(["test", "test1", "test2", "test3", "test4"], names, strict=True))
    work = Work(tmp_path, sets=splits)
    written = {path.stem: work.add(path, 1, 0.2) for path in paths_of("dpn_table_2")}
    rows = json.loads((work.table("dpn_table_2") / "table.json").read_text())["rows"]
    dpn = rows[-1]
    for split, name in splits.items():
        score = bleu().corpus_score(written["dpn"][split], [work.references[split]]).score
        assert dpn["ours"][name] == pytest.approx(score, abs=0.005)
        expected = compared(written["san"][split], written["dpn"][split], work.references[split])["bleu_tokenized"]
        assert dpn["significance"]["SAN"]["1"][name]["p_value"] == expected.p_value


def test_rouge(tmp_path: Path) -> None:
    work = Work(tmp_path, metric="rouge")
    written = {path.stem: work.add(path, 1, 0.1 * len(path.stem)) for path in paths_of("dpn_table_3")}
    rows = json.loads((work.table("dpn_table_3") / "table.json").read_text())["rows"]
    dpn = rows[-1]
    scores = {name: sentence_rouge(lines["test"], [work.references["test"]]) for name, lines in written.items()}
    outputs = (Outputs(written[name]["test"], written[name]["test"]) for name in ("cnn", "dpn"))
    expected = Rouge().compare(*outputs, References([work.references["test"]], [work.references["test"]]))
    for place, metric in enumerate(("rouge1", "rouge2", "rougeL")):
        assert dpn["ours"][metric] == pytest.approx(scores["dpn"][:, place].mean(), abs=0.006)
        assert dpn["significance"]["ConvS2S"]["1"][metric]["p_value"] == expected[metric].p_value


@pytest.mark.system
def test_two_baselines(tmp_path: Path) -> None:
    work = Work(tmp_path)
    for path in paths_of("dpn_table_4"):
        for seed in 1, 2, 3:
            work.add(path, seed, 0.05 * len(path.stem) + 0.01 * seed)
    folder = work.table("dpn_table_4", "--seeds", "1", "2", "3")
    lines = (folder / "table.md").read_text().splitlines()
    rows = {cells[0]: cells for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)}
    headings = rows["system"]
    first, second = (headings.index(f"p against {name}") for name in ("M1", "M5"))
    assert headings[first + 1] == "p over seeds against M1" and headings[second + 1] == "p over seeds against M5"
    assert rows["M1"][first] == rows["M5"][second] == "baseline" and rows["M5"][first].count(", ") == 2
    assert rows["M1"][first + 1] == "–" and 0 <= float(rows["M9"][second + 1]) <= 1
    record = next(row for row in json.loads((folder / "table.json").read_text())["rows"] if row["system"] == "M9")
    assert set(record["significance"]) == set(record["over_seeds"]) == {"M1", "M5"}
    with open(folder / "table.csv", newline="") as stream:
        cells = next(row for row in csv.DictReader(stream) if row["system"] == "M9")
    for name, heading in ("M1", "p_bleu_seed_2"), ("M5", "p_bleu_seed_2_against_M5"):
        assert float(cells[heading]) == pytest.approx(record["significance"][name]["2"]["bleu"]["p_value"], abs=1e-4)
    assert "against M1 and M5 with the same seed" in (folder / "table.md").read_text()


def test_running_text_is_counted_in_tokens() -> None:
    preparation = RunningTextPreparation(splits={"train": {"lines": 20, "tokens": 12345, "unknown": 0}})
    run = SimpleNamespace(required_data=SimpleNamespace(preparation=preparation), results={})
    runs = {row.system: [SimpleNamespace(run=run, seed=1)] for row in load_table("mc_rnn_table_4").rows}
    assert writing.notes_of(load_table("mc_rnn_table_4"), runs)[0] == "Trained on 12,345 tokens."


@pytest.mark.system
def test_gains_of_each_path(tmp_path: Path) -> None:
    work = Work(tmp_path)
    written = {
        (path.stem, seed): work.add(path, seed, 0.05 * len(path.stem) + 0.01 * seed)["test"]
        for path in paths_of("dpn_table_4")
        for seed in (1, 2, 3)
    }
    folder = work.table("dpn_table_4", "--seeds", "1", "2", "3")
    gains = {
        (gain["without"], gain["having"]): gain for gain in json.loads((folder / "table.json").read_text())["gains"]
    }
    parts = [gain["part"] for gain in gains.values()]
    # Section 5.4: adding the CNN encoder leads to a gain of 0.80 to 1.23 BLEU, and so on.
    for part, low, high in (
        ("CNN encoder", 0.80, 1.23),
        ("CNN decoder", 0.26, 0.56),
        ("SAN encoder", 0.43, 0.73),
        ("SAN decoder", 0.88, 1.31),
    ):
        printed = [gain["paper"]["bleu"] for gain in gains.values() if gain["part"] == part]
        assert (min(printed), max(printed)) == (pytest.approx(low), pytest.approx(high)) and parts.count(part) == 3

    references = work.references["test"]
    scores = {key: round(bleu().corpus_score(lines, [references]).score, 2) for key, lines in written.items()}
    differences = [scores["dpn", seed] - scores["dpn_m8", seed] for seed in (1, 2, 3)]
    gain = gains["M8", "M9"]
    assert gain["ours"]["bleu"] == pytest.approx(statistics.mean(differences))
    assert gain["deviation"]["bleu"] == pytest.approx(statistics.stdev(differences))
    expected = compared(written["dpn_m8", 2], written["dpn", 2], references)["bleu_tokenized"]
    assert gain["significance"]["2"]["bleu"]["p_value"] == expected.p_value
    text = (folder / "table.md").read_text()
    assert f"| CNN decoder | M8 | M9 | +0.56 | {statistics.mean(differences):+.2f} ± " in text
    assert "What each part gains" in (folder / "report.html").read_text()


@pytest.mark.system
def test_runs_with_further_options_are_apart(tmp_path: Path) -> None:
    work = Work(tmp_path, metric="rouge")
    for path in paths_of("dpn_table_3"):
        work.add(path, 1, 0.1)
        work.add(path, 1, 0.3, "_lr_1")
    work.table("dpn_table_3", "--", "--lr", "1")
    plain, other = (tmp_path / "tables" / name for name in ("dpn_table_3", "dpn_table_3_lr_1"))
    assert not plain.exists() and "Every row is trained with --lr 1." in (other / "table.md").read_text()
    work.table("dpn_table_3")
    rows = [json.loads((folder / "table.json").read_text())["rows"][-1] for folder in (plain, other)]
    assert rows[0]["ours"]["rouge1"] > rows[1]["ours"]["rouge1"]
    with pytest.raises(InputError, match="no experiment there; run scripts/reproduce.sh dpn_table_3 -- --lr 2$"):
        work.table("dpn_table_3", "--", "--lr", "2")


def test_entropies(tmp_path: Path) -> None:
    work = Work(tmp_path)
    [path] = paths_of("dpn_table_5")
    work.add(path, 1, 0.1)
    values = {"cc": 2.1, "ca": 1.9, "ac": 1.4, "aa": 1.3}
    write(tmp_path / "iwslt14_de_en_10k/dpn/seed_1/analysis/entropy.json", [json.dumps({"entropy": values})])
    folder = work.table("dpn_table_5")
    rows = json.loads((folder / "table.json").read_text())["rows"]
    assert [row["ours"]["entropy"] for row in rows] == list(values.values())
    assert rows[0]["difference"]["entropy"] == pytest.approx(2.1 - 2.208)
    assert "may be the other way round" in (folder / "table.md").read_text()


def test_experiments_that_are_missing(tmp_path: Path) -> None:
    work = Work(tmp_path)
    first, second = paths_of("dpn_table_3")
    work.add(first, 1, 0.1)
    with pytest.raises(InputError, match="rouge1' is missing there; run scripts/reproduce.sh dpn_table_3"):
        work.table("dpn_table_3")
    work = Work(tmp_path, metric="rouge")
    work.add(first, 1, 0.1)
    with pytest.raises(InputError, match=f"{second.stem}/seed_1: no experiment there"):
        work.table("dpn_table_3")
    assert not (tmp_path / "tables").exists()


def test_seeds_of_different_trainings(tmp_path: Path) -> None:
    work = Work(tmp_path)
    first, *_ = paths_of("mc_rnn_table_2")
    for seed, rate in (1, 0.1), (2, 0.2):
        work.add(first, seed, 0.1)
        [folder] = work.root.glob(f"*/{first.stem}/seed_{seed}")
        TrainingIdentity({"seed": seed, "lr": [rate]}, {}, {}, None).save(folder)
    with pytest.raises(InputError, match="seed_2: not trained as seed 1 was: --lr 0.1, not 0.2; delete one of the two"):
        work.table("mc_rnn_table_2", "--seeds", "1", "2")


def test_a_metric_of_a_users_own_of_which_less_is_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table, configurations and an extension, all of them the user's: nothing in the package knows of them."""
    monkeypatch.setenv("FAIRSEQ_PLUGINS_EXTENSIONS", "")
    configs = tmp_path / "checkout" / "configs"
    (configs / "corpus").mkdir(parents=True)
    (configs / "tables").mkdir()
    for name in "large", "small":
        content = f"extensions: [{TOY_PERPLEXITY}]\ntrain: {{arch: lstm}}\nevaluate: {{metric: toy_perplexity}}\n"
        (configs / "corpus" / f"{name}.yaml").write_text(content)
    (configs / "tables" / "mine.yaml").write_text(
        "title: Mine\nmetric: toy_perplexity\nbaseline: Large\nrows:\n"
        "  - {system: Large, config: corpus/large.yaml, toy_perplexity: 7.5}\n"
        "  - {system: Small, config: corpus/small.yaml, toy_perplexity: 9.25}\n"
    )
    monkeypatch.setattr(tables, "CONFIGURATIONS", configs)
    monkeypatch.setattr(tables, "TABLES", configs / "tables")
    work = Work(tmp_path)
    for name, surprise, perplexity in ("large", 2.0, 7.39), ("small", 1.0, 2.72):
        path = configs / "corpus" / f"{name}.yaml"
        work.add(path, 1, 0.1)
        folder = tmp_path / "corpus" / name / "seed_1"
        lines = [" ".join([str(-surprise)] * (2 + number % 3)) for number in range(SENTENCES)]
        write(folder / "generate" / "test.log_probabilities.en", lines)
        Run(folder).update(toy_perplexity=perplexity, toy_perplexity_signature="s")
    folder = work.table("mine")
    [_, small] = json.loads((folder / "table.json").read_text())["rows"]
    assert small["ours"] == {"toy_perplexity": 2.72} and small["difference"]["toy_perplexity"] == pytest.approx(-6.53)
    comparison = small["significance"]["Large"]["1"]["toy_perplexity"]
    assert comparison["difference"] == pytest.approx(2.718 - 7.389, abs=1e-3)
    markdown = (folder / "table.md").read_text()
    assert f"| {comparison['p_value']:.3f} better |" in markdown and "the paper, toy perplexity" in markdown
    assert "- toy perplexity: s." in markdown
    page = (folder / "report.html").read_text()
    assert "toy perplexity by source length" in page
