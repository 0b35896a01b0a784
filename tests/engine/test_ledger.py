"""Ledgers against a model: a dictionary of what was asked for and granted."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cuzk.engine.ledger import Ledger, Ledgers
from cuzk.errors import EngineError

LIMITS = {"host": (100, 20), "pinned": (40, 0), "cuda:0": (80, 10)}
OWNERS = st.sampled_from([f"job {number} partition 0" for number in range(6)])
NEEDS = st.dictionaries(st.sampled_from(list(LIMITS)), st.integers(0, 70), max_size=3)


class Accounts(RuleBasedStateMachine):
    """Whatever is reserved, corrected and released in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        self.ledgers = Ledgers(
            Ledger(name, limit, headroom=headroom) for name, (limit, headroom) in LIMITS.items()
        )
        self.model: dict[str, dict[str, int]] = {}

    def used(self, name: str) -> int:
        return sum(needs.get(name, 0) for needs in self.model.values())

    @rule(owner=OWNERS, needs=NEEDS, critical=st.booleans())
    def reserve(self, owner: str, needs: dict[str, int], critical: bool) -> None:
        wanted = {name: nbytes for name, nbytes in needs.items() if nbytes}
        fits = all(
            nbytes <= LIMITS[name][0] - self.used(name) - (0 if critical else LIMITS[name][1])
            for name, nbytes in wanted.items()
        )
        if fits and owner in self.model:
            with pytest.raises(EngineError):
                self.ledgers.reserve(owner, needs, critical=critical)
            return
        assert self.ledgers.reserve(owner, needs, critical=critical) == fits
        if fits and wanted:
            self.model[owner] = wanted

    @rule(owner=OWNERS, needs=NEEDS)
    def resize(self, owner: str, needs: dict[str, int]) -> None:
        if owner not in self.model:
            with pytest.raises(EngineError):
                self.ledgers.resize(owner, needs)
            return
        self.ledgers.resize(owner, needs)
        self.model[owner] = {name: nbytes for name, nbytes in needs.items() if nbytes}
        if not self.model[owner]:
            del self.model[owner]

    @rule(owner=OWNERS)
    def release(self, owner: str) -> None:
        assert self.ledgers.release(owner) == sum(self.model.pop(owner, {}).values())

    @invariant()
    def adds_up(self) -> None:
        for ledger in self.ledgers.all():
            limit, used = LIMITS[ledger.name][0], self.used(ledger.name)
            assert ledger.limit == limit
            assert ledger.reserved == used == sum(ledger.owners().values())
            assert ledger.free == limit - used == self.ledgers.free()[ledger.name]
            assert ledger.over == max(0, used - limit)
        assert self.ledgers.owners() == set(self.model)
        self.ledgers.check(self.model)


TestAccounts = Accounts.TestCase
TestAccounts.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def two() -> Ledgers:
    return Ledgers([Ledger("host", 100), Ledger("cuda:0", 50)])


def test_fault_12_nothing_is_held_of_one_memory_while_another_is_missing() -> None:
    ledgers = two()
    assert not ledgers.reserve("job a", {"host": 60, "cuda:0": 51}, critical=False)
    assert ledgers.free() == {"host": 100, "cuda:0": 50}


def test_fault_12_a_key_cannot_be_reserved_by_two_first_jobs() -> None:
    ledgers = two()
    assert ledgers.reserve("key a on cuda:0", {"cuda:0": 20}, critical=False)
    with pytest.raises(EngineError, match="key a on cuda:0"):
        ledgers.reserve("key a on cuda:0", {"host": 1}, critical=False)
    assert ledgers.free() == {"host": 100, "cuda:0": 30}


def test_fault_11_a_reservation_that_fails_changes_nothing_for_another() -> None:
    ledger = Ledger("host", 100)
    assert not ledger.reserve("large", 101, critical=False)
    assert ledger.reserve("small", 100, critical=False)


def test_fault_9_real_bytes_are_charged_also_where_they_are_more_than_there_is() -> None:
    ledgers = two()
    assert ledgers.reserve("a", {"cuda:0": 10}, critical=False)
    ledgers.resize("a", {"cuda:0": 70, "host": 5})
    assert ledgers["cuda:0"].over == 20
    assert not ledgers.reserve("b", {"cuda:0": 1}, critical=True)
    assert ledgers.release("a") == 75
    assert ledgers["cuda:0"].over == 0


def test_fault_17_what_was_released_is_found_and_what_was_not() -> None:
    ledgers = two()
    ledgers.reserve("a", {"host": 1}, critical=False)
    ledgers.check({"a"})
    with pytest.raises(EngineError, match="1 bytes of a, which is no more"):
        ledgers.check(set())
    assert ledgers.release("a") == 1
    assert ledgers.release("a") == 0
    ledgers.check(set())
    with pytest.raises(EngineError, match="a has no bytes"):
        ledgers["host"].check({"a"})


def test_fault_13_headroom_is_left_for_critical() -> None:
    ledger = Ledger("host", 100, headroom=30)
    assert not ledger.reserve("a", 71, critical=False)
    assert ledger.reserve("a", 70, critical=False)
    assert ledger.reserve("b", 30, critical=True)
    assert ledger.free == 0


def test_bugs_are_errors_of_one_line() -> None:
    ledgers = two()
    for call in (
        lambda: ledgers.reserve("a", {"disk": 1}, critical=False),
        lambda: ledgers.reserve("a", {"host": -1}, critical=False),
        lambda: ledgers.resize("a", {"host": 1}),
        lambda: ledgers["host"].resize("a", 1),
        lambda: Ledger("host", -1),
        lambda: Ledger("host", 1, headroom=2),
    ):
        with pytest.raises(EngineError) as error:
            call()
        assert "\n" not in str(error.value)
        assert ledgers.owners() == set()
