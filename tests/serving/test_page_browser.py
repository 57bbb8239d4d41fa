"""The page in a browser: what is shown while one types, by mouse, keyboard and finger; colours; a phone's width."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from fairseq_plugins.exported.beam_search import SearchOptions
from fairseq_plugins.serving.application import Application
from fairseq_plugins.serving.command import listen
from fairseq_plugins.serving.decoding_queue import DecodingQueue
from fairseq_plugins.serving.metrics import Metrics
from fairseq_plugins.serving.request_bodies import Limits
from tests.browser import PATIENCE, PHONE, Window
from tests.serving.fakes import FakeModel, served

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: scripts/install.sh --extras dev"
)
pytestmark = pytest.mark.system  # a browser takes seconds to start


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of two models, the second of which knows no capitals."""
    metrics = Metrics()
    queue = DecodingQueue(SearchOptions(), 100, 8)
    models = served(FakeModel(), FakeModel("fr", "en", is_lowercase=True))
    application = Application(models, queue, metrics, Limits(characters=300, alternatives=2))
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(application.asgi, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server.should_exit = True
    thread.join()


class Visitor(Window):
    """The page in a window, and what the browser had to say about it."""

    def __init__(self, browser: sync_api.Browser, address: str, **settings: object) -> None:
        super().__init__(browser, address, **settings)
        self.until("models.length > 0")

    def type(self, text: str, translation: str) -> None:
        """Types, and waits for what has to come of it."""
        self.page.get_by_role("textbox").fill(text)
        self.wait_for(translation)

    def wait_for(self, translation: str) -> None:
        self.until(f"part.target.textContent === {json.dumps(translation)} && !part.target.matches('.stale')")

    def until(self, expression: str) -> None:
        """Waits for it. Playwright's own way needs ``eval``, which the page does not allow."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, expression
            time.sleep(0.02)

    def word(self, index: int) -> sync_api.Locator:
        return self.page.locator("#target").get_by_role("option").nth(index)

    def lit(self) -> dict[str, float]:
        """The words of the text that are lit up, and how much."""
        pairs = self.page.locator("#mirror .word").evaluate_all(
            "words => words.map(word => [word.textContent, Number(word.style.getPropertyValue('--weight'))])"
        )
        return {text: round(weight, 2) for text, weight in pairs if weight}

    def text(self, name: str) -> str:
        return self.page.locator(f"#{name}").inner_text()


@pytest.fixture
def visitor(browser: sync_api.Browser, address: str) -> Iterator[Visitor]:
    """At a desk, with a mouse."""
    opened = Visitor(
        browser,
        address,
        viewport={"width": 1200, "height": 900},
        permissions=["clipboard-read", "clipboard-write"],
    )
    yield opened
    assert opened.complaints == []
    assert all(request.startswith(address) for request in opened.requests)
    opened.context.close()


def test_a_pause_in_typing_brings_the_translation(visitor: Visitor) -> None:
    before = len(visitor.requests)
    visitor.page.get_by_role("textbox").press_sequentially("ein Hund bellt.\nJa", delay=5)
    visitor.wait_for("BELLT. HUND EIN\nJA")
    assert [request.rpartition("/")[2] for request in visitor.requests[before:]] == ["translate"]
    assert visitor.text("count") == "18 of 300 characters"
    visitor.type("ein Hund und", "UND HUND EIN")
    visitor.page.get_by_role("button", name="Clear").click()
    visitor.wait_for("")
    assert visitor.page.evaluate("document.activeElement.id") == "source"


def test_hovering_over_a_word_shows_what_it_was_translated_from(visitor: Visitor) -> None:
    visitor.type("🙂 Ja.\n\nDer Hund bellt.", "JA. 🙂\n\nBELLT. HUND DER")
    visitor.word(2).hover()
    assert visitor.lit() == {"Der": 0.11, "Hund": 0.11, "bellt.": 1.0}
    assert visitor.text("origin") == "BELLT. ← bellt. 90 %, Der 10 %, Hund 10 %"
    visitor.word(1).hover()
    assert visitor.lit() == {"🙂": 1.0, "Ja.": 0.11}
    # The mark lies behind the word as it is read: the textarea and its copy break lines alike.
    assert visitor.page.evaluate(
        "['font', 'padding', 'width', 'height', 'lineHeight', 'letterSpacing'].every(name => "
        "getComputedStyle(part.source)[name] === getComputedStyle(part.mirror)[name])"
    )
    assert visitor.page.evaluate("part.source.scrollHeight === part.source.clientHeight")
    visitor.page.mouse.move(5, 5)
    assert visitor.lit() == {}


def test_words_that_were_never_seen_are_marked(visitor: Visitor) -> None:
    visitor.type("der zzz bellt", "BELLT ZZZ DER")
    assert visitor.text("never-seen") == "Never seen in training: zzz"
    assert visitor.page.locator("#mirror .unknown").all_inner_texts() == ["zzz"]
    visitor.type("der Hund", "HUND DER")
    assert visitor.text("never-seen") == "" and visitor.page.locator("#mirror .unknown").count() == 0


def test_everything_works_by_keyboard(visitor: Visitor) -> None:
    visitor.type("der Hund bellt", "BELLT HUND DER")
    press = visitor.page.keyboard.press

    def focused() -> str:
        return visitor.page.evaluate("document.activeElement.textContent.trim()")

    press("Tab")
    assert focused() == "Clear"
    press("Tab")
    assert focused() == "BELLT" and visitor.lit()["bellt"] == 1
    for key, word in ("ArrowRight", "HUND"), ("End", "DER"), ("ArrowRight", "DER"), ("ArrowLeft", "HUND"):
        press(key)
        assert focused() == word
    assert visitor.text("origin") == "HUND ← Hund 90 %, der 10 %, bellt 10 %"
    assert visitor.page.locator("[aria-selected=true]").all_inner_texts() == ["HUND"]
    press("Tab")
    assert focused() == "Other translations" and visitor.lit() == {}
    press("Enter")
    visitor.page.get_by_role("radio").nth(2).wait_for()
    for _ in range(2):
        press("Tab")
    press("ArrowDown")
    visitor.wait_for("BELLT1 HUND1 DER1")
    press("Shift+Tab")
    assert focused() == "Copy"
    press("Enter")
    visitor.until("part.status.textContent === 'Copied.'")
    assert visitor.page.evaluate("navigator.clipboard.readText()") == "BELLT1 HUND1 DER1"


def test_another_model_translates_anew(visitor: Visitor) -> None:
    visitor.type("a b", "B A")
    assert not visitor.page.locator("#lowercase").is_visible()
    visitor.page.get_by_label("Model").select_option("French → English (model-1)")
    visitor.until("part.lowercase.checkVisibility() && part['source-language'].textContent === 'French'")
    visitor.wait_for("B A")
    assert "fake, none. Licence: CC0." in visitor.text("facts")


def test_what_is_refused_is_said(visitor: Visitor) -> None:
    visitor.page.get_by_role("textbox").fill("a " * 151)
    visitor.until("part.status.matches('.error')")
    assert visitor.text("status") == "q has 302 characters, but a request may have 300"
    assert visitor.complaints.pop().startswith("Failed to load resource")
    visitor.type("a", "A")
    assert visitor.text("status") == ""


def test_a_server_that_has_ended_is_said(visitor: Visitor) -> None:
    visitor.context.set_offline(True)
    visitor.page.get_by_role("textbox").fill("a")
    visitor.until("part.status.textContent === 'The server does not answer.'")
    assert visitor.complaints.pop().startswith("Failed to load resource")


def test_a_narrow_phone(browser: sync_api.Browser, address: str) -> None:
    phone = Visitor(browser, address, **PHONE)
    long_word = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen"
    phone.type(f"der {long_word}", f"{long_word.upper()} DER")
    phone.page.get_by_role("button", name="Other translations").tap()
    phone.page.get_by_role("radio").nth(2).wait_for()
    phone.word(1).tap()
    assert phone.lit()["der"] == 1
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 360
    phone.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser: sync_api.Browser, address: str, scheme: str) -> None:
    """Of at least 4.5 (WCAG 2.2, 1.4.3), on what is lit up too."""
    opened = Visitor(browser, address, color_scheme=scheme)
    opened.type("a zzz", "ZZZ A")
    opened.word(0).hover()
    time.sleep(0.1)

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(", ")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def colour(selector: str, name: str) -> str:
        return opened.page.locator(selector).first.evaluate("(node, name) => getComputedStyle(node)[name]", name)

    for text, ground in [
        *((selector, "body") for selector in ("h1", "h2", "#target", "#never-seen", "#facts", "#status")),
        ("#source", ".field"),
        ("#target .current", "#target .current"),
        ("button", "button"),
    ]:
        light, dark = sorted(
            (luminance(colour(text, "color")), luminance(colour(ground, "backgroundColor"))), reverse=True
        )
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)
    opened.context.close()
