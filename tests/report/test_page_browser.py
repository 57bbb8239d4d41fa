"""The HTML report in a browser: what is lit up, by mouse, keyboard and touch; colours; a phone's width."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairseq_plugins.report import curves
from fairseq_plugins.report import page as report
from fairseq_plugins.report.curves import LearningCurves
from fairseq_plugins.report.page import Drawing, Experiment, Report, ReportTable, Sample, WordAttention
from fairseq_plugins.report.style import inline_svg
from tests.browser import PHONE, Window

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: scripts/install.sh --extras dev"
)

SOURCE = ["der", "Hund", "</script>", "bellt"]
TARGET = ["the", "dog", "barks"]
MEAN = [[0.7, 0.1, 0.15, 0.05], [0.2, 0.6, 0.1, 0.1], [0.0, 0.25, 0.05, 0.7]]
CROSSED = [[0.1, 0.9, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
OTHER = [[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]


def whole_report() -> Report:
    """A report with everything in it, wider than a phone wherever that can be."""
    points = [(100.0 * number, 9.0 - number) for number in range(1, 6)]
    of_training = LearningCurves(points, points[1::2], [(updates, 1e-3) for updates, _ in points])
    drawn = [inline_svg(curves.draw({"one": of_training, "two": of_training}), f"curves-{number}") for number in (0, 1)]
    alignments = {
        "DPN-S2S": WordAttention(SOURCE, TARGET, {"mean": MEAN, "ca": CROSSED}),
        "MC-RNN-3": WordAttention(SOURCE, ["a", "dog"], {"mean": OTHER}),
    }
    hypotheses = {"DPN-S2S": "the dog barks", "MC-RNN-3": "a dog", "fconv": "a dog barks"}
    sample = Sample(" ".join(SOURCE), "the dog is barking", hypotheses, alignments)
    long_word = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen"
    return Report(
        title="a_dataset_with_a_long_name/a_model_with_a_long_name",
        subtitle="A line of what it is",
        notice="Not the paper's setting: a tenth of the updates.",
        tables=[
            ReportTable(
                "Scores",
                ["System", "The paper", "Ours", "Difference", "Parameters", "Updates", "Hours", "Significance"],
                [["MC-RNN-3", "32.23", "32.01 ± 0.08", "−0.22", "29M / 26.6M", "50,000", "21.4", "p = 0.003"]],
                ["BLEU: nrefs:1|case:lc|eff:no|tok:none|smooth:none|version:2.6.0|and:more|and:still more"],
            )
        ],
        figures=[Drawing("Learning curves", "Losses", drawn[0]), Drawing("Another", "And more", drawn[1])],
        samples=[sample, dataclasses.replace(sample, source=long_word, alignments={})],
        experiments=[
            Experiment("one", "train:\n  lr: 1e-3\n", {"training": "fairseq-train " + "x" * 200}, {"Seed": "1"})
        ],
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the report lies."""
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    report.write(whole_report(), path)
    return path.as_uri()


class Reader(Window):
    """The report in a window, and what the browser had to say about it."""

    def __init__(self, browser: sync_api.Browser, address: str, **settings: object) -> None:
        # Without motion a colour is what it is going to be at once.
        super().__init__(browser, address, **{"reduced_motion": "reduce", **settings})

    def row(self, name: str) -> sync_api.Locator:
        """The words of the source or of a system."""
        return self.page.get_by_role("listbox", name=f"Words of {name}")

    def word(self, name: str, index: int) -> sync_api.Locator:
        return self.row(name).get_by_role("option").nth(index)

    def lit(self, name: str) -> list[float]:
        """How opaque the light behind each word of a row is."""
        words = self.row(name).locator(".word")
        opacities = words.evaluate_all("words => words.map(word => getComputedStyle(word, '::before').opacity)")
        return [pytest.approx(float(opacity), abs=1e-4) for opacity in opacities]

    def chosen(self) -> list[str]:
        return self.page.locator("[aria-selected=true]").all_inner_texts()

    def choose_flow(self, label: str) -> None:
        self.page.locator(".flows label", has_text=label).click()

    def evaluate(self, expression: str) -> object:
        return self.page.evaluate(expression)


@pytest.fixture
def reader(browser: sync_api.Browser, address: str) -> Iterator[Reader]:
    """On a desk, with a mouse."""
    opened = Reader(browser, address, viewport={"width": 1200, "height": 900})
    yield opened
    assert opened.complaints == []
    assert opened.requests == [address]
    opened.context.close()


@pytest.fixture
def phone(browser: sync_api.Browser, address: str) -> Iterator[Reader]:
    """On a phone, 360 pixels wide, with a finger."""
    opened = Reader(browser, address, **PHONE)
    yield opened
    assert opened.complaints == []
    assert opened.requests == [address]
    opened.context.close()


NOTHING = [0, 0, 0, 0]


def test_every_figure_is_seen(reader: Reader) -> None:
    figures = reader.page.locator("figure svg")
    assert figures.count() == 2
    for number in range(2):
        assert figures.nth(number).is_visible()
        box = figures.nth(number).bounding_box()
        assert box["width"] > 400 and box["height"] > 250


def test_hovering_over_a_word_lights_up_what_it_attends_to(reader: Reader) -> None:
    assert reader.lit("the source") == NOTHING
    for index, weights in enumerate(MEAN):
        reader.word("DPN-S2S", index).hover()
        assert reader.lit("the source") == weights
        assert reader.chosen() == [TARGET[index]]
    readout = reader.page.locator(".readout").first
    assert readout.inner_text() == "barks → bellt 70 %, Hund 25 %, </script> 5 %"
    reader.page.mouse.move(2, 2)
    assert reader.lit("the source") == NOTHING
    assert readout.inner_text() == ""


def test_hovering_over_a_word_of_the_source_lights_up_every_hypothesis(reader: Reader) -> None:
    reader.word("the source", 1).hover()
    assert reader.lit("DPN-S2S") == [row[1] for row in MEAN]
    assert reader.lit("MC-RNN-3") == [row[1] for row in OTHER]
    assert reader.lit("the source") == NOTHING
    text = reader.page.locator(".readout").first.inner_text()
    assert text == "Hund ← DPN-S2S: dog 60 %, barks 25 %, the 10 %; MC-RNN-3: a 30 %, dog 20 %"


def test_another_flow_has_other_weights(reader: Reader) -> None:
    reader.word("DPN-S2S", 0).click()
    assert reader.lit("the source") == MEAN[0]
    reader.choose_flow("CNN to SAN")
    assert reader.lit("the source") == CROSSED[0], "the word that was clicked is still the one that is shown"
    reader.word("DPN-S2S", 1).hover()
    assert reader.lit("the source") == CROSSED[1]
    reader.word("MC-RNN-3", 1).hover()
    assert reader.lit("the source") == OTHER[1], "another system has its own"
    reader.word("the source", 0).hover()
    assert reader.lit("DPN-S2S") == [row[0] for row in CROSSED]
    reader.choose_flow("mean")
    reader.word("DPN-S2S", 2).hover()
    assert reader.lit("the source") == MEAN[2]


def test_the_keyboard_goes_from_word_to_word(reader: Reader) -> None:
    keyboard = reader.page.keyboard
    reader.word("the source", 0).focus()
    assert reader.lit("DPN-S2S") == [row[0] for row in MEAN]
    keyboard.press("End")
    assert reader.lit("DPN-S2S") == [row[3] for row in MEAN]
    keyboard.press("Tab")
    assert reader.chosen() == ["the"], "a row is one stop of the Tab key"
    assert reader.lit("the source") == MEAN[0]
    keyboard.press("ArrowRight")
    assert reader.lit("the source") == MEAN[1]
    keyboard.press("ArrowLeft")
    keyboard.press("ArrowLeft")
    assert reader.chosen() == ["the"], "it stays on the first word"
    keyboard.press("Tab")
    keyboard.press("ArrowRight")
    assert reader.page.locator(".flows :checked").input_value() == "ca"
    assert reader.lit("the source") == CROSSED[0]
    keyboard.press("Tab")
    assert reader.lit("the source") == OTHER[0]
    keyboard.press("Escape")
    assert reader.lit("the source") == NOTHING
    assert reader.chosen() == []


def test_fingers_tap_words_and_flows(phone: Reader) -> None:
    phone.word("DPN-S2S", 1).tap()
    assert phone.lit("the source") == MEAN[1]
    phone.page.locator(".flows label", has_text="CNN to SAN").tap()
    assert phone.lit("the source") == CROSSED[1]
    phone.word("the source", 1).tap()
    assert phone.lit("the source") == NOTHING
    assert phone.lit("MC-RNN-3") == [row[1] for row in OTHER]
    phone.page.locator("h2", has_text="Samples").tap()
    assert phone.lit("MC-RNN-3") == [0, 0]


def test_nothing_is_wider_than_a_phone(phone: Reader) -> None:
    widths = phone.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert widths == [360, 360]
    boxes = phone.page.locator(".scroll").evaluate_all("all => all.map(box => [box.scrollWidth, box.clientWidth])")
    assert all(client <= 360 for _, client in boxes)
    assert boxes[0][0] > boxes[0][1], "the wide table scrolls in its own box"


CONTRASTS = """
() => {
  const parse = (colour) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [red, green, blue] = colour.slice(0, 3).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const contrasts = { text: [], figures: [] };
  for (const element of document.body.querySelectorAll("*")) {
    // matplotlib writes text as text or as outlines.
    const drawn = element.matches("svg text, svg g[id*='text_'] :is(use, path)");
    const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const written = own.length > 0 && !element.closest("svg, script");
    if (!drawn && !written) continue;
    const style = getComputedStyle(element);
    const [one, other] = [luminance(parse(drawn ? style.fill : style.color)), luminance(ground(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    contrasts[drawn ? "figures" : "text"].push([contrast, one > other, element.outerHTML.slice(0, 80)]);
  }
  const light = parse(getComputedStyle(document.querySelector(".word"), "::before").backgroundColor);
  const word = parse(getComputedStyle(document.querySelector(".word")).color);
  const [one, other] = [luminance(light), luminance(word)];
  contrasts.lit = [[(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), other > one, "lit word"]];
  return contrasts;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(browser: sync_api.Browser, address: str, scheme: str) -> None:
    opened = Reader(browser, address, color_scheme=scheme)
    contrasts = opened.evaluate(CONTRASTS)
    assert len(contrasts["text"]) > 40
    assert len(contrasts["figures"]) > 20
    for kind in "text", "figures", "lit":
        assert not [entry for entry in contrasts[kind] if entry[0] < 4.5]
        assert {lighter for _, lighter, _ in contrasts[kind]} == {scheme == "dark"}
    assert opened.complaints == []
    opened.context.close()


@pytest.mark.parametrize(("wish", "duration"), [("no-preference", "0.12s"), ("reduce", "0s")])
def test_motion_is_a_wish(browser: sync_api.Browser, address: str, wish: str, duration: str) -> None:
    opened = Reader(browser, address, reduced_motion=wish)
    style = "getComputedStyle(document.querySelector('.word'), '::before').transitionDuration"
    assert opened.evaluate(style) == duration
    opened.context.close()


def test_without_its_script_it_is_still_a_report(browser: sync_api.Browser, address: str) -> None:
    opened = Reader(browser, address, java_script_enabled=False)
    assert opened.page.locator(".sample").first.get_by_text("barking").is_visible()
    assert opened.page.locator(".words").first.inner_text() == " ".join(SOURCE)
    for offer in ".flows", ".hint":
        assert not opened.page.locator(offer).first.is_visible()
    opened.context.close()


def test_on_paper_it_is_dark_on_white_and_nothing_is_cut_off(browser: sync_api.Browser, address: str) -> None:
    # As wide as A4 is between margins of 15 mm.
    opened = Reader(browser, address, color_scheme="dark", viewport={"width": 680, "height": 900})
    opened.page.emulate_media(media="print")
    widths = opened.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert widths == [680, 680]
    colours = opened.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert colours == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    assert not opened.page.locator(".flows").first.is_visible()
    assert opened.evaluate("getComputedStyle(document.querySelector('pre')).whiteSpace") == "pre-wrap"
    opened.context.close()
