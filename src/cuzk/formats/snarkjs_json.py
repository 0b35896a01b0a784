"""proof.json, public.json and verification_key.json as snarkjs reads and writes them.

    proof             {"pi_a": [x, y, "1"], "pi_b": [[x.c0, x.c1], [y.c0, y.c1], ["1", "0"]], "pi_c": ..,
                       "protocol": "groth16", "curve": "bn128"}
    public            ["..", ..]: wires 1..nPublic
    verification key  {"protocol", "curve", "nPublic", "vk_alpha_1", "vk_beta_2", "vk_gamma_2", "vk_delta_2",
                       "vk_alphabeta_12": e(alpha, beta), "IC": nPublic + 1 points}

A number is a string of decimal digits, a string "0x" and hexadecimal digits, or a JSON integer (exact at
any size); never a fraction, an exponent, a sign or a boolean. Points are projective with last coordinate
1; infinity is [0, 1, 0]. A proof need not name its curve (rapidsnark's do not): the verifying key does.
``vk_alphabeta_12`` is written, and ignored when read: it follows from alpha and beta. Keys of an object
that are not listed here are ignored, keys that occur twice are refused.

Reference: iden3/snarkjs, groth16 export and verify; RFC 8259.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuzk import _core
from cuzk.curves import Curve, curve_named
from cuzk.errors import FormatError
from cuzk.formats.json_text import json_text
from cuzk.formats.source import Readable, Source, write_atomically
from cuzk.groth16 import Proof, VerifyingKey
from cuzk.membership import first_bad
from cuzk.vectors import Affine, Points, Words, unpack

MAX_PROOF_BYTES = 1 << 16  # snarkjs' have 700 to 1,000
MAX_PUBLIC_BYTES = 1 << 25  # 400,000 signals of 78 digits
MAX_KEY_BYTES = 1 << 27  # 500,000 points of IC on BLS12-381
MAX_ODDITIES = (
    1024  # objects, and numbers that are no integers: 30 to 70 times their text in memory
)
MAX_DIGITS = 256  # a coordinate of BLS12-381 has 115
SHOWN = 40  # characters of a bad value that a message quotes

_DECIMAL = re.compile(r"[0-9]+")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class _Literal:
    """A JSON number that is no integer below 10^256: kept as it was written, to be quoted."""

    text: str


def read_proof(what: Readable, curve: Curve | None = None) -> Proof:
    """A proof with coordinates below p. Whether its points are on the curve and in the subgroup is the verifier's check.

    ``curve`` is the verifying key's: it is taken where the file names none, and must agree where it does.
    """
    source = Source.open(what, "a proof in snarkjs' JSON")
    fields = _object(_parse(source, MAX_PROOF_BYTES), source.name)
    _protocol(fields, source.name)
    curve = _curve(fields, source.name, curve)
    a, b, c = (
        _points([_field(fields, key, source.name)], curve, group, [f"{source.name}: {key}"])
        for key, group in (("pi_a", "g1"), ("pi_b", "g2"), ("pi_c", "g1"))
    )
    return Proof(a, b, c)


def read_public(what: Readable, curve: Curve) -> list[int]:
    """The public signals, each below r."""
    source = Source.open(what, "public signals in snarkjs' JSON")
    values = _array(_parse(source, MAX_PUBLIC_BYTES), source.name)
    return [_integer(v, curve.r, "r", curve, f"{source.name}: [{i}]") for i, v in enumerate(values)]


def read_verification_key(
    what: Readable, curve: Curve | None = None, *, threads: int = 1
) -> VerifyingKey:
    """A verifying key whose points were checked: range, curve, subgroup.

    ``curve`` is taken where the file names none, and must agree where it does.
    """
    source = Source.open(what, "a verifying key in snarkjs' JSON")
    name = source.name
    fields = _object(_parse(source, MAX_KEY_BYTES), name)
    _protocol(fields, name)
    curve = _curve(fields, name, curve)

    def one(key: str, group: str) -> Points:
        where = [f"{name}: {key}"]
        return _checked(_points([_field(fields, key, name)], curve, group, where), where, threads)

    entries = _array(_field(fields, "IC", name), f"{name}: IC")
    _public_count(fields, len(entries), name)
    places = [f"{name}: IC[{i}]" for i in range(len(entries))]
    return VerifyingKey(
        curve=curve,
        alpha_g1=one("vk_alpha_1", "g1"),
        beta_g2=one("vk_beta_2", "g2"),
        gamma_g2=one("vk_gamma_2", "g2"),
        delta_g2=one("vk_delta_2", "g2"),
        ic=_checked(_points(entries, curve, "g1", places), places, threads),
    )


def proof_json(proof: Proof) -> bytes:
    """The text of proof.json: one-space indents as snarkjs', one final newline."""
    fields = {
        "pi_a": _written(proof.a),
        "pi_b": _written(proof.b),
        "pi_c": _written(proof.c),
        "protocol": "groth16",
        "curve": proof.curve.snarkjs_name,
    }
    return _text(fields)


def public_json(public: Sequence[int]) -> bytes:
    """The text of public.json."""
    return _text([str(value) for value in public])


def verification_key_json(vk: VerifyingKey) -> bytes:
    """The text of verification_key.json, e(alpha, beta) included."""
    fields = {
        "protocol": "groth16",
        "curve": vk.curve.snarkjs_name,
        "nPublic": vk.public,
        "vk_alpha_1": _written(vk.alpha_g1),
        "vk_beta_2": _written(vk.beta_g2),
        "vk_gamma_2": _written(vk.gamma_g2),
        "vk_delta_2": _written(vk.delta_g2),
        "vk_alphabeta_12": _alpha_beta(vk),
        "IC": [_written(vk.ic, i) for i in range(len(vk.ic))],
    }
    return _text(fields)


def write_proof(path: Path, proof: Proof) -> None:
    """proof.json, in place only when whole."""
    write_atomically(path, [proof_json(proof)])


def write_public(path: Path, public: Sequence[int]) -> None:
    """public.json, in place only when whole."""
    write_atomically(path, [public_json(public)])


def write_verification_key(path: Path, vk: VerifyingKey) -> None:
    """verification_key.json, in place only when whole."""
    write_atomically(path, [verification_key_json(vk)])


def _parse(source: Source, limit: int) -> Any:
    """The JSON value; its memory is a small multiple of the file's size."""
    name, text = source.name, json_text(source, limit)
    brackets = text.count("[") + text.count("{")
    if brackets * 8 > len(text) + 512:  # a point of three one-digit strings is longer than that
        raise FormatError(
            f"{name}: expected numbers and points, found {brackets} brackets in {len(text)} characters"
        )
    if (objects := text.count("{")) > MAX_ODDITIES:
        raise FormatError(f"{name}: expected one JSON object, found {objects} opening braces")
    literal = _literals(name)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(items)
        if len(fields) != len(items):
            raise FormatError(f"{name}: expected each key once, found {_twice(items)} twice")
        return fields

    try:
        return json.loads(
            text,
            object_pairs_hook=pairs,
            parse_int=lambda t: int(t) if t[0] != "-" and len(t) <= MAX_DIGITS else literal(t),
            parse_float=literal,
            parse_constant=literal,
        )
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{name}: expected JSON, found a fault in line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None


def _twice(items: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in items:
        if key in seen:
            break
        seen.add(key)
    return _quoted(key)


def _literals(name: str) -> Callable[[str], _Literal]:
    """Makes them, a bounded number for one file."""
    left = iter(range(MAX_ODDITIES))

    def literal(text: str) -> _Literal:
        if next(left, None) is None:
            raise FormatError(
                f"{name}: expected non-negative integers, found more than {MAX_ODDITIES} numbers of another kind"
            )
        return _Literal(text)

    return literal


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, _Literal):
        return (
            value.text if len(value.text) <= SHOWN else f"a number of {len(value.text)} characters"
        )
    return json.dumps(value)


def _quoted(text: str) -> str:
    if len(text) <= SHOWN:
        return ascii(text)
    return f"{text[:SHOWN]!a}.. ({len(text)} characters)"


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FormatError(f"{where}: expected a JSON object, found {_shown(value)}")
    return value


def _array(value: Any, where: str, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        size = "" if length is None else f" of {length}"
        raise FormatError(f"{where}: expected an array{size}, found {_shown(value)}")
    return value


def _field(fields: dict[str, Any], key: str, name: str) -> Any:
    if key not in fields:
        raise FormatError(f"{name}: expected the field {key}, found none")
    return fields[key]


def _protocol(fields: dict[str, Any], name: str) -> None:
    protocol = fields.get("protocol", "groth16")
    if protocol != "groth16":
        raise FormatError(f"{name}: protocol: expected groth16, found {_shown(protocol)}")


def _curve(fields: dict[str, Any], name: str, expected: Curve | None) -> Curve:
    if "curve" not in fields:
        if expected is None:
            raise FormatError(f"{name}: curve: expected bn128 or bls12381, found no such field")
        return expected
    text = fields["curve"]
    if not isinstance(text, str) or len(text) > SHOWN:
        raise FormatError(f"{name}: curve: expected bn128 or bls12381, found {_shown(text)}")
    found = curve_named(text, f"{name}: curve")
    if found.is_toy:
        raise FormatError(f"{name}: curve: expected bn128 or bls12381, found {_shown(text)}")
    if expected is not None and found is not expected:
        raise FormatError(
            f"{name}: curve: expected {expected.snarkjs_name}, the verifying key's, found {_shown(text)}"
        )
    return found


def _public_count(fields: dict[str, Any], ic: int, name: str) -> None:
    if ic == 0:
        raise FormatError(f"{name}: IC: expected nPublic + 1 points, found none")
    count = fields.get("nPublic", ic - 1)
    if isinstance(count, bool) or count != ic - 1:
        raise FormatError(
            f"{name}: nPublic: expected {ic - 1}, one less than the {ic} points of IC, found {_shown(count)}"
        )


def _integer(value: Any, bound: int, symbol: str, curve: Curve, where: str) -> int:
    if type(value) is int:
        number = value
    elif isinstance(value, str) and len(value) <= MAX_DIGITS and _DECIMAL.fullmatch(value):
        number = int(value)
    elif isinstance(value, str) and len(value) <= MAX_DIGITS and _HEXADECIMAL.fullmatch(value):
        number = int(value, 16)
    else:
        raise FormatError(
            f"{where}: expected a non-negative integer (decimal or 0x.. string), found {_shown(value)}"
        )
    if number >= bound:
        bits = number.bit_length()
        found = str(number) if bits <= 512 else f"one of {bits} bits"
        raise FormatError(
            f"{where}: expected a number below {symbol} of {curve.title}, found {found}"
        )
    return number


def _affine(value: Any, curve: Curve, group: str, where: str) -> Affine:
    """[x, y, z] with z = 1, or [0, 1, 0] for infinity; in G2 each of the three is [c0, c1]."""
    rows = _array(value, where, 3)
    if group == "g2":
        x, y, z = (
            tuple(
                _integer(c, curve.p, "q", curve, f"{where}[{i}][{j}]")
                for j, c in enumerate(_array(row, f"{where}[{i}]", 2))
            )
            for i, row in enumerate(rows)
        )
    else:
        x, y, z = ((_integer(c, curve.p, "q", curve, f"{where}[{i}]"),) for i, c in enumerate(rows))
    one = (1, 0)[: len(z)]
    if not any(z) and not any(x) and y == one:
        return None
    if z != one:
        raise FormatError(
            f"{where}[2]: expected 1 (or [0, 1, 0] for infinity), found {_shown(rows[2])}"
        )
    if not any(x) and not any(y):
        raise FormatError(f"{where}: expected a point, found x = y = 0 (infinity is [0, 1, 0])")
    return x + y


def _points(values: list[Any], curve: Curve, group: str, places: list[str]) -> Points:
    affine = [_affine(v, curve, group, where) for v, where in zip(values, places, strict=True)]
    return Points.from_affine(curve, group, affine)


def _checked(points: Points, places: list[str], threads: int) -> Points:
    """The same points, or FormatError with the first that is off the curve or outside the subgroup."""
    index, reason = first_bad(points, threads=threads)
    if index >= 0:
        what = "on the curve" if reason == "curve" else "in the subgroup of order r"
        raise FormatError(
            f"{places[index]}: expected a point {what} of {points.curve.title}, found another"
        )
    return points


def _written(points: Points, index: int = 0) -> list[Any]:
    affine = points.affine(index)
    if points.group == "g1":
        return ["0", "1", "0"] if affine is None else [str(affine[0]), str(affine[1]), "1"]
    if affine is None:
        return [["0", "0"], ["1", "0"], ["0", "0"]]
    c = [str(v) for v in affine]
    return [[c[0], c[1]], [c[2], c[3]], ["1", "0"]]


def _alpha_beta(vk: VerifyingKey) -> list[list[list[str]]]:
    """e(alpha, beta) as two Fp6 of three Fp2 each: Fp12 = Fp6[w], Fp6 = Fp2[v], w^2 = v, v^3 = xi."""
    curve = vk.curve
    out: Words = np.zeros((12, curve.fp_words), dtype=np.uint64)
    _core.pairing(curve.name, vk.alpha_g1.words, vk.beta_g2.words, out)
    factor = pow(2, -64 * curve.fp_words, curve.p)
    plain = [str(v * factor % curve.p) for v in unpack(out)]
    return [[plain[i + j : i + j + 2] for j in range(0, 6, 2)] for i in (0, 6)]


def _text(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode("ascii")
