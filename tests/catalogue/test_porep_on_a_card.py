"""32 GiB PoRep by what Catalogue.needs says and a ledger does with it: which cards and hosts take it.

Measured (docs/kernels.md): on a card of 139 GiB 60.3 GB stayed and 144.6 were planned with what sums take where it is
free; one proof at a time.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hollow import POREP_32GIB, hollow
from served import catalogue_of, filecoin

from cuzk.engine.catalogue import Needs
from cuzk.engine.fit import added, never_fits, shared_out
from cuzk.engine.ledger import Ledger, Ledgers
from cuzk.engine.limits import HostMemory, host_limit, pinned_limit

GIB = 1 << 30
C1_BYTES = 51_276_975  # in Curio's wrapper
STAYED, PLANNED = 60_300_000_000, 144_600_000_000
CARD = 139 * GIB


@pytest.fixture
def needs(tmp_path: Path) -> Needs:
    path = hollow("porep-32GiB", POREP_32GIB, tmp_path)
    assert path.stat().st_size == 47_373_928_632
    assert path.stat().st_blocks < 1000
    catalogue = catalogue_of(filecoin("porep-32GiB"), parameters=tmp_path, insecure_keys=True)
    assert catalogue.entries()[0].fault == ""
    return catalogue.needs("porep-32GiB", "cuda:0")


def limits_of(host: int, card: int) -> dict[str, int]:
    """Of a machine with so much memory."""
    shared = host_limit(HostMemory(host, host, host))
    return {"host": shared, "pinned": pinned_limit(shared, -1), "cuda:0": card}


def accepted(needs: Needs, limits: dict[str, int]) -> bool:
    """As at a request's admission."""
    fitting = shared_out(needs, limits, {})
    whole = Needs(fitting.key, added(fitting.partition, {"host": C1_BYTES}))
    return not never_fits(whole, limits, {})


def test_what_is_said_of_a_key_and_of_a_partition(needs: Needs) -> None:
    """More than stayed, but not much; together less than was planned."""
    assert STAYED <= needs.key["cuda:0"] < 1.2 * STAYED
    assert needs.key["cuda:0"] + needs.partition["cuda:0"] <= PLANNED < CARD


@pytest.mark.parametrize("host", [128, 251])
def test_one_card_takes_it(needs: Needs, host: int) -> None:
    """Nothing gives way; key, request and one partition have their room, and a second partition has none."""
    limits = limits_of(host * GIB, CARD)
    assert shared_out(needs, limits, {}) == needs
    assert accepted(needs, limits)
    ledgers = Ledgers(Ledger(name, limit) for name, limit in limits.items())
    assert ledgers.reserve("key porep-32GiB on cuda:0", needs.key, critical=False)
    assert ledgers.reserve("job 1 prepared", {"host": C1_BYTES}, critical=False)
    assert ledgers.reserve("job 1 partition 0", needs.partition, critical=False)
    assert not ledgers.reserve("job 1 partition 1", needs.partition, critical=False)
    assert {name for name, free in ledgers.free().items() if free < needs.partition[name]} == {"cuda:0"}  # fmt: skip


@pytest.mark.parametrize(("card", "key"), [(80, 65), (48, 48), (24, 24)])
def test_smaller_cards_take_it_too(needs: Needs, card: int, key: int) -> None:
    """Points are streamed then: the key takes what there is, a partition the rest."""
    limits = limits_of(128 * GIB, card * GIB)
    assert accepted(needs, limits)
    fitting = shared_out(needs, limits, {})
    assert fitting.key["cuda:0"] // GIB == key
    assert fitting.key["cuda:0"] + fitting.partition["cuda:0"] == card * GIB
    assert fitting.key["host"] == needs.key["host"]


@pytest.mark.parametrize(("host", "fits"), [(56, False), (60, True), (64, True)])
def test_hosts(needs: Needs, host: int, fits: bool) -> None:
    """Points stay in the host's memory, 44 GiB, with A as it is written out, 5, and a witness, 4."""
    assert accepted(needs, limits_of(host * GIB, CARD)) is fits
