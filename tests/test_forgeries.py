"""Attacks on the verifier: keys that anyone can forge under, statements that are none, copies of nouns."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuzk.curves import BLS12_381, BN254, TOY, Curve
from cuzk.errors import CircuitError, CuzkError, FormatError, InsecureKeyError
from cuzk.groth16 import Proof, VerifyingKey, insecurity
from cuzk.vectors import Points, Scalars
from cuzk.verifier import Verifier, verify, verify_batch
from test_verifier import Secrets, combination, multiple, single

STATEMENT = [666, 0]


@pytest.fixture(params=[BN254, BLS12_381, TOY], ids=lambda curve: curve.name)
def every_curve(request: pytest.FixtureRequest) -> Curve:
    curve: Curve = request.param
    return curve


def statement(vk: VerifyingKey, public: list[int]) -> Points:
    """S = IC_0 + sum public_i IC_i."""
    return combination([(vk.ic[i : i + 1], k) for i, k in enumerate([1, *public])])


def nothing(curve: Curve) -> Points:
    return single(curve, "g1", None)


def by_delta_gamma(vk: VerifyingKey, k: int, _: Points) -> Proof:
    return Proof(vk.alpha_g1, vk.beta_g2, combination([(statement(vk, STATEMENT), -k)]))


def by_beta_gamma(vk: VerifyingKey, k: int, _: Points) -> Proof:
    a = combination([(vk.alpha_g1, k), (statement(vk, STATEMENT), 1)])
    return Proof(a, vk.gamma_g2, nothing(vk.curve))


def by_beta_delta(vk: VerifyingKey, k: int, _: Points) -> Proof:
    c = combination([(vk.alpha_g1, -k)])
    return Proof(statement(vk, STATEMENT), vk.gamma_g2, c)


def by_alpha(vk: VerifyingKey, k: int, beta_g1: Points) -> Proof:
    a = combination([(beta_g1, k), (statement(vk, STATEMENT), 1)])
    return Proof(a, vk.gamma_g2, nothing(vk.curve))


def by_empty_sum(vk: VerifyingKey, *_: object) -> Proof:
    return Proof(vk.alpha_g1, vk.beta_g2, nothing(vk.curve))


@pytest.mark.parametrize("k", [1, -1])
@pytest.mark.parametrize(
    ("secrets", "forge", "reason"),
    [
        (lambda c, k: Secrets(c, gamma=7, delta=7 * k), by_delta_gamma, "delta = {}gamma"),
        (lambda c, k: Secrets(c, gamma=7, beta=7 * k), by_beta_gamma, "beta = {}gamma"),
        (lambda c, k: Secrets(c, beta=9 * k, delta=9), by_beta_delta, "beta = {}delta"),
        (lambda c, k: Secrets(c, alpha=k, gamma=1), by_alpha, "alpha = {}1"),
        (lambda c, _: Secrets(c, ic=(0, 0, 0)), by_empty_sum, "every point of IC"),
    ],
    ids=["delta-gamma", "beta-gamma", "beta-delta", "alpha", "ic"],
)
def test_keys_that_anyone_can_forge_under(
    every_curve: Curve,
    secrets: Callable[[Curve, int], Secrets],
    forge: Callable[[VerifyingKey, int, Points], Proof],
    reason: str,
    k: int,
) -> None:
    """The forged proof is accepted by the equation, so the key has to be refused."""
    known = secrets(every_curve, k)
    vk = known.key()
    forged = forge(vk, k, multiple(every_curve, "g1", known.beta))
    assert verify(vk, STATEMENT, forged, insecure_key=True)
    assert insecurity(vk).startswith(reason.format("" if k == 1 else "-"))
    with pytest.raises(InsecureKeyError, match="anyone can forge"):
        verify(vk, STATEMENT, forged)
    assert not insecurity(Secrets(every_curve, gamma=1).key())


def test_a_batch_that_can_be_walked_once(every_curve: Curve) -> None:
    """zip and generators: no statement is left out, wrong ones are found."""
    secrets = Secrets(every_curve)
    vk = secrets.key()
    publics = [[1, 2], [3, 4], [5, 6]]
    proofs = [secrets.proof(public) for public in publics]
    verifier = Verifier(vk)
    assert verifier.verify_batch(zip(publics, proofs, strict=True))
    wrong = [*publics[:2], [5, 7]]
    assert not verifier.verify_batch(zip(wrong, proofs, strict=True))
    assert not verify_batch(vk, iter([(wrong[2], proofs[2])]))
    assert [i for i, _ in verifier.failing(zip(wrong, proofs, strict=True))] == [2]
    assert verifier.verify_batch(iter(()))


@pytest.mark.parametrize(
    "public",
    [
        {1, 2}, {1: 0, 2: 0}, iter([1, 2]), "12", [1.0, 2.0], [1, None], ["1", "2"], [True, 2],
        [1, np.True_], np.array([1.0, 2.0]), np.array([[1, 2]]), np.array([[1], [2]]), np.array(1),
        3, None, [-1, 2], [1, [2]], [1, b"2"],
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_public_inputs_that_are_no_integers(every_curve: Curve, public: Any) -> None:
    secrets = Secrets(every_curve)
    proof = secrets.proof([1, 2])
    with pytest.raises((FormatError, CircuitError), match="public input"):
        verify(secrets.key(), public, proof)
    with pytest.raises((FormatError, CircuitError), match="public input"):
        verify_batch(secrets.key(), [(public, proof)])


@pytest.mark.parametrize("make", [list, tuple, np.array, bytes, lambda v: [np.uint8(x) for x in v]])
def test_public_inputs_of_many_kinds(every_curve: Curve, make: Callable[..., Any]) -> None:
    secrets = Secrets(every_curve)
    vk, proof = secrets.key(), secrets.proof([1, 2])
    assert verify(vk, make([1, 2]), proof)
    assert not verify(vk, make([1, 3]), proof)


def test_small_numpy_integers_do_not_wrap(curve: Curve) -> None:
    """uint8 times a weight of 128 bits would, if it were not made a Python integer first."""
    secrets = Secrets(curve)
    public: Any = np.array([200, 255], dtype=np.uint8)
    batch = [(public, secrets.proof([200, 255]))] * 2
    assert verify_batch(secrets.key(), batch)
    assert not verify_batch(secrets.key(), [(public, secrets.proof([200, 254]))])


@pytest.mark.parametrize("change", [lambda w: w.astype(np.float64), lambda w: w[0], lambda w: w[:, :1], lambda w: w.view(np.int64)])  # fmt: skip
def test_points_of_other_words(curve: Curve, change: Callable[..., Any]) -> None:
    secrets = Secrets(curve)
    vk, proof = secrets.key(), secrets.proof([1, 2])
    words = change(np.concatenate([proof.a.words]))
    with pytest.raises(FormatError):
        verify(vk, [1, 2], replace(proof, a=Points(curve, "g1", words)))
    with pytest.raises(FormatError):
        verify(replace(vk, alpha_g1=Points(curve, "g1", words)), [1, 2], proof)


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_copies_are_what_they_are_copies_of(every_curve: Curve) -> None:
    secrets = Secrets(every_curve)
    vk, proof = secrets.key(), secrets.proof([1, 2])
    ways: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, pickled]
    for again in ways:
        other_vk, other = again(vk), again(proof)
        assert other.curve is every_curve
        assert other_vk.curve is every_curve
        assert verify(other_vk, [1, 2], other)
        assert verify(vk, again(Scalars.from_ints(every_curve, [1, 2])), other)
        assert not verify(other_vk, [1, 3], other)


def test_what_can_still_change_is_checked_again(curve: Curve) -> None:
    """A check is remembered, but not for words that someone can still write."""
    secrets = Secrets(curve)
    vk, proof = secrets.key(), secrets.proof([1, 2])
    own = np.array(vk.alpha_g1.words)
    view = own.view()
    view.flags.writeable = False
    mapped = np.frombuffer(own.data.cast("B"), dtype=np.uint64).reshape(own.shape)
    mapped.flags.writeable = False
    for words in (own, view, mapped):
        key = replace(vk, alpha_g1=Points(curve, "g1", words))
        assert verify(key, [1, 2], proof)
        own[0, 0] += np.uint64(1)
        with pytest.raises(FormatError, match="alpha"):
            verify(key, [1, 2], proof)
        own[0, 0] -= np.uint64(1)
    changed = pickled(vk)
    changed.alpha_g1.words[0, 0] += np.uint64(1)
    with pytest.raises(FormatError, match="alpha"):
        verify(changed, [1, 2], proof)
    assert vk.gamma_g2.known_good


def test_a_verifier_after_errors(every_curve: Curve) -> None:
    secrets = Secrets(every_curve)
    proof, verifier = secrets.proof([1, 2]), Verifier(secrets.key())
    wrong: list[Any] = [[1], [1, 2, 0], [1, every_curve.r], [1, "2"]]
    for bad in wrong:
        with pytest.raises(CuzkError):
            verifier.verify(bad, proof)
        assert verifier.verify([1, 2], proof)
        assert not verifier.verify([2, 1], proof)
