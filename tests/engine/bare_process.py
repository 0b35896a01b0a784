"""What any worker in a process takes for a call: a pickle there, a thread that takes it up, a pickle back."""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

SIZE = struct.Struct("<Q")
CHILD = """
import pickle, socket, struct, sys
from concurrent.futures import ThreadPoolExecutor
sys.path[:] = eval(sys.argv[1])
channel = socket.socket(fileno=int(sys.argv[2])).makefile("rwb")

def answer(future):
    body = pickle.dumps(future.result())
    channel.write(struct.pack("<Q", len(body)) + body)
    channel.flush()

with ThreadPoolExecutor(2) as pool:
    while head := channel.read(8):
        request = pickle.loads(channel.read(*struct.unpack("<Q", head)))
        pool.submit(len, request.payload).add_done_callback(answer)
"""


@asynccontextmanager
async def bare() -> AsyncIterator[Callable[[object], Awaitable[object]]]:
    """The call; one at a time."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, repr(sys.path), str(theirs.fileno()),
            pass_fds=(theirs.fileno(),),
        )  # fmt: skip
    reader, writer = await asyncio.open_connection(sock=ours)

    async def call(message: object) -> object:
        body = pickle.dumps(message)
        writer.write(SIZE.pack(len(body)) + body)
        (size,) = SIZE.unpack(await reader.readexactly(SIZE.size))
        return pickle.loads(await reader.readexactly(size))

    try:
        yield call
    finally:
        writer.close()
        await writer.wait_closed()
        await process.wait()
