"""The hashes of a .zkey's phase 2, so that ``snarkjs zkey verify`` accepts a key made here.

Points are hashed as big-endian plain coordinates, x.c1 before x.c0 in G2, infinity as zeros.

    circuit hash = BLAKE2b-512 of alpha1, beta1, beta2, gamma2, delta1, delta2, then with a big-endian u32
                   count before each: IC, tau^i Z(tau) for i < n - 1, L, A, B1, B2, all before any
                   contribution (gamma = delta = 1)
    transcript   = BLAKE2b-512 of the circuit hash, every earlier contribution (delta after, g1_s, g1_sx,
                   g2_spx, its transcript), then g1_s and g1_sx of this one
    g2_sp        = a point of G2 drawn by ChaCha20 with the transcript's first 32 bytes as the key

Source: https://github.com/iden3/snarkjs (behaviour of ``zkey new``, ``contribute`` and ``verify``).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from cuzk import _core
from cuzk.curves import Curve
from cuzk.groth16 import Contribution, PowersOfTau, ProvingKey
from cuzk.setup.draw import point_from
from cuzk.setup.overrun import difference
from cuzk.vectors import Points

BATCH = 1 << 14  # points hashed at a time; snarkjs' chunks have this size too


class _Hasher(Protocol):
    def update(self, data: bytes, /) -> None: ...


def circuit_hash(initial: ProvingKey, powers_times_z: Points, ptau: PowersOfTau) -> bytes:
    """64 bytes that bind circuit and powers of tau; ``initial`` is the key before any contribution."""
    state = hashlib.blake2b(digest_size=64)
    vk = initial.vk
    for point in (
        vk.alpha_g1,
        initial.beta_g1,
        vk.beta_g2,
        vk.gamma_g2,
        initial.delta_g1,
        vk.delta_g2,
    ):
        _hash_points(state, point)
    _hash_counted(state, vk.ic)
    _hash_quotient(state, powers_times_z, ptau, 1 << initial.log_domain)
    for query in (initial.l, initial.a, initial.b_g1, initial.b_g2):
        _hash_counted(state, query.points)
    return state.digest()


def transcript_of(
    circuit: bytes, earlier: Sequence[Contribution], g1_s: Points, g1_sx: Points
) -> bytes:
    """What the next contribution answers to."""
    state = hashlib.blake2b(circuit, digest_size=64)
    for step in earlier:
        for points in (step.delta_after, step.g1_s, step.g1_sx, step.g2_spx):
            _hash_points(state, points)
        state.update(step.transcript)
    _hash_points(state, g1_s)
    _hash_points(state, g1_sx)
    return state.digest()


def challenge_point(transcript: bytes, curve: Curve) -> Points:
    """g2_sp."""
    return Points.from_affine(curve, "g2", [point_from(curve, transcript[:32])])


def uncompressed(points: Points) -> Iterator[bytes]:
    """The hashed form, some points at a time."""
    curve, coordinates = points.curve, points.curve.coordinates(points.group)
    order = [1, 0, 3, 2] if points.group == "g2" else [0, 1]
    for start in range(0, len(points), BATCH):
        words = np.ascontiguousarray(points[start : start + BATCH].words)
        flat = words.reshape(-1, curve.fp_words)
        out = np.empty_like(flat)
        _core.from_montgomery(curve.name, "fp", flat, out, 1)
        octets = (
            out.astype("<u8", copy=False)
            .view(np.uint8)
            .reshape(-1, coordinates, 8 * curve.fp_words)
        )
        yield octets[:, order, ::-1].tobytes()


def _hash_points(state: _Hasher, points: Points) -> None:
    for part in uncompressed(points):
        state.update(part)


def _hash_counted(state: _Hasher, points: Points) -> None:
    state.update(struct.pack(">I", len(points)))
    _hash_points(state, points)


def _hash_quotient(state: _Hasher, powers_times_z: Points, ptau: PowersOfTau, n: int) -> None:
    state.update(struct.pack(">I", n - 1))
    _hash_points(state, powers_times_z[: n - 1])
    if n - 1 <= BATCH:
        return
    # From n = 2^15 on, one more than counted: see overrun.py.
    if 2 * n <= len(ptau.tau_g1):
        _hash_points(state, powers_times_z[n - 1 :])
    else:
        _hash_points(state, difference(ptau.curve, ptau.power, ptau.tau_g1[n - 1 : n]))
