"""Where a server listens: "host:port", "[IPv6]:port" or "unix:///absolute/path"."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cuzk.errors import FormatError

UNIX = "unix://"
FORMS = '"host:port" or "unix:///absolute/path"'
MOST_PORT = (1 << 16) - 1
MOST_PATH = 100
"""Bytes of a socket's path: the system takes 107, or 103."""


@dataclass(frozen=True)
class Address:
    """Either ``path``, or ``host`` and ``port`` (0: any that is free)."""

    host: str = ""
    port: int = 0
    path: Path | None = None

    @property
    def local(self) -> bool:
        """Whether only processes of this machine can reach it; of names only "localhost" is known to be so."""
        if self.path is not None or self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        if self.path is not None:
            return f"{UNIX}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str) -> Address:
    """FormatError for a text of another form, a bare port among them."""
    if text.startswith(UNIX):
        return Address(path=_path(text))
    host, colon, port = text.rpartition(":")
    number = int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 else -1
    if not colon or not host or not 0 <= number <= MOST_PORT:
        advice = f' (for this machine alone: "127.0.0.1:{number}")' if number >= 0 else ""
        raise FormatError(f"expected {FORMS}, found {text!r}{advice}")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if bare == host and ":" in host:
        raise FormatError(f'expected an IPv6 address in brackets ("[::1]:9820"), found {text!r}')
    if not bare or any(c.isspace() or c in "/[]@" or not c.isprintable() for c in bare):
        raise FormatError(f"expected {FORMS}, found {text!r}")
    return Address(bare, number)


def _path(text: str) -> Path:
    path = text.removeprefix(UNIX)
    if not path.startswith("/") or not path.isprintable() or path.endswith("/"):
        raise FormatError(f"expected {FORMS}, found {text!r}")
    if (length := len(path.encode())) > MOST_PATH:
        raise FormatError(f"expected a socket's path of at most {MOST_PATH} bytes, found {length}")
    return Path(path)
