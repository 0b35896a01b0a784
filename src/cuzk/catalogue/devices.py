"""What a worker works on, as it is now: the CPU, whose memory is everybody's, or a GPU with its own."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from cuzk.engine.catalogue import OTHERS, Device
from cuzk.errors import DeviceUnavailable
from cuzk.prover.devices import thread_count

CPUINFO = Path("/proc/cpuinfo")
CONTEXT = "context"
"""What this process has of a GPU's memory whatever it proves: the driver's state, kernels and their stacks."""


def device_named(name: str) -> Device:
    """ "cpu", "cuda", "cuda:N" or "cuda:GPU-UUID"; DeviceUnavailable says why it cannot be used.

    A GPU's memory is called by its number, "cuda:0", however it was asked for. Quick after the first time.
    """
    if name == "cpu":
        threads = thread_count(None)
        counted = "1 thread" if threads == 1 else f"{threads} threads"
        return Device(f"{_cpu_title()}, {counted}")
    match = re.fullmatch(r"cuda(?::([0-9]{1,4}|GPU-[0-9a-f-]{4,36}))?", name)
    if not match:
        raise DeviceUnavailable(
            f"device: expected cpu, cuda, cuda:N or cuda:GPU-UUID, found {name!r}"
        )
    from cuzk.backends.cuda import device

    which = match[1] or "0"
    card = device.open_card(device.ordinal_of(which) if which.startswith("GPU-") else int(which))
    card.enter()  # this may be a thread of its own
    facts, taken = card.facts, card.occupancy()
    if taken.own is None:
        overhead = {f"{CONTEXT} and {OTHERS}": taken.others}
    else:
        overhead = {CONTEXT: taken.own, OTHERS: taken.others}
    name = facts.name
    return Device(
        facts.title, {name: facts.total_bytes}, {name: card.free_bytes()}, {name: overhead}
    )


def _cpu_title() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", CPUINFO.read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()
