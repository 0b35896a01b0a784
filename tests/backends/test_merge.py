"""Sorted lists of entries become one: a stable merge by Python's sort."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk.backends.cuda.digits import Digits
from cuzk.backends.cuda.kept import KeptList, merged_lists
from cuzk.backends.cuda.machine import Memory
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import BN254
from emulator import EmulatedMachine

PLAN = WindowPlan.of(BN254, 8)
TOP = (1 << 32) - 1


def upload(
    machine: EmulatedMachine, values: list[int], kind: type[np.unsignedinteger[Any]]
) -> Memory:
    array: NDArray[Any] = np.array(values, kind)
    memory = machine.alloc(max(array.nbytes, 4) + 64)  # more room than entries
    machine.upload(memory, array)
    return memory


def draw(rng: random.Random, kind: str, n: int) -> list[int]:
    most = {"few": 3, "many": 5000, "wide": TOP}[kind]
    return sorted(rng.randint(0, most) for _ in range(n))


@pytest.mark.parametrize(
    ("kinds", "lengths"),
    [
        (("many", "many"), (0, 0)),
        (("many", "many"), (0, 5)),
        (("wide", "wide"), (1, 1)),
        (("many", "many"), (2048, 2047)),
        (("many", "wide"), (5000, 9000)),
        (("few", "few"), (5000, 6000)),  # a key's entries are longer than what a block looks at
        (("wide", "few", "many"), (7000, 4097, 300)),
        (("wide", "wide"), (3, 9000)),  # a block's entries lie far apart
    ],
)
def test_merged_lists(kinds: tuple[str, ...], lengths: tuple[int, ...]) -> None:
    rng, machine = random.Random(4), EmulatedMachine()
    machine.processors = 1
    lists, entries, first = [], [], 0
    for kind, n in zip(kinds, lengths, strict=True):
        keys = [*draw(rng, kind, n)[: max(n - 2, 0)], TOP, TOP][:n]
        rows = [rng.randrange(1 << 20) for _ in range(n)]
        key_words, row_words = (upload(machine, each, np.uint32) for each in (keys, rows))
        digits = Digits(PLAN, key_words, row_words, upload(machine, [n], np.uint64), n + 16)
        lists.append(KeptList(digits, first))
        entries.append([(key, row + first) for key, row in zip(keys, rows, strict=True)])
        first += n + 16
    found = merged_lists(machine, BN254, lists)
    assert found.capacity == found.likely == sum(lengths) + 16 * len(lengths)
    count = np.empty(1, np.uint64)
    machine.download(found.count, count)
    out_keys, out_rows = (np.empty(int(count[0]), np.uint32) for _ in range(2))
    machine.download(found.keys, out_keys)
    machine.download(found.rows, out_rows)
    got = list(zip(out_keys.tolist(), out_rows.tolist(), strict=True))
    every = [entry for each in entries for entry in each]
    assert [key for key, _ in got] == sorted(key for key, _ in every)
    assert sorted(got) == sorted(every)
    if len(entries) == 2:  # of equal keys those of the first list, the shorter one, come first
        short, long = sorted(entries, key=len)
        assert got == sorted([*short, *long], key=lambda entry: entry[0])
