"""What the options of ``serve`` do."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient

from fairseq_plugins.exported.translation import ExportedTranslationModel
from fairseq_plugins.serving import command
from tests.serving.fakes import FakeModel

TEXT = {"q": "Ein Hund. Zwei.", "source": "de", "target": "en"}
ORIGIN = {"Origin": "https://a.example"}


class UnstartedServer:
    """What uvicorn would serve, and where."""

    started: UnstartedServer

    def __init__(self, config: uvicorn.Config) -> None:
        self.client = TestClient(config.app)  # type: ignore[arg-type]

    def run(self, sockets: list[socket.socket]) -> None:
        self.host, self.port = sockets[0].getsockname()[:2]
        sockets[0].close()
        UnstartedServer.started = self


def test_options_of_serve(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    model = FakeModel()
    monkeypatch.setattr(uvicorn, "Server", UnstartedServer)
    monkeypatch.setattr(ExportedTranslationModel, "load", lambda *_: model)

    def serve(*options: str) -> UnstartedServer:
        command.main([str(Path("work") / "tiny"), "--port", "0", *options])
        return UnstartedServer.started

    def status(server: UnstartedServer, **values: Any) -> int:
        return server.client.post("/translate", json={**TEXT, **values}, headers=ORIGIN).status_code

    plain = serve()
    assert capsys.readouterr().out == f"tiny: de → en\nhttp://127.0.0.1:{plain.port}\n"
    assert plain.host == "127.0.0.1" and status(plain) == status(plain) == status(plain, alternatives=4) == 200
    assert "access-control-allow-origin" not in plain.client.get("/health", headers=ORIGIN).headers
    assert status(serve("--characters", "14")) == status(serve("--body", "40")) == status(serve("--queue", "1")) == 413
    assert status(serve("--characters", "15", "--body", "100", "--queue", "2")) == 200
    assert status(serve("--beam", "3"), alternatives=2) == 200 and status(serve("--beam", "3"), alternatives=3) == 400
    rare = serve("--per-minute", "1")
    assert (status(rare), status(rare)) == (200, 429)
    open_to = serve("--allow-origin", ORIGIN["Origin"]).client.get("/health", headers=ORIGIN)
    assert open_to.headers["access-control-allow-origin"] == ORIGIN["Origin"]
    assert serve("--host", "0.0.0.0").host == "0.0.0.0"
    assert serve("--port", str(plain.port)).port == plain.port
    model.batches.clear()
    assert status(serve("--batch", "1")) == 200 and model.batches == [["Ein Hund."], ["Zwei."]]
    model.gate.clear()
    assert status(serve("--timeout", "0.2")) == 504
    model.gate.set()
