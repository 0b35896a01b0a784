"""A proving key whose points and matrices a device knows: made once, used for many proofs."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.backends import Backend, Buffer, Workload
from cuzk.groth16 import ProvingKey, Query
from cuzk.r1cs import ConstraintSystem, Matrix


@dataclass(frozen=True)
class ResidentQuery:
    """Points on the device and the wires whose values multiply them."""

    points: Buffer
    wires: object  # range or (n,) uint32


@dataclass(frozen=True)
class ResidentKey:
    """Buffers of one backend; ``key`` and ``matrices`` own the memory they may be views of."""

    key: ProvingKey
    matrices: ConstraintSystem
    matrix_a: Buffer
    matrix_b: Buffer
    matrix_c: Buffer | None
    a: ResidentQuery
    b_g1: ResidentQuery
    b_g2: ResidentQuery
    l: ResidentQuery  # noqa: E741
    h: ResidentQuery

    def expect_there(self) -> None:
        """FormatError where the key's file was cut short since it was loaded."""
        key = self.key
        for points in (key.a.points, key.b_g1.points, key.b_g2.points, key.l.points, key.h):
            points.expect_there()


def workload(
    key: ProvingKey, matrices: ConstraintSystem, *, repeated: bool = False, lanes: int = 1
) -> Workload:
    """What a proof asks of a device, or many of them."""
    known = [m for m in (matrices.a, matrices.b, matrices.c) if m is not None]
    points = (key.a.points, key.b_g1.points, key.b_g2.points, key.l.points, key.h)
    return Workload(
        key.log_domain,
        matrices.wires,
        tuple((m.rows, m.terms, len(m.values)) for m in known),
        tuple((p.group, len(p)) for p in points),
        repeated,
        lanes,
    )


def reside(key: ProvingKey, matrices: ConstraintSystem, backend: Backend) -> ResidentKey:
    """Put what every proof needs on the device; key and circuit must already be known to fit."""

    def matrix(value: Matrix) -> Buffer:
        return backend.put(value)

    def query(value: Query) -> ResidentQuery:
        return ResidentQuery(backend.put(value.points), value.wires)

    return ResidentKey(
        key,
        matrices,
        matrix(matrices.a),
        matrix(matrices.b),
        matrix(matrices.c) if matrices.c else None,
        query(key.a),
        query(key.b_g1),
        query(key.b_g2),
        query(key.l),
        # bellman's keys have one point less than the domain: h has degree n - 2
        query(Query(key.h, range(len(key.h)))),
    )
