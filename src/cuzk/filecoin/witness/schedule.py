"""Places of a circuit's templates in waves: what a place reads through its ports was defined in an earlier wave.

The places of a template in one wave, in all units, are one group: its program runs for many instances at a time.
A 32 GiB PoRep has 12,457 places in 181 groups of 122 waves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk.filecoin.templates.assembly import Assembly
from cuzk.filecoin.templates.circuit import CircuitShape

Numbers = NDArray[np.uint32]


@dataclass(frozen=True)
class Group:
    """One template in n places; wires as :mod:`cuzk.filecoin.templates.circuit` numbers them."""

    template: int
    ports: Numbers  # (n, ports) wires
    aux: Numbers  # (n,) wire of the first own variable
    inputs: Numbers  # (n,) of the first own public input
    givens: Numbers  # (n,) where its data begin: those of the header come first, then unit by unit
    rows: Numbers  # (n,) first row


@dataclass(frozen=True)
class _Frames:
    """A part in its places, n of them: one header, or all units."""

    part: Assembly
    ports: Numbers  # (n, 1 + ports) wires of ONE and of the part's ports
    first: dict[str, Numbers]  # (n,) each of aux, inputs, givens, rows

    def group(self, shape: CircuitShape, template: int, places: list[int]) -> Group:
        """``places``: numbers of placements of this template in the part."""
        part, ports = self.part, shape.templates[template].ports
        bindings = part.bindings[part.bound[places][:, None] + np.arange(ports, dtype=np.uint32)]
        own = bindings > part.ports
        wires = self.ports[:, np.where(own, 0, bindings)]
        local = bindings - np.uint32(part.ports + 1)
        wires = np.where(own, local + self.first["aux"][:, None, None], wires)
        starts = {
            name: (first[:, None] + getattr(part, name)[places]).ravel()
            for name, first in self.first.items()
        }
        flat = np.ascontiguousarray(wires.reshape(len(starts["aux"]), ports))
        return Group(template, flat, **starts)


def waves(shape: CircuitShape) -> Iterator[list[Group]]:
    """All places, each once; header and units are interleaved as their bindings allow."""
    header, units = _frames(shape)
    made = _depths(shape.header, np.zeros(1, dtype=np.int64))
    of_slots = np.concatenate(([0], np.repeat(made, np.diff(shape.header.aux))))
    of_ports = np.concatenate(([0], of_slots[shape.unit_bindings].max(axis=0, initial=0)))
    depths = made, _depths(shape.unit, of_ports)
    for depth in range(1, 1 + max(int(d.max(initial=0)) for d in depths)):
        found: list[Group] = []
        for frames, depth_of in zip((header, units), depths, strict=True):
            by_template: dict[int, list[int]] = {}
            for place in np.flatnonzero(depth_of == depth).tolist():
                by_template.setdefault(int(frames.part.templates[place]), []).append(place)
            found += [frames.group(shape, *each) for each in by_template.items()]
        yield found


def _frames(shape: CircuitShape) -> tuple[_Frames, _Frames]:
    ahead = {"aux": shape.inputs, "inputs": 1, "givens": 0, "rows": 0}
    header = {name: np.array([first], dtype=np.uint32) for name, first in ahead.items()}
    units = {
        name: np.arange(shape.units, dtype=np.uint32) * np.uint32(shape.unit.size[name])
        + np.uint32(first + shape.header.size[name])
        for name, first in ahead.items()
    }
    bound = shape.unit_bindings
    ports = np.where(bound > 0, bound + np.uint32(shape.inputs - 1), bound)
    ports = np.concatenate((np.zeros((shape.units, 1), dtype=np.uint32), ports), axis=1)
    none = np.zeros((1, 1), dtype=np.uint32)
    return _Frames(shape.header, none, header), _Frames(shape.unit, ports, units)


def _depths(part: Assembly, of_ports: NDArray[np.int64]) -> NDArray[np.int64]:
    """(placements,) 1 and above; ``of_ports`` (1 + ports,): where ONE and the ports were made, 0 and above."""
    depths = np.zeros(len(part), dtype=np.int64)
    slots = part.bindings.astype(np.int64) - (part.ports + 1)
    owners = np.searchsorted(part.aux, slots, side="right") - 1
    outer = of_ports[np.minimum(part.bindings, part.ports)]
    for place in range(len(part)):
        span = slice(part.bound[place], part.bound[place + 1])
        made = np.where(slots[span] >= 0, depths[owners[span]], outer[span])
        depths[place] = 1 + made.max(initial=0)
    return depths
