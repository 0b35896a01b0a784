"""What any worker in a process takes for a call: a pickle there, a thread that takes it up, a pickle back."""

from __future__ import annotations

import asyncio
import pickle
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

SIZE = struct.Struct("<Q")
CHILD = """
import pickle, struct, sys
from concurrent.futures import ThreadPoolExecutor
sys.path[:] = eval(sys.argv[1])
questions, answers = sys.stdin.buffer, sys.stdout.buffer

def answer(future):
    body = pickle.dumps(future.result())
    answers.write(struct.pack("<Q", len(body)) + body)
    answers.flush()

with ThreadPoolExecutor(2) as pool:
    while head := questions.read(8):
        request = pickle.loads(questions.read(*struct.unpack("<Q", head)))
        pool.submit(len, request.payload).add_done_callback(answer)
"""


@asynccontextmanager
async def bare() -> AsyncIterator[Callable[[object], Awaitable[object]]]:
    """The call; one at a time."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, repr(sys.path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )  # fmt: skip
    questions, answers = process.stdin, process.stdout
    assert questions is not None
    assert answers is not None

    async def call(message: object) -> object:
        body = pickle.dumps(message)
        questions.write(SIZE.pack(len(body)) + body)
        (size,) = SIZE.unpack(await answers.readexactly(SIZE.size))
        return pickle.loads(await answers.readexactly(size))

    try:
        yield call
    finally:
        questions.close()
        await process.wait()
