"""Comparing proving keys point by point."""

from __future__ import annotations

import numpy as np

from cuzk.groth16 import ProvingKey
from cuzk.vectors import Points


def points_of(key: ProvingKey) -> dict[str, Points]:
    vk = key.vk
    return {
        "alpha_g1": vk.alpha_g1,
        "beta_g1": key.beta_g1,
        "beta_g2": vk.beta_g2,
        "gamma_g2": vk.gamma_g2,
        "delta_g1": key.delta_g1,
        "delta_g2": vk.delta_g2,
        "ic": vk.ic,
        "a": key.a.points,
        "b_g1": key.b_g1.points,
        "b_g2": key.b_g2.points,
        "l": key.l.points,
        "h": key.h,
    }


def expect_equal(found: ProvingKey, expected: ProvingKey) -> None:
    mine, theirs = points_of(found), points_of(expected)
    for name, points in theirs.items():
        assert np.array_equal(mine[name].words, points.words), name
    for name in ("a", "b_g1", "b_g2", "l"):
        assert list(getattr(found, name).wires) == list(getattr(expected, name).wires), name
    assert (found.recipe, found.log_domain, found.generator) == (
        expected.recipe,
        expected.log_domain,
        expected.generator,
    )
