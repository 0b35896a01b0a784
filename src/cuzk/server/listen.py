"""Where the daemon listens: ``unix:///path``, a socket of mode 0600, or ``host:port`` on the loopback interface.

Anything wider only where the settings say so and there are both TLS and a token.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cuzk.config.addresses import Address
from cuzk.errors import FormatError, Unavailable

BACKLOG = 128
ONE = 1
"""asyncio's ``backlog``: how many it accepts in a row, too. Where there is no file left for one more it goes on with that row,
and logs and tries again for each (Python 3.11: 70,000 lines in a second)."""


@dataclass(frozen=True)
class Listening:
    """A socket that listens, and what clients call it."""

    socket: socket.socket
    address: str
    path: Path | None = None
    inode: int = 0

    def close(self) -> None:
        """Take its file away, where it is still this socket's."""
        self.socket.close()
        if self.path is not None:
            try:
                if self.path.lstat().st_ino == self.inode:
                    self.path.unlink()
            except FileNotFoundError:
                pass


def bind(where: Address, *, wide: bool = False) -> Listening:
    """FormatError for what is not there, or not local and not ``wide``; Unavailable where another listens."""
    if where.path is not None:
        return _bind_unix(where.path)
    try:
        family, _, _, _, place = socket.getaddrinfo(
            where.host, where.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise FormatError(f"{where}: {_reason(error)}") from None
    if not wide and not ip_address(str(place[0]).partition("%")[0]).is_loopback:
        raise FormatError(
            f"{where}: expected a name of this machine's loopback interface, found one of {place[0]}; for other"
            " machines set security.allow_remote, tls_certificate, tls_key and token_file"
        )
    # the protocol by its number: asyncio sets TCP_NODELAY where it sees it (without: 43 ms for a call, with: 1)
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(place)
        bound.listen(BACKLOG)  # of two that are bound with SO_REUSEADDR the second fails here
    except OSError as error:
        bound.close()
        raise Unavailable(f"{where}: {_reason(error)}; does another daemon listen there?") from None
    host, port = bound.getsockname()[:2]
    return Listening(bound, str(Address(host, port)))


def _bind_unix(path: Path) -> Listening:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _reclaim(path)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            before = os.umask(0o177)
            try:
                bound.bind(str(path))
            finally:
                os.umask(before)
            path.chmod(0o600)  # where the file system has its own ideas
            bound.listen(BACKLOG)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise Unavailable(f"{path}: no socket can be made there: {_reason(error)}") from None
    return Listening(bound, str(Address(path=path)), path, path.lstat().st_ino)


def _reclaim(path: Path) -> None:
    """Remove a socket that nobody listens on any more; Unavailable naming who does, FormatError for another file."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FormatError(f"{path}: expected a socket or nothing, found another file")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        known = other_end(probe)
        raise Unavailable(f"{path}: process {known[0] if known else '(unknown)'} listens there")


def other_end(connected: socket.socket) -> tuple[int, int] | None:
    """(process, user) at the other end of a Unix socket; None on another system than Linux."""
    try:
        size = struct.calcsize("3i")
        pid, uid, _ = struct.unpack(
            "3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        )
    except (AttributeError, OSError):
        return None
    return pid, uid


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
