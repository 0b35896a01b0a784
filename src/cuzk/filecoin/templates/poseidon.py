"""Poseidon's rows, in the form of neptune's first circuit.

The state's elements are combinations. An S-box takes its input as a variable (materialised if it is not one
already) and makes three more: x^2, x^4, x^5 + k, where k is the key that follows it. In the first round the keys
before are added inside, and the tag's S-box is a constant. The linear layers only make combinations grow, in the
partial rounds by one term a round; equal variables are merged. The digest is materialised last.

Definition: neptune's circuit (poseidon_hash, legacy), hash_optimized_static.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.filecoin.poseidon import Poseidon, merkle_tag, poseidon
from cuzk.filecoin.templates.recorder import ONE, Combination, R, Recorder

State = list[Combination]


def poseidon_hash(recorder: Recorder, inputs: Sequence[int], tag: int | None = None) -> int:
    """The digest's slot, always a new variable."""
    p = poseidon(len(inputs))
    keys = iter(p.keys)
    before = [next(keys) for _ in range(p.width)]
    after = [next(keys) for _ in range(p.width)]
    first = pow((merkle_tag(p.arity) if tag is None else tag) + before[0], 5, R) + after[0]
    state: State = [{ONE: first % R}]
    for x, key, next_key in zip(inputs, before[1:], after[1:], strict=True):
        state.append({_fifth_power(recorder, {x: 1, ONE: key}, next_key): 1})
    half, rounds = p.full_rounds // 2, p.full_rounds + p.partial_rounds
    state = _times(state, p.pre_sparse if half == 1 else p.mds)
    for r in range(1, rounds):
        partial = half <= r < half + p.partial_rounds
        for i in range(1 if partial else p.width):
            key = 0 if r == rounds - 1 else next(keys)
            x = _materialised(recorder, state[i])
            state[i] = {_fifth_power(recorder, {x: 1}, key): 1}
        if partial:
            state = _times_sparse(p, state, r - half)
        else:
            state = _times(state, p.pre_sparse if r == half - 1 else p.mds)
    return _materialised(recorder, state[1])


def _materialised(recorder: Recorder, element: Combination) -> int:
    if len(element) == 1:
        ((slot, coefficient),) = element.items()
        if coefficient == 1 and slot != ONE:
            return slot
    return recorder.linear(element)


def _fifth_power(recorder: Recorder, x: Combination, plus: int) -> int:
    x2 = recorder.product(x, x)
    x4 = recorder.product({x2: 1}, {x2: 1})
    return recorder.product(x, {x4: 1}, plus)


def _times(state: State, matrix: Sequence[Sequence[int]]) -> State:
    """A row of combinations times a matrix."""
    return [_sum(state, column) for column in zip(*matrix, strict=True)]


def _times_sparse(p: Poseidon, state: State, index: int) -> State:
    matrix = p.sparse[index]
    rest = (_sum([x, state[0]], [1, v]) for x, v in zip(state[1:], matrix.row, strict=True))
    return [_sum(state, matrix.column), *rest]


def _sum(elements: Sequence[Combination], factors: Sequence[int]) -> dict[int, int]:
    total: dict[int, int] = {}
    for element, factor in zip(elements, factors, strict=True):
        for slot, coefficient in element.items():
            total[slot] = (total.get(slot, 0) + coefficient * factor) % R
    return total
