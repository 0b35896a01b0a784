"""The stand-in's device memory: one pool; what was freed is given again as soon as the real pool may."""

# ruff: noqa: ARG002, N802 - names and parameters are the driver's
from __future__ import annotations

from typing import Any

import numpy as np
from cuda.bindings import driver as real
from numpy.typing import NDArray

from emulator.answers import Answer, status
from emulator.streams import Free, Piece, Stream, Wait


class DeviceMemory:
    """``memory`` bytes, ``others`` of which are held by another process."""

    def __init__(self, memory: int) -> None:
        self.memory, self.others = memory, 0
        self.context = 0  # what this process has beside its pool
        self.blocks: dict[int, NDArray[np.uint8]] = {}
        self.reserved = 0  # what the pool took from the device
        self._freed: list[Piece] = []  # by frees that their streams have not come to
        self._idle: list[Piece] = []  # host memory stays, whoever still writes into it
        self._pieces: dict[int, Piece] = {}

    def _cuMemPoolCreate(self, properties: Any) -> Answer:
        return ("pool",)

    def _cuMemPoolSetAttribute(self, pool: Any, name: Any, value: Any) -> Answer:
        return ()

    def _cuMemPoolGetAttribute(self, pool: Any, name: Any) -> Answer:
        reserved = real.CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
        return (real.cuuint64_t(self.reserved if name == reserved else self._held),)

    def _cuMemPoolTrimTo(self, pool: Any, keep: int) -> Answer:
        self.reserved = self._held
        return ()

    @property
    def _held(self) -> int:
        return sum(block.nbytes - 256 for block in self.blocks.values())

    def _cuMemGetInfo(self) -> Answer:
        return self.memory - self.others - self.context - self.reserved, self.memory

    def _cuMemAllocFromPoolAsync(self, nbytes: int, pool: Any, stream: Stream) -> Any:
        """What its own stream has given back at once, that of others when they have come to it."""
        if nbytes == 0:
            return status("INVALID_VALUE")
        for found in (self._freed, self._idle):
            for piece in reversed(found):
                if piece.nbytes == nbytes and piece.is_there_for(stream) and (piece.pending or self._fits(nbytes)):  # fmt: skip
                    found.remove(piece)
                    return self._given(piece)
        if not self._fits(nbytes):
            return status("OUT_OF_MEMORY")
        return self._given(Piece(np.full(nbytes + 256, 0xC7, np.uint8), nbytes))

    def _fits(self, nbytes: int) -> bool:
        return self._held + nbytes <= self.memory - self.others

    def _given(self, piece: Piece) -> Answer:
        piece.live = True
        self._pieces[piece.address] = piece
        self.blocks[piece.address] = piece.array
        self.reserved = max(self.reserved, self._held)
        return (piece.address,)

    def _cuMemFreeAsync(self, address: int, stream: Stream) -> Any:
        assert stream.open
        piece = self._pieces.get(address)
        if piece is None or not piece.live:
            return status("INVALID_VALUE")
        piece.live, piece.pending = False, piece.pending + 1
        piece.freed = Wait(stream, stream.queued + 1)
        self._freed.append(piece)

        def free() -> None:
            piece.fill(0xDD)
            piece.pending -= 1
            if piece in self._freed and not piece.pending:
                self._freed.remove(piece)
                del self.blocks[address]
                self._idle.append(piece)

        stream.waiting.append(Free(free))
        return ()
