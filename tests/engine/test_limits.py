"""What "auto" means on machines of every kind: trees of /proc and /sys/fs/cgroup made here."""

from __future__ import annotations

import resource
from pathlib import Path

import psutil
import pytest

from cuzk.engine.limits import host_limit, host_memory, memory_groups, pinned_limit
from cuzk.errors import EngineError

GIB = 1 << 30
UNLIMITED_V1 = 9223372036854771712  # what the kernel says: 2^63 - 1 in whole pages
V2 = "30 23 0:26 {top} /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "31 23 0:27 {top} /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory"
V1_CPU = "32 23 0:28 / /sys/fs/cgroup/cpu rw shared:11 - cgroup cgroup rw,cpu,cpuacct"
DISK = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw"


class Machine:
    """A root folder with the files that a system would have."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def proc(self, groups: list[str], mounts: list[str]) -> None:
        self.write("proc/self/cgroup", "".join(f"{line}\n" for line in groups))
        self.write("proc/self/mountinfo", "".join(f"{line}\n" for line in [DISK, *mounts]))

    def write(self, name: str, text: str | int) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}")

    def limit(self, machine: int = 64 * GIB) -> int:
        return host_memory(self.root, machine=machine, available=machine).limit


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_no_cgroups_at_all(machine: Machine) -> None:
    assert machine.limit() == 64 * GIB
    assert memory_groups(machine.root) == []


def test_v2_a_systemd_unit_with_a_limit(machine: Machine) -> None:
    machine.proc(["0::/system.slice/cuzk.service"], [V2.format(top="/")])
    machine.write("sys/fs/cgroup/system.slice/cuzk.service/memory.max", f"{8 * GIB}\n")
    machine.write("sys/fs/cgroup/system.slice/memory.max", "max\n")
    assert machine.limit() == 8 * GIB
    memory = host_memory(machine.root, machine=64 * GIB, available=64 * GIB)
    assert memory.group == str(machine.root / "sys/fs/cgroup/system.slice/cuzk.service")


def test_v2_a_slice_limits_its_units_whose_own_files_say_max(machine: Machine) -> None:
    machine.proc(["0::/prove.slice/prove-a.slice/cuzk.service"], [V2.format(top="/")])
    folder = "sys/fs/cgroup/prove.slice"
    machine.write(f"{folder}/prove-a.slice/cuzk.service/memory.max", "max\n")
    machine.write(f"{folder}/prove-a.slice/memory.max", 20 * GIB)
    machine.write(f"{folder}/memory.max", 10 * GIB)
    assert machine.limit() == 10 * GIB


def test_v2_high_stops_a_process_before_max_does(machine: Machine) -> None:
    machine.proc(["0::/a"], [V2.format(top="/")])
    machine.write("sys/fs/cgroup/a/memory.max", 8 * GIB)
    machine.write("sys/fs/cgroup/a/memory.high", 6 * GIB)
    assert machine.limit() == 6 * GIB


def test_v2_inside_a_container_its_own_group_is_the_top(machine: Machine) -> None:
    """With a namespace of its own: the path is "/", and the limit in the mount's top folder."""
    machine.proc(["0::/"], [V2.format(top="/")])
    machine.write("sys/fs/cgroup/memory.max", 4 * GIB)
    assert machine.limit() == 4 * GIB


@pytest.mark.parametrize("path", ["/docker/0123", "/docker/0123/inner"])
def test_v1_inside_a_container_only_a_part_is_mounted(machine: Machine, path: str) -> None:
    machine.proc([f"4:memory:{path}", "3:cpu,cpuacct:/x"], [V1_CPU, V1.format(top="/docker/0123")])
    machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", 3 * GIB)
    machine.write("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", UNLIMITED_V1)
    assert machine.limit() == 3 * GIB


def test_v1_without_a_limit(machine: Machine) -> None:
    machine.proc(["4:memory:/user.slice"], [V1.format(top="/")])
    machine.write("sys/fs/cgroup/memory/user.slice/memory.limit_in_bytes", UNLIMITED_V1)
    assert machine.limit() == 64 * GIB
    assert host_memory(machine.root, machine=64 * GIB, available=GIB).group == ""


def test_v1_nested_groups(machine: Machine) -> None:
    machine.proc(["4:memory:/a/b/c"], [V1.format(top="/")])
    machine.write("sys/fs/cgroup/memory/a/b/c/memory.limit_in_bytes", UNLIMITED_V1)
    machine.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", 5 * GIB)
    assert machine.limit() == 5 * GIB


def test_both_at_once_the_smaller_holds(machine: Machine) -> None:
    machine.proc(["4:memory:/a", "0::/b"], [V1.format(top="/"), V2.format(top="/")])
    machine.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", 5 * GIB)
    machine.write("sys/fs/cgroup/b/memory.max", 6 * GIB)
    assert machine.limit() == 5 * GIB
    machine.write("sys/fs/cgroup/b/memory.max", 4 * GIB)
    assert machine.limit() == 4 * GIB


def test_a_group_outside_of_the_namespace(machine: Machine) -> None:
    """/proc/self/cgroup shows "/../x" for it: nothing above the mount is looked at."""
    machine.proc(["0::/../other"], [V2.format(top="/")])
    machine.write("sys/fs/cgroup/memory.max", 7 * GIB)
    machine.write("sys/fs/other/memory.max", 1 * GIB)
    assert machine.limit() == 7 * GIB


def test_a_mount_with_a_space_in_its_name(machine: Machine) -> None:
    line = "30 23 0:26 / /sys/my\\040groups rw - cgroup2 cgroup2 rw"
    machine.proc(["0::/a"], [line])
    machine.write("sys/my groups/a/memory.max", 2 * GIB)
    assert machine.limit() == 2 * GIB


def test_files_that_cannot_be_read_or_say_nothing(machine: Machine) -> None:
    machine.proc(["0::/a/b", "", "nonsense", "x:y"], [V2.format(top="/"), "", "1 2 3 - cgroup2"])
    (machine.root / "sys/fs/cgroup/a/b/memory.max").mkdir(parents=True)  # reading it fails
    machine.write("sys/fs/cgroup/a/memory.max", "")
    machine.write("sys/fs/cgroup/memory.max", "not a number")
    assert machine.limit() == 64 * GIB
    machine.write("sys/fs/cgroup/a/memory.max", 9 * GIB)
    assert machine.limit() == 9 * GIB


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_what_others_use_is_not_available(machine: Machine, kind: str) -> None:
    """But pages of files that are only cached are."""
    if kind == "v2":
        machine.proc(["0::/a"], [V2.format(top="/")])
        names = ("sys/fs/cgroup/a", "memory.max", "memory.current", "inactive_file")
    else:
        machine.proc(["4:memory:/a"], [V1.format(top="/")])
        names = ("sys/fs/cgroup/memory/a", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")  # fmt: skip
    folder, limit, usage, inactive = names
    machine.write(f"{folder}/{limit}", 10 * GIB)
    machine.write(f"{folder}/{usage}", 7 * GIB)
    machine.write(f"{folder}/memory.stat", f"anon 5\n{inactive} {3 * GIB}\nactive_file 1\n")
    memory = host_memory(machine.root, machine=64 * GIB, available=50 * GIB)
    assert (memory.limit, memory.available) == (10 * GIB, 6 * GIB)
    assert host_memory(machine.root, machine=64 * GIB, available=GIB).available == GIB
    machine.write(f"{folder}/{usage}", 14 * GIB)
    assert host_memory(machine.root, machine=64 * GIB, available=50 * GIB).available == 0


def test_this_machine() -> None:
    memory = host_memory()
    assert memory.machine == psutil.virtual_memory().total
    assert 0 < memory.limit <= memory.machine
    assert 0 <= memory.available <= memory.limit


@pytest.mark.parametrize(
    ("limit", "margin", "host"),
    [
        (64 * GIB, None, 60 * GIB),
        (4 * GIB, None, 4 * GIB - (512 << 20)),
        (4 * GIB, 0, 4 * GIB),
        (4 * GIB, GIB, 3 * GIB),
    ],
)
def test_margin(machine: Machine, limit: int, margin: int | None, host: int) -> None:
    assert host_limit(host_memory(machine.root, machine=limit, available=limit), margin) == host


@pytest.mark.parametrize(("limit", "margin"), [(GIB // 2, None), (GIB, GIB), (GIB, -1)])
def test_a_margin_that_leaves_nothing(machine: Machine, limit: int, margin: int | None) -> None:
    memory = host_memory(machine.root, machine=limit, available=limit)
    with pytest.raises(EngineError, match=r"memory: a margin of .* set memory\.margin lower"):
        host_limit(memory, margin)


@pytest.mark.parametrize(
    ("memlock", "pinned"),
    [(resource.RLIM_INFINITY, 4 * GIB), (8 << 20, 8 << 20), (6 * GIB, 4 * GIB), (0, 0)],
)
def test_pinned_is_what_may_be_locked_and_half_of_the_host(memlock: int, pinned: int) -> None:
    assert pinned_limit(8 * GIB, memlock) == pinned


def test_pinned_of_this_process() -> None:
    assert pinned_limit(1) == 0
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    expected = 4 * GIB if locked == resource.RLIM_INFINITY else min(locked, 4 * GIB)
    assert pinned_limit(8 * GIB) == expected
