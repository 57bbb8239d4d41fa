"""The server answers as LibreTranslate does, refuses in its form, and keeps its bounds."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from fairseq_plugins.exported.beam_search import SearchOptions
from fairseq_plugins.serving.application import Application, rendered
from fairseq_plugins.serving.decoding_queue import DecodingQueue
from fairseq_plugins.serving.metrics import Metrics
from fairseq_plugins.serving.request_bodies import Limits, read_texts
from tests.serving.fakes import FakeModel, served

LIMITS = Limits(body=2000, characters=200, sentence_characters=100, alternatives=4, seconds=20)
TEXT = {"source": "de", "target": "en"}
Applications = Callable[..., Application]


@pytest.fixture
def applications() -> Iterator[Applications]:
    queues: list[DecodingQueue] = []

    def make(*models: FakeModel, capacity: int = 20, limits: Limits = LIMITS, **options: Any) -> Application:
        metrics = Metrics()
        queues.append(DecodingQueue(SearchOptions(), capacity, 8, metrics.batches.observe))
        return Application(served(*models or [FakeModel()]), queues[-1], metrics, limits, **options)

    yield make
    for queue in queues:
        queue.close()


@pytest.fixture
def client(applications: Applications) -> TestClient:
    return TestClient(applications().asgi, raise_server_exceptions=False)


def translated(client: TestClient, **values: Any) -> Any:
    answer = client.post("/translate", json={**TEXT, **values})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("q", "translation"),
    [
        ("ein Hund", "HUND EIN"),
        ("", ""),
        (" \n", " \n"),
        ("Ein Hund.  Zwei Katzen.\n\n\tDrei 🙂\r\n", "HUND. EIN  KATZEN. ZWEI\n\n\t🙂 DREI\r\n"),
        (["ein Hund", "", "Ja. Nein."], ["HUND EIN", "", "JA. NEIN."]),
    ],
)
def test_texts_are_translated(client: TestClient, q: str | list[str], translation: str | list[str]) -> None:
    assert translated(client, q=q) == {"translatedText": translation}


def test_forms_are_taken_as_well(client: TestClient) -> None:
    fields = {"q": "der Hündin & mehr", **TEXT, "format": "text", "api_key": ""}
    for request in (
        {"data": fields},
        {"data": {**fields, "q": [fields["q"]]}},
        {"files": {name: (None, value) for name, value in fields.items()}},
        # As curl -d sends it: not escaped.
        {
            "content": "q=der Hündin %26 mehr&source=de&target=en".encode(),
            "headers": {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"},
        },
    ):
        assert client.post("/translate", **request).json() == {"translatedText": "MEHR & HÜNDIN DER"}
    several = client.post("/translate", data={**TEXT, "q": ["a b", "c"], "alternatives": "1"})
    assert several.json() == {"translatedText": ["B A", "C"], "alternatives": [["B1 A1"], ["C1"]]}


def test_alternatives(client: TestClient) -> None:
    answer = translated(client, q="Ein Hund. Ja.", alternatives=2)
    assert answer == {"translatedText": "HUND. EIN JA.", "alternatives": ["HUND.1 EIN1 JA.1", "HUND.2 EIN2 JA.2"]}


def test_details_are_those_of_each_sentence(client: TestClient) -> None:
    details = translated(client, q=" Ja zzz.\nNein. ", details=True)["details"]
    assert details["model"] == "model-0" and details["gaps"] == [" ", "\n", " "]
    first, second = details["sentences"]
    assert first["translations"][0]["text"] == "ZZZ. JA"
    assert second["segments"] == ["", "Nein.", ""]
    listed = translated(client, q=["Ja."], details="true")["details"]
    assert [row["gaps"] for row in listed] == [["", ""]]


def nested(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists and dictionaries of them."""
    return st.lists(parts, max_size=3) | st.dictionaries(st.text(), parts, max_size=3)


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), nested))
def test_answers_are_json(value: Any) -> None:
    assert json.loads(rendered(value)) == value


def test_the_source_language_can_be_found_out(applications: Applications) -> None:
    client = TestClient(applications(FakeModel("de"), FakeModel("fr"), FakeModel("fr", "de")).asgi)
    sentence = "Le chien est dans le jardin et mange une pomme."
    answer = translated(client, q=sentence, source="auto")
    assert answer["detectedLanguage"]["language"] == "fr" and answer["detectedLanguage"]["confidence"] > 50
    several = translated(client, q=["Der Hund schläft im Garten.", sentence], source="auto")
    assert [row["language"] for row in several["detectedLanguage"]] == ["de", "fr"]
    # There is one model only that writes German, and it reads French.
    answer = translated(client, q="Der Hund schläft im Garten.", source="auto", target="de")
    assert answer["detectedLanguage"]["language"] == "fr" and answer["detectedLanguage"]["confidence"] < 10
    # Of a model that is named, its own language alone competes.
    answer = translated(client, q="Der Hund schläft im Garten.", source="auto", model="model-1")
    assert answer["detectedLanguage"]["language"] == "fr" and answer["translatedText"]
    answer = client.post("/translate", json={"q": "a", "source": "auto", "target": "en", "model": "none"})
    assert answer.status_code == 400 and "there is no model 'none'" in answer.json()["error"]
    rows = client.post("/detect", json={"q": "Der Hund schläft im Garten."}).json()
    assert [row["language"] for row in rows] == ["de", "fr"] and rows[0]["confidence"] > 50


def test_languages_are_those_of_the_models(applications: Applications) -> None:
    models = FakeModel("deu", "en", is_lowercase=True), FakeModel("title", "sum"), FakeModel("de", "fr")
    languages = TestClient(applications(*models).asgi).get("/languages").json()
    assert [(row["code"], row["name"], row["targets"]) for row in languages] == [
        ("de", "German", ["en", "fr"]),
        ("title", "title", ["sum"]),
        ("en", "English", []),
        ("sum", "sum", []),
        ("fr", "French", []),
    ]
    assert [(row["name"], row["lowercase"]) for row in languages[0]["models"]] == [
        ("model-0", True),
        ("model-2", False),
    ]


def test_models_of_the_same_languages_are_told_apart_by_their_names(applications: Applications) -> None:
    models = FakeModel(), FakeModel(), FakeModel("fr")
    client = TestClient(applications(*models).asgi)
    translated(client, q="a")
    translated(client, q="b", model="model-1", source="de-AT")
    assert [model.batches for model in models] == [[["a"]], [["b"]], []]
    refused = client.post("/translate", json={**TEXT, "q": "c", "model": "model-2"})
    assert refused.status_code == 400 and "'model-2' does not translate de → en" in refused.json()["error"]


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}


def json_of(**values: Any) -> dict[str, Any]:
    return {"json": {"q": "a", **TEXT, **values}}


@pytest.mark.parametrize(
    ("method", "path", "request_options", "status", "message"),
    [
        ("GET", "/translate", {}, 405, "GET is not what /translate takes; send POST"),
        ("PUT", "/translate", json_of(), 405, "PUT is not"),
        ("GET", "/detect", {}, 405, "GET is not what /detect takes"),
        ("POST", "/languages", {}, 405, "POST is not"),
        ("POST", "/", {}, 405, "POST is not what / takes"),
        ("GET", "/nothing", {}, 404, "there is no /nothing here"),
        ("GET", "/../../etc/passwd", {}, 404, "there is no /"),
        ("POST", "/translate_file", {"files": {"file": b"a"}}, 404, "there is no /translate_file here"),
        ("POST", "/translate", {}, 415, "Content-Type '' is not supported; there are application/json"),
        ("POST", "/translate", {"content": "a", "headers": {"Content-Type": "text/plain"}}, 415, "'text/plain'"),
        *[
            ("POST", "/translate", {"content": b"a", "headers": {"Content-Type": f"{kind}; {charset}"}}, 415, message)
            for kind in ("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
            for charset, message in [
                ("charset=punycode", "charset 'punycode' is not supported; send utf-8"),
                ('charset=utf-8; Charset="undefined"', "charset 'undefined' is not supported"),
            ]
        ],
        ("POST", "/translate", {"content": "", "headers": JSON}, 400, "the body is not JSON in UTF-8"),
        ("POST", "/translate", {"content": '{"q": "a",', "headers": JSON}, 400, "the body is not JSON in UTF-8"),
        ("POST", "/translate", {"content": b'{"q": "\xff"}', "headers": JSON}, 400, "the body is not JSON in UTF-8"),
        ("POST", "/translate", {"content": "[" * 1999, "headers": JSON}, 400, "the body is n"),
        ("POST", "/translate", {"json": ["a"]}, 400, "the body must be a JSON object"),
        ("POST", "/translate", {"json": TEXT}, 400, "q is missing"),
        ("POST", "/translate", json_of(q=None), 400, "q is missing"),
        ("POST", "/translate", json_of(q=[]), 400, "q is an empty list"),
        ("POST", "/translate", json_of(q=1), 400, "q must be a text, or a list of texts"),
        ("POST", "/translate", json_of(q=["a", ["b"]]), 400, "q must be a text, or a list of texts"),
        ("POST", "/translate", {"content": rb'{"q": "\ud800"}', "headers": JSON}, 400, "half of a surrogate pair"),
        ("POST", "/translate", {"json": {"q": "a", "target": "en"}}, 400, "source is missing"),
        ("POST", "/translate", {"json": {"q": "a", "source": "de"}}, 400, "target is missing"),
        ("POST", "/translate", json_of(source=["de"]), 400, "source must be a text"),
        ("POST", "/translate", json_of(source="xx"), 400, "source 'xx' is not supported; there are de"),
        ("POST", "/translate", json_of(target="fr\n"), 400, "target 'fr\\n' is not supported; there are en"),
        ("POST", "/translate", json_of(target="auto"), 400, "target 'auto' is not supported"),
        ("POST", "/translate", json_of(source="auto", target="xx"), 400, "target 'xx' is not supported"),
        ("POST", "/translate", json_of(model="x"), 400, "there is no model 'x'; there are model-0"),
        ("POST", "/translate", json_of(model=1), 400, "model must be a text"),
        ("POST", "/translate", json_of(source="x" * 1001), 400, "source has 1,001 characters, and no name here has"),
        ("POST", "/translate", json_of(format="html"), 400, "format html is not supported"),
        ("POST", "/translate", json_of(format="pdf"), 400, "format must be text"),
        ("POST", "/translate", json_of(format=["text"]), 400, "format must be text"),
        ("POST", "/translate", json_of(alternatives=5), 400, "alternatives must be a number from 0 to 4"),
        ("POST", "/translate", json_of(alternatives=-1), 400, "alternatives must be a number from 0 to 4"),
        ("POST", "/translate", json_of(alternatives=True), 400, "alternatives must be a number from 0 to 4"),
        ("POST", "/translate", json_of(alternatives="x"), 400, "alternatives must be a number from 0 to 4"),
        ("POST", "/translate", {"data": {"q": "a", **TEXT, "alternatives": "²"}}, 400, "alternatives must be"),
        ("POST", "/translate", json_of(details="perhaps"), 400, "details must be true or false"),
        ("POST", "/translate", json_of(q="refused"), 400, "this cannot be translated"),
        ("POST", "/translate", {"content": b"q=%ff&source=de", "headers": FORM}, 400, "the body is no form in UTF-8"),
        ("POST", "/translate", {"content": b"q=\xff", "headers": FORM}, 400, "the body is no form in UTF-8"),
        ("POST", "/translate", {"content": "q=a" + "&x" * 999 + "=", "headers": FORM}, 413, "larger than 2,000 bytes"),
        ("POST", "/translate", {"files": {"q": ("text.txt", b"a")}, "data": TEXT}, 400, "Too many files"),
        (
            "POST",
            "/translate",
            {"content": b"a", "headers": {"Content-Type": "multipart/form-data"}},
            400,
            "Missing boundary",
        ),
        ("POST", "/translate", {"data": {**TEXT, "q": ["a", "b"], "source": ["de", "en"]}}, 400, "source must be a"),
        ("POST", "/translate", json_of(q="a" * 2000), 413, "the body is larger than 2,000 bytes"),
        ("POST", "/translate", {"content": iter([b"a" * 1500] * 2), "headers": JSON}, 413, "larger than 2,000 bytes"),
        ("POST", "/translate", json_of(q=["ä" * 150] * 2), 413, "q has 300 characters, but a request may have 200"),
        ("POST", "/translate", json_of(q="a" * 101), 413, "a sentence has 101 characters, but one may have 100"),
        ("POST", "/translate", json_of(q="a " * 20), 413, "a sentence has 21 tokens, more than its model takes"),
        ("POST", "/translate", json_of(q=["a"] * 21), 413, "q has 21 sentences, but a request may have 20"),
        ("POST", "/detect", {"json": {}}, 400, "q is missing"),
        ("POST", "/detect", {"json": {"q": "a" * 201}}, 413, "q has 201 characters"),
    ],
)
def test_bad_requests_are_refused(
    client: TestClient, method: str, path: str, request_options: dict[str, Any], status: int, message: str
) -> None:
    answer = client.request(method, path, **request_options)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"] and message in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert translated(client, q="a b") == {"translatedText": "B A"}


def test_texts_of_no_characters_are_counted() -> None:
    with pytest.raises(HTTPException, match="q has 1,001 texts, but a request may have 1,000"):
        read_texts({"q": [""] * 1001}, Limits())


def test_a_body_that_does_not_arrive(applications: Applications) -> None:
    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)

    async def post(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/translate", content=slowly(), headers=JSON)

    answer = in_one_loop(applications(limits=dataclasses.replace(LIMITS, seconds=0.05)), post)
    assert (answer.status_code, answer.json()) == (408, {"error": "the body did not arrive within 0.05 seconds"})


def test_a_fault_is_no_traceback_and_ends_nothing(client: TestClient) -> None:
    answer = client.post("/translate", **json_of(q="boom"))
    assert answer.status_code == 500 and answer.json() == {"error": "the server has failed at this; its log says why"}
    assert translated(client, q="a b") == {"translatedText": "B A"}


async def until(condition: Callable[[], bool]) -> None:
    """Waits for it, but not for ever."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come true")


def in_one_loop(application: Application, work: Callable[[httpx.AsyncClient], Any]) -> Any:
    """Runs a coroutine with a client of the application."""

    async def run() -> Any:
        transport = httpx.ASGITransport(application.asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as client:
            return await work(client)

    return asyncio.run(run())


def test_requests_that_arrive_together_are_decoded_together_and_not_mixed_up(applications: Applications) -> None:
    model = FakeModel()
    application = applications(model, capacity=200)

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        model.gate.clear()
        waiting = [
            asyncio.ensure_future(
                client.post("/translate", json={**TEXT, "q": f"Hund{n} bellt. Katze{n} liest.\nJa{n}"})
            )
            for n in range(50)
        ]
        await until(lambda: len(application._queue) >= 50 * 3 - 8)
        model.gate.set()
        return await asyncio.gather(*waiting)

    answers = in_one_loop(application, ask)
    expected = [f"BELLT. HUND{n} LIEST. KATZE{n}\nJA{n}" for n in range(50)]
    assert [answer.json()["translatedText"] for answer in answers] == expected
    assert sum(map(len, model.batches)) == 150
    assert sorted(map(len, model.batches))[2:] == [8] * (len(model.batches) - 2)


def test_a_full_queue_refuses_and_a_slow_model_ends_the_wait(applications: Applications) -> None:
    model = FakeModel()
    application = applications(model, capacity=2, limits=dataclasses.replace(LIMITS, seconds=1.0))

    async def ask(client: httpx.AsyncClient) -> tuple[httpx.Response, ...]:
        model.gate.clear()
        first = asyncio.ensure_future(client.post("/translate", json={**TEXT, "q": "first"}))
        await until(model.started.is_set)
        second = asyncio.ensure_future(client.post("/translate", json={**TEXT, "q": "a. b."}))
        await until(lambda: len(application._queue) == 2)
        third = await client.post("/translate", json={**TEXT, "q": "c"})
        slow = await asyncio.gather(first, second)
        model.gate.set()
        await until(lambda: len(application._queue) == 0)  # what nobody waits for any more
        return (*slow, third, await client.post("/translate", json={**TEXT, "q": "d"}))

    first, second, third, fourth = in_one_loop(application, ask)
    assert (third.status_code, third.headers["Retry-After"]) == (503, "1")
    assert third.json() == {"error": "too many sentences are waiting; try again in a second"}
    for slow in first, second:
        assert slow.status_code == 504
        assert slow.json() == {"error": "there is no answer after 1 seconds; send less text, or try again"}
    assert fourth.json() == {"translatedText": "D"}
    assert model.batches == [["first"], ["d"]]


def test_a_list_of_which_a_part_has_no_room_waits_for_nothing(applications: Applications) -> None:
    model = FakeModel()
    application = applications(model, capacity=3)

    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        model.gate.clear()
        first = asyncio.ensure_future(client.post("/translate", json={**TEXT, "q": "first"}))
        await until(model.started.is_set)
        second = asyncio.ensure_future(client.post("/translate", json={**TEXT, "q": "second"}))
        await until(lambda: len(application._queue) == 1)
        refused = await client.post("/translate", json={**TEXT, "q": ["a", "Ein Hund. Zwei."]})
        model.gate.set()
        await asyncio.gather(first, second)
        return refused

    assert in_one_loop(application, ask).status_code == 503
    application._queue.close()
    assert model.batches == [["first"], ["second"]]


def test_who_has_gone_is_not_translated(applications: Applications) -> None:
    model = FakeModel()
    application = applications(model)
    body = json.dumps({**TEXT, "q": "gone"}).encode()

    async def ask(client: httpx.AsyncClient) -> None:
        model.gate.clear()
        first = asyncio.ensure_future(client.post("/translate", json={**TEXT, "q": "first"}))
        await until(model.started.is_set)
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> dict[str, Any]:
            if (message := next(messages, None)) is not None:
                return message
            await until(lambda: len(application._queue) > 0)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            pass

        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/translate", "headers": headers, "query_string": b""}
        await asyncio.wait_for(application.asgi(scope, receive, send), 10)
        model.gate.set()
        await first

    in_one_loop(application, ask)
    application._queue.close()
    assert model.batches == [["first"]]


def test_a_client_may_ask_so_often(applications: Applications, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    application = applications(per_minute=2)
    client, other = TestClient(application.asgi, client=("10.0.0.1", 1)), TestClient(application.asgi)
    statuses = [client.post("/translate", **json_of()).status_code for _ in range(2)]
    now += 18
    refused = client.post("/detect", json={"q": "a"})
    assert (*statuses, refused.status_code, refused.headers["Retry-After"]) == (200, 200, 429, "42")
    assert refused.json() == {"error": "more than 2 requests in a minute; try again in 42 seconds"}
    assert other.post("/translate", **json_of()).status_code == client.get("/health").status_code == 200
    now += 42
    assert client.post("/translate", **json_of()).status_code == 200


def test_what_prometheus_reads(client: TestClient) -> None:
    translated(client, q=["a", "b c"])
    client.get("/nothing")
    client.post("/translate", **json_of(q="boom"))
    client.get("/translate")
    text = client.get("/metrics").text
    for line in (
        'fairseq_plugins_requests_total{path="/translate",status="200"} 1.0',
        'fairseq_plugins_requests_total{path="/translate",status="405"} 1.0',
        'fairseq_plugins_requests_total{path="/translate",status="500"} 1.0',
        'fairseq_plugins_requests_total{path="other",status="404"} 1.0',
        'fairseq_plugins_characters_total{model="model-0"} 4.0',
        "fairseq_plugins_batch_sentences_sum 3.0",
        "fairseq_plugins_waiting_sentences 0.0",
        'fairseq_plugins_request_seconds_count{path="/translate"} 3.0',
    ):
        assert f"{line}\n" in text


def test_health_settings_and_the_page(applications: Applications) -> None:
    application = applications()
    with TestClient(application.asgi) as client:
        assert client.get("/health").json() == {"status": "ok"}
        settings = client.get("/frontend/settings").json()
        assert (settings["charLimit"], settings["keyRequired"]) == (200, False)
        assert settings["language"]["target"] == {"code": "en", "name": "English"}
        page = client.get("/")
        assert page.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in page.headers["content-security-policy"]
    # The server has ended.
    answer = TestClient(application.asgi).get("/health")
    assert (answer.status_code, answer.json()) == (503, {"error": "the server is ending"})


def test_pages_of_other_hosts_ask_where_they_may(applications: Applications) -> None:
    origin = {"Origin": "https://a.example"}
    for allowed, expected in (
        ([], None),
        (["https://a.example"], "https://a.example"),
        (["https://a.example/"], "https://a.example"),
        (["https://b.example"], None),
    ):
        client = TestClient(applications(allowed_origins=allowed).asgi, raise_server_exceptions=False)
        for q in "a", "boom":
            answer = client.post("/translate", json=json_of(q=q)["json"], headers=origin)
            assert answer.headers.get("access-control-allow-origin") == expected
