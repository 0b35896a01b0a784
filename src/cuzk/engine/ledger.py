"""Who has reserved how much of each memory: "host", "pinned", "cuda:0".

    limit = free + sum of owners     (free < 0: more is in use than there may be; then ``over`` = -free)

Bytes are reserved under an owner's name before work begins, corrected to the real ones when those are known, and released
by that name. Nothing is counted beside the owners themselves, so no total can drift away from them. Not for several
threads: a ledger belongs to the event loop, where nothing comes between a look and a reservation, and nobody waits inside
one: who gets False asks again when something was released.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from cuzk.errors import EngineError


class Ledger:
    """One memory of ``limit`` bytes, of which ``headroom`` are for CRITICAL jobs alone."""

    def __init__(self, name: str, limit: int, *, headroom: int = 0) -> None:
        if limit < 0 or not 0 <= headroom <= limit:
            raise EngineError(
                f"memory {name}: a limit of {limit} bytes with a headroom of {headroom}, expected 0 <= headroom <= limit"
            )
        self.name = name
        self.limit = limit
        self.headroom = headroom
        self._owners: dict[str, int] = {}

    @property
    def reserved(self) -> int:
        """Bytes, of all owners."""
        return sum(self._owners.values())

    @property
    def free(self) -> int:
        """Bytes; below 0 where more is in use than there may be."""
        return self.limit - self.reserved

    @property
    def over(self) -> int:
        """Bytes in use beyond the limit."""
        return max(0, -self.free)

    def owners(self) -> dict[str, int]:
        """Bytes of each, the first reservation first; a copy."""
        return dict(self._owners)

    def fits(self, nbytes: int, *, critical: bool) -> bool:
        """Whether ``reserve`` would succeed."""
        return nbytes <= self.free - (0 if critical else self.headroom)

    def reserve(self, owner: str, nbytes: int, *, critical: bool) -> bool:
        """False, and nothing reserved, where it does not fit; EngineError for a second reservation of one owner: two who
        load one key at a time would hold its bytes twice."""
        self._expect(owner, nbytes, known=False)
        if not self.fits(nbytes, critical=critical):
            return False
        self._owners[owner] = nbytes
        return True

    def resize(self, owner: str, nbytes: int) -> None:
        """Real bytes instead of the estimate, whatever the limit: they are in use."""
        self._expect(owner, nbytes, known=True)
        self._owners[owner] = nbytes

    def hold(self, owner: str, nbytes: int) -> None:
        """What it has in fact, whatever it reserved, the limit too; none for 0."""
        if not nbytes:
            self.release(owner)
            return
        self._expect(owner, nbytes, known=owner in self._owners)
        self._owners[owner] = nbytes

    def release(self, owner: str) -> int:
        """The bytes it had; 0 for one that has none, so that whoever ends something need not know how far it came."""
        return self._owners.pop(owner, 0)

    def check(self, alive: Collection[str]) -> None:
        """EngineError where the owners are not exactly those that are ``alive``: bytes that nobody will release, or work
        that reserved none."""
        for owner in self._owners:
            if owner not in alive:
                raise EngineError(
                    f"memory {self.name}: {self._owners[owner]} bytes of {owner}, which is no more"
                )
        for owner in alive:
            if owner not in self._owners:
                raise EngineError(f"memory {self.name}: {owner} has no bytes of it")

    def _expect(self, owner: str, nbytes: int, *, known: bool) -> None:
        if nbytes < 0:
            raise EngineError(f"memory {self.name}: {nbytes} bytes for {owner}, expected 0 or more")
        if known and owner not in self._owners:
            raise EngineError(f"memory {self.name}: {owner} has reserved nothing")
        if not known and owner in self._owners:
            raise EngineError(
                f"memory {self.name}: {owner} has {self._owners[owner]} bytes already"
            )


class Ledgers:
    """All memories: an owner gets what it needs of every one of them at once, or nothing.

    Nobody holds bytes of one memory while it waits for another.
    """

    def __init__(self, ledgers: Iterable[Ledger]) -> None:
        self._ledgers = {ledger.name: ledger for ledger in ledgers}

    def __getitem__(self, name: str) -> Ledger:
        if name not in self._ledgers:
            raise EngineError(f"memory {name}: unknown, known are {', '.join(self._ledgers)}")
        return self._ledgers[name]

    def all(self) -> list[Ledger]:
        """In the order given."""
        return list(self._ledgers.values())

    def free(self) -> dict[str, int]:
        """Bytes of each memory."""
        return {name: ledger.free for name, ledger in self._ledgers.items()}

    def reserve(self, owner: str, needs: Mapping[str, int], *, critical: bool) -> bool:
        """All of ``needs``, or False and none of it."""
        wanted = [(self[name], nbytes) for name, nbytes in needs.items() if nbytes]
        for ledger, nbytes in wanted:
            if not ledger.fits(nbytes, critical=critical):
                return False
        if owner in self.owners():
            raise EngineError(f"{owner}: has reserved its bytes already")
        return all([ledger.reserve(owner, nbytes, critical=critical) for ledger, nbytes in wanted])

    def resize(self, owner: str, needs: Mapping[str, int]) -> None:
        """Real bytes, of each memory, whatever the limits; of one that is not named it has none from now on."""
        for name in needs:
            _ = self[name]  # known, all of them, before one is changed
        if owner not in self.owners():
            raise EngineError(f"{owner}: has reserved nothing")
        for name, ledger in self._ledgers.items():
            ledger.hold(owner, needs.get(name, 0))

    def release(self, owner: str) -> int:
        """Bytes of all memories that it had."""
        return sum(ledger.release(owner) for ledger in self._ledgers.values())

    def owners(self) -> set[str]:
        """Of any memory."""
        return {owner for ledger in self._ledgers.values() for owner in ledger.owners()}

    def check(self, alive: Collection[str]) -> None:
        """EngineError where an owner is none of those that are ``alive``."""
        for ledger in self._ledgers.values():
            ledger.check([owner for owner in alive if owner in ledger.owners()])
