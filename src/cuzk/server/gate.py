"""Who may ask over HTTP: before anything is answered, the host's name and the token are looked at.

A page of another site can have its own name resolve to 127.0.0.1 and then read what is served there (DNS rebinding);
its requests carry that name, so that one bound to loopback answers to names of loopback alone. The token comes as
``Authorization: Bearer TOKEN`` from programs, or as the password of ``Basic`` with any user, which a browser asks for.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from hmac import compare_digest

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Gate:
    """An ASGI application in front of another; ``hosts`` None answers to any name, an empty token to anybody."""

    def __init__(
        self, app: ASGIApp, *, token: str, hosts: frozenset[str] | None, open_paths: frozenset[str]
    ) -> None:
        self._app, self._token = app, token.encode()
        self._hosts, self._open = hosts, open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        if scope["type"] != "http":
            return PlainTextResponse("HTTP only\n", status_code=400)
        headers = Headers(scope=scope)
        if self._hosts is not None and host_name(headers.get("host", "")) not in self._hosts:
            text = "this name of the host is not served: ask localhost\n"
            return PlainTextResponse(text, status_code=403)
        if scope["path"] in self._open or not self._token:
            return None
        if compare_digest(given_token(headers.get("authorization", "")), self._token):
            return None
        return PlainTextResponse(
            "the token is needed: as a bearer token, or as the password of any user\n",
            status_code=401,
            headers={"WWW-Authenticate": 'Basic realm="cuzk", charset="UTF-8"'},
        )


def host_name(host: str) -> str:
    """Of a Host header, in lower case, without port and brackets: "[::1]:9821" -> "::1"."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def given_token(authorization: str) -> bytes:
    """What somebody sent as a token, nothing where it is none."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode()
    if scheme.lower() != "basic":
        return b""
    try:
        return b64decode(value.strip(), validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return b""
