"""The two kernels by themselves: multi-scalar multiplication and the number-theoretic transform."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

import numpy as np

from cuzk import _core
from cuzk.curves import GROUPS, Curve, curve_named
from cuzk.errors import FormatError
from cuzk.membership import first_bad
from cuzk.prover.devices import thread_count
from cuzk.vectors import Affine, Points, Scalars, Words


def msm(
    curve: Curve | str,
    group: str,
    points: Points | Words | Sequence[Affine],
    scalars: Scalars | Words | Sequence[int],
    *,
    threads: int | None = None,
) -> Affine:
    """sum scalars[i] * points[i] as affine coordinates (None: infinity).

    ``points``: coordinate tuples (x, y) or (x.c0, x.c1, y.c0, y.c1) with None for infinity; or Points, or
    their (n, words) uint64 array in Montgomery form, infinity all zeros. All are checked to be on the
    curve, not for the subgroup. ``scalars``: integers, taken modulo r; or Scalars, or an (n, 4) uint64
    array of plain values below r. FormatError where something is malformed.
    """
    curve = _curve(curve)
    if group not in GROUPS:
        raise FormatError(f"group: expected g1 or g2, found {group!r}")
    count = thread_count(threads)
    bases = _points(curve, group, points, count)
    factors = _scalars(curve, scalars, count)
    if len(bases) != len(factors):
        raise FormatError(
            f"msm: expected as many scalars as points, found {len(factors)} and {len(bases)}"
        )
    out = np.zeros((1, curve.point_words(group)), dtype=np.uint64)
    _core.msm(curve.name, group, bases.words, factors.words, None, out, count)
    return Points(curve, group, out).affine()


def ntt(
    curve: Curve | str,
    values: Scalars | Words | Sequence[int],
    *,
    inverse: bool = False,
    generator: int | None = None,
    threads: int | None = None,
) -> list[int] | Words:
    """y_j = sum_i x_i w^(ij) over the n = 2^k-th roots of unity, natural order; ``inverse`` undoes it.

    ``values``: integers, taken modulo r, answered with a list of integers; or Scalars or an (n, 4) uint64
    array of plain values below r, answered with such an array. w = generator^((r - 1) / n); the default
    generator is 5, snarkjs' choice on both curves (bellman and arkworks take 7 on BLS12-381).
    """
    curve = _curve(curve)
    count = thread_count(threads)
    given = _scalars(curve, values, count)
    n = len(given)
    if n < 1 or n & (n - 1):
        raise FormatError(f"ntt: expected 2^k values, found {n}")
    if generator is not None and pow(generator, (curve.r - 1) // 2, curve.r) != curve.r - 1:
        raise FormatError(f"generator: expected a quadratic non-residue of Fr, found {generator}")
    root = curve.root_of_unity(n.bit_length() - 1, generator)
    x = np.empty((n, curve.fr_words), dtype=np.uint64)
    _core.to_montgomery(curve.name, "fr", given.words, x, count)
    one, w = (Scalars.from_ints(curve, [v], montgomery=True).words for v in (1, root))
    if inverse:
        _core.bit_reverse(x)
    _core.ntt(curve.name, x, w, one, inverse, count)
    if not inverse:
        _core.bit_reverse(x)
    _core.from_montgomery(curve.name, "fr", x, x, count)
    if isinstance(values, Scalars | np.ndarray):
        return x
    return Scalars(curve, x).ints()


def _array(values: Words, width: int, what: str) -> Words:
    if values.ndim != 2 or values.shape[1] != width or values.dtype != np.uint64:
        raise FormatError(
            f"{what}: expected a (n, {width}) array of uint64, found {values.shape} of {values.dtype}"
        )
    return np.ascontiguousarray(values)


def _scalars(curve: Curve, values: Scalars | Words | Sequence[int], threads: int) -> Scalars:
    if isinstance(values, Scalars):
        if values.curve is not curve:
            raise FormatError(
                f"scalars: expected ones of {curve.title}, found ones of {values.curve.title}"
            )
        if values.montgomery:
            return Scalars.from_ints(curve, values.ints())
        values = values.words
    if not isinstance(values, np.ndarray):
        return Scalars.from_ints(curve, _integers(values, "scalars"))
    words = _array(values, curve.fr_words, "scalars")
    if (index := _core.first_not_canonical(curve.name, "fr", words, threads)) >= 0:
        raise FormatError(f"scalars: index {index}: expected a value below r, found a larger one")
    return Scalars(curve, words)


def _points(
    curve: Curve, group: str, points: Points | Words | Sequence[Affine], threads: int
) -> Points:
    if isinstance(points, Points):
        if points.curve is not curve or points.group != group:
            raise FormatError(
                f"points: expected {curve.title} {group}, found {points.curve.title} {points.group}"
            )
        points = points.words
    if not isinstance(points, np.ndarray):
        points = _from_coordinates(curve, group, points).words
    vector = Points(curve, group, _array(points, curve.point_words(group), "points"))
    index, reason = first_bad(vector, subgroup=False, threads=threads)
    if index >= 0:
        raise FormatError(
            f"points: index {index}: expected a point on the curve, found a bad {reason}"
        )
    return vector


def _from_coordinates(curve: Curve, group: str, points: Sequence[Affine]) -> Points:
    wanted, affine = curve.coordinates(group), list[Affine]()
    for index, point in enumerate(points):
        where = f"points: index {index}"
        if point is not None and not isinstance(point, Sequence | np.ndarray):
            raise FormatError(f"{where}: expected coordinates, found {type(point).__name__}")
        values = None if point is None else tuple(_integers(point, where))
        if values is not None and (
            len(values) != wanted or not all(0 <= c < curve.p for c in values)
        ):
            raise FormatError(f"{where}: expected {wanted} coordinates below p, found {point}")
        affine.append(values)
    return Points.from_affine(curve, group, affine)


def _integers(values: Iterable[object], where: str) -> list[int]:
    """Python integers (numpy's would overflow), or FormatError."""
    found = []
    for index, value in enumerate(values):
        try:
            found.append(operator.index(value))  # type: ignore[arg-type]
        except TypeError:
            raise FormatError(
                f"{where}: index {index}: expected an integer, found {type(value).__name__}"
            ) from None
    return found


def _curve(curve: Curve | str) -> Curve:
    """One of the two that have native arithmetic."""
    found = curve_named(curve) if isinstance(curve, str) else curve
    if found.is_toy:
        raise FormatError(f"curve: expected bn128 or bls12381, found {found.name}")
    return found
