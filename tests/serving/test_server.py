"""A server as a process of its own: LibreTranslate's client, many at once, how it starts and how it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.corpora.sentences import split_sentences
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.exported.translation import ExportedTranslationModel
from fairseq_plugins.serving.command import listen, parser
from fairseq_plugins.serving.models import ServedModels
from tests.commands import CHECKOUT, run_command, train_in_process
from tests.conftest import TranslationData

pytestmark = pytest.mark.system

SIZES = [f"--{side}-{name}=12" for side in ("encoder", "decoder") for name in ("embed-dim", "hidden-size")]
# As if neither were installed: who imports them fails.
PROGRAM = """
import sys
sys.modules |= dict.fromkeys(("torch", "fairseq"))
from fairseq_plugins.command import main
main()
"""
# The same server of a translator that waits for a file, so that a request can be caught in the middle.
SLOW = """
import pathlib, sys, time
from fairseq_plugins.command import main
from fairseq_plugins.exported.translation import ExportedTranslationModel
from tests.serving.fakes import FakeModel

class SlowModel(FakeModel):
    def translations(self, *arguments, **options):
        pathlib.Path(sys.argv[-1], "begun").touch()
        while not pathlib.Path(sys.argv[-1], "go on").exists():
            time.sleep(0.01)
        return super().translations(*arguments, **options)

ExportedTranslationModel.load = lambda *_: SlowModel()
main()
"""


@pytest.fixture(scope="module")
def folder(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned next to nothing, exported."""
    work = tmp_path_factory.mktemp("served")
    raw = tiny_translation_data.raw
    files = {split: (raw / f"{split}.xx", raw / f"{split}.yy") for split in ("train", "valid", "test")}
    prepare(PairsPreparation("xx", "yy", tokenizer="moses", lowercase=True, bpe="none"), files, work / "data")
    options = ["--arch", "rnnsearch_iwslt_de_en", *SIZES, "--optimizer", "adam", "--lr", "0.02", "--cpu"]
    options += ["--batch-size", "20", "--max-update", "10", "--disable-validation"]
    train_in_process(*PreparedData.load(work / "data").arguments(), *options, "--save-dir", work / "checkpoints")
    checkpoint = str(work / "checkpoints" / "checkpoint_last.pt")
    run_command(["python", "-m", "fairseq_plugins", "export", checkpoint, "--output", str(work / "tiny")])
    return work / "tiny"


class Server:
    """A process that serves, and where."""

    def __init__(self, program: str, arguments: Sequence[str | Path]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, "serve", "--port", "0", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )
        self.lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if line.startswith("http://"):
                break
        self.address = self.lines[-1]

    def ended(self) -> tuple[int, str]:
        """The exit status, and what was said in the meantime."""
        rest, errors = self.process.communicate(timeout=60)
        return self.process.returncode, rest + errors


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    started: list[Server] = []
    yield started
    for server in started:
        server.process.kill()
        server.process.communicate()


def test_libretranslates_client_and_many_at_once(folder: Path, servers: list[Server]) -> None:
    """What is answered is what the runtime says of each sentence alone."""
    servers.append(server := Server(PROGRAM, [folder, "--threads", "1"]))
    assert server.lines[0] == "tiny: xx → yy"
    client = LibreTranslateAPI(server.address)
    model = ExportedTranslationModel.load(folder, threads=1)

    def expected(text: str) -> str:
        parts = split_sentences(text, "xx")
        parts[1::2] = model.translate(parts[1::2])
        return "".join(parts)

    paragraph = "Ba da fa.  Ga na!\n\nNi no"
    assert client.translate(paragraph, "xx", "yy") == expected(paragraph) != paragraph
    [source, target] = client.languages()
    assert (source["code"], source["targets"], target["code"]) == ("xx", ["yy"], "yy")
    assert source["models"][0]["lowercase"] is True
    assert client.detect("ba da")[0]["language"] == "xx"
    with pytest.raises(urllib.error.HTTPError, match="400"):
        client.translate("ba", "xx", "zz")
    texts = [f"{one} {other} {one}. {other}\n" for one in ("ba", "da", "fa", "ga") for other in ("ni", "no", "la")]
    with ThreadPoolExecutor(len(texts)) as clients:
        answers = list(clients.map(lambda text: client.translate(text, "xx", "yy"), texts * 3))
    assert answers == [expected(text) for text in texts] * 3
    details = httpx.post(
        f"{server.address}/translate", json={"q": "Ba zzz.", "source": "auto", "target": "yy", "details": True}
    ).json()["details"]["sentences"][0]
    assert details["segments"] == ["", "Ba", " ", "zzz", "", ".", ""] and 1 in details["unknown"]
    first = details["translations"][0]
    assert "".join(first["segments"]) == first["text"]
    assert all(len(row) == 3 and 0 < sum(row) <= 1.01 for row in first["attention"])
    server.process.terminate()
    assert server.ended() == (0, "ended\n")


def test_what_has_begun_is_finished_at_sigterm(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(server := Server(SLOW, [tmp_path]))
    answers: list[httpx.Response] = []

    def ask() -> None:
        body = {"q": "ein Hund", "source": "de", "target": "en"}
        answers.append(httpx.post(f"{server.address}/translate", json=body, timeout=60))

    client = threading.Thread(target=ask)
    client.start()
    while not (tmp_path / "begun").exists():
        assert client.is_alive()
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(0.5)
    (tmp_path / "go on").touch()
    assert server.ended() == (0, "ended\n")
    client.join()
    assert answers[0].json() == {"translatedText": "HUND EIN"}


def test_a_server_that_was_killed_can_start_again(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(server := Server(SLOW, [tmp_path]))
    port = server.address.rpartition(":")[2]
    with pytest.raises(httpx.TimeoutException):
        httpx.post(f"{server.address}/translate", data={"q": "a", "source": "de", "target": "en"}, timeout=1)
    server.process.kill()
    server.ended()
    (tmp_path / "go on").touch()
    servers.append(again := Server(SLOW, ["--port", port, tmp_path]))
    assert again.address == server.address
    assert LibreTranslateAPI(again.address).translate("a b", "de", "en") == "B A"


def test_what_cannot_be_served(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = listen("127.0.0.1", 0)
    port = taken.getsockname()[1]
    with pytest.raises(InputError, match=f"cannot listen at 127.0.0.1, port {port}: Address already in use; name"):
        listen("127.0.0.1", port)
    taken.close()
    with pytest.raises(InputError, match="cannot listen at nowhere.invalid"):
        listen("nowhere.invalid", 0)
    with pytest.raises(InputError, match="given twice"):
        ServedModels.load([folder, folder.parent / "." / "tiny"])
    with pytest.raises(InputError, match=r"model.json: no such file"):
        ServedModels.load([tmp_path])
    for option, message in ("--port 70000", "is no port"), ("--beam 0", "from 1 on"), ("--timeout nan", "of seconds"):
        with pytest.raises(SystemExit):
            parser().parse_args([str(folder), *option.split()])
        assert message in capsys.readouterr().err
    shutil.copytree(folder, tmp_path / "tiny")
    names = [model.name for model in ServedModels.load([folder, tmp_path / "tiny"], threads=1).models]
    assert names == [str(folder), str(tmp_path / "tiny")]
