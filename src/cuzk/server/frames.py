"""HTTP/2 frames of one client looked at before anything is done with them: how large, and how many that carry nothing.

    frame = length (24 bits)  kind (8)  flags (8)  stream (32)     then ``length`` bytes; before the first a preface of 24

h2 handles what it gets: a client that sends nothing but PING, SETTINGS or calls that it takes back at once keeps an event loop
busy at no cost of its own (256 KiB of PING frames: 0.25 s). So each such frame costs something, what a client has to spend
grows with time, and a call that was answered gives back what it cost: who calls and waits for answers never runs short.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from h2.exceptions import FrameTooLargeError, ProtocolError

FRAME = 128 << 10  # bytes of the largest: an eighth as many to handle as with HTTP/2's usual 16 KiB
HEADER = 9
PREFACE = 24
HEADERS_BYTES = 32 << 10  # of one call, as they are sent: gRPC's own are 300, a token 4 KiB at most
BURST = 2048.0  # 30 ms of the event loop
EACH_SECOND = 1000.0  # 15 ms
CALL = 4  # what its headers cost
ANSWERED = 8  # given back: its headers, a message, the client's windows
SMALL = 256  # bytes of a DATA frame that costs something, too
DATA, HEADERS, SETTINGS, CONTINUATION = 0, 1, 4, 9
END_HEADERS = 4
COSTS = {HEADERS: CALL, SETTINGS: 4}


class Frames:
    """Of one connection. ProtocolError where its client has nothing left to spend, FrameTooLargeError."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._credit, self._when = BURST, clock()
        self._head = bytearray()
        self._left = PREFACE
        self._block = 0

    def take(self, data: bytes) -> None:
        """The next bytes; nothing is kept of them but the beginning of a frame's header."""
        self._earn()
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
            else:
                step = min(HEADER - len(self._head), len(data) - at)
                self._head += data[at : at + step]
                if len(self._head) == HEADER:
                    self._begin(int.from_bytes(self._head[:3], "big"), self._head[3], self._head[4])
                    self._head.clear()
            at += step

    def answered(self) -> None:
        """A call was."""
        self._credit = min(BURST, self._credit + ANSWERED)

    def _earn(self) -> None:
        now = self._clock()
        self._credit = min(BURST, self._credit + EACH_SECOND * (now - self._when))
        self._when = now

    def _begin(self, length: int, kind: int, flags: int) -> None:
        if length > FRAME:
            raise FrameTooLargeError(f"a frame of {length:,} bytes, expected at most {FRAME:,}")
        self._left = length
        if kind in (HEADERS, CONTINUATION):
            self._block += length
            if self._block > HEADERS_BYTES:
                raise ProtocolError(f"headers of more than {HEADERS_BYTES:,} bytes")
            if flags & END_HEADERS:
                self._block = 0
        if kind != DATA or length < SMALL:
            self._credit -= COSTS.get(kind, 1)
            if self._credit < 0:
                raise ProtocolError("too many frames that carry nothing")
