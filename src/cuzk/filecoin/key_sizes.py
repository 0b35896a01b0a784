"""Points and bytes of a circuit's parameter files, and memory to prove with them: known from counts alone."""

from __future__ import annotations

from cuzk.errors import CircuitError, FormatError, OutOfMemory
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.formats.bellman import HEAD_BYTES, POINT_BYTES, VECTORS, ParamsLayout, read_layout
from cuzk.formats.source import Readable, Source
from cuzk.load import kind_of
from cuzk.prover.plan import PROCESS_BYTES, installed_bytes, sum_bytes

COUNT_BYTES = 4
SCALAR_BYTES = 32
TERM_BYTES = 8
ROW_BYTES = 8


def vk_bytes(circuit: CircuitShape) -> int:
    """Of the .vk file, with which the .params file begins."""
    return HEAD_BYTES + COUNT_BYTES + POINT_BYTES["g1"] * circuit.inputs


def point_counts(circuit: CircuitShape) -> dict[str, int]:
    """Of each vector of the .params file; b_g2 has as many as b_g1."""
    a_aux, b_aux = (density.count for density in circuit.densities)
    b = circuit.b_inputs + b_aux
    return {
        "h": (1 << circuit.log_domain) - 1,
        "l": circuit.aux,
        "a": circuit.inputs + a_aux,
        "b_g1": b,
        "b_g2": b,
    }


def section_bytes(circuit: CircuitShape) -> dict[str, int]:
    """The points of each vector of the .params file."""
    counts = point_counts(circuit)
    return {name: count * POINT_BYTES[VECTORS[name]] for name, count in counts.items()}


def params_bytes(circuit: CircuitShape) -> int:
    """Of the .params file."""
    sections = section_bytes(circuit)
    return vk_bytes(circuit) + len(sections) * COUNT_BYTES + sum(sections.values())


def proving_bytes(circuit: CircuitShape, *, on_gpu: bool = False) -> int:
    """Host memory to prove: points (converted as they are read, piece by piece), four vectors over the
    domain, what sums work with, a witness.

    Rows are evaluated from the circuit's templates. A GPU has rows and vectors: the host the points, a witness, and
    while the key is loaded the largest matrix, written out.
    """
    beside = SCALAR_BYTES * (4 << circuit.log_domain) + sum_bytes(circuit.log_domain)
    if on_gpu:
        beside = TERM_BYTES * max(circuit.terms) + ROW_BYTES * ((1 << circuit.log_domain) + 1)
    return PROCESS_BYTES + params_bytes(circuit) + beside + witness_bytes(circuit)


def witness_bytes(circuit: CircuitShape) -> int:
    """All wires."""
    return SCALAR_BYTES * (circuit.inputs + circuit.aux)


def setup_bytes(circuit: CircuitShape) -> int:
    """Memory to make a key: its points, scalars of all wires (four vectors) and over the domain (two).

    The rows of one unit at a time are written out, before there are points. 2 KiB PoRep: 1.77 GB, measured 1.83 GB.
    """
    scalars = SCALAR_BYTES * (4 * (circuit.inputs + circuit.aux) + (2 << circuit.log_domain))
    return PROCESS_BYTES + params_bytes(circuit) + scalars


def expect_points(circuit: CircuitShape, key: Readable) -> None:
    """CircuitError, before any work, where a .params file has not the circuit's points."""
    source = Source.open(key, "a .params file")
    if kind_of(source):
        return  # another format: whoever loads it says so
    layout = proving_layout(source)
    sections = {"ic": layout.ic, **layout.vectors}
    for name, expected in {"ic": circuit.inputs, **point_counts(circuit)}.items():
        if (found := sections[name].count) != expected:
            raise CircuitError(
                f"{layout.name}: {name}: expected {expected} points, as {circuit.name} has, found {found}: "
                "the key of another circuit"
            )


def proving_layout(source: Source) -> ParamsLayout:
    """FormatError where the file is cut short or a .vk."""
    layout = read_layout(source)
    if not layout.vectors:
        raise FormatError(
            f"{layout.name}: expected a .params file, found a .vk: it has no points to prove with"
        )
    return layout


def expect_proving(circuit: CircuitShape, limit: int | None = None, *, device: str = "cpu") -> None:
    """OutOfMemory where a proof does not fit; with "auto" it must fit the CPU, too."""
    needed = proving_bytes(circuit, on_gpu=device.startswith("cuda"))
    expect_memory(needed, circuit, "a proof", limit)


def one_at_a_time(circuit: CircuitShape, limit: int | None = None) -> str:
    """Why memory has no room for the next witness beside a proof; nothing where it has."""
    try:
        expect_memory(
            proving_bytes(circuit) + witness_bytes(circuit),
            circuit,
            "a proof beside the next witness",
            limit,
        )
    except OutOfMemory as error:
        return f"each witness was made after the proof before it: {error}"
    return ""


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
