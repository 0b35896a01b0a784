"""The daemon's HTTP side: a page to look at, the same as JSON, metrics, and whether it serves. It changes nothing.

    /         the page (status.html, all of it in one file)
    /status   JSON (status_json.py): ?jobs=N ?first=N ?text=T ?state=S ?spans=N ?since=T
    /metrics  Prometheus text (metrics.py)
    /healthz  200 "serving" or 503 "draining"; asked without a token

GET and HEAD only. Nothing may embed or read it from another site: there is no Access-Control-Allow-Origin, since any page
that an operator has open could then read ids, circuits and clients from inside the network.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from cuzk.engine.snapshot import Snapshot
from cuzk.errors import FormatError
from cuzk.server.gate import Gate
from cuzk.server.metrics import CONTENT_TYPE, metrics_text
from cuzk.server.status_json import Wanted, status_json

PAGE = Path(__file__).with_name("status.html")
LIMITS = {"jobs": 1000, "first": 1_000_000, "spans": 20_000}
ENDED = 50  # jobs that have ended in an answer that does not ask for more
STATES = ("", "open", "ended", "queued", "preparing", "proving", "verifying", "done", "failed", "cancelled")  # fmt: skip


class Watched(Protocol):
    """What is shown: an Engine, or a test's."""

    def snapshot(self, *, ended: int = 50, spans_since: float | None = None) -> Snapshot:
        """As it is now; spans those that ended since then, none where it is None."""


def web_app(engine: Watched, *, token: str = "", hosts: frozenset[str] | None = None) -> Gate:
    """An ASGI application. With a ``token`` it answers who sends it; ``hosts``: only to these names (None: to any)."""
    page = PAGE.read_text(encoding="utf-8")
    policy = {"Content-Security-Policy": content_security_policy(page)}

    async def home(_: Request) -> Response:
        return Response(page, media_type="text/html", headers=policy)

    async def status(request: Request) -> Response:
        try:
            wanted = read_query(request.query_params)
        except FormatError as error:
            text = json.dumps({"error": str(error)})
            return Response(text, status_code=400, media_type="application/json")
        since = wanted.since if wanted.spans else None
        moment = engine.snapshot(ended=max(ENDED, wanted.jobs), spans_since=since)
        return Response(status_json(moment, wanted), media_type="application/json")

    async def metrics(_: Request) -> Response:
        moment = engine.snapshot(ended=0)
        return Response(metrics_text(moment), headers={"Content-Type": CONTENT_TYPE})

    async def health(_: Request) -> Response:
        if engine.snapshot(ended=0).draining:
            return PlainTextResponse("draining\n", status_code=503)
        return PlainTextResponse("serving\n")

    routes = {"/": home, "/status": status, "/metrics": metrics, "/healthz": health}
    app = Starlette(routes=[Route(path, answer) for path, answer in routes.items()])
    return Gate(app, token=token, hosts=hosts, open_paths=frozenset({"/healthz"}))


def read_query(query: QueryParams) -> Wanted:
    """Which jobs and spans, and spans since when; FormatError for what is none."""
    numbers = {name: _number(query, name, most) for name, most in LIMITS.items() if name in query}
    state = query.get("state", "")
    if state not in STATES:
        raise FormatError(f"state: expected one of {', '.join(STATES[1:])}, found {state[:40]!r}")
    since = float(_number(query, "since", 1 << 40)) if "since" in query else 0.0
    return Wanted(**numbers, text=query.get("text", "")[:200], state=state, since=since)


def _number(query: QueryParams, name: str, most: int) -> int:
    text = query[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 16 and int(text) <= most):
        raise FormatError(f"{name}: expected a whole number from 0 to {most}, found {text[:40]!r}")
    return int(text)


def content_security_policy(page: str) -> str:
    """Its own script and style and no other, its own host and no other, in no frame."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_digest(page, 'script')}",
            f"style-src {_digest(page, 'style')}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _digest(page: str, tag: str) -> str:
    inside = page.split(f"<{tag}>", 1)[1].split(f"</{tag}>", 1)[0]
    return f"'sha256-{b64encode(sha256(inside.encode()).digest()).decode()}'"
