"""A bellman key prepared on whatever device is there: :mod:`cuzk.setup.prepare` and a check of its result.

What a device made is checked by the equation that it is for. For any vectors v over the domain and w over the
wires, with T and T' the inverse transforms from the domain and from its coset,

    sum_j v_j H'_j + sum_i w_i (L'_i - L_i) = sum_i h_i H_i,   h = (T' v - T C w) / z;

v and w are powers of random numbers: a wrong point passes with probability below 2 n / r.
"""

from __future__ import annotations

import secrets

import numpy as np

from cuzk.backends import Backend, Buffer
from cuzk.backends.cpu import CpuBackend
from cuzk.errors import DeviceUnavailable, KernelError
from cuzk.groth16 import ProvingKey, Query
from cuzk.prover.devices import open_device, thread_count
from cuzk.r1cs import Matrices
from cuzk.setup.insecure import with_c
from cuzk.setup.prepare import PointWork, check_own_circuit, prepare
from cuzk.setup.scalars import plain, powers
from cuzk.vectors import Points, Scalars, Words

# A key with a smaller domain is prepared by a core (0.1 ms a scaling) before a GPU is opened, about a second.
GPU_FROM_LOG_DOMAIN = 10


def prepare_key(
    key: ProvingKey,
    circuit: Matrices,
    *,
    device: str | Backend = "auto",
    threads: int | None = None,
) -> ProvingKey:
    """A bellman key (:func:`cuzk.load_key` of a .params) that takes four transforms per proof instead of six.

    ``circuit`` is the key's own. The prepared key makes the same proofs and stays in memory. It costs n log n
    scalings of points: seconds on a GPU; a core does 10,000 a second on BLS12-381 (2^20 rows: half an hour).
    ``device`` is as for :class:`cuzk.Prover`; one that fails is not replaced by the CPU.
    CircuitError where the key is not bellman's or the circuit is another's or without C, KernelError where
    a device's points are wrong.
    """
    check_own_circuit(key, circuit)
    threads = thread_count(threads)
    if device == "auto" and key.log_domain < GPU_FROM_LOG_DOMAIN:
        device = "cpu"
    backend, _ = open_device(device, key.curve, threads)
    if isinstance(backend, CpuBackend):
        return prepare(key, circuit, threads=threads)
    prepared = prepare(key, circuit, threads=threads, on=point_work(backend, threads))
    check_prepared(key, prepared, circuit, backend, threads)
    return prepared


def point_work(backend: Backend, threads: int) -> PointWork:
    """What the backend's machine can do with points."""
    from cuzk.backends.cuda import CudaBackend
    from cuzk.backends.cuda.group_ntt import DevicePoints

    if not isinstance(backend, CudaBackend):
        raise DeviceUnavailable(
            f"{backend.name}: expected cpu or a CUDA device to prepare a key, found another; take cpu"
        )
    return DevicePoints(backend.machine, backend.curve, threads)


def check_prepared(
    key: ProvingKey, prepared: ProvingKey, circuit: Matrices, backend: Backend, threads: int
) -> None:
    """KernelError where the sums of both keys differ."""
    curve, log_n = key.curve, key.log_domain
    matrix = with_c(circuit)
    v = powers(curve, 1, secrets.randbelow(curve.r), 1 << log_n, threads)
    w = Scalars(
        curve, plain(powers(curve, 1, secrets.randbelow(curve.r), key.wires, threads), threads)
    )
    wires = backend.put(w)
    h = _quotient(
        key, backend, backend.put(v), backend.product(backend.put(matrix), wires, 1 << log_n)
    )
    every = range(1 << log_n)

    def total(parts: list[tuple[Query, Buffer]]) -> Words:
        sums = [backend.msm(backend.put(q.points), s, q.wires).words for q, s in parts]
        ones = Scalars.from_ints(curve, [1] * len(sums))
        return backend.combine(Points(curve, "g1", np.concatenate(sums)), ones).words

    made = total([(Query(prepared.h, every), backend.put(v)), (prepared.l, wires)])
    given = total([(Query(key.h, every[: len(key.h)]), h), (key.l, wires)])
    if not np.array_equal(made, given):
        raise KernelError(
            f"{backend.name}: {key.source}: the prepared key's sums are not those of the key; take device cpu"
        )


def _quotient(key: ProvingKey, backend: Backend, v: Buffer, c: Buffer) -> Buffer:
    """(T' v - T c) / z; consumes both."""
    r, log_n = key.curve.r, key.log_domain
    root = key.curve.root_of_unity(log_n, key.generator)
    g = key.curve.coset_shift(log_n, key.generator)
    from_coset = backend.ntt(v, root, inverse=True, shift=g)
    z = (pow(g, 1 << log_n, r) - 1) % r
    return backend.pointwise(
        from_coset, minus=backend.ntt(c, root, inverse=True), scale=pow(z, -1, r), into=from_coset
    )
