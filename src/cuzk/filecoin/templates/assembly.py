"""An assembly: templates placed one after the other, their ports bound.

It is a header or a unit (challenge, sector) of a circuit, and has slots like a template: 0 is ONE, then its ports,
then the private variables of all placements, then their public inputs. A placement's variables, rows, public inputs and data follow those of
the placement before; what it reads through its ports is listed in ``bindings``. No rows are copied: a 32 GiB
challenge of 7.2 million rows is 692 placements of 26 templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import CircuitError
from cuzk.filecoin.templates.template import Slots, Template

Offsets = NDArray[np.uint32]


@dataclass(frozen=True)
class Assembly:
    """Placements in order. Offsets have one entry more than there are placements: the assembly's own size."""

    ports: int
    templates: NDArray[np.uint32]  # (placements,) numbers of templates in the circuit
    aux: Offsets
    rows: Offsets
    inputs: Offsets
    givens: Offsets
    bound: Offsets  # where a placement's bindings begin
    bindings: Slots

    def __len__(self) -> int:
        return len(self.templates)

    @cached_property
    def size(self) -> dict[str, int]:
        """aux, rows, inputs, givens in all."""
        names = ("aux", "rows", "inputs", "givens")
        return {name: int(getattr(self, name)[-1]) for name in names}

    @property
    def slots(self) -> int:
        """ONE, ports, private variables, public inputs."""
        return 1 + self.ports + self.size["aux"] + self.size["inputs"]

    def slots_of(self, placement: int, template: Template) -> Slots:
        """(slots,) of a placed template: which of the assembly's they are."""
        aux = 1 + self.ports + int(self.aux[placement])
        inputs = 1 + self.ports + self.size["aux"] + int(self.inputs[placement])
        return np.concatenate(
            (
                np.zeros(1, dtype=np.uint32),
                self.bindings[self.bound[placement] : self.bound[placement + 1]],
                np.arange(aux, aux + template.aux, dtype=np.uint32),
                np.arange(inputs, inputs + template.inputs, dtype=np.uint32),
            )
        )


class Assembling:
    """An assembly while it is put together."""

    def __init__(self, ports: int = 0) -> None:
        self.ports = list(range(1, 1 + ports))
        """Their slots."""
        self.placed: list[Template] = []
        self._bindings: list[int] = []
        self._aux = 0

    def place(self, template: Template, bindings: Sequence[int] = ()) -> list[int]:
        """Place a template with its ports bound to slots; returns the slots of its outputs."""
        if len(bindings) != template.ports:
            raise CircuitError(
                f"{template.name}: expected {template.ports} bindings, found {len(bindings)}"
            )
        outer = len(self.ports) + self._aux - template.ports
        self.placed.append(template)
        self._bindings.extend(bindings)
        self._aux += template.aux
        return [slot + outer for slot in template.outputs.tolist()]

    def assembly(self, numbers: dict[str, int]) -> Assembly:
        """``numbers``: of the circuit's templates by name."""
        bindings = np.array(self._bindings, dtype=np.uint32)
        if len(bindings) and bindings.max() > len(self.ports) + self._aux:
            raise CircuitError("assembly: a port is bound to a slot that is not there")
        return Assembly(
            len(self.ports),
            np.array([numbers[t.name] for t in self.placed], dtype=np.uint32),
            _offsets([t.aux for t in self.placed]),
            _offsets([t.rows for t in self.placed]),
            _offsets([t.inputs for t in self.placed]),
            _offsets([t.givens for t in self.placed]),
            _offsets([t.ports for t in self.placed]),
            bindings,
        )


def _offsets(sizes: Sequence[int]) -> Offsets:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.uint32)
