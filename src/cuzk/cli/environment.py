"""The environment variables of cuzk; nothing else in the package reads or sets one.

CUZK_DEBUG     1: tracebacks instead of one-line errors
CUZK_CPU_PATH  portable | adx: the arithmetic to use instead of the best this CPU has
CUZK_NO_GPU    1 or true: behave as on a machine without a GPU; 0, false, empty: no effect
CUZK_ADDRESS   host:port or unix:///path of the proving service that commands talk to

FIL_PROOFS_PARAMETER_CACHE    the directory of Filecoin's parameter files, as Filecoin's own software reads it
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cuzk import _core
from cuzk.errors import DeviceUnavailable, FormatError

SWITCH = {"": False, "0": False, "false": False, "1": True, "true": True}


@dataclass(frozen=True)
class Environment:
    """What the variables say."""

    no_gpu: bool
    parameters: Path | None
    """None: where Filecoin's software looks by itself."""
    address: str = ""
    """Of the proving service; "": the default."""

    def device(self, asked: str) -> str:
        """What ``--device`` comes to; DeviceUnavailable for a GPU that must not be used."""
        if self.no_gpu and asked.startswith("cuda"):
            raise DeviceUnavailable(
                f"--device: CUZK_NO_GPU forbids {asked}; unset it or use --device cpu"
            )
        return "cpu" if self.no_gpu else asked


def debugging() -> bool:
    """Whether errors show their traceback."""
    return os.environ.get("CUZK_DEBUG", "") not in ("", "0")


def quiet_blas() -> None:
    """numpy's linear algebra, not used here, would start a thread per CPU that spins: 25 ms of each at start."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def quiet_grpc() -> None:
    """gRPC's core would write its own lines to stderr where a connection fails: errors here are one line."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def apply_environment() -> Environment:
    """Read the variables and choose the arithmetic path; a value that means nothing is refused."""
    path = os.environ.get("CUZK_CPU_PATH", "")
    if path and path not in _core.paths():
        known = ", ".join(_core.paths())
        raise FormatError(f"CUZK_CPU_PATH: expected one of {known} on this CPU, found {path!r}")
    if path:
        _core.use_path(path)
    folder = os.environ.get("FIL_PROOFS_PARAMETER_CACHE", "")
    return Environment(
        no_gpu=_switch("CUZK_NO_GPU"),
        parameters=Path(folder) if folder else None,
        address=os.environ.get("CUZK_ADDRESS", ""),
    )


def _switch(name: str) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value not in SWITCH:
        raise FormatError(f"{name}: expected 0, 1, false, true or nothing, found {value!r}")
    return SWITCH[value]
