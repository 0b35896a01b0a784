"""Which GPUs there are, and opening one; :class:`DeviceUnavailable` says in one line why one cannot be used.

Finding a device costs nothing before it is asked for: the bindings (extra ``cuda``) are imported here, at
the first call.
"""

from __future__ import annotations

import threading
from typing import Any

from cuzk.backends.cuda import kernels
from cuzk.backends.cuda.cache import Cache, default_folder
from cuzk.backends.cuda.card import Card, uuid_of
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.backends.cuda.driver import Driver
from cuzk.backends.cuda.machine import Machine
from cuzk.curves import Curve
from cuzk.errors import DeviceUnavailable

_cards: dict[int, Card] = {}  # a process has one context of a device
_cards_lock = threading.Lock()


def device_count() -> int:
    """Devices that this process sees; DeviceUnavailable, with the reason, where there is none."""
    driver = Driver(_bindings(), "cuda")
    try:
        driver.cuInit(0)
        count = int(driver.cuDeviceGetCount())
    except DeviceUnavailable as error:
        raise DeviceUnavailable(_why_none(error)) from error
    if not count:
        raise DeviceUnavailable(NONE_VISIBLE)
    return count


def ordinal_of(uuid: str) -> int:
    """The number of the visible device whose UUID begins so; DeviceUnavailable where that is not one."""
    count, driver = device_count(), Driver(_bindings(), "cuda")
    known = [uuid_of(driver, driver.cuDeviceGet(ordinal)) for ordinal in range(count)]
    found = [ordinal for ordinal, each in enumerate(known) if each.startswith(uuid)]
    if len(found) != 1:
        raise DeviceUnavailable(
            f"{uuid}: expected the UUID of one visible device, or as much of it as tells them apart, "
            f"found {len(found)} such among {', '.join(known)}"
        )
    return found[0]


def open_machine(ordinal: int, curve: Curve) -> Machine:
    """A new stream on device ``ordinal`` with the curve's kernels; DeviceUnavailable says why there is none."""
    machine = CudaMachine(open_card(ordinal))
    machine.prepare(curve)
    return machine


def open_card(ordinal: int) -> Card:
    """The process's card of that number."""
    with _cards_lock:
        card = _cards.get(ordinal)
        if card is None:
            _expect_visible(ordinal)
            card = _cards[ordinal] = Card(_bindings(), ordinal, Cache(default_folder()), _nvml())
    if card.driver.lost:
        raise DeviceUnavailable(
            f"lost to this process after an error, start a new one: {card.driver.lost}"
        )
    expect_code_for(card)
    return card


def _expect_visible(ordinal: int) -> None:
    count = device_count()
    if ordinal >= count:
        there = "1 device is" if count == 1 else f"{count} devices are"
        names = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        raise DeviceUnavailable(f"cuda:{ordinal}: {there} visible; take {names}")


def expect_code_for(card: Card) -> None:
    """DeviceUnavailable where NVRTC or the driver does not fit the card."""
    compiler, facts = kernels.compiler(), card.facts
    made = ".".join(map(str, compiler.version))
    if facts.architecture not in compiler.architectures:
        built = ", ".join(f"sm_{n}" for n in compiler.architectures)
        raise DeviceUnavailable(
            f"{facts.name}: {facts.title} is sm_{facts.architecture}, kernels can be built for {built} (NVRTC {made})"
        )
    if facts.driver[0] < compiler.version[0]:
        found = ".".join(map(str, facts.driver))
        raise DeviceUnavailable(
            f"{facts.name}: the driver is too old: it runs code of CUDA {found}, the kernels are built by "
            f"NVRTC {made}; update the NVIDIA driver"
        )


NONE_VISIBLE = "no NVIDIA GPU is visible (none is there, or CUDA_VISIBLE_DEVICES hides them)"


def _bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DeviceUnavailable(f"CUDA support is not installed: {kernels.INSTALL}") from error
    return driver


def _nvml() -> Any:
    """None where the bindings have none: those before 13.1."""
    try:
        from cuda.bindings import nvml
    except ImportError:
        return None
    return nvml


def _why_none(error: DeviceUnavailable) -> str:
    text = str(error)
    if "NO_DEVICE" in text or "INVALID_DEVICE" in text:
        return NONE_VISIBLE
    if isinstance(
        error.__cause__, RuntimeError
    ):  # the bindings', where there is no library to load
        return "no NVIDIA driver is installed (libcuda.so.1 was not found)"
    return text
