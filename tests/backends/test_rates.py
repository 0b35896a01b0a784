"""The benchmark of the arithmetic's rates: right on the emulator, and it refuses a wrong kernel."""

from __future__ import annotations

import pytest

from bench.rates import chains, measure
from cuzk.curves import Curve
from cuzk.errors import KernelError
from emulator import EmulatedMachine


def test_every_chain_is_right(curve: Curve) -> None:
    machine = EmulatedMachine()
    for chain in chains(curve):
        rate = measure(machine, chain, 3, 1, 1)
        operations = 128 * 3 * chain.operations
        assert rate.giga * rate.milliseconds == pytest.approx(operations / 1e6)
    assert {kernel for kernel, _, _ in machine.launches} == {c.kernel for c in chains(curve)}


def test_another_operation_is_refused(curve: Curve) -> None:
    """A chain that runs squares under the name of products, and doublings under that of additions."""
    by_name = {(c.unit.group, c.kernel): c for c in chains(curve)}

    class Mistaken(EmulatedMachine):
        def launch(self, unit, kernel, *given, **more) -> None:  # type: ignore[no-untyped-def]
            other = {"multiply_fp": "add_fp", "add_mixed": "multiply_coordinate"}[kernel]
            super().launch(unit, other, *given, **more)

    for key in (("", "multiply_fp"), ("g1", "add_mixed")):
        with pytest.raises(KernelError, match="not what integers give"):
            measure(Mistaken(), by_name[key], 1, 1, 1)
