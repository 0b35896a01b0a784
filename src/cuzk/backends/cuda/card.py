"""One GPU of this process: context, loaded kernels and memory pool, shared by its machines."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cuzk.backends.cuda import kernels
from cuzk.backends.cuda.cache import Cache
from cuzk.backends.cuda.clock import Clock
from cuzk.backends.cuda.driver import Driver, quietly
from cuzk.backends.cuda.machine import Unit
from cuzk.backends.cuda.occupancy import Occupancy, ProcessMemory
from cuzk.backends.cuda.pins import Pins
from cuzk.backends.cuda.queues import Queue, Queues
from cuzk.errors import KernelError, OutOfMemory

UNASKED_SHARED = 48 << 10  # of a block, static and dynamic; more must be asked for
KEEP_ALL = 2**64 - 1  # the pool gives nothing back to the driver before `trim`


@dataclass(frozen=True)
class Facts:
    """What a GPU is."""

    name: str  # "cuda:0"
    title: str  # "NVIDIA H200"
    uuid: str  # "GPU-..."
    architecture: int  # 90
    processors: int
    total_bytes: int
    driver: tuple[int, int]  # the CUDA version it supports


class Kernel:
    """A loaded kernel; ``shared`` is the dynamic shared memory it may have."""

    def __init__(self, driver: Driver, name: str, function: Any) -> None:
        self.name = name
        self.function = function
        self._driver = driver
        self._lock = threading.Lock()
        attribute = driver.bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        self._shared = UNASKED_SHARED - int(driver.cuFuncGetAttribute(attribute, function))
        self.parameters = 0
        while not int(driver.bindings.cuFuncGetParamInfo(function, self.parameters)[0]):
            self.parameters += 1

    def expect(self, arguments: int, shared: int) -> None:
        """Make ready for a launch with that many arguments and bytes of dynamic shared memory."""
        if arguments != self.parameters:
            raise KernelError(
                f"{self._driver.name}: kernel {self.name}: expected {self.parameters} arguments, found {arguments}"
            )
        if shared > self._shared:
            largest = self._driver.bindings.CUfunction_attribute
            with self._lock:
                shared = max(shared, self._shared)
                self._driver.cuFuncSetAttribute(
                    self.function, largest.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared
                )
                self._shared = shared


class Card:
    """``ordinal`` counts the devices that this process sees."""

    def __init__(self, bindings: Any, ordinal: int, cache: Cache, nvml: Any = None) -> None:
        self.ordinal = ordinal
        self.driver = Driver(bindings, f"cuda:{ordinal}")
        self.cache = cache
        device = self.driver.cuDeviceGet(ordinal)
        self.facts = _facts(self.driver, device)
        self._context = self.driver.cuDevicePrimaryCtxRetain(device)
        self.enter()
        self._pool = _pool(self.driver, ordinal)
        self.queues = Queues(self.driver)
        self.pins = Pins(self.driver, self.enter, self.queues.events)
        self.clock = Clock(self.driver, self.enter)
        self._process = ProcessMemory(nvml, self.facts.uuid)
        self._modules: dict[Unit, Any] = {}
        self._kernels: dict[tuple[Unit, str], Kernel] = {}
        self._lock = threading.Lock()

    def enter(self) -> None:
        """Make the card's context that of the calling thread."""
        self.driver.cuCtxSetCurrent(self._context)

    def prepare(self, units: Iterable[Unit]) -> None:
        """Compile and load what is not there yet."""
        with self._lock:
            missing = [unit for unit in units if unit not in self._modules]
            codes = kernels.build_all(missing, self.facts.architecture, self.cache)
            self.enter()
            for unit, code in codes.items():
                self._modules[unit] = self.driver.cuModuleLoadData(code)

    def kernel(self, unit: Unit, name: str) -> Kernel:
        """The kernel ``name`` of a unit."""
        found = self._kernels.get((unit, name))
        if found is None:
            if unit not in self._modules:
                self.prepare([unit])
            with self._lock:  # one for all threads: it remembers what the driver was told
                found = self._kernels.get((unit, name))
                if found is None:
                    function = self.driver.cuModuleGetFunction(self._modules[unit], name.encode())
                    found = self._kernels[unit, name] = Kernel(self.driver, name, function)
        return found

    def allocate(self, nbytes: int, queue: Queue) -> int:
        """The address of new memory, in the stream's order.

        What is being freed counts only afterwards: where there is too little, first the stream itself is waited
        for, then all of the card.
        """
        for wait in (queue.finish, self.queues.finish):
            try:
                return self._allocate(nbytes, queue)
            except OutOfMemory:
                quietly(self.queues.free_owed)
                wait()
                self.trim()
        try:
            return self._allocate(nbytes, queue)
        except OutOfMemory as error:
            raise OutOfMemory(
                f"{self.driver.name}: asked for {nbytes} bytes, {self.free_bytes()} of {self.facts.total_bytes} are free"
            ) from error

    def _allocate(self, nbytes: int, queue: Queue) -> int:
        pool, stream, driver = self._pool, queue.handle, self.driver

        def undo(address: Any) -> None:
            driver.cuMemFreeAsync(address, stream)

        return int(driver.make(undo, "cuMemAllocFromPoolAsync", max(nbytes, 1), pool, stream))

    def free_bytes(self) -> int:
        """What the device has left, and what the pool holds without use."""
        names = self.driver.bindings.CUmemPool_attribute
        used = self.driver.cuMemPoolGetAttribute(self._pool, names.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        free, _ = self.driver.cuMemGetInfo()
        return int(free) + self._reserved() - int(used)

    def occupancy(self) -> Occupancy:
        """Who has what of the device's memory."""
        process, reserved = self._process.nbytes(), self._reserved()
        free, total = self.driver.cuMemGetInfo()
        return Occupancy(int(total), int(free), reserved, process)

    def _reserved(self) -> int:
        names = self.driver.bindings.CUmemPool_attribute
        attribute = names.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
        return int(self.driver.cuMemPoolGetAttribute(self._pool, attribute))

    def trim(self) -> None:
        """Give unused memory of the pool back to the driver."""
        self.driver.cuMemPoolTrimTo(self._pool, 0)


def uuid_of(driver: Driver, device: Any) -> str:
    """As nvidia-smi writes it: GPU-da343186-b3d8-4cfd-c57b-932882522e92."""
    raw = bytes(driver.cuDeviceGetUuid(device).bytes).hex()
    return "GPU-" + "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]))


def _facts(driver: Driver, device: Any) -> Facts:
    names = driver.bindings.CUdevice_attribute

    def attribute(name: str) -> int:
        return int(
            driver.cuDeviceGetAttribute(getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}"), device)
        )

    major, minor = attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")
    version = int(driver.cuDriverGetVersion())
    return Facts(
        name=driver.name,
        title=driver.cuDeviceGetName(256, device).split(b"\0")[0].decode().strip(),
        uuid=uuid_of(driver, device),
        architecture=10 * major + minor,
        processors=attribute("MULTIPROCESSOR_COUNT"),
        total_bytes=int(driver.cuDeviceTotalMem(device)),
        driver=(version // 1000, version % 1000 // 10),
    )


def _pool(driver: Driver, ordinal: int) -> Any:
    types = driver.bindings
    properties = types.CUmemPoolProps()
    properties.allocType = types.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.handleTypes = types.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE
    properties.location.type = types.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = ordinal
    pool = driver.cuMemPoolCreate(properties)
    threshold = types.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    driver.cuMemPoolSetAttribute(pool, threshold, types.cuuint64_t(KEEP_ALL))
    # memory that another stream has not finished with is not worth waiting for: streams would come to depend
    internal = types.CUmemPool_attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
    driver.cuMemPoolSetAttribute(pool, internal, 0)
    return pool
