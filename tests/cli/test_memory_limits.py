"""What "auto" comes to: the machine, its control groups, what the settings say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuzk.cli.memory_limits import machine_bytes, memory_limits
from cuzk.config import MemorySettings
from cuzk.errors import FormatError

GIB = 1 << 30
INSTALLED = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/a/b\n", {"a/memory.max": "3000000\n", "a/b/memory.max": "max\n"}, 3_000_000),
        ("0::/a/b\n", {"a/memory.max": "3000000\n", "a/b/memory.max": "2000000\n"}, 2_000_000),
        ("0::/a\n", {"memory.max": "4000000", "a/memory.max": "max"}, 4_000_000),
        ("0::/\n", {}, INSTALLED),
        (
            "4:cpu,memory:/c\n2:cpu:/d\n",
            {"memory/c/memory.limit_in_bytes": "5000000\n"},
            5_000_000,
        ),
        ("4:memory:/c\n", {"memory/c/memory.limit_in_bytes": str(1 << 62)}, INSTALLED),
    ],
)
def test_a_control_groups_limit_counts_and_those_around_it(
    tmp_path: Path, lines: str, files: dict[str, str], expected: int
) -> None:
    own = tmp_path / "own"
    own.write_text(lines)
    for name, text in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert machine_bytes(own=own, cgroups=tmp_path / "fs") == expected


def test_without_control_groups_it_is_the_machines(tmp_path: Path) -> None:
    assert machine_bytes(own=tmp_path / "none", cgroups=tmp_path) == INSTALLED


@pytest.mark.parametrize(
    ("machine", "host"),
    [(4 * GIB, 4 * GIB - GIB // 2), (32 * GIB, 30 * GIB), (1024 * GIB, 1008 * GIB)],
)
def test_the_margin_grows_with_the_machine(machine: int, host: int) -> None:
    found = memory_limits(MemorySettings(), ["cpu"], machine)
    assert found == {"host": host, "pinned": host // 2}


def test_what_the_settings_say_is_taken() -> None:
    said = MemorySettings.model_validate({"host": "8GiB", "pinned": "1GiB", "device": "20GiB"})
    found = memory_limits(said, ["cuda:0", "cuda:1"], 16 * GIB)
    assert found == {
        "host": 8 * GIB,
        "pinned": GIB,
        "cuda:0": 20 * GIB,
        "cuda:1": 20 * GIB,
    }
    assert memory_limits(MemorySettings(margin="6GiB"), ["cpu"], 16 * GIB)["host"] == 10 * GIB  # type: ignore[arg-type]


def test_a_margin_that_leaves_nothing() -> None:
    with pytest.raises(FormatError, match=r"memory\.margin: expected less than the \d+ bytes"):
        memory_limits(MemorySettings(), ["cpu"], GIB // 4)
