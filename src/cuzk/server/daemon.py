"""The daemon's life: engine, gRPC and status page on one event loop, from the first request to the last signal.

    bind --> start the engine, recover the journal --> READY --> SIGTERM: drain --> all done, time up, SIGTERM: stop

A first SIGTERM, SIGINT or SIGHUP (a terminal that closes) refuses new requests and lets accepted ones end, for as long as the
settings say; a second one ends workers at once. What is unfinished then stays in the journal for the next start.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from cuzk.config import Settings, address
from cuzk.engine.engine import Engine
from cuzk.engine.job import State
from cuzk.engine.journal import Journal
from cuzk.errors import DeviceUnavailable
from cuzk.server.listen import Listening, bind
from cuzk.server.metrics import metrics_text
from cuzk.server.rpc_server import serve_rpc
from cuzk.server.status_json import status_json
from cuzk.server.web_server import serve_web

LOG = logging.getLogger("cuzk.serve")
GRACE = 2.0  # seconds that answers have which are there when the work is
ENDED = 60.0  # seconds after a drain in which all is closed and the process has ended
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Manager:
    """Who started the daemon and wants to know how it is; ``watchdog``: seconds between two signs of life, 0: none."""

    watchdog: float = 0.0

    def say(self, text: str) -> None:
        """As sd_notify's messages: "READY=1"."""


class Signals:
    """Counts those that end a daemon."""

    def __init__(self) -> None:
        self.count = 0
        self.first, self.second = asyncio.Event(), asyncio.Event()

    def come(self, number: signal.Signals) -> None:
        """One more."""
        self.count += 1
        LOG.info("%s: %s", number.name, "draining" if self.count == 1 else "stopping at once")
        (self.first if self.count == 1 else self.second).set()

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[None]:
        """Within: as events of this loop. One that is ignored (as under nohup) stays so."""
        loop = asyncio.get_running_loop()
        taken = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
        for number in taken:
            loop.add_signal_handler(number, self.come, number)
        try:
            yield
        finally:
            for number in taken:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)  # what comes now ends a process that ends


async def run_daemon(engine: Engine, journal: Journal, settings: Settings, manager: Manager) -> int:
    """Serve until stopped; how many accepted jobs are left for the next start.

    FormatError, Unavailable where an address cannot be had, a certificate or a token is none: before any work begins.
    """
    signals = Signals()
    async with signals.heard(), AsyncExitStack() as ending:
        listening = bind(address(settings.daemon.listen), wide=settings.security.allow_remote)
        ending.callback(listening.close)
        await _status_page(engine, settings, ending)
        ending.push_async_callback(engine.stop)
        if await _before(engine.start(), signals.first):
            _expect_a_device(engine)
            await _serve(engine, journal, settings, manager, signals, listening)
        return sum(not State(job.state).ended for job in engine.snapshot(ended=0).jobs)


async def _serve(
    engine: Engine,
    journal: Journal,
    settings: Settings,
    manager: Manager,
    signals: Signals,
    listening: Listening,
) -> None:
    """From the first request to the end of draining."""
    rpc = await serve_rpc(
        engine,
        settings,
        spool=journal.spool,
        status_json=status_json,
        metrics_text=metrics_text,
        listening=listening,
    )
    LOG.info("listens at %s", rpc.address)
    manager.say("READY=1")
    _spare_the_collector()
    alive = asyncio.create_task(_sign_of_life(manager))
    grace = 0.0
    try:
        await signals.first.wait()
        patience = int((settings.daemon.drain + ENDED) * 1e6)
        manager.say(f"STOPPING=1\nEXTEND_TIMEOUT_USEC={patience}")  # where its own limit is shorter
        rpc.drain()
        if await _before(engine.drain(settings.daemon.drain), signals.second):
            grace = GRACE
    finally:
        alive.cancel()
        await rpc.close(grace)


def _expect_a_device(engine: Engine) -> None:
    """One at least: DeviceUnavailable. Those that are not there are in the status."""
    workers = engine.snapshot(ended=0).workers
    if not any(worker.alive for worker in workers):
        faults = "; ".join(f"{worker.name}: {worker.fault}" for worker in workers)
        raise DeviceUnavailable(f"no device can be used: {faults}")


async def _status_page(engine: Engine, settings: Settings, ending: AsyncExitStack) -> None:
    if settings.daemon.status_listen:
        web = await serve_web(engine, settings)
        ending.push_async_callback(web.close)
        scheme = "https://" if settings.security.tls_certificate else "http://"
        LOG.info("status page: %s", web.address if ":/" in web.address else scheme + web.address)


def _spare_the_collector() -> None:
    """What is there by now stays: a full collection, for which everything waits, looks at what came later only (with a
    thousand jobs in the queue and a status call every 10 ms the longest such call takes 14 ms of the processor, and 55 without this)."""
    gc.collect()
    gc.freeze()


async def _before(work: Coroutine[Any, Any, object], event: asyncio.Event) -> bool:
    """Whether the work was done before the event; else it is cancelled. Its errors are raised."""
    task, stop = asyncio.ensure_future(work), asyncio.ensure_future(event.wait())
    await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if task.done():
        task.result()
        return True
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return False


async def _sign_of_life(manager: Manager) -> None:
    while manager.watchdog:
        manager.say("WATCHDOG=1")
        await asyncio.sleep(manager.watchdog)
