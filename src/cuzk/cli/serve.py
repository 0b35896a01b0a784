"""``cuzk serve``: from settings to a daemon."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import click

from cuzk.catalogue.answering import AnsweringCatalogue, await_looks
from cuzk.catalogue.catalogue import Catalogue
from cuzk.cli.app import cuzk_group, environment
from cuzk.cli.log_limit import spare_the_log
from cuzk.cli.options import FILE
from cuzk.cli.process_limits import limit_process
from cuzk.cli.resources import memory_limits, policy, usable_devices
from cuzk.cli.systemd import manager, start_log
from cuzk.cli.terminal import one_line, say, size, table
from cuzk.config import Settings, read_settings
from cuzk.config.reading import settings as validated
from cuzk.engine.catalogue import CircuitEntry
from cuzk.engine.engine import Engine
from cuzk.engine.journal import Journal
from cuzk.engine.limits import resident_bytes
from cuzk.engine.process import ProcessWorker
from cuzk.errors import CuzkError, FormatError, InternalError
from cuzk.server.daemon import run_daemon

LOG = logging.getLogger("cuzk.serve")
LEAVING = 5.0  # seconds for looks at files that are under way when the daemon ends
FIRST_LOOK = 10.0  # seconds that keys have at the start, from disks that sleep
NO_CIRCUITS = "no circuits: give --circuit ID=KEY, or a [[circuit]] in the settings"


@cuzk_group.command("serve", short_help="Run one.")
@click.option(
    "--config",
    type=FILE,
    help="Settings (examples/cuzk.toml has them all); options go before them.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT|unix:///PATH",
    help="Where requests come in; 127.0.0.1:9820 if not given.",
)
@click.option(
    "--status",
    metavar="HOST:PORT|off",
    help="Where the status page is; 127.0.0.1:9821 if not given.",
)
@click.option(
    "--state",
    type=FILE,
    metavar="DIR",
    help="The journal's folder; ~/.local/state/cuzk if not given.",
)
@click.option(
    "--circuit",
    "circuits",
    multiple=True,
    metavar="ID=KEY",
    help="Serve circom's circuit with this .zkey under this name; may be given several times.",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="auto|cpu|cuda|cuda:N|cuda:GPU-UUID",
    help="Devices to prove on; every GPU, else the CPU, if not given.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="CPU threads of each device's process; all of the machine's if not given.",
)
@click.option(
    "--check", is_flag=True, help="Look at settings and keys, say what is found, and end."
)
def serve_command(
    config: Path | None,
    listen: str | None,
    status: str | None,
    state: Path | None,
    circuits: tuple[str, ...],
    devices: tuple[str, ...],
    threads: int | None,
    check: bool,
) -> None:
    """Keep keys loaded and turn requests into verified proofs, until SIGTERM or Ctrl-C.

    A first signal lets accepted requests end (the setting `drain`), a second one stops at once; what is unfinished is
    done after the next start. With --check: exit status 0 where the settings are valid, whether or not every circuit
    is ready.

    \b
    Examples:
      cuzk serve --circuit membership=out/membership20.zkey
      cuzk serve --config /etc/cuzk/cuzk.toml --check
    """
    given: dict[str, dict[str, Any]] = {
        "daemon": {
            "listen": listen,
            "status_listen": "" if status == "off" else status,
            "state": state,
        },
        "devices": {"use": list(devices) or None, "threads": threads},
    }
    settings = settle(config, given, circuits)
    catalogue = Catalogue(settings.circuits, settings.filecoin)
    if check:
        say("\n".join(circuit_lines(catalogue.entries())))
        return
    start_log(settings.daemon.log_level)
    spare_the_log()
    limit_process()
    try:
        left = serve(settings, catalogue)
    except KeyboardInterrupt:  # before the daemon hears signals by itself
        left = 0
    except (CuzkError, MemoryError):
        raise
    except Exception as error:  # not status 2: after that a service manager does not start it again
        LOG.exception("the daemon failed: this is a bug")
        kind = type(error).__name__
        raise InternalError(
            f"internal error: {kind}: {error}; what was accepted is in the journal: start it again"
        ) from error
    if left:
        LOG.warning("ended; %d jobs are unfinished: the next start goes on with them", left)
    else:
        LOG.info("ended; nothing is unfinished")


def settle(
    config: Path | None, given: dict[str, dict[str, Any]], circuits: tuple[str, ...]
) -> Settings:
    """Of a file and of options, which go before it; FormatError."""
    found = read_settings(config) if config is not None else Settings()
    tables = found.model_dump(by_alias=True)
    parameters = environment().parameters
    if parameters is not None and "parameters" not in found.filecoin.model_fields_set:
        tables["filecoin"]["parameters"] = parameters
    for name, values in given.items():
        tables[name] |= {key: value for key, value in values.items() if value is not None}
    tables["circuit"] = [*tables["circuit"], *(_circuit(text) for text in circuits)]
    return validated(tables, Path.cwd(), "options" if config is None else f"{config} and options")


def _circuit(text: str) -> dict[str, Any]:
    name, equals, key = text.partition("=")
    if not equals or not name or not key:
        raise FormatError(f"--circuit: expected ID=KEY, found {text!r}")
    return {"id": name, "kind": "circom", "key": key}


def circuit_lines(entries: list[CircuitEntry]) -> list[str]:
    """A table of the circuits, and what is wrong with those that are not ready."""
    if not entries:
        return [NO_CIRCUITS]
    rows = [["circuit", "", "requests", "size", "key"]]
    for entry in entries:
        state = "NOT READY" if entry.fault else "ready"
        rows.append([entry.id, state, entry.kind, size(entry.key_bytes), entry.key])
    faults = [one_line(f"{entry.id}: NOT READY: {entry.fault}") for entry in entries if entry.fault]
    return [*(one_line_cells(rows)), *faults]


def one_line_cells(rows: list[list[str]]) -> list[str]:
    """A table whose cells may hold anything."""
    return table([[one_line(cell) for cell in row] for row in rows], words=True)


def serve(settings: Settings, catalogue: Catalogue) -> int:
    """Until it is stopped; how many jobs are left."""
    devices = usable_devices(settings.devices.use, no_gpu=environment().no_gpu)
    limits = memory_limits(settings.memory, devices)
    journal = Journal(settings.daemon.state)
    try:
        LOG.info("journal: %s", settings.daemon.state)
        workers = [
            ProcessWorker(
                device,
                device,
                catalogue,
                threads=settings.devices.threads,
                lanes=settings.devices.lanes,
                silence=settings.devices.patience,
            )
            for device in devices
        ]
        LOG.info("devices: %s; host memory at most %s", ", ".join(devices), size(limits["host"]))
        answering = AnsweringCatalogue(catalogue, devices)
        entries = answering.first(FIRST_LOOK)
        if not entries:
            LOG.warning(NO_CIRCUITS)
        for entry in entries:
            if entry.fault:
                LOG.warning("circuit %s: NOT READY: %s", entry.id, entry.fault)
            else:
                LOG.info("circuit %s: %s, %s", entry.id, entry.key, size(entry.key_bytes))
        engine = Engine(
            answering,
            workers,
            journal,
            policy(settings, answering, devices, limits),
            resident=resident_bytes,
        )
        return asyncio.run(run_daemon(engine, journal, settings, manager()))
    finally:
        journal.close()
        await_looks(LEAVING)
