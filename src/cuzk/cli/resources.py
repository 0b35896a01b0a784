"""What a daemon may use of this machine: devices, memory, and what the engine makes of its settings."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

from cuzk.config import MemorySettings, Settings
from cuzk.engine.catalogue import Catalogue
from cuzk.engine.limits import host_limit, host_memory, pinned_limit
from cuzk.engine.policy import EnginePolicy
from cuzk.errors import DeviceUnavailable

LOG = logging.getLogger("cuzk.serve")
DRIVER = Path("/proc/driver/nvidia")
COUNT = "from cuzk.backends.cuda.device import device_count; print(device_count())"
NUMBER = """
import sys
from cuzk.backends.cuda.device import ordinal_of
from cuzk.errors import DeviceUnavailable
try:
    print(ordinal_of(sys.argv[1]))
except DeviceUnavailable as error:
    sys.exit(str(error))
"""
COUNT_SECONDS = 60.0


def policy(
    settings: Settings, catalogue: Catalogue, devices: list[str], limits: dict[str, int]
) -> EnginePolicy:
    """The engine's settings."""
    queue = settings.queue
    return EnginePolicy(
        queue_limit=queue.limit,
        queue_bytes=queue.bytes,
        critical_places=queue.critical,
        ageing=queue.ageing,
        keep=queue.keep,
        losses=queue.losses,
        limits=limits,
        headroom=headroom(settings.memory, catalogue, devices, limits),
        lanes=settings.devices.lanes,
    )


def memory_limits(memory: MemorySettings, devices: list[str]) -> dict[str, int]:
    """Bytes of "host", "pinned" and, where the settings have a number, each GPU; of others their workers know it."""
    host = host_limit(host_memory(), memory.margin) if memory.host is None else memory.host
    limits = {
        "host": host,
        "pinned": pinned_limit(host) if memory.pinned is None else memory.pinned,
    }
    if memory.device is not None:
        limits |= {device: memory.device for device in devices if device != "cpu"}
    return limits


def headroom(
    memory: MemorySettings, catalogue: Catalogue, devices: list[str], limits: dict[str, int]
) -> dict[str, int]:
    """What is kept for CRITICAL jobs: of the host's memory what the settings say, or else what one WinningPoSt
    takes, of each memory, but no more than half of it."""
    if memory.headroom is not None:
        return {"host": memory.headroom}
    kept: dict[str, int] = {}
    for entry in catalogue.entries():
        if entry.fault or entry.kind != "winning-post":
            continue
        for device in devices:
            needs = catalogue.needs(entry.id, device)
            for name in {*needs.key, *needs.partition}:
                taken = needs.key.get(name, 0) + needs.partition.get(name, 0)
                kept[name] = max(kept.get(name, 0), taken)
    return {name: min(taken, limits.get(name, 2 * taken) // 2) for name, taken in kept.items()}


def usable_devices(use: tuple[str, ...], *, no_gpu: bool) -> list[str]:
    """Names of workers, each GPU's by its number, as its memory is called, however it was asked for; DeviceUnavailable
    for GPUs that must not be used, are not there, or of which there are none."""
    if use == ("auto",):
        return ["cpu"] if no_gpu or not DRIVER.exists() else _all_gpus() or _cpu_instead()
    found: list[str] = []
    for name in use:
        if no_gpu and name != "cpu":
            raise DeviceUnavailable(f"devices: CUZK_NO_GPU forbids {name}; unset it or use the cpu")
        named = _all_gpus() if name == "cuda" else [_numbered(name)]
        if not named:
            raise DeviceUnavailable("devices: cuda: no GPU can be used; `cuzk doctor` says why")
        found += named
    return list(dict.fromkeys(found))


def _numbered(name: str) -> str:
    kind, _, which = name.partition(":")
    if which.startswith("GPU-"):
        done = _asked(NUMBER, which)
        if done is None or done.returncode:
            lines = done.stderr.splitlines() if done else []
            reason = lines[-1] if lines else "the driver did not answer; see `cuzk doctor`"
            raise DeviceUnavailable(f"devices: {name}: {reason}")
        which = done.stdout
    return f"{kind}:{int(which)}" if which else name


def _cpu_instead() -> list[str]:
    LOG.warning(
        "devices: no GPU can be used, though NVIDIA's driver is there: `cuzk doctor` says why"
    )
    return ["cpu"]


def _all_gpus() -> list[str]:
    done = _asked(COUNT)
    count = int(done.stdout) if done is not None and done.returncode == 0 else 0
    return [f"cuda:{number}" for number in range(count)]


def _asked(code: str, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Of the driver, in another process: the daemon's never loads it. None where that hangs."""
    try:
        return subprocess.run(
            [sys.executable, "-P", "-c", code, *arguments],
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=COUNT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return None
