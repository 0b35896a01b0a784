"""Bytes of a circuit's parameter files, and of memory to prove with them: known from counts alone."""

from __future__ import annotations

from cuzk.errors import OutOfMemory
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.formats.bellman import HEAD_BYTES, POINT_BYTES
from cuzk.prover.plan import PROCESS_BYTES, installed_bytes

COUNT_BYTES = 4
SCALAR_BYTES = 32
TERM_BYTES = 8  # of cuzk.r1cs.SparseMatrix: wire and coefficient
ROW_BYTES = 8


def vk_bytes(circuit: CircuitShape) -> int:
    """Of the .vk file, with which the .params file begins."""
    return HEAD_BYTES + COUNT_BYTES + POINT_BYTES["g1"] * circuit.inputs


def section_bytes(circuit: CircuitShape) -> dict[str, int]:
    """The points of each vector of the .params file."""
    a_aux, b_aux = (density.count for density in circuit.densities)
    b = circuit.b_inputs + b_aux
    counts = {
        "h": (1 << circuit.log_domain) - 1,
        "l": circuit.aux,
        "a": circuit.inputs + a_aux,
        "b_g1": b,
    }
    sizes = {name: POINT_BYTES["g1"] * count for name, count in counts.items()}
    return {**sizes, "b_g2": POINT_BYTES["g2"] * b}


def params_bytes(circuit: CircuitShape) -> int:
    """Of the .params file."""
    sections = section_bytes(circuit)
    return vk_bytes(circuit) + len(sections) * COUNT_BYTES + sum(sections.values())


def matrices_bytes(circuit: CircuitShape) -> int:
    """Of the rows, written out."""
    terms = sum(circuit.terms) + circuit.inputs
    return TERM_BYTES * terms + ROW_BYTES * (3 * circuit.constraints + circuit.inputs + 3)


def proving_bytes(circuit: CircuitShape) -> int:
    """Memory to prove: points (converted when read), rows, three vectors over the domain, a witness."""
    vectors = SCALAR_BYTES * ((3 << circuit.log_domain) + circuit.inputs + circuit.aux)
    return PROCESS_BYTES + params_bytes(circuit) + matrices_bytes(circuit) + vectors


def setup_bytes(circuit: CircuitShape) -> int:
    """Memory to make a key: its points, rows, scalars of all wires (four vectors) and over the domain (two).

    2 KiB PoRep: 1.96 GB, measured 2.02 GB.
    """
    scalars = SCALAR_BYTES * (4 * (circuit.inputs + circuit.aux) + (2 << circuit.log_domain))
    return PROCESS_BYTES + params_bytes(circuit) + matrices_bytes(circuit) + scalars


def expect_proving(circuit: CircuitShape, limit: int | None = None) -> None:
    """OutOfMemory where a proof does not fit; of a limit the mapped file of the key counts, too."""
    expect_memory(proving_bytes(circuit), circuit, "a proof")
    if limit is not None:
        mapped = proving_bytes(circuit) + params_bytes(circuit)
        expect_memory(mapped, circuit, "a proof", limit)


def expect_memory(needed: int, circuit: CircuitShape, what: str, limit: int | None = None) -> None:
    """OutOfMemory, before any work, where ``what`` needs more than is allowed or there."""
    installed = installed_bytes()
    if limit is not None and needed > limit:
        raise OutOfMemory(
            f"{circuit.name}: {what} needs {needed} bytes of memory, the limit is {limit}; raise it"
        )
    if needed > installed:
        raise OutOfMemory(
            f"{circuit.name}: {what} needs {needed} bytes of memory, this machine has {installed}"
        )
