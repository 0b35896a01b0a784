"""The FallbackPoSt circuit: WinningPoSt and WindowPoSt; no header, one unit for each sector.

A sector: comm_r_last, comm_c, comm_r (public) with comm_r = Poseidon(comm_c, comm_r_last); for each challenge a leaf
and its path in R_last.

Data (:mod:`program`) of a sector: comm_r_last, comm_c, comm_r; for each challenge the leaf, then for each level the
place and the siblings.

Definition: storage-proofs-post::fallback::circuit.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.filecoin.shapes import WINDOW_CHALLENGES, WINNING_CHALLENGES, Shape
from cuzk.filecoin.templates.assembly import Assembling
from cuzk.filecoin.templates.circuit import CircuitShape, circuit_shape
from cuzk.filecoin.templates.gadgets import equal, given, inputize
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.paths import octree_path
from cuzk.filecoin.templates.poseidon import poseidon_hash
from cuzk.filecoin.templates.recorder import Recorder


def sector_roots(recorder: Recorder) -> list[int]:
    """Output: comm_r_last."""
    comm_r_last, comm_c, comm_r = recorder.given(3)
    inputize(recorder, comm_r)
    equal(recorder, comm_r, poseidon_hash(recorder, [comm_c, comm_r_last]))
    return [comm_r_last]


def winning(library: Library, shape: Shape) -> CircuitShape:
    """The one sector, once for each challenge."""
    return post_of(f"winning-{shape.name}", library, shape.arities, WINNING_CHALLENGES, 1)


def window(library: Library, shape: Shape) -> CircuitShape:
    """One partition."""
    sectors = shape.window_sectors
    return post_of(f"window-{shape.name}", library, shape.arities, sectors, WINDOW_CHALLENGES)


def post_of(
    name: str, library: Library, arities: Sequence[int], sectors: int, challenges: int
) -> CircuitShape:
    """``challenges`` of each sector."""
    unit = Assembling()
    (root,) = unit.place(library(sector_roots))
    for _ in range(challenges):
        (leaf,) = unit.place(library(given, 1))
        octree_path(unit, library, arities, leaf, root)
    return circuit_shape(name, library, Assembling(), unit, [()] * sectors)
