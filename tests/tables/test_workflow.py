"""The plan of a table's commands."""

from __future__ import annotations

import fcntl
import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.package_files import CONFIGURATIONS
from fairseq_plugins.tables import workflow
from fairseq_plugins.tables.tables import load_table

pytest.importorskip("snakemake", reason="needs scripts/install.sh --extras workflow, and Python 3.11 or later")


def test_small_scale(tmp_path: Path) -> None:
    plan = workflow.plan_of(load_table("mc_rnn_table_2"), tmp_path, "small", [1, 2], 0, None, None)
    assert list(plan["corpora"]) == ["translation"]
    assert "fairseq_plugins.corpora.builtin --task translation" in plan["corpora"]["translation"]
    systems = ["hm_rnn", "ho_rnn", "rnnsearch", "mc_rnn_2", "mc_rnn_3", "mc_rnn_4"]
    assert list(plan["experiments"]) == [f"iwslt14_de_en/{name}/seed_{seed}" for name in systems for seed in (1, 2)]
    one = plan["experiments"]["iwslt14_de_en/mc_rnn_2/seed_2"]
    assert one["requires"] == ["corpora/translation/data/preparation.json"]
    train, evaluate = (shlex.split(step) for step in one["command"].split(" && "))
    place = train.index("train")
    assert train[place + 1].endswith("configs/iwslt14_de_en/mc_rnn_2.yaml")
    for option, value in (("--seed", "2"), ("--gpus", "0"), ("--encoder-hidden-size", "128"), ("--lr", "3e-3")):
        assert train[train.index(option) + 1] == value
    assert "evaluate" in evaluate and evaluate[evaluate.index("--subset") + 1] == "test"
    assert plan["gpus_of_an_experiment"] == 0
    assert plan["table"]["outputs"][-1] == "tables/mc_rnn_table_2/report.html"


def test_the_papers_scale_on_gpus(tmp_path: Path) -> None:
    plan = workflow.plan_of(load_table("dpn_table_2"), tmp_path, "paper", [1], 8, None, 50)
    assert not plan["corpora"] and plan["gpus_of_an_experiment"] == 1
    one = plan["experiments"]["nist_zh_en/dpn/seed_1"]
    assert one["requires"] == [] and one["data"].endswith("work/nist_zh_en/data")
    slot = shlex.split(one["command"])
    assert slot[1:6] == ["-m", "fairseq_plugins.tables.gpu_slots", "--", "bash", "-c"]
    train, *evaluations = (shlex.split(step) for step in slot[6].split(" && "))
    for option, value in (("--gpus", "1"), ("--max-update", "50")):
        assert train[train.index(option) + 1] == value
    sets = ["nist04", "nist05", "nist06", "nist08", "nist12"]
    assert [step[step.index("--subset") + 1] for step in evaluations] == sets


def test_language_models_are_evaluated_with_and_without_the_cache(tmp_path: Path) -> None:
    plan = workflow.plan_of(load_table("mc_rnn_table_4"), tmp_path, "paper", [1], 0, None, None)
    assert list(plan["experiments"]) == ["ptb/awd_lstm/seed_1", "ptb/mc_rnn_3/seed_1"]
    train, *evaluations = (shlex.split(s) for s in plan["experiments"]["ptb/mc_rnn_3/seed_1"]["command"].split(" && "))
    assert train[train.index("train") + 1].endswith("configs/ptb/mc_rnn_3.yaml")
    sets = [(step[step.index("--subset") + 1], "--cache" in step) for step in evaluations]
    assert sets == [("valid", False), ("test", False), ("valid", True), ("test", True)]


def test_one_text_as_words_and_as_characters(tmp_path: Path) -> None:
    plans = [
        workflow.plan_of(load_table(name), tmp_path, "small", [1], 0, None, None)
        for name in ("mc_rnn_table_4", "dilated_rnn_table_2")
    ]
    assert [list(plan["corpora"]) for plan in plans] == [["language_model"], ["language_model_characters"]]
    assert "--characters" in plans[1]["corpora"]["language_model_characters"]
    assert "--task language_model --output" in plans[0]["corpora"]["language_model"]


def test_entropies_follow_the_evaluation(tmp_path: Path) -> None:
    plan = workflow.plan_of(load_table("dpn_table_5"), tmp_path, "paper", [1], 0, tmp_path / "other data", None)
    [(folder, one)] = plan["experiments"].items()
    assert folder == "iwslt14_de_en_10k/dpn/seed_1" and one["data"] == str(tmp_path / "other data")
    *_, evaluate = (shlex.split(step) for step in one["command"].split(" && "))
    assert evaluate[evaluate.index("--subset") + 1] == "test"
    assert list(plan["analyses"]) == [f"{folder}/analysis/entropy.json"]
    entropy = shlex.split(plan["analyses"][f"{folder}/analysis/entropy.json"])
    assert entropy[entropy.index("analysis") + 1] == "entropy"
    assert entropy[entropy.index("--data") + 1] == str(tmp_path / "other data")


def test_tables_share_their_experiments(tmp_path: Path) -> None:
    """The same commands: a row of one table that is done is done for the others."""
    first, *others = (
        workflow.plan_of(load_table(f"dpn_table_{number}"), tmp_path, "small", [1], 0, None, None)["experiments"]
        for number in (1, 4, 5)
    )
    for other in others:
        assert other["iwslt14_de_en_10k/dpn/seed_1"] == first["iwslt14_de_en_10k/dpn/seed_1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mc_rnn_table_3x"], "there is no table 'mc_rnn_table_3x'; did you mean 'mc_rnn_table_3'"),
        (["rcrn_table_9"], "rcrn_table_10, rcrn_table_2"),
        (
            ["rcrn_table_10", "--gpus", "0", "--seeds", "1", "2"],
            "rcrn_table_10 trains nothing: leave out --seeds, --work, --gpus; its options are those of benchmarks",
        ),
        (["mc_rnn_table_2", "--seeds", "1", "2", "1"], "--seeds 1 2 1: a seed is there twice"),
        (["mc_rnn_table_2", "--scale", "small", "--data", "x"], "--data goes with --scale paper"),
        (["mc_rnn_table_2", "--scale", "small", "--max-update", "0"], "--max-update is 0"),
        (["mc_rnn_table_2", "--gpus", "1000"], "--gpus 1000: PyTorch sees"),
        (
            ["mc_rnn_table_2", "--gpus", "0", "--data", "nowhere"],
            "nowhere is not there: prepare it as configs/iwslt14_de_en",
        ),
    ],
)
def test_bad_input(arguments: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        workflow.main([*arguments, "--work", str(tmp_path / "work")])
    assert not list(tmp_path.iterdir())


def test_a_dry_run_of_a_table_of_times(capfd: pytest.CaptureFixture[str]) -> None:
    workflow.main(["rcrn_table_10", "--scale", "small", "--dry-run", "--threads", "2"])
    command = shlex.split(capfd.readouterr().out)
    assert command[1].endswith("benchmarks/rcrn_table_10.py")
    assert command[2:] == ["--steps", "16", "32", "--repetitions", "2", "--threads", "2"]


def test_two_workflows_in_one_folder(tmp_path: Path) -> None:
    with open(tmp_path / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="a workflow is at work there"):
            workflow.main(["dpn_table_5", "--scale", "small", "--work", str(tmp_path)])


@pytest.mark.system
def test_a_dry_run_shows_every_command_and_leaves_nothing(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    work = tmp_path / "work"
    workflow.main(["dpn_table_3", "--scale", "small", "--work", str(work), "--dry-run"])
    shown = "".join(capfd.readouterr())
    plan = workflow.plan_of(load_table("dpn_table_3"), work, "small", [1], 0, None, None)
    commands = [*plan["corpora"].values(), *(one["command"] for one in plan["experiments"].values())]
    assert len(commands) == 3
    for command in [*commands, plan["table"]["command"]]:
        assert command in shown
    assert not work.exists()


@pytest.mark.system
def test_a_dry_run_knows_what_was_done_by_which_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    def plan_of(*arguments: object) -> dict[str, object]:
        experiment = {"command": f"echo {arguments[-1]} > a/b/results.json", "requires": []}
        return {
            "corpora": {},
            "experiments": {"a/b": experiment},
            "analyses": {},
            "table": {"command": "touch tables/t/table.md", "outputs": ["tables/t/table.md"]},
            "gpus_of_an_experiment": 0,
        }

    monkeypatch.setattr(workflow, "plan_of", plan_of)
    monkeypatch.setattr(workflow, "check_data", lambda plan: None)

    def jobs(*more: str) -> list[str]:
        workflow.main(["dpn_table_3", "--scale", "small", "--work", str(tmp_path / "work"), "--cores", "1", *more])
        shown = "".join(capfd.readouterr())
        return [rule for rule in ("experiment", "table") if f"rule {rule}:" in shown]

    assert jobs("--max-update", "2") == ["experiment", "table"]
    before = sorted(path for path in tmp_path.rglob("*") if ".snakemake" not in path.parts)
    assert jobs("--max-update", "2", "--dry-run") == []
    assert jobs("--max-update", "3", "--dry-run") == ["experiment", "table"]
    assert sorted(path for path in tmp_path.rglob("*") if ".snakemake" not in path.parts) == before
    assert jobs("--max-update", "3") == ["experiment", "table"], "as the dry run said"


@pytest.mark.system
def test_a_corpus_is_made_anew_by_another_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def plan_of(*arguments: object) -> dict[str, object]:
        made = "mkdir corpora/c/data && touch corpora/c/data/tokens corpora/c/data/preparation.json"
        experiment = {"command": "touch a/b/results.json", "requires": ["corpora/c/data/preparation.json"]}
        return {
            "corpora": {"c": f"{made} && echo {arguments[-1]}"},
            "experiments": {"a/b": experiment},
            "analyses": {},
            "table": {"command": "touch tables/t/table.md", "outputs": ["tables/t/table.md"]},
            "gpus_of_an_experiment": 0,
        }

    monkeypatch.setattr(workflow, "plan_of", plan_of)
    monkeypatch.setattr(workflow, "check_data", lambda plan: None)
    for updates in "2", "3":
        # It ends with an exit status where a step fails.
        arguments = ["dpn_table_3", "--scale", "small", "--work", str(tmp_path / "work"), "--cores", "1"]
        workflow.main([*arguments, "--max-update", updates])
        assert (tmp_path / "work" / "corpora" / "c.log").read_text(encoding="utf-8") == f"{updates}\n"


def test_data_is_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snakemake runs the commands in another folder."""
    plans = []

    def run(command: Sequence[str], *_) -> int:
        plans.append(json.loads(Path(command[-1].removeprefix("plan=")).read_text(encoding="utf-8")))
        return 1

    monkeypatch.setattr(workflow, "run", run)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own" / "data").mkdir(parents=True)
    (tmp_path / "own" / "data" / "preparation.json").touch()
    # Its rows' own data are for the user to bring.
    with pytest.raises(SystemExit):
        workflow.main(["rcrn_table_7", "--gpus", "0", "--work", str(tmp_path / "work"), "--data", "own/data"])
    data = str(tmp_path / "own" / "data")
    assert {experiment["data"] for experiment in plans[0]["experiments"].values()} == {data}
    assert all(f"--data {data}" in experiment["command"] for experiment in plans[0]["experiments"].values())
    made = shlex.split(plans[0]["table"]["command"])
    assert made[made.index("--data") + 1] == data, "the table has the rows that were trained"


@pytest.mark.system
def test_a_cluster_with_slurm(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="needs scripts/install.sh --extras workflow")
    profile = str(CONFIGURATIONS / "slurm")
    arguments = ["mc_rnn_table_2", "--work", str(tmp_path / "work"), "--dry-run", f"--profile={profile}"]
    workflow.main(arguments)
    shown = "".join(capfd.readouterr())
    assert shown.count("rule experiment:") == 6
    assert "gpu=1" in shown and "runtime=2880" in shown
    assert "--gpus 1" in shown


def test_a_recipe_takes_the_configurations_of_that_name(tmp_path: Path) -> None:
    plan = workflow.plan_of(load_table("dpn_table_4", "paper"), tmp_path, "small", [1], 0, None, None)
    assert len(plan["experiments"]) == 9
    for folder, experiment in plan["experiments"].items():
        assert folder.split("/")[1].endswith("_paper")
        assert "_paper.yaml" in experiment["command"]
        # The small scale's sizes hold for it as well.
        assert "--encoder-embed-dim 128" in experiment["command"]
    assert "--recipe paper" in plan["table"]["command"]
    assert plan["table"]["outputs"][0] == "tables/dpn_table_4_paper/table.md"


def test_a_table_without_the_recipe_says_so() -> None:
    with pytest.raises(InputError, match="--recipe paper: the rows of mc_rnn_table_2 have no such recipe"):
        load_table("mc_rnn_table_2", "paper")


@pytest.mark.parametrize(
    ("table", "corpus", "parts"),
    [
        ("rcrn_table_5", "classification", ["builtin --task classification", "--text text --label label"]),
        ("rcrn_table_6", "entailment", ["--text premise --text hypothesis --label label"]),
        ("rcrn_table_8", "ranking", ["--text question --text candidate --label label --group group"]),
        ("dilated_rnn_figure_3", "copy_memory", ["prepare copy_memory --length 20 --sequences 200"]),
        ("dilated_rnn_figure_4", "noisy_digits", ["prepare pixels --small --length 100"]),
    ],
)
def test_small_scale_of_sequence_tasks(table: str, corpus: str, parts: list[str], tmp_path: Path) -> None:
    plan = workflow.plan_of(load_table(table), tmp_path, "small", [1], 0, None, None)
    assert list(plan["corpora"]) == [corpus]
    for part in parts:
        assert part in plan["corpora"][corpus]
    for experiment in plan["experiments"].values():
        assert experiment["requires"] == [f"corpora/{corpus}/data/preparation.json"]
        assert "--max-update" in experiment["command"] and "--subset test" in experiment["command"]


def test_a_table_of_nothing_but_missing_data(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing of it can be trained here: not trained: bring SciTail, as configs"):
        workflow.main(["rcrn_table_7", "--gpus", "0", "--work", str(tmp_path / "work")])
    assert not list(tmp_path.iterdir())
