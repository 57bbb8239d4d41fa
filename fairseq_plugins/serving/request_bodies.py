"""What a request asks for: JSON, or a form. Whatever cannot be used is one sentence with its status."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import Request

from .models import AUTO

URL_ENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
BODY_TYPES = ("application/json", URL_ENCODED, MULTIPART)
_MOST_FIELDS = 1000
_MOST_TEXTS = 1000
_LONGEST_NAME = 1000
"""Characters of a language's code, or of a model's name, which may be a path."""


@dataclass(frozen=True)
class Limits:
    """What a request may have.

    Attributes:
        body: bytes.
        characters: of all its texts.
        sentence_characters: of one sentence.
        alternatives: beside the best translation.
        seconds: until its answer.
    """

    body: int = 1 << 20
    characters: int = 10_000
    sentence_characters: int = 1000
    alternatives: int = 4
    seconds: float = 30.0


@dataclass(frozen=True)
class TranslationRequest:
    """What ``/translate`` is asked for.

    Attributes:
        texts: to translate.
        is_list: whether a list was given, so that a list is the answer.
        source, target: languages.
        model: its name; None for the first of these languages.
        alternatives: wanted beside the best translation.
        needs_details: whether words and attention are wanted.
    """

    texts: list[str]
    is_list: bool
    source: str
    target: str
    model: str | None
    alternatives: int
    needs_details: bool

    @classmethod
    def of(cls, values: Mapping[str, Any], limits: Limits) -> TranslationRequest:
        """Reads the values of a body.

        Raises:
            HTTPException: 400 or 413, with a sentence.
        """
        texts = read_texts(values, limits)
        if (kind := values.get("format") or "text") != "text":
            if kind == "html":
                refuse("format html is not supported: take the text out of the tags, and send format text")
            refuse("format must be text")
        model = None if values.get("model") in (None, "") else _text(values, "model")
        return cls(
            texts,
            isinstance(values["q"], list),
            _text(values, "source"),
            _text(values, "target"),
            model,
            _count(values, "alternatives", limits.alternatives),
            _truth(values, "details"),
        )


def refuse(sentence: str, status: int = 400) -> NoReturn:
    """Ends a request.

    Raises:
        HTTPException: always.
    """
    raise HTTPException(status, sentence)


async def read_body(request: Request, limits: Limits) -> dict[str, Any]:
    """The values of a request's body, by name; a name that a form has more than once has a list.

    Raises:
        HTTPException: 400, 408, 413 or 415, with a sentence.
    """
    # As Starlette reads it: two readers could find two charsets.
    kind, parameters = parse_options_header(request.headers.get("content-type"))
    content_type, charset = kind.decode("latin-1"), parameters.get(b"charset", b"utf-8").decode("latin-1")
    if content_type not in BODY_TYPES:
        refuse(f"Content-Type {content_type!r} is not supported; there are {', '.join(BODY_TYPES)}", 415)
    # Starlette would decode forms by any codec of Python: punycode takes seconds, undefined fails.
    if charset.lower() != "utf-8":
        refuse(f"charset {charset!r} is not supported; send utf-8", 415)
    try:
        body = await asyncio.wait_for(_bounded_body(request, limits.body), limits.seconds)
    except asyncio.TimeoutError:
        refuse(f"the body did not arrive within {limits.seconds:g} seconds", 408)
    if content_type == "application/json":
        return _json(body)
    fields = _url_encoded(body) if content_type == URL_ENCODED else await _multipart(request, body)
    values: dict[str, list[str]] = {}
    for name, text in fields:
        values.setdefault(name, []).append(text)
    return {name: texts[0] if len(texts) == 1 else texts for name, texts in values.items()}


def read_texts(values: Mapping[str, Any], limits: Limits) -> list[str]:
    """The texts of ``q``: one, or several.

    Raises:
        HTTPException: 400 or 413, with a sentence.
    """
    if values.get("q") is None:
        refuse("q is missing: it is the text, or a list of texts")
    texts = values["q"] if isinstance(values["q"], list) else [values["q"]]
    if not texts:
        refuse("q is an empty list")
    if len(texts) > _MOST_TEXTS:
        refuse(f"q has {len(texts):,} texts, but a request may have {_MOST_TEXTS:,}", 413)
    for text in texts:
        if not isinstance(text, str):
            refuse("q must be a text, or a list of texts")
        if not _is_encodable(text):
            refuse("q holds half of a surrogate pair, which is no character")
    if (characters := sum(map(len, texts))) > limits.characters:
        refuse(f"q has {characters:,} characters, but a request may have {limits.characters:,}", 413)
    return texts


async def _bounded_body(request: Request, limit: int) -> bytes:
    sentence = f"the body is larger than {limit:,} bytes"
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        refuse(sentence, 413)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            refuse(sentence, 413)
        parts.append(part)
    return b"".join(parts)


def _json(body: bytes) -> dict[str, Any]:
    try:
        values = json.loads(body)
    except RecursionError:
        refuse("the body is nested too deeply")
    except ValueError as error:
        refuse(f"the body is not JSON in UTF-8 ({error})")
    if not isinstance(values, dict):
        refuse('the body must be a JSON object, such as {"q": "text", "source": "de", "target": "en"}')
    return values


def _url_encoded(body: bytes) -> list[tuple[str, str]]:
    # Starlette's own takes bytes that are not escaped, which curl -d sends, for Latin-1.
    try:
        return parse_qsl(body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        refuse(f"the body is no form in UTF-8 ({error})")


async def _multipart(request: Request, body: bytes) -> list[tuple[str, Any]]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    form = await Request(request.scope, receive).form(max_files=0, max_fields=_MOST_FIELDS, max_part_size=len(body) + 1)
    return form.multi_items()


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if value is None or value == "":
        refuse(f"{name} is missing" + (f": it is a language's code, or {AUTO}" if name == "source" else ""))
    if not isinstance(value, str) or not _is_encodable(value):
        refuse(f"{name} must be a text")
    if len(value) > _LONGEST_NAME:
        refuse(f"{name} has {len(value):,} characters, and no name here has more than {_LONGEST_NAME:,}")
    return value


def _count(values: Mapping[str, Any], name: str, most: int) -> int:
    value = values.get(name)
    if value is None or value == "":
        return 0
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        refuse(f"{name} must be a number from 0 to {most}")
    return value


def _truth(values: Mapping[str, Any], name: str) -> bool:
    value = values.get(name)
    if value in (None, "", False, "false", "0", 0):
        return False
    if value in (True, "true", "1", 1):
        return True
    refuse(f"{name} must be true or false")


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
