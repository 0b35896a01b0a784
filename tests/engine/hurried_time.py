"""A loop whose clock a test moves on: minutes of silence in no time, while processes beside it live in the world's."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any


class HurriedLoop(asyncio.SelectorEventLoop):
    """``ahead``: seconds that its clock is before the world's."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def in_hurried_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=HurriedLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


def ahead(seconds: float) -> None:
    """As much later at once: as after a pause of this process."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, HurriedLoop)
    loop.ahead += seconds


async def hurry(until: Callable[[], object], what: str) -> None:
    """A second goes by in every round of the loop, ten minutes at most, until it is so."""
    for _ in range(600):
        if until():
            return
        ahead(1.0)
        await asyncio.sleep(0)
    raise AssertionError(what)
