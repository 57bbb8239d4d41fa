"""The steps of a table, and the command that runs them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import re
import shlex
from pathlib import Path

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.processes import own_command
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.package_files import CONFIGURATIONS
from fairseq_plugins.tables import choosing, tables, workflow
from fairseq_plugins.tables.steps import Steps
from fairseq_plugins.tables.tables import TABLES, load_table

pytest.importorskip("snakemake", reason="needs scripts/install.sh --extras workflow, and Python 3.11 or later")


def shown_by_a_dry_run(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a dry run says."""
    workflow.main([*arguments, "--dry-run"])
    return "".join(capfd.readouterr())


def shown_by_a_dry_run_with(capfd: pytest.CaptureFixture[str], arguments: list[str], options: list[str]) -> str:
    """The same with options of every training."""
    workflow.main([*arguments, "--dry-run", "--", *options])
    return "".join(capfd.readouterr())


def test_small_scale(tmp_path: Path) -> None:
    steps = Steps(load_table("mc_rnn_table_2"), "small", tmp_path)
    systems = ["hm_rnn", "ho_rnn", "rnnsearch", "mc_rnn_2", "mc_rnn_3", "mc_rnn_4"]
    assert list(steps.systems) == [("iwslt14_de_en", name) for name in systems]
    assert steps.configuration(*next(iter(steps.systems))) == [str(CONFIGURATIONS / "iwslt14_de_en" / "hm_rnn.yaml")]
    assert "fairseq_plugins.corpora.builtin --task translation" in steps.preparation("iwslt14_de_en")
    assert steps.prepared_data("iwslt14_de_en", "mc_rnn_2") == tmp_path / "corpora" / "iwslt14_de_en" / "data"
    options = steps.train_options("iwslt14_de_en", "mc_rnn_2")
    for option, value in (("--encoder-hidden-size", "128"), ("--lr", "3e-3")):
        assert options[options.index(option) + 1] == value
    assert steps.evaluations("iwslt14_de_en", "mc_rnn_2") == ["--subset test --max-tokens 4000"]


def test_the_papers_scale(tmp_path: Path) -> None:
    steps = Steps(load_table("dpn_table_2"), "paper", tmp_path, max_update=50)
    assert steps.prepared_data("nist_zh_en", "dpn") == Path("work/nist_zh_en/data").absolute()
    assert steps.train_options("nist_zh_en", "dpn") == ["--max-update", "50"]
    sets = ["nist04", "nist05", "nist06", "nist08", "nist12"]
    assert steps.evaluations("nist_zh_en", "dpn") == [f"--subset {name}" for name in sets]


def test_language_models_are_evaluated_with_and_without_the_cache(tmp_path: Path) -> None:
    steps = Steps(load_table("mc_rnn_table_4"), "paper", tmp_path)
    assert list(steps.systems) == [("ptb", "awd_lstm"), ("ptb", "mc_rnn_3"), ("ptb", "awd_lstm_finetuned")]
    expected = ["--subset valid", "--subset test", "--subset valid --cache", "--subset test --cache"]
    assert steps.evaluations("ptb", "mc_rnn_3") == expected


def test_finetuning_goes_on_from_the_model_of_another_row(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    steps = Steps(load_table("mc_rnn_table_4"), "small", tmp_path)
    assert steps.predecessor("ptb", "awd_lstm_finetuned", "2") == "ptb/awd_lstm/seed_2"
    assert steps.predecessor("ptb", "mc_rnn_3", "2") is None and steps.start("ptb", "mc_rnn_3", "2") == []
    best = tmp_path / "ptb" / "awd_lstm" / "seed_2" / "checkpoints" / "checkpoint_best.pt"
    assert steps.start("ptb", "awd_lstm_finetuned", "2") == ["--finetune-from-model", str(best)]
    assert steps.evaluations("ptb", "awd_lstm_finetuned") == ["--subset test --cache"]

    shown = shown_by_a_dry_run(capfd, "mc_rnn_table_4", "--scale", "small", "--work", str(tmp_path), "--seeds", "2")
    finetuning = next(line for line in shown.splitlines() if "awd_lstm_finetuned.yaml" in line and " train " in line)
    assert f"--finetune-from-model {best}" in finetuning
    job = shown[: shown.index(finetuning)].rpartition("rule train:")[2]
    assert "ptb/awd_lstm/seed_2/trained" in job


def test_a_row_that_goes_on_from_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (TABLES / "mc_rnn_table_4.yaml").read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(
        text.replace("after: ptb/awd_lstm.yaml", "after: ptb/rcrn.yaml"), encoding="utf-8"
    )
    monkeypatch.setattr(tables, "TABLES", tmp_path)
    with pytest.raises(InputError, match="finetune.* goes on from ptb/rcrn.yaml, which no row trains; add a row of it"):
        load_table("mine")


def test_tables_share_their_trainings(tmp_path: Path) -> None:
    """The same commands: a row of one table that is done is done for the others."""
    tables = [Steps(load_table(f"dpn_table_{number}"), "small", tmp_path) for number in (1, 4, 5)]
    system = ("iwslt14_de_en_10k", "dpn")
    assert all(system in steps.systems for steps in tables)
    assert len({(*steps.train_options(*system), *steps.evaluations(*system)) for steps in tables}) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mc_rnn_table_3x"], "there is no table 'mc_rnn_table_3x'; did you mean 'mc_rnn_table_3'"),
        (["rcrn_table_11"], "rcrn_table_10, rcrn_table_2"),
        (["mc_rnn_table_2", "--scale", "small", "--seeds", "1", "2", "1"], "--seeds 1 2 1: a seed is there twice"),
        (["mc_rnn_table_2", "--scale", "small", "--data", "x"], "--data goes with --scale paper"),
        (["mc_rnn_table_2", "--scale", "small", "--max-update", "0"], "--max-update is 0"),
        (["mc_rnn_table_2", "--scale", "small", "--gpus", "1000"], "--gpus 1000: PyTorch sees"),
        (
            ["mc_rnn_table_2", "--gpus", "0", "--data", "nowhere"],
            "nowhere is not there; prepare it as configs/iwslt14_de_en/_base.* says; or try --scale small",
        ),
        (["rcrn_table_7", "--gpus", "0"], "nothing of it can be trained here: not trained: .*work/scitail/data is not"),
    ],
)
def test_bad_input(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        workflow.main([*arguments, "--work", str(tmp_path / "work")])
    assert not list(tmp_path.iterdir())


def test_a_dry_run_of_a_table_of_times(capfd: pytest.CaptureFixture[str]) -> None:
    shown = shown_by_a_dry_run(capfd, "--scale", "small", "rcrn_table_10", "--threads", "2")
    command = shlex.split(shown)
    assert command[1].endswith("benchmarks/rcrn_table_10.py")
    assert command[2:] == ["--steps", "16", "32", "--repetitions", "2", "--threads", "2"]


def test_a_table_of_times_without_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(workflow.BENCHMARKS, "rcrn_table_10", tmp_path / "rcrn_table_10.py")
    with pytest.raises(InputError, match="rcrn_table_10 is timed by benchmarks/rcrn_table_10.py, which a checkout has"):
        workflow.main(["rcrn_table_10", "--dry-run"])


def test_two_workflows_in_one_folder(tmp_path: Path) -> None:
    with open(tmp_path / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="a workflow is at work there"):
            workflow.main(["dpn_table_5", "--scale", "small", "--work", str(tmp_path)])


@pytest.mark.system
def test_a_dry_run_shows_every_command_and_leaves_nothing(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    work = tmp_path / "a work folder"
    shown = shown_by_a_dry_run(capfd, "dpn_table_5", "--scale", "small", "--seeds", "1", "2", "--work", str(work))
    steps = Steps(load_table("dpn_table_5"), "small", work)
    own = shlex.join(own_command())
    run, data = work / "iwslt14_de_en_10k" / "dpn" / "seed_1", steps.prepared_data("iwslt14_de_en_10k", "dpn")
    place = [str(CONFIGURATIONS / "iwslt14_de_en_10k" / "dpn.yaml"), "--work", str(run), "--data", str(data)]
    place += ["--gpus", "0"]
    options = steps.train_options("iwslt14_de_en_10k", "dpn")
    analysis = ["entropy", f"{run}/checkpoints/checkpoint_best.pt", "--data", str(data), "--output"]
    for command in (
        steps.preparation("iwslt14_de_en_10k"),
        f"{own} train {shlex.join([*place, *options, '--seed', '1'])}",
        f"for options in '--subset test --max-tokens 4000'; do  {own} evaluate {shlex.join(place)} $options",
        f"{own} analysis entropy '{run}'/checkpoints/checkpoint_best.pt {shlex.join(analysis[2:])}",
        f"-m fairseq_plugins.tables.writing dpn_table_5 --scale=small '--work={work}' --seeds 1 2 --",
    ):
        assert command in shown
        assert command.replace("seed_1", "seed_2").replace("--seed 1", "--seed 2") in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.system
def test_a_dry_run_of_another_recipe_on_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(workflow, "available_gpus", lambda: 1)
    options = ["--recipe", "paper", "--max-update", "50", "--gpus", "1", "--work", str(tmp_path / "work")]
    shown = shown_by_a_dry_run(capfd, "dpn_table_5", "--scale", "small", *options)
    trainings = [line for line in shown.splitlines() if " train " in line]
    parts = ("--gpus 1 ", "--max-update 50 ", "--recipe paper ")
    assert trainings and all(part in line for line in trainings for part in parts)


@pytest.mark.system
def test_rows_choose_by_the_validation_set(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """RCRN, Section 4.2: the learning rate is tuned amongst three."""
    work = tmp_path / "work"
    options = ["--scale", "small", "--seeds", "2", "1", "--work", str(work), "--tune"]
    shown = shown_by_a_dry_run(capfd, "rcrn_table_5", *options)
    systems = ["bilstm", "bilstm_3", "rcrn", "rcrn_gru"]
    assert [shown.count(f"rule {rule}:") for rule in ("trial", "choose", "train")] == [12, 4, 8]
    for system in systems:
        run = work / "trec" / f"{system}_tuned"
        for value in ("1e-3", "4e-4", "3e-4"):
            [line] = [line for line in shown.splitlines() if f"--work {run}/trial_{value} " in line]
            assert f" --lr {value} --seed 2 >" in line
        assert f"-m fairseq_plugins.tables.choosing lr {run}/trial_1e-3 {run}/trial_4e-4 {run}/trial_3e-4 >" in shown
        [line] = [line for line in shown.splitlines() if f"--work {run}/seed_1 " in line and " train " in line]
        assert f" $(cat trec/{system}_tuned/chosen) --seed 1 >" in line
    assert "--tune --seeds 2 1" in shown, "the table looks for these runs"
    with pytest.raises(InputError, match="--tune: .*dpn_table_1.yaml names no option that its rows choose"):
        load_table("dpn_table_1", is_tuned=True)


def test_the_best_trial_on_the_validation_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def trial(name: str, scores: list[float], **options: str) -> str:
        run = Run(tmp_path / name)
        run.write({"updates": 9, "options": {"lr": name, **options}})
        lines = [
            json.dumps({"split": "valid", "num_updates": number, "accuracy": score, "loss": score})
            for number, score in enumerate(scores, start=1)
        ]
        run.statistics.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(run.folder)

    best = {"best-checkpoint-metric": "accuracy", "maximize-best-checkpoint-metric": "true"}
    choosing.main(["lr", trial("1e-3", [70, 90, 80], **best), trial("3e-4", [85, 89, 89], **best)])
    assert capsys.readouterr().out == "--lr 1e-3\n"
    choosing.main(["lr", trial("1e-2", [3, 1, 2]), trial("1e-4", [2, 2, 0.5])])
    assert capsys.readouterr().out == "--lr 1e-4\n", "of losses the least"
    choosing.main(["lr", trial("1e-5", [math.nan, math.nan]), trial("1e-6", [2.0])])
    assert capsys.readouterr().out == "--lr 1e-6\n", "what is no number is the worst"
    with pytest.raises(InputError, match="no loss on the validation set"):
        choosing.main(["lr", trial("1", [])])


@pytest.mark.system
def test_data_is_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    """Snakemake runs the commands in another folder."""
    monkeypatch.chdir(tmp_path)
    work = ["--gpus", "0", "--work", str(tmp_path / "elsewhere")]
    shown = shown_by_a_dry_run(capfd, "rcrn_table_7", *work)
    assert shown.count(f"--data {tmp_path}/work/scitail/data") == 2 * 3
    assert f"cd {tmp_path} && " in shown, "the table looks for the same data"
    shown = shown_by_a_dry_run(capfd, "rcrn_table_7", *work, "--data", "own/data")
    assert shown.count(f"--data {tmp_path}/own/data") == 2 * 3
    assert f"--data={tmp_path}/own/data" in shown, "the table has the rows that were trained"


@pytest.mark.system
def test_rows_whose_data_are_not_prepared_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a run, which Snakemake's own -n ends before anything is trained; a dry run of ours shows every row."""
    monkeypatch.chdir(tmp_path)
    prepared = tmp_path / "work" / "iwslt14_de_en_10k" / "data"
    prepared.mkdir(parents=True)
    (prepared / "preparation.json").write_text("{}", encoding="utf-8")
    with contextlib.suppress(FileNotFoundError):  # no table is written
        workflow.main(["dpn_table_1", "--gpus", "0", "--work", "work", "-n"])
    shown = "".join(capfd.readouterr())
    trained = re.findall(r"train \S+/(\w+)\.yaml", shown)
    assert trained == ["dpn"]
    assert "iwslt14_de_en_10k_separate/data is not there" in shown


@pytest.mark.system
def test_a_cluster_with_slurm(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="needs scripts/install.sh --extras workflow")
    profile = f"--profile={CONFIGURATIONS / 'slurm'}"
    shown = shown_by_a_dry_run(capfd, "mc_rnn_table_2", "--work", str(tmp_path / "work"), profile)
    assert shown.count("rule train:") == shown.count("rule evaluate:") == 6
    assert "gpu=1" in shown and "runtime=2880" in shown
    assert "--gpus 1" in shown and "fairseq_plugins.tables.gpu_slots " in shown


def test_a_recipe_is_that_of_every_row(tmp_path: Path) -> None:
    steps = Steps(load_table("dpn_table_4", "paper"), "small", tmp_path)
    assert len(steps.systems) == 9
    for (data_set, system), configuration in steps.systems.items():
        assert system == f"{configuration.path.stem}_paper"
        assert steps.configuration(data_set, system) == [str(configuration.path), "--recipe", "paper"]
        # The small scale's sizes hold for it as well.
        assert "--encoder-embed-dim 128" in shlex.join(steps.train_options(data_set, system))
    assert steps.table.folder == "dpn_table_4_paper"


@pytest.mark.system
def test_options_of_every_training(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    work = ["--scale", "small", "--work", str(tmp_path / "work")]
    shown = shown_by_a_dry_run_with(capfd, ["dpn_table_5", *work], ["--cross-memory", "plain", "--lr", "1e-3 x"])
    assert "--cross-memory plain --lr '1e-3 x' --seed 1" in shown
    run = f"{tmp_path}/work/iwslt14_de_en_10k/dpn_cross-memory_plain_lr_1e-3-x/seed_1"
    assert f"--work {run} " in shown, "apart from runs without"
    assert "--seeds 1 -- --cross-memory plain --lr '1e-3 x'" in shown, "and so is the table"
    options = ["--cross-memory", "plain"]
    table = load_table("dpn_table_5", "paper", options)
    assert table.folder == "dpn_table_5_paper_cross-memory_plain"
    assert table.command == "scripts/reproduce.sh dpn_table_5 --recipe paper -- --cross-memory plain"
    # Patterns of the small scale are of configurations' names.
    system, plain = ("copy_memory", "rnn_500_lr_1"), ("copy_memory", "rnn_500")
    steps = [Steps(load_table("dilated_rnn_figure_3", None, more), "small", tmp_path) for more in (["--lr", "1"], [])]
    assert steps[0].train_options(*system) == [*steps[1].train_options(*plain), "--lr", "1"]


def test_rows_are_scored_by_their_table_whatever_the_corpus_is_made_for() -> None:
    """The small scale's passages are made for exact match and F1."""
    table = load_table("rcrn_table_9")
    assert {row.configuration.metric for row in table.rows if row.configuration} == {table.measure.name}


def test_a_table_without_the_recipe_says_so() -> None:
    with pytest.raises(
        InputError, match="configs/pixel_mnist/[a-z_]+.yaml: --recipe: there is no recipe 'paper'; the config"
    ):
        load_table("dilated_rnn_table_1", "paper")


@pytest.mark.parametrize(
    ("table", "data_set", "part"),
    [
        ("rcrn_table_5", "trec", "builtin --task classification"),
        ("rcrn_table_5", "trec", "--text text --label label"),
        ("rcrn_table_6", "snli", "--text premise --text hypothesis --label label"),
        ("rcrn_table_8", "wikiqa", "--text question --text candidate --label label --group group"),
        ("rcrn_table_9", "narrativeqa", "prepare generated_passages --passages 500"),
        ("mc_rnn_table_4", "ptb", "builtin --task language_model"),
        ("dilated_rnn_table_2", "ptb_characters", "--characters"),
        ("dilated_rnn_table_3", "vctk", "prepare generated_voices"),
        ("dilated_rnn_table_1", "permuted_mnist", "prepare pixels --small --permute"),
        ("dilated_rnn_figure_3", "copy_memory", "prepare copy_memory --length 20 --sequences 200"),
        ("dilated_rnn_figure_4", "noisy_mnist_1000", "prepare pixels --small --length 100"),
    ],
)
def test_small_scale_of_other_tasks(table: str, data_set: str, part: str, tmp_path: Path) -> None:
    steps = Steps(load_table(table), "small", tmp_path)
    assert part in steps.preparation(data_set)
    systems = [system for system in steps.systems if system[0] == data_set]
    assert systems
    for system in systems:
        assert "--max-update" in steps.train_options(*system)
        assert all(line.startswith("--subset test") for line in steps.evaluations(*system))
