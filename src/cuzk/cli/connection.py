"""Which proving service the commands that need one talk to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from cuzk.cli.app import environment
from cuzk.cli.options import FILE
from cuzk.errors import FormatError
from cuzk.server.client import DEFAULT_ADDRESS, Client

CALL_SECONDS = 60.0  # that an answer may take which waits for no proof


@dataclass(frozen=True)
class Service:
    """What the options say; nothing is read before ``connect``."""

    address: str
    token_file: Path | None
    certificate: Path | None

    def connect(self) -> Client:
        """A client of it."""
        return Client(
            self.address,
            token=None if self.token_file is None else read_token(self.token_file),
            certificate=self.certificate,
            timeout=CALL_SECONDS,
        )


def service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--address``, ``--token-file``, ``--tls-certificate``, handed to the command as its ``service``."""

    @click.option(
        "--address",
        metavar="HOST:PORT|unix:///PATH",
        help=f"The service; CUZK_ADDRESS, or {DEFAULT_ADDRESS}, if not given.",
    )
    @click.option("--token-file", type=FILE, help="The token of a service that asks for one.")
    @click.option(
        "--tls-certificate",
        "certificate",
        type=FILE,
        help="Talk TLS, to the service with this certificate (PEM), or with one that it signed.",
    )
    @wraps(command)
    def connected(
        *, address: str | None, token_file: Path | None, certificate: Path | None, **rest: Any
    ) -> None:
        where = address or environment().address or DEFAULT_ADDRESS
        command(service=Service(where, token_file, certificate), **rest)

    return connected


def read_token(path: Path) -> str:
    """A file's one line; FormatError for an empty file, more lines, or what no header can hold."""
    try:
        token = path.read_text("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isprintable() or " " in token:
        raise FormatError(f"{path}: expected a token, one line of printable ASCII, found none")
    return token
