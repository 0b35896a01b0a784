"""When something that one stream made may be used by another."""

from __future__ import annotations

from weakref import WeakSet

from cuzk.backends.cuda.machine import Machine


class Ready:
    """All that ``machine`` was given until now is done: others come after it once, before they use the result."""

    def __init__(self, machine: Machine) -> None:
        self._mark = machine.mark()
        self._passed: WeakSet[Machine] = WeakSet([machine])

    def before(self, machine: Machine) -> None:
        """What ``machine`` is given from now on comes after it; the host does not wait."""
        if machine not in self._passed:
            machine.after(self._mark)
            self._passed.add(machine)
