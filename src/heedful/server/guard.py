"""What comes in is bounded and what goes out is locked down.

Hosts: a page elsewhere can make a browser call 127.0.0.1 under its own name (DNS rebinding); only names of
this machine are answered. Headers: no script but ours, no frame around us, nothing sent elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.errors import Mistake

LARGEST_BODY = 256 * 1024  # bytes
LONGEST_TEXT = 20_000  # characters of a text or query
MOST_WORDS = 1_000  # words that are explained live: omission reads a text once for each
LONGEST_ADDRESS = 16_000  # bytes of a query string

LOCAL = ("localhost", "127.0.0.1", "[::1]")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class TooLarge(Mistake):
    """More than we take: 413."""


class Guard:
    """The outermost layer: every answer passes it, errors too."""

    def __init__(
        self, app: ASGIApp, hosts: Collection[str], any_address: bool = False, close: Callable[[], None] = lambda: None
    ) -> None:
        self.app, self.hosts = app, frozenset(host.lower() for host in hosts)
        self.close = close  # ends what is under way, when the server ends
        self.any_address = any_address  # names can be rebound to this machine, numbers cannot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def locked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refuse(scope)
        await (refusal or self.app)(scope, receive, locked)

    def _refuse(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        name = host[: host.find("]") + 1] if host.startswith("[") else host.split(":")[0]
        if name not in self.hosts and not (self.any_address and _is_address(name)):
            sentence = "heedful answers only under the name of this machine; to allow another name, give it as --host."
            return PlainTextResponse(sentence, 400)
        if len(scope["query_string"]) > LONGEST_ADDRESS:
            return PlainTextResponse(
                "this address is too long: send long texts with POST, as the playground does.", 414
            )
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("only GET, HEAD and POST are understood here.", 405)
        if _sent_by_another_page(headers, host, scope["method"]):
            return PlainTextResponse("this was sent by a page of another site, and is refused.", 403)
        return None


def _sent_by_another_page(headers: Headers, host: str, method: str) -> bool:
    """Whether a page of another site sent this, and nobody at the browser followed a link to here.

    Of GET as of POST: a question to a model takes the processor, whoever reads its answer."""
    origin = headers.get("origin")
    if origin is not None and _authority(origin) != host:
        return True
    if headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none"):
        return False
    followed = ("navigate", "document", "?1")
    told = tuple(headers.get(f"sec-fetch-{name}", "") for name in ("mode", "dest", "user"))
    return method == "POST" or told != followed


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


async def read_json(request: Request) -> dict[str, Any]:
    """The JSON object of a POST, of bounded size."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise Mistake("send JSON, with the header Content-Type: application/json.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise TooLarge(f"this is more than the {LARGEST_BODY // 1024} KB that are read at once.")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Mistake("the body of this request is not JSON.") from None
    if not isinstance(value, dict):
        raise Mistake("the body of this request is not a JSON object.")
    return value


def checked_text(value: object, name: str) -> str:
    """A text as it was sent, of bounded length."""
    if not isinstance(value, str):
        raise Mistake(f"{name} is to be a string.")
    if len(value) > LONGEST_TEXT:
        raise TooLarge(f"the {name} has {len(value):,} characters; at most {LONGEST_TEXT:,} are read.")
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise Mistake(f"the {name} is not valid Unicode: it has half of a pair.")
    return value
