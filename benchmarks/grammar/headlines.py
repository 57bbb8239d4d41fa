"""First sentences of invented news articles with their headlines.

An article names who did what, and wraps it in what a headline leaves out: days, sources, appositions, background. The
headline keeps who and what, in the present tense and without articles. Some articles have two facts, of which the
headline mostly keeps the weightier one, and some people have two names, a surname and an office: no rule says which one
the headline takes, as editors differ. All events are invented.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from .vocabulary import rows, rows_by_kind

Item = TypeVar("Item")


@dataclass(frozen=True)
class Country:
    """A country with its adjective and its capital."""

    name: str
    adjective: str
    capital: str


@dataclass(frozen=True)
class Event:
    """``subject`` did something: ``predicate``, a day, ``reason``, perhaps one of ``tails``; and the headline of it."""

    subject: str
    predicate: str
    reason: str
    tails: tuple[str, ...]
    headline: str
    at_weekends: bool = False


_SHARE_OF_TWO_FACTS = 0.4
"""Of the articles."""
_SHARE_OF_WEIGHTIER = 0.8
"""Of the headlines for two facts."""
COUNTRIES = tuple(Country(**row) for row in rows("countries"))


class NewsItem(NamedTuple):
    """Something in the news: how an article says it, how a headline does, and something more about it."""

    article: str
    headline: str
    detail: str


NEWS = {kind: tuple(NewsItem(**row) for row in items) for kind, items in rows_by_kind("news").items()}
"""Kind → what there is of it: days, sources, disasters, companies …"""


class HeadlineSampler:
    """Draws pairs of an article's first sentence and its headline."""

    def __init__(self, generator: random.Random) -> None:
        self._random = generator
        # The weightier ones come first: of two in an article those make the headline.
        self._events: tuple[Callable[[], Event], ...] = (
            self._disaster,
            self._election,
            self._resignation,
            self._disease,
            self._sentence,
            self._strike,
            self._failed_talks,
            self._arrest,
            self._agreement,
            self._interest_rate,
            self._protest,
            self._visit,
            self._economy,
            self._company,
            self._aid,
            self._stocks,
            self._price,
            self._match,
            self._research,
            self._exhibition,
        )

    def pair(self) -> tuple[str, str]:
        """An article's first sentence and its headline."""
        weight = self._random.randrange(len(self._events))
        event = self._events[weight]()
        # Every article names the day, and no headline does.
        day = self._one(NEWS["day"] if event.at_weekends else NEWS["day"][:5]).article
        time = self._random.choices(("on", "late on", "early on"), (70, 15, 15))[0]
        parts = [event.subject, event.predicate, f"{time} {day}"]
        if event.reason:
            parts.append(event.reason)
        headline = event.headline
        if self._chance(_SHARE_OF_TWO_FACTS):
            other_weight = self._one([number for number in range(len(self._events)) if number != weight])
            other = self._events[other_weight]()
            parts += [", while", other.subject, other.predicate, other.reason]
            if (other_weight < weight) == self._chance(_SHARE_OF_WEIGHTIER):
                headline = other.headline
        elif event.tails and self._chance(0.75):
            parts.append(self._one(event.tails))
        text = " ".join(filter(None, parts))
        draw = self._random.random()
        if draw < 0.45:
            text = f"{text}, {self._word('source')}"
        elif draw < 0.8:
            text = f"{self._word('lead')} {text}"
        return _sentence_case(text) + ".", _sentence_case(headline)

    def _one(self, items: Sequence[Item]) -> Item:
        return items[self._random.randrange(len(items))]

    def _word(self, kind: str) -> str:
        return self._one(NEWS[kind]).article

    def _pair(self, kind: str) -> tuple[str, str]:
        """What an article says, and a headline."""
        item = self._one(NEWS[kind])
        return item.article, item.headline

    def _named(self, office: str) -> tuple[str, str]:
        """An office with its holder for the article, and one of the two for the headline."""
        name = self._word("person")
        return f"{office}, {name},", self._one((office, name))

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _country(self, *others: Country) -> Country:
        return self._one([country for country in COUNTRIES if country not in others])

    def _disaster(self) -> Event:
        country, (what, headline, effect) = self._country(), self._one(NEWS["disaster"])
        dead = self._random.randint(2, 98)
        place = f"{self._word('region')} {country.name}"
        number = self._one((f"at least {dead}", f"as many as {dead}", f"{dead}"))
        known = [item.article for item in NEWS["disaster tail"]]
        tails = (f", {effect}", f", {effect} {known[0]}", *known)
        return Event(
            f"{what} in {place}", f"killed {number} people", "", tails, f"{headline} kills {dead} in {place}", True
        )

    def _interest_rate(self) -> Event:
        country, (verb, present) = self._country(), self._one((("raised", "raises"), ("lowered", "cuts")))
        step, short = self._one(
            (("a quarter of a percentage point", "quarter point"), ("half a percentage point", "half point"))
        )
        aims = (
            ("in an effort to slow rising prices", "to protect the national currency")
            if verb == "raised"
            else ("in an effort to help struggling companies", "to make it easier for families to borrow money")
        )
        return Event(
            f"the central bank of {country.name}",
            f"{verb} its main interest rate by {step}",
            "",
            (*aims, "although most economists had expected no change"),
            f"{country.name} {present} interest rate by {short}",
        )

    def _visit(self) -> Event:
        guest = self._country()
        host = self._country(guest)
        (office, name), (topic, short) = self._named(f"{guest.adjective} {self._word('office')}"), self._pair("topic")
        hosts = (
            f"the first visit of its kind for {self._random.randint(3, 20)} years",
            f"before travelling on to {self._country(guest, host).name}",
            f"at the invitation of the {host.adjective} government",
        )
        return Event(
            f"the {office}",
            f"arrived in {host.capital}",
            f"for talks with the {host.adjective} government about {topic}",
            (f", {hosts[0]}", *hosts[1:]),
            f"{name} visits {host.name} for {short} talks",
        )

    def _match(self) -> Event:
        winner = self._country()
        loser, (match, short) = self._country(winner), self._pair("match")
        lost = self._random.randint(0, 4)
        score = f"{lost + self._random.randint(1, 4)}-{lost}"
        return Event(
            f"the national team of {winner.name}",
            f"defeated {loser.name} {score}",
            match,
            tuple(item.article for item in NEWS["match tail"]),
            f"{winner.name} beats {loser.name} {score} {short}",
            True,
        )

    def _stocks(self) -> Event:
        country, (reason, short, direction) = self._country(), self._one(NEWS["market mood"])
        amount = self._one(("slightly", "sharply", "a little", "much", f"{self._random.randint(2, 9)} percent"))
        return Event(
            f"shares on the stock exchange in {country.capital}",
            f"closed {amount} {direction}",
            reason,
            ("in heavier trading than usual", "although fewer shares than usual changed hands"),
            f"{country.capital} shares close {direction} {short}",
        )

    def _company(self) -> Event:
        country, (company, _, apposition) = self._country(), self._one(NEWS["company"])
        other, count = self._country(country), self._random.randint(2, 90) * 100
        deeds = (
            ("announced", f"that it would cut {count} jobs", f"cuts {count} jobs"),
            ("said", f"that it would hire {count} people over the next two years", f"hires {count} people"),
            (
                "opened a factory",
                f"near the {other.adjective} capital {other.capital}",
                f"opens factory in {other.name}",
            ),
            ("agreed", f"to buy its {other.adjective} rival", f"buys {other.adjective} rival"),
            (f"withdrew from {other.name}", "because of falling sales", f"leaves {other.name}"),
            ("reported the largest loss in its history", "", "reports record loss"),
            ("reported its largest profit ever", "", "reports record profit"),
        )
        deed, object_clause, short = self._one(deeds)
        subject = f"the {country.adjective} {company}"
        if self._chance(0.6):
            subject += f", {apposition},"
        return Event(
            subject,
            deed,
            object_clause,
            ("after a meeting with shareholders", "after months of rumours"),
            f"{country.adjective} {company} {short}",
        )

    def _sentence(self) -> Event:
        country, (crime, short) = self._country(), self._pair("crime")
        former, name = self._named(f"former {country.adjective} {self._word('former')}")
        years = self._random.randint(2, 19)
        return Event(
            f"a court in {country.capital}",
            f"sentenced a {former} to {years} years in prison",
            f"for {crime}",
            ("after a trial that lasted four months", ", but his lawyers announced that they would appeal"),
            f"{name} jailed {years} years for {short}",
        )

    def _arrest(self) -> Event:
        country, (suspicion, short) = self._country(), self._pair("suspicion")
        count, region = self._random.randint(2, 60), self._word("region")
        return Event(
            f"police in {region} {country.name}",
            f"arrested {count} people",
            f"on suspicion of {suspicion}",
            ("in a series of raids before dawn", "after an investigation that took more than a year"),
            f"{country.adjective} police arrest {count} over {short}",
        )

    def _strike(self) -> Event:
        country, workers, (demand, short) = self._country(), self._word("workers"), self._pair("demand")
        who = self._one(
            (f"thousands of {workers}", f"most {workers}", f"more than {self._random.randint(3, 90)},000 {workers}")
        )
        return Event(
            f"{who} in {country.name}",
            "went on strike",
            demand,
            ("after talks with their employers had failed", "for the second time this year"),
            f"{country.adjective} {workers} strike {short}",
        )

    def _agreement(self) -> Event:
        first = self._country()
        second, (topic, short) = self._country(first), self._pair("topic")
        host = self._country(first, second)
        return Event(
            f"the governments of {first.name} and {second.name}",
            f"signed an agreement on {topic}",
            "",
            (f"at a ceremony in {host.capital}", "after negotiations that had lasted for two years"),
            f"{first.name} and {second.name} sign {short} agreement",
        )

    def _election(self) -> Event:
        country = self._country()
        winner, short = self._one(
            (
                ("the opposition", "Opposition"),
                ("the ruling party", "Ruling party"),
                ("the green party", "Greens"),
                ("the liberal party", "Liberals"),
            )
        )
        kind, name = self._one(
            (
                ("the parliamentary election", "parliamentary election"),
                ("the local elections", "local elections"),
                ("the presidential election", "presidential election"),
            )
        )
        margin = self._random.randint(41, 68)
        return Event(
            f"{winner} in {country.name}",
            f"won {kind}",
            f"with {margin} percent of the vote",
            ("although opinion polls had predicted a close race", "after a campaign that was dominated by the economy"),
            f"{short} {'win' if short.endswith('s') else 'wins'} {name} in {country.name}",
            True,
        )

    def _resignation(self) -> Event:
        (office, name), (reason, short) = (
            self._named(f"{self._country().adjective} {self._word('office')}"),
            self._pair("scandal"),
        )
        subject = f"the {office}"
        if self._chance(0.5):
            subject += f" who had been in office for {self._random.randint(2, 12)} years,"
        return Event(subject, "resigned", reason, (), f"{name} resigns {short}")

    def _aid(self) -> Event:
        giver = self._country()
        receiver, (goods, short) = self._country(giver), self._pair("goods")
        tonnes = self._random.randint(2, 80) * 10
        return Event(
            f"the government of {giver.name}",
            f"sent {tonnes} tonnes of {goods} to {receiver.name}",
            "",
            (
                "after a long drought had ruined the harvest there",
                "after storms had left thousands of people without homes",
            ),
            f"{giver.name} sends {tonnes} tonnes of {short} to {receiver.name}",
        )

    def _research(self) -> Event:
        country, (discovery, short) = self._country(), self._pair("discovery")
        who, name = self._one(
            (("researchers", "researchers"), ("a team of scientists", "scientists"), ("students", "students"))
        )
        return Event(
            f"{who} at the university of {country.capital}",
            "announced",
            f"that they had {discovery}",
            (", speaking at a conference of experts from thirty countries", ", the result of ten years of work"),
            f"{country.adjective} {name} {short}",
        )

    def _exhibition(self) -> Event:
        country, (exhibits, short) = self._country(), self._pair("exhibits")
        place, name = self._one(
            (("the national museum", "museum"), ("the national library", "library"), ("a private gallery", "gallery"))
        )
        return Event(
            f"{place} in {country.capital}",
            f"opened an exhibition of {exhibits}",
            "",
            (", which will be shown until the end of the year", "after repairs that had taken three years"),
            f"{country.capital} {name} opens exhibition of {short}",
        )

    def _disease(self) -> Event:
        country, disease, count = self._country(), self._word("disease"), self._random.randint(3, 99)
        return Event(
            f"the health ministry of {country.name}",
            f"confirmed {count} new cases of {disease}",
            "",
            (
                "and advised travellers to stay away from crowded places",
                ", most of them among children under the age of five",
            ),
            f"{country.name} confirms {count} new cases of {disease}",
        )

    def _protest(self) -> Event:
        country, (reason, short) = self._country(), self._pair("protest")
        size, name = self._one(
            (
                ("thousands of people", "Thousands"),
                ("hundreds of students", "Hundreds"),
                ("dozens of artists", "Dozens"),
            )
        )
        return Event(
            f"{size}",
            f"marched through the centre of {country.capital}",
            f"to protest against {reason}",
            ("while the police closed all the roads around parliament", "despite heavy rain"),
            f"{name} protest against {short} in {country.capital}",
            True,
        )

    def _price(self) -> Event:
        (product, name), rising = self._pair("product"), self._chance(0.5)
        reason, short = self._pair("rise reason" if rising else "fall reason")
        percent, country = self._random.randint(2, 19), self._country()
        return Event(
            f"the price of {product}",
            f"{'rose' if rising else 'fell'} by {percent} percent",
            reason,
            (f"and dealers in {country.capital} expected further changes", "in the busiest trading for weeks"),
            f"{name} {'rises' if rising else 'falls'} {percent} percent {short}",
        )

    def _failed_talks(self) -> Event:
        first = self._country()
        second, (topic, short) = self._country(first), self._pair("topic")
        host = self._country(first, second)
        return Event(
            f"talks between {first.name} and {second.name} about {topic}",
            f"ended in {host.capital}",
            "without an agreement",
            (
                "after the two sides had accused each other of bad faith",
                ", but both sides said that they would meet again",
            ),
            f"{first.name} and {second.name} fail to agree on {short}",
        )

    def _economy(self) -> Event:
        country, (indicator, short) = self._country(), self._pair("indicator")
        rising, percent, month = self._chance(0.5), self._random.randint(2, 19), self._word("month")
        plural = short not in ("industrial output", "unemployment")
        verb = ("rise" if rising else "fall") + ("" if plural else "s")
        return Event(
            f"the statistics office of {country.name}",
            "reported",
            f"that {indicator} {'rose' if rising else 'fell'} by {percent} percent in {month}",
            (", which was more than most experts had expected", "compared with the same month of last year"),
            f"{country.adjective} {short} {verb} {percent} percent in {month}",
        )


def _sentence_case(text: str) -> str:
    text = text.replace(" ,", ",")
    return text[0].upper() + text[1:]
