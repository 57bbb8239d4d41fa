"""Configurations: what they mean together with their bases, and what is said about a wrong one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration as config

OTHERS = ("slurm", "tables")
CONFIGURATIONS = sorted(path for path in (config.CONFIGURATIONS).glob("*/*.yaml") if path.parent.name not in OTHERS)


def write(folder: Path, **files: str) -> Path:
    """Writes ``name.yaml`` files and returns the last one's path."""
    for name, content in files.items():
        path = folder / f"{name}.yaml"
        path.write_text(content, encoding="utf-8")
    return path


def error_of(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        config.load(path)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_a_file_says_what_differs_from_its_bases(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        grandparent="train: {lr: 1e-3, dropout: 0.30, cpu: true}\ngenerate: {beam: 5}",
        parent="base: grandparent.yaml\ntrain:\n  dropout: 0.2\nevaluate:\n  average: 5",
        child="base: parent.yaml\ntrain: {cpu: false}",
    )
    configuration = config.load(path)
    assert {key: value.text for key, value in configuration.train.items()} == {
        "lr": "1e-3",
        "dropout": "0.2",
        "cpu": "false",
    }
    assert configuration.train["dropout"].place == f"{tmp_path / 'parent.yaml'}, line 3"
    assert configuration.generate["beam"].text == "5"
    assert configuration.average == 5
    assert configuration.dataset == tmp_path.name
    assert configuration.model == "child"


def test_a_recipe_is_chosen_by_name(tmp_path: Path) -> None:
    files = {
        "base": "recipe: ours\nrecipes:\n  ours: {optimizer: adam, lr: 1e-3}\n  paper: {optimizer: nag, lr: 0.25}\n"
        "train: {seed: 1}",
        "model": "base: base.yaml\ntrain: {arch: lstm, lr: 5e-4}",
    }

    def train(path: Path) -> dict[str, str]:
        return {key: value.text for key, value in config.load(path).train.items()}

    ours = write(tmp_path, **files)
    assert train(ours) == {"optimizer": "adam", "lr": "5e-4", "seed": "1", "arch": "lstm"}, "train wins"
    paper = write(tmp_path, model_paper="base: model.yaml\nrecipe: paper")
    assert train(paper) == {"optimizer": "nag", "lr": "5e-4", "seed": "1", "arch": "lstm"}
    added = write(tmp_path, model_added="base: model.yaml\nrecipe: paper\nrecipes: {paper: {momentum: 0.9}}")
    assert train(added)["momentum"] == "0.9"
    shown = write(tmp_path, shown=config.load(paper).resolved())
    assert train(shown) == train(paper), "what is shown can be trained"
    assert error_of(write(tmp_path, wrong="base: base.yaml\nrecipe: papre")) == (
        f"{tmp_path / 'wrong.yaml'}, line 2: recipe: there is no recipe 'papre'; did you mean 'paper'?; "
        "there are ours, paper"
    )


def test_a_recipe_of_a_base_is_taken_away(tmp_path: Path) -> None:
    recipes = "recipe: ours\nrecipes: {ours: {lr: 1e-3}, paper: {lr: 0.25}}\ntrain: {arch: lstm}"
    write(tmp_path, base=recipes)
    path = write(tmp_path, model="base: base.yaml\nrecipes: {paper: null}")
    assert config.load(path).train["lr"].text == "1e-3"
    with pytest.raises(InputError, match=f"^{path}: --recipe: there is no recipe 'paper'.*; there are ours$"):
        config.load(path, "paper")
    write(tmp_path, again="base: model.yaml\nrecipes: {paper: {lr: 0.5}}")
    assert config.load(tmp_path / "again.yaml", "paper").train["lr"].text == "0.5"


def test_a_recipe_of_the_command_line_is_in_the_place_of_the_files_own(tmp_path: Path) -> None:
    recipes = "recipes: {ours: {lr: 1e-3, dropout: 0.1}, paper: {lr: 0.25}}"
    path = write(tmp_path, model=f"recipe: ours\n{recipes}\ntrain: {{arch: lstm}}")
    own, ours, paper = (config.load(path, recipe) for recipe in (None, "ours", "paper"))
    assert own == ours, "the file's own, said again"
    assert {key: value.text for key, value in paper.train.items()} == {"lr": "0.25", "arch": "lstm"}
    assert (own.model, paper.model) == ("model", "model_paper"), "it has a work folder and records of its own"
    assert paper.default_work == Path("work") / tmp_path.name / "model_paper"
    with pytest.raises(InputError, match=f"^{path}: --recipe: there is no recipe 'papre'; .*; there are ours, paper$"):
        config.load(path, "papre")
    bare = write(tmp_path, bare="train: {arch: lstm}")
    with pytest.raises(InputError, match="--recipe: there is no recipe 'paper'; the configuration has none$"):
        config.load(bare, "paper")


def test_data_and_work_folders_follow_the_names(tmp_path: Path) -> None:
    configuration = config.load(write(tmp_path, model="train: {arch: lstm}"))
    assert configuration.default_work == Path("work") / tmp_path.name / "model"
    assert configuration.data_folder == Path.cwd() / "work" / tmp_path.name / "data"
    configuration = config.load(write(tmp_path, model="data: {folder: elsewhere/data}\ntrain: {arch: lstm}"))
    assert configuration.data_folder == Path.cwd() / "elsewhere" / "data"


def test_a_configuration_for_several_data_sets(tmp_path: Path) -> None:
    row = "paper: {table: rcrn_table_1, row: '*, RCRN'}"
    path = write(tmp_path, rcrn=f"data:\n  folder: work/reviews_*/data\ntrain: {{arch: lstm}}\n{row}")
    none = config.load(path)
    assert (none.model, none.paper_row()) == ("rcrn", None)
    with pytest.raises(
        InputError, match=f"^{path}, line 2: for several data sets; choose one by --data work/reviews_N"
    ):
        none.data_folder  # noqa: B018
    imdb = config.load(path, data="work/reviews_imdb/data")
    assert imdb.data_folder == Path.cwd() / "work" / "reviews_imdb" / "data"
    assert imdb.default_work == Path("work") / tmp_path.name / "rcrn_imdb"
    assert imdb.paper_row() == {"system": "IMDB, RCRN", "accuracy": 89.8}, "names of folders have no capitals"
    own = config.load(path, data="elsewhere/reviews_my set/data")
    assert (own.data_name, own.paper_row()) == ("my set", None), "one that the paper has not"
    for other in "work/reviews/data", "work/reviews_imdb", "reviews_imdb/data/more":
        assert config.load(path, data=other) == none, "the folder does not say which it is"
    assert config.load(write(tmp_path, one="train: {arch: lstm}"), data="work/reviews_imdb/data").data_name is None


@pytest.mark.system
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("train:\n  lr: 1\ntrian:\n  lr: 1", "line 3: unknown section 'trian'; did you mean 'train'?"),
        ("evaluate:\n  avrage: 5", "line 2: unknown key 'avrage'; did you mean 'average'?"),
        ("evaluate:\n  average: some", "line 2: average: 'some' is not a number of checkpoints"),
        ("evaluate:\n  average: -1", "line 2: average: '-1' is not a number of checkpoints"),
        ("evaluate:\n  cache-window: 0", "line 2: cache-window: '0' is not a number of words above 0"),
        ("evaluate:\n  cache-theta: x", "line 2: cache-theta: 'x' is not a number from 0 on"),
        ("evaluate:\n  cache-weight: 1", "line 2: cache-weight: '1' is not a number between 0 and 1"),
        ("train:\n  lr: 1\n  lr: 2", "line 3: key 'lr' is here for the second time"),
        ("train:\n  lr: [1, 2]", "line 2: lr: one value was expected"),
        ("train:\n  lr:", "line 2: lr: the value is missing"),
        ("train: lstm", "line 1: 'name: value' was expected"),
        ("train:\n  lr: 'open", "not valid YAML"),
        ("[" * 5000, "not valid YAML"),
        ("", "the file is empty"),
        ("paper: {table: mc_rnn_table_2}", "paper: row is missing"),
        ("paper: {table: mc_rnn_table_22, row: x}", "did you mean 'mc_rnn_table_2'?"),
        ("paper: {table: mc_rnn_table_2, row: MC-RNN-33}", "has no row 'MC-RNN-33'; did you mean 'MC-RNN-3'?"),
        ("base: bass.yaml", "line 1: base: there is no file"),
    ],
)
def test_one_sentence_for_each_mistake(tmp_path: Path, content: str, expected: str) -> None:
    path = write(tmp_path, wrong=content)
    message = error_of(path)
    assert expected in message
    assert str(path) in message or "paper" in content


def test_a_mistake_in_a_base_names_the_base(tmp_path: Path) -> None:
    path = write(tmp_path, base="data:\n  foldr: x", child="base: base.yaml")
    assert f"{tmp_path / 'base.yaml'}, line 2: unknown key 'foldr'; did you mean 'folder'?" in error_of(path)


def test_bases_in_a_circle(tmp_path: Path) -> None:
    path = write(tmp_path, first="base: second.yaml", second="base: first.yaml")
    message = error_of(path)
    assert "cannot be its own base" in message
    assert "first.yaml" in message and "second.yaml" in message


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    assert "no such file" in error_of(tmp_path / "missing.yaml")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("train:\n  arch: Gerät".encode("latin-1"))
    assert "line 2: not UTF-8" in error_of(latin)


def test_evaluation(tmp_path: Path) -> None:
    assert config.load(write(tmp_path, model="evaluate: {metric: rouge}")).metric == "rouge"
    assert config.load(write(tmp_path, model="train: {arch: lstm}")).metric is None
    assert config.load(write(tmp_path, model="evaluate: {average: 5}")).average == 5


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_headers_name_the_papers_tables_and_quote_no_figure(path: Path) -> None:
    """Figures are in configs/tables and results/ alone. A header's command runs its configuration."""
    header = " ".join(path.read_text(encoding="utf-8").split("base:")[0].replace("\n#", "").split())
    configuration = config.load(path)
    if not path.stem.startswith("_base"):
        assert f"configs/{path.parent.name}/{path.name}" in header or path.parent.name.startswith("quickstart")
    assert not re.search(r"\b(Paper|Ours): ", header), "write 'In the paper: MC-RNN, Table 2.', without its figures"
    row = configuration.paper_row()
    if row and len(row) > 1:
        table = config.CONFIGURATIONS / "tables" / f"{configuration.paper['table'].text}.yaml"
        title = yaml.safe_load(table.read_text(encoding="utf-8"))["title"]
        paper, place = re.match(r"([\w-]+) \([^)]*\), (\w+ \d+):", title).groups()
        assert f"In the paper: {paper}, {place}" in header


def test_extensions_stand_relative_to_their_file(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    for name in "shared/layer", "metric":
        (tmp_path / f"{name}.py").write_text("")
    write(tmp_path / "shared", base="extensions: [layer.py]\ntrain: {arch: lstm}")
    path = write(tmp_path, child="base: shared/base.yaml\nextensions:\n  - metric.py\n  - shared/layer.py")
    configuration = config.load(path)
    assert configuration.extensions == (tmp_path / "shared" / "layer.py", tmp_path / "metric.py")
    again = config.load(write(tmp_path, again=configuration.resolved()))
    assert again.extensions == configuration.extensions and again.train["arch"].text == "lstm"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("train: {arch: lstm}\nextensions: [missing.py]", "line 2: extensions: there is no file"),
        ("extensions: mine.py", "line 1: extensions: a list of files was expected, such as [my_metric.py]"),
        ("extensions: [[a]]", "line 1: extensions: one value was expected"),
    ],
)
def test_extensions_that_are_wrong(tmp_path: Path, content: str, expected: str) -> None:
    assert expected in error_of(write(tmp_path, wrong=content))


def test_what_a_file_and_its_bases_say_together_is_a_configuration_itself(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        parent="train: {lr: 1e-3, dropout: 0.30, arch: '5'}\ngenerate: {beam: 5}",
        child="base: parent.yaml\ntrain: {cpu: false, betas: '(0.9, 0.98)', scoring: ''}",
    )
    resolved = config.load(path).resolved()
    assert resolved == (
        "train:\n  lr: 1e-3\n  dropout: 0.30\n  arch: 5\n  cpu: false\n  betas: (0.9, 0.98)\n  scoring: ''\n"
        "generate:\n  beam: 5\n"
    )
    again = config.load(write(tmp_path, again=resolved))
    for section in "train", "generate":
        texts = [
            {key: value.text for key, value in getattr(loaded, section).items()}
            for loaded in (config.load(path), again)
        ]
        assert texts[0] == texts[1]
