"""Boolean gadgets over literals: constants and negations cost nothing, and shape the rows.

    xor      (2 x) y = x + y - z          not x and y alike: the parity goes to the result
    and      x y = z, x (1 - y) = z, (1 - x) (1 - y) = z
    ch       (b - c) a = z - c
    maj      b c = t, (2 t - b - c) a = t - z     z is allocated before t

A constant operand leaves nothing, or an and. Which operand stands in A, and which in B, is part of the circuit.

Definitions: bellperson's gadgets::boolean (Boolean::xor, and, sha256_ch, sha256_maj).
"""

from __future__ import annotations

from collections.abc import Iterable

from cuzk.filecoin.templates.program import FALSE, TRUE, Op
from cuzk.filecoin.templates.recorder import ONE, Recorder


def literal(slot: int) -> int:
    """The bit itself."""
    return 2 * slot


def constant(value: int) -> int:
    """True or false."""
    return TRUE if value else FALSE


def is_constant(x: int) -> bool:
    """Whether a literal is true or false whatever the witness."""
    return x <= FALSE


def add(combination: dict[int, int], x: int, coefficient: int) -> None:
    """Add coefficient * x: a negation is ONE minus the variable."""
    slot = x >> 1
    if x & 1:
        combination[ONE] = combination.get(ONE, 0) + coefficient
        coefficient = -coefficient
    combination[slot] = combination.get(slot, 0) + coefficient


def combination(terms: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The sum of (literal, coefficient) terms."""
    total: dict[int, int] = {}
    for x, coefficient in terms:
        add(total, x, coefficient)
    return total


def xor(recorder: Recorder, x: int, y: int) -> int:
    """x + y mod 2."""
    if is_constant(x) or is_constant(y):
        return x ^ y ^ 1
    parity = (x ^ y) & 1
    if parity and x & 1:
        x, y = y, x
    p, q = x >> 1, y >> 1
    z = recorder.define(Op.XOR, (2 * p, 2 * q), bit=True)
    recorder.enforce({p: 2}, {q: 1}, combination([(2 * p, 1), (2 * q, 1), (2 * z, -1)]))
    return 2 * z | parity


def both(recorder: Recorder, x: int, y: int) -> int:
    """x and y."""
    if is_constant(x):
        return y if x == TRUE else FALSE
    if is_constant(y):
        return x if y == TRUE else FALSE
    if x & 1 and not y & 1:
        x, y = y, x
    z = recorder.define(Op.AND, (x, y), bit=True)
    recorder.enforce(combination([(x, 1)]), combination([(y, 1)]), {z: 1})
    return 2 * z


def either(recorder: Recorder, x: int, y: int) -> int:
    """x or y."""
    return both(recorder, x ^ 1, y ^ 1) ^ 1


def choose(recorder: Recorder, a: int, b: int, c: int) -> int:
    """SHA-256's ch: b if a, else c."""
    if is_constant(a) and is_constant(b) and is_constant(c):
        return b if a == TRUE else c
    if a == FALSE:
        return c
    if b == FALSE:
        return both(recorder, a ^ 1, c)
    if c == FALSE:
        return both(recorder, a, b)
    if c == TRUE:
        return both(recorder, a, b ^ 1) ^ 1
    if b == TRUE:
        return either(recorder, a, c)
    z = recorder.define(Op.CH, (a, b, c), bit=True)
    recorder.enforce(
        combination([(b, 1), (c, -1)]),
        combination([(a, 1)]),
        combination([(2 * z, 1), (c, -1)]),
    )
    return 2 * z


def majority(recorder: Recorder, a: int, b: int, c: int) -> int:
    """SHA-256's maj: the value that at least two of the three have."""
    if is_constant(a) and is_constant(b) and is_constant(c):
        return constant((a == TRUE) + (b == TRUE) + (c == TRUE) >= 2)
    for unless, x, y in ((a, b, c), (b, a, c), (c, a, b)):
        if unless == FALSE:
            return both(recorder, x, y)
    for when, x, y in ((c, a, b), (b, a, c), (a, b, c)):
        if when == TRUE:
            return either(recorder, x, y)
    z = recorder.define(Op.MAJ, (a, b, c), 2, bit=True)
    t = z + 1
    product = (c, b) if b & 1 and not c & 1 else (b, c)
    recorder.enforce(combination([(product[0], 1)]), combination([(product[1], 1)]), {t: 1})
    recorder.enforce(
        combination([(2 * t, 2), (b, -1), (c, -1)]),
        combination([(a, 1)]),
        {t: 1, z: -1},
    )
    return 2 * z
