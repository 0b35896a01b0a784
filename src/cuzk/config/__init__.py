"""The daemon's settings: one TOML file, every key known, every value checked before anything starts.

    [daemon]      where it listens, where it keeps its journal
    [security]    certificate, token, limits of a client
    [memory]      limits; "auto" is what the machine and its cgroup leave
    [devices]     which, threads, proofs at a time
    [queue]       how much may wait, how long results are kept
    [filecoin]    where parameter files are
    [[circuit]]   id, kind, key of each circuit

``examples/cuzk.toml`` has every key with its default. Sizes are "512MiB", "12GiB" or bytes (units of 1024),
durations "90s", "5m", "24h", "7d" or seconds. Paths are relative to the file's folder; ``~`` is the user's home.
"""

from cuzk.config.addresses import Address, address
from cuzk.config.reading import read_settings
from cuzk.config.settings import (
    CircuitSettings,
    DaemonSettings,
    DeviceSettings,
    FilecoinSettings,
    MemorySettings,
    QueueSettings,
    SecuritySettings,
    Settings,
)

__all__ = [
    "Address",
    "CircuitSettings",
    "DaemonSettings",
    "DeviceSettings",
    "FilecoinSettings",
    "MemorySettings",
    "QueueSettings",
    "SecuritySettings",
    "Settings",
    "address",
    "read_settings",
]
