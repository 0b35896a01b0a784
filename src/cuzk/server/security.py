"""Who may call: a certificate of ours, a token of theirs, and how many calls one client has at a time.

The token comes along as ``authorization: Bearer TOKEN`` with every call, health and reflection included.
"""

from __future__ import annotations

import os
import secrets
import ssl
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cuzk.errors import FormatError, Refused
from cuzk.server.codes import NoToken, TooMuch

TOKEN_CHARACTERS = range(16, 4097)
ALL_CLIENTS = 4
"""As many calls as this number of clients with all of theirs, at a time."""


def read_token(path: Path) -> str:
    """The token in a file that its owner alone may read; FormatError."""
    _private(path, stat.S_IRWXG | stat.S_IRWXO, "0600")
    try:
        token = path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise FormatError(f"{path}: expected a token in ASCII: {_reason(error)}") from None
    if len(token) not in TOKEN_CHARACTERS or not token.isprintable() or " " in token:
        raise FormatError(
            f"{path}: expected a token of {TOKEN_CHARACTERS.start} to {TOKEN_CHARACTERS.stop - 1:,} characters"
            f" without spaces, found {len(token):,}; make one with `openssl rand -hex 32`"
        )
    return token


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """For a server that speaks TLS 1.2 or later and HTTP/2; FormatError."""
    _private(key, stat.S_IRWXO, "0640")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise FormatError(
            f"{certificate}, {key}: expected a certificate and its key in PEM: {_reason(error)}"
        ) from None
    return context


def check_token(token: str | None, given: Sequence[str]) -> None:
    """Of the values of ``authorization``; in a time that says nothing of the token. NoToken, Refused."""
    if token is None:
        return
    if len(given) != 1 or given[0][:7].lower() != "bearer ":
        raise NoToken("expected a token (authorization: Bearer TOKEN), found none")
    if not secrets.compare_digest(given[0][7:].strip().encode(), token.encode()):
        raise Refused("expected the daemon's token, found another one")


class Calls:
    """Calls in progress: at most ``limit`` of one client, four times as many of all."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.of: Counter[str] = Counter()

    @contextmanager
    def one(self, client: str) -> Iterator[None]:
        """While a call is in progress; TooMuch where there are as many as may be."""
        if self.of[client] >= self.limit or self.of.total() >= self.limit * ALL_CLIENTS:
            raise TooMuch(
                f"expected at most {self.limit:,} calls at a time of one client and"
                f" {self.limit * ALL_CLIENTS:,} of all, found one more; try again later"
            )
        self.of[client] += 1
        try:
            yield
        finally:
            self.of[client] -= 1
            if not self.of[client]:
                del self.of[client]


def _private(path: Path, forbidden: int, wanted: str) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise FormatError(f"{path}: {_reason(error)}") from None
    if mode & forbidden:
        found = f"{stat.S_IMODE(mode):04o}"
        raise FormatError(f"{path}: expected a file of mode {wanted} at most, found {found}")


def _reason(error: Exception) -> str:
    if isinstance(error, PermissionError):
        user = os.geteuid()
        return f"no permission for the daemon's user; `chown {user}` the file, which its owner alone may read"
    return getattr(error, "strerror", None) or str(error)
