"""Which device proves, and with how many threads."""

from __future__ import annotations

import os
import re

from cuzk.backends import Backend, Workload
from cuzk.backends.cpu import CpuBackend
from cuzk.curves import Curve
from cuzk.errors import BackendError, DeviceUnavailable, FormatError, KernelError

# What a process spends before its first proof on a GPU: driver, kernels from the cache, self-test (1.7 s more than
# a process on the CPU; H200, 2026-11-29). Then a GPU proves sooner at any size.
OPENING_SECONDS = 1.7
# A thread's time for a point of a sum with a full scalar, everything else of a proof in it, by words of Fp (Xeon of
# the same machine: 4.5 s for the 7 * 2^16 of a dense 2^16 on BLS12-381). Witnesses are sparse: half of it.
SECONDS_PER_POINT = {4: 2.5e-6, 6: 5e-6}
G2_WEIGHT = 3


def open_device(
    device: str | Backend, curve: Curve, threads: int, work: Workload | None = None
) -> tuple[Backend, str]:
    """The backend for "auto", "cpu", "cuda", "cuda:N" or "cuda:GPU-UUID", and in words why it was taken; or one that is open.

    "auto" takes a GPU if one can be used and ``work``, where it is known, is worth opening it. DeviceUnavailable
    where another one was asked for by name and cannot be used.
    """
    if not isinstance(device, str):
        if device.curve is not curve:
            raise FormatError(
                f"device: expected a backend for {curve.title}, found one for {device.curve.title}"
            )
        return device, "given"
    if device == "cpu":
        return CpuBackend(curve, threads), "asked for"
    if device == "auto":
        return _best(curve, threads, work)
    match = re.fullmatch(r"cuda(?::([0-9]{1,4}|GPU-[0-9a-f-]{4,36}))?", device)
    if not match:
        raise FormatError(
            f"device: expected auto, cpu, cuda, cuda:N or cuda:GPU-UUID, found {device!r}"
        )
    try:
        return _open_gpu(match[1] or "0", curve, threads), "asked for"
    except DeviceUnavailable as error:
        raise DeviceUnavailable(f"device {device}: {error}; or take auto or cpu") from error


def _best(curve: Curve, threads: int, work: Workload | None) -> tuple[Backend, str]:
    cpu = CpuBackend(curve, threads)
    if work is not None and not work.repeated:
        seconds = weighted_points(work) * SECONDS_PER_POINT[curve.fp_words] / threads
        if seconds < OPENING_SECONDS:
            return (
                cpu,
                f"small: about {seconds:.1g} s on {threads} threads, opening a GPU takes {OPENING_SECONDS} s",
            )
    try:
        gpu = _open_gpu("0", curve, threads)
    except BackendError as error:
        return cpu, f"no GPU: {error}"
    return gpu, f"a GPU can be used: {gpu.title}"


def weighted_points(work: Workload) -> int:
    """Points that a proof's sums go over; what a proof costs on any device."""
    return sum(n * (G2_WEIGHT if group == "g2" else 1) for group, n in work.queries)


def _open_gpu(which: str, curve: Curve, threads: int) -> Backend:
    """A GPU, by number or UUID, that has just found known answers; all of CUDA is imported here and not before."""
    if curve.is_toy:
        raise DeviceUnavailable(f"no kernels for curve {curve.title}")
    from cuzk.backends.cuda import CudaBackend, device
    from cuzk.backends.cuda.selftest import fault_of

    ordinal = device.ordinal_of(which) if which.startswith("GPU-") else int(which)
    backend = CudaBackend(curve, device.open_machine(ordinal, curve), threads=threads)
    try:
        fault = fault_of(backend)
    except KernelError as error:
        fault = str(error)
    if fault:
        raise DeviceUnavailable(f"{backend.name} ({backend.title}) failed its self-test: {fault}")
    return backend


def thread_count(asked: int | None) -> int:
    """What was asked for, else as many as this process may run on."""
    if asked is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if not isinstance(asked, int) or not 1 <= asked <= 4096:
        raise FormatError(f"threads: expected 1 to 4096, found {asked!r}")
    return asked
