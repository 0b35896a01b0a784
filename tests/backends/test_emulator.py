"""The emulator runs the backend's kernels: the first of them against Python's integers."""

from __future__ import annotations

import numpy as np

from cuzk.backends.cuda.machine import Unit
from cuzk.curves import Curve
from cuzk.vectors import Scalars
from emulator import EmulatedMachine


def test_pointwise_kernel(curve: Curve) -> None:
    machine, r, n = EmulatedMachine(), curve.r, 700
    values = [[pow(seed, 5 * i + 7, r) for i in range(n)] for seed in (3, 5, 7)]
    memory = []
    for row in [*values, [11]]:
        words = Scalars.from_ints(curve, row, montgomery=True).words
        memory.append(machine.alloc(words.nbytes))
        machine.upload(memory[-1], words)
    a, b, minus, scale = memory
    machine.launch(Unit("vector.cu", curve), "pointwise", 2, 256, a, b, minus, scale, a, n)
    out = np.empty((n, 4), np.uint64)
    machine.download(a, out)
    expected = [(x * y - z) * 11 % r for x, y, z in zip(*values, strict=True)]
    assert Scalars(curve, out, montgomery=True).ints() == expected
    assert machine.used == sum(m.nbytes for m in memory)
    del a, b, minus, scale, memory
    assert machine.used == 0
