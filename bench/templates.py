"""Filecoin's circuits as templates: ``python -m bench.templates [--sizes 2KiB 32GiB]``.

For the PoRep of each size: recorded, kept on disk and mapped again, and, where it is below four million rows, written
out as matrices and hashed. The hash of the 2 KiB circuit stops the run where it is another.
"""

from __future__ import annotations

import argparse
import resource
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.timing import least
from cuzk.filecoin.shapes import SHAPES
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.matrices import matrices
from cuzk.filecoin.templates.porep import porep
from cuzk.filecoin.templates.r1cs_hash import r1cs_hash
from cuzk.filecoin.templates.store import read, write

# of the 2 KiB PoRep: what an independent model of the circuit says
OF_2_KIB = "2c120b1125bd531d5a62b11932b2ae0e0cb47f455cea582994f97534e296bb42"
LARGEST_WRITTEN_OUT = 4_000_000


def report(shape: CircuitShape, name: str, milliseconds: float, note: str = "") -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{shape.name:12} {name:12} {milliseconds:9.1f} ms  peak {peak:5} MiB  {note}")


def measure(size: str) -> None:
    """One sector size."""
    sector = SHAPES[size]
    shape = porep(Library(), sector)
    recorded = least(lambda: porep(Library(), sector)).cpu
    report(shape, "recorded", recorded, f"{shape.constraints:,} rows, {len(shape.unit)} placements")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "circuit"
        write(shape, file)
        report(shape, "mapped", least(lambda: read(file)).cpu, f"{file.stat().st_size:,} bytes")
    if shape.constraints <= LARGEST_WRITTEN_OUT:
        report(shape, "written out", least(lambda: matrices(shape)).cpu)
        if size == "2KiB" and (found := r1cs_hash(shape)) != OF_2_KIB:
            raise SystemExit(f"{shape.name}: R1CS hash: expected {OF_2_KIB}, found {found}")
        report(shape, "R1CS hash", least(lambda: r1cs_hash(shape), repeat=1).cpu)


def main() -> None:
    """Processor time of one core, and the process's peak so far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="*", default=["32GiB", "2KiB"], choices=list(SHAPES))
    for size in parser.parse_args().sizes:
        measure(size)


if __name__ == "__main__":
    main()
