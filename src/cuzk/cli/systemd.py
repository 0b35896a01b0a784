"""What a service manager is told (sd_notify), and lines as its journal takes them.

READY=1 when the service takes requests, STOPPING=1, WATCHDOG=1 from its event loop: datagrams to the socket that the
manager names. Without one nothing is sent.
"""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass

from cuzk.cli.terminal import one_line, to_journal
from cuzk.server.daemon import Manager

PRIORITIES = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
CLEAN = ("uvicorn", "grpclib", "h2", "hpack", "asyncio")  # libraries: warnings and worse alone


@dataclass(frozen=True)
class Systemd(Manager):
    """``address``: of a Unix socket, "@..." of an abstract one; "": there is no manager."""

    address: str = ""

    def say(self, text: str) -> None:
        """A manager that has gone away is no reason to stop."""
        if not self.address:
            return
        name = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            try:
                to.connect(name)
                to.send(text.encode())
            except OSError as error:
                logging.getLogger("cuzk.serve").warning("NOTIFY_SOCKET: %s", error.strerror)


def manager() -> Systemd:
    """As the variables say, which no child inherits."""
    address = os.environ.pop("NOTIFY_SOCKET", "")
    period = os.environ.pop("WATCHDOG_USEC", "")
    watched = os.environ.pop("WATCHDOG_PID", "") in ("", str(os.getpid()))
    every = int(period) / 2e6 if watched and period.isdecimal() else 0.0
    return Systemd(watchdog=every, address=address)


class Lines(logging.Formatter):
    """One line an event, whatever is in it; a traceback's lines joined."""

    def format(self, record: logging.LogRecord) -> str:
        """ "2026-11-30 03:15:50 warning cuzk.engine: ..."; in a journal, which has the time, "<4>cuzk.engine: ..."."""
        text = one_line(super().format(record))
        if to_journal():
            return f"<{PRIORITIES.get(record.levelname, 6)}>{record.name}: {text}"
        when = self.formatTime(record, "%Y-%m-%d %H:%M:%S")
        return f"{when} {record.levelname.lower()} {record.name}: {text}"


def start_log(level: str) -> None:
    """Events of this level and above, on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in CLEAN:
        logging.getLogger(name).setLevel(logging.WARNING)
