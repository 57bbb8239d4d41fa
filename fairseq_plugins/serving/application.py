"""LibreTranslate's HTTP interface (https://docs.libretranslate.com) to exported models."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..corpora.sentences import split_sentences
from ..errors import InputError
from ..exported.translation import TranslatedText
from .decoding_queue import DecodingQueue, QueueFullError
from .metrics import MeasuredApplication, Metrics
from .models import AUTO, ServedModel, ServedModels, UnservedError, language_name
from .request_bodies import Limits, TranslationRequest, read_body, read_texts, refuse
from .word_alignments import details

_CLOSED = 499
"""What nginx logs where nobody waits for the answer any more; no client sees it."""
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_MINUTE = 60.0
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))

Endpoint = Callable[[Request], Awaitable[Response]]
Values = dict[str, Any]
"""Of a request's body."""


class Application:
    """The endpoints.

    Args:
        models: that are served.
        queue: where sentences wait for them.
        limits: of a request.
        per_minute: requests that a client may send; None for any number.
        allowed_origins: pages of other hosts that may ask from a browser.
    """

    def __init__(
        self,
        models: ServedModels,
        queue: DecodingQueue,
        metrics: Metrics,
        limits: Limits,
        per_minute: int | None = None,
        allowed_origins: Sequence[str] = (),
    ) -> None:
        self._models, self._queue, self._metrics, self._limits = models, queue, metrics, limits
        self._per_minute = per_minute
        self._page = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
        self._minute, self._requests_of = 0.0, Counter[str]()
        metrics.watch(lambda: len(queue))
        routes = [
            Route("/", self._show_page),
            Route("/translate", self._bounded(self._translate), methods=["POST"]),
            Route("/detect", self._bounded(self._detect), methods=["POST"]),
            Route("/languages", self._list_languages),
            Route("/frontend/settings", self._show_settings),
            Route("/health", self._check_health),
            Route("/metrics", self._show_metrics),
        ]
        handlers = {HTTPException: _show_error, Exception: _show_fault}
        # Around it, not its middleware, which does not see the answers to faults.
        self.asgi: ASGIApp = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        if allowed_origins:
            origins = [origin.rstrip("/") for origin in allowed_origins]
            self.asgi = CORSMiddleware(self.asgi, allow_origins=origins, allow_headers=["*"], allow_methods=["*"])
        self.asgi = MeasuredApplication(self.asgi, metrics, [route.path for route in routes])

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(self._queue.close)

    async def _show_page(self, _: Request) -> Response:
        headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
        return HTMLResponse(self._page, headers=headers)

    async def _list_languages(self, _: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._models.languages))

    async def _show_settings(self, _: Request) -> Response:
        first = self._models.models[0]
        return JSONResponse(
            {
                "apiKeys": False,
                "charLimit": self._limits.characters,
                "frontendTimeout": 500,
                "keyRequired": False,
                "language": {
                    "source": {"code": AUTO, "name": "Auto Detect"},
                    "target": {"code": first.target, "name": language_name(first.target)},
                },
                "suggestions": False,
                "supportedFilesFormat": [],
                # Our own addition, for the page.
                "alternatives": self._limits.alternatives,
            }
        )

    async def _check_health(self, _: Request) -> Response:
        if not self._queue.is_open:
            refuse("the server is ending", 503)
        return JSONResponse({"status": "ok"})

    async def _show_metrics(self, _: Request) -> Response:
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _detect(self, _: Request, values: Values) -> Response:
        texts = read_texts(values, self._limits)
        rows = await run_in_threadpool(self._models.detect, "\n".join(texts))
        return JSONResponse([{"language": code, "confidence": confidence} for code, confidence in rows])

    async def _translate(self, request: Request, values: Values) -> Response:
        asked = TranslationRequest.of(values, self._limits)
        detected = await run_in_threadpool(self._detected, asked) if asked.source == AUTO else None
        sources = [code for code, _ in detected] if detected else [asked.source] * len(asked.texts)
        try:
            choices = {source: self._models.choose(source, asked.target, asked.model) for source in set(sources)}
        except UnservedError as error:
            refuse(str(error))
        models = [choices[source] for source in sources]
        parts = await run_in_threadpool(self._split, asked.texts, models)
        answers = await self._decoded(request, asked, models, parts)
        for model, text in zip(models, asked.texts, strict=True):
            self._metrics.characters.labels(model.name).inc(len(text))
        content = await run_in_threadpool(lambda: rendered(_answer(asked, models, parts, answers, detected)))
        return Response(content, media_type="application/json")

    def _detected(self, asked: TranslationRequest) -> list[tuple[str, float]]:
        found = {text: self._models.detect(text, asked.target, asked.model)[0] for text in set(asked.texts)}
        return [found[text] for text in asked.texts]

    def _split(self, texts: Sequence[str], models: Sequence[ServedModel]) -> list[list[str]]:
        parts = [split_sentences(text, model.source) for text, model in zip(texts, models, strict=True)]
        sentences = [sentence for of_text in parts for sentence in of_text[1::2]]
        if len(sentences) > self._queue.capacity:
            refuse(f"q has {len(sentences):,} sentences, but a request may have {self._queue.capacity:,}", 413)
        longest, most = max(map(len, sentences), default=0), self._limits.sentence_characters
        if longest > most:
            refuse(f"a sentence has {longest:,} characters, but one may have {most:,}; end it with a full stop", 413)
        return parts

    async def _decoded(
        self,
        request: Request,
        asked: TranslationRequest,
        models: Sequence[ServedModel],
        parts: Sequence[Sequence[str]],
    ) -> list[list[TranslatedText]]:
        """The sentences of each text, translated."""
        futures: list[list[asyncio.Future[TranslatedText]]] = []
        try:
            for model, of_text in zip(models, parts, strict=True):
                waiting = self._queue.put(model, of_text[1::2], 1 + asked.alternatives, asked.needs_details)
                futures.append(list(map(asyncio.wrap_future, waiting)))
            # Who has gone needs no answer, and a page asks anew with each pause in typing.
            await _while_connected(request, asyncio.gather(*(future for row in futures for future in row)))
        except QueueFullError as error:
            raise HTTPException(503, f"{error}; try again in a second", {"Retry-After": "1"}) from None
        except InputError as error:
            refuse(str(error))
        finally:
            for row in futures:
                for future in row:
                    future.cancel()
        results = [[future.result() for future in row] for row in futures]
        for result in (result for row in results for result in row if result.is_too_long):
            refuse(f"a sentence has {result.length:,} tokens, more than its model takes; end it with a full stop", 413)
        return results

    def _bounded(self, endpoint: Callable[[Request, Values], Coroutine[Any, Any, Response]]) -> Endpoint:
        async def within_limits(request: Request) -> Response:
            self._count(request.client.host if request.client else "")
            values = await read_body(request, self._limits)
            try:
                return await asyncio.wait_for(endpoint(request, values), self._limits.seconds)
            except asyncio.TimeoutError:
                raise HTTPException(
                    504, f"there is no answer after {self._limits.seconds:g} seconds; send less text, or try again"
                ) from None

        return within_limits

    def _count(self, client: str) -> None:
        if self._per_minute is None:
            return
        now = time.monotonic()
        if now - self._minute >= _MINUTE:
            self._minute = now
            self._requests_of.clear()
        self._requests_of[client] += 1
        if self._requests_of[client] > self._per_minute:
            seconds = math.ceil(self._minute + _MINUTE - now)
            raise HTTPException(
                429,
                f"more than {self._per_minute:,} requests in a minute; try again in {seconds} seconds",
                {"Retry-After": str(seconds)},
            )


async def _while_connected(request: Request, work: asyncio.Future[Any]) -> None:
    """Waits for work, or gives it up when the client closes its connection.

    Raises:
        HTTPException: the client has.
    """

    async def closed() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    disconnected = asyncio.ensure_future(closed())
    try:
        await asyncio.wait((work, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            refuse("the client has closed the connection", _CLOSED)
        await work
    finally:
        disconnected.cancel()
        work.cancel()


def rendered(value: Any) -> str:
    """JSON, put together by a list of numbers or texts at a time, while which no other thread can go on: the attention
    of long sentences takes seconds."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_ENCODER.encode(name)}:{rendered(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[" + ",".join(map(rendered, value)) + "]"
    return _ENCODER.encode(value)


def _answer(
    asked: TranslationRequest,
    models: Sequence[ServedModel],
    parts: Sequence[Sequence[str]],
    results: Sequence[Sequence[TranslatedText]],
    detected: Sequence[tuple[str, float]] | None,
) -> dict[str, Any]:
    """What is sent."""

    def put_together(of_text: Sequence[str], sentences: Sequence[TranslatedText], rank: int) -> str:
        whole = list(of_text)
        whole[1::2] = [_ranked(sentence, rank) for sentence in sentences]
        return "".join(whole)

    ranks = range(1 + asked.alternatives)
    texts = [[put_together(*row, rank) for rank in ranks] for row in zip(parts, results, strict=True)]
    answer: dict[str, Any] = {"translatedText": [best for best, *_ in texts] if asked.is_list else texts[0][0]}
    if asked.alternatives:
        others = [list(dict.fromkeys(text for text in rest if text != best)) for best, *rest in texts]
        answer["alternatives"] = others if asked.is_list else others[0]
    if asked.needs_details:
        rows = [
            {
                "model": model.name,
                "gaps": of_text[::2],
                "sentences": [
                    details(model.model, sentence, result)
                    for sentence, result in zip(of_text[1::2], sentences, strict=True)
                ],
            }
            for model, of_text, sentences in zip(models, parts, results, strict=True)
        ]
        answer["details"] = rows if asked.is_list else rows[0]
    if detected:
        languages = [{"language": code, "confidence": confidence} for code, confidence in detected]
        answer["detectedLanguage"] = languages if asked.is_list else languages[0]
    return answer


def _ranked(sentence: TranslatedText, rank: int) -> str:
    """A sentence's translation of that rank, or the last one that there is."""
    return sentence.translations[min(rank, len(sentence.translations) - 1)].text if sentence.translations else ""


async def _show_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail
    if error.status_code == 404:
        detail = f"there is no {request.url.path} here"
    elif error.status_code == 405:
        methods = (error.headers or {}).get("Allow", "another method")
        detail = f"{request.method} is not what {request.url.path} takes; send {methods}"
    return JSONResponse({"error": detail}, error.status_code, error.headers)


async def _show_fault(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": "the server has failed at this; its log says why"}, 500)
