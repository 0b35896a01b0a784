"""The inversion that a warp shares, against Python's integers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cuzk.backends.cuda.machine import Unit
from cuzk.constants import from_montgomery, to_montgomery
from cuzk.curves import Curve
from cuzk.vectors import pack, unpack
from emulator import EmulatedMachine


@pytest.mark.parametrize("kernel", ["invert_in_warp", "invert_in_thread"])
def test_inverses(curve: Curve, kernel: str) -> None:
    """Numbers at the ends, powers of two, and uniform ones, as the words that the division steps see."""
    machine, p, words, rng = EmulatedMachine(), curve.p, curve.fp_words, random.Random(1)
    values = [1, 2, 3, p - 1, p - 2, p // 2, p // 2 + 1, to_montgomery(1, p, words)]
    values += [1 << k for k in range(0, p.bit_length() - 1, 9)]
    values += [rng.randrange(1, 1 << rng.randrange(1, p.bit_length())) for _ in range(100)]
    values = (values + [rng.randrange(1, p) for _ in range(256)])[:256]
    array = pack(values, words)
    given, out = machine.alloc(array.nbytes), machine.alloc(array.nbytes)
    machine.upload(given, array)
    threads = len(values) * (32 if kernel == "invert_in_warp" else 1)
    unit = Unit("inverse_rates.cu", curve)
    machine.launch(unit, kernel, threads // 128, 128, given, out, 1)
    found = np.empty_like(array)
    machine.download(out, found)
    plain = [from_montgomery(value, p, words) for value in values]
    expected = [to_montgomery(pow(value, -1, p), p, words) for value in plain]
    assert unpack(found) == expected
