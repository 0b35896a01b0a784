"""What is taken of the memories whatever is proved: owners of their own, so that limits are those of all there is.

    host      "process of the daemon", "process on cuda:0": resident bytes when they had started, before any key
    cuda:0    "context on cuda:0": what its worker's process has there beside keys and proofs
              "other programs on cuda:0": what others have, as far as the limit does not leave it to them

A device's are as its worker last said; those of one that died stay reserved, since it comes back.

    limit = room + sum of these owners     (room is what keys and proofs may have; never below 0)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from cuzk.engine.catalogue import OTHERS
from cuzk.engine.ledger import Ledgers
from cuzk.engine.worker import Health

HOST = "host"
DAEMON = "process of the daemon"


class Overhead:
    """In the ledgers of one engine."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers
        self._owners: dict[str, dict[str, int]] = {ledger.name: {} for ledger in ledgers.all()}

    def daemon(self, nbytes: int) -> None:
        """Of this process; 0: it is not counted."""
        self._hold(HOST, DAEMON, nbytes)

    def worker(self, name: str, health: Health) -> None:
        """As it is now; nothing changes where it says nothing, nor that of a process once it is known: a request that was
        accepted is not refused because a process that was started again has a page more."""
        for memory, taken in health.overhead.items():
            if memory not in self._owners:
                continue
            found = {f"{what} on {name}": n for what, n in self._counted(memory, taken, health)}
            before = [owner for owner in self._owners[memory] if owner.endswith(f" on {name}")]
            if memory == HOST and before:
                continue
            for owner in {*before} - found.keys():
                self._hold(memory, owner, 0)
            for owner, nbytes in found.items():
                self._hold(memory, owner, nbytes)

    def taken(self, memory: str) -> int:
        """Bytes of all these owners, which may be more than there are."""
        return sum(self._owners[memory].values())

    def room(self) -> dict[str, int]:
        """Bytes of each memory for keys and proofs, were there none."""
        return {
            ledger.name: max(0, ledger.limit - self.taken(ledger.name))
            for ledger in self._ledgers.all()
        }

    def _counted(
        self, memory: str, taken: Mapping[str, int], health: Health
    ) -> list[tuple[str, int]]:
        spared = max(0, health.total.get(memory, 0) - self._ledgers[memory].limit)
        return [
            (what, max(0, nbytes - spared) if what.endswith(OTHERS) else nbytes)
            for what, nbytes in taken.items()
        ]

    def _hold(self, memory: str, owner: str, nbytes: int) -> None:
        if memory not in self._owners:
            return
        self._ledgers[memory].hold(owner, nbytes)
        if nbytes:
            self._owners[memory][owner] = nbytes
        else:
            self._owners[memory].pop(owner, None)


def shared(owners: Mapping[str, int]) -> dict[str, int]:
    """A ledger's bytes: those of all "keys", of all "jobs", and of every other owner by its name."""
    found = Counter[str]()
    for owner, nbytes in owners.items():
        kind = owner.partition(" ")[0]
        found[f"{kind}s" if kind in ("key", "job") else owner] += nbytes
    return dict(found)
