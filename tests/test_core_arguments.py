"""What the native functions refuse: arrays of another type, order or shape, outputs that share memory with
inputs; and what they take: any number of threads, memory that runs out.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import BLS12_381, BN254
from cuzk.filecoin.poseidon import poseidon
from cuzk.vectors import Points, Scalars, pack

Call = dict[str, Any]

CURVE = BN254
ONE = Scalars.from_ints(CURVE, [1], montgomery=True).words
MINUS_ONE = Scalars.from_ints(CURVE, [CURVE.r - 1], montgomery=True).words
G1 = Points.from_affine(CURVE, "g1", [CURVE.g1]).words
G2 = Points.from_affine(CURVE, "g2", [CURVE.g2]).words


def zeros(rows: int, width: int = 4) -> Any:
    return np.zeros((rows, width), np.uint64)


def root(n: int) -> Any:
    value = pow(CURVE.generator, (CURVE.r - 1) // n, CURVE.r)
    return Scalars.from_ints(CURVE, [value], montgomery=True).words


def infinity(*, compressed: bool) -> Any:
    """The point at infinity in G1, encoded."""
    data = np.zeros((1, BLS12_381.fp_words * (8 if compressed else 16)), np.uint8)
    data[0, 0] = 0xC0 if compressed else 0x40
    return data


def r1cs_bytes() -> Any:
    """One constraint, one term in A: wire 1, coefficient 2."""
    parts = [b"\1\0\0\0", b"\1\0\0\0", (2).to_bytes(32, "little"), bytes(4), bytes(4)]
    return np.frombuffer(b"".join(parts), np.uint8).copy()


def matrix() -> Call:
    return {
        "row_ptr": np.array([0, 1, 2], np.uint64),
        "wires": np.array([0, 1], np.uint32),
        "coefficients": np.array([0, 1], np.uint32),
        "values": np.vstack([ONE, MINUS_ONE]),
    }


def numbers(*values: int, dtype: type = np.uint32) -> Any:
    return np.array(values, dtype)


def filecoin_calls() -> dict[str, Call]:
    table, hashed = poseidon(2).table, {"out": zeros(2)}
    paths = {"leaves": zeros(2), "siblings": zeros(2, 8), "indices": numbers(0, 3, dtype=np.uint64)}
    flags = numbers(1, 0, dtype=np.uint8)
    program = (
        numbers(4, 9, dtype=np.uint8),
        numbers(0, 2, 6),
        numbers(2, 3, 1, 2, 0, 1),
        flags,
        2,
        0,
        0,
    )
    rows = (numbers(0, 1, 3), numbers(0, 1, 2), numbers(0, 1, 0, dtype=np.uint16), flags, flags, 0)
    ports = np.zeros((2, 2), np.uint32)
    wires = (ports, numbers(1, 3), numbers(5, 5))
    values = {"coefficients": Scalars.from_ints(BLS12_381, [1, -1], montgomery=True).words}
    text = np.frombuffer(b"[1, 2]", np.uint8).copy()
    return {
        "poseidon": {"arity": 2, "constants": table, "tag": pack([3], 4), "inputs": zeros(2, 8)} | hashed,
        "poseidon_roots": {"arities": [2, 2], "constants": [table, table]} | paths | hashed,
        "tree_d_nodes": {"pairs": zeros(2, 8)} | hashed,
        "tree_d_roots": paths | hashed,
        "sdr_labels": {"replica_id": zeros(1), "layers": numbers(1, 2), "nodes": numbers(3, 4, dtype=np.uint64),
                       "parents": zeros(2, 56)} | hashed,
        "run_programs": values | {"programs": [program], "waves": [[(0, *wires, numbers(0, 0))]],
                                  "data": zeros(1), "wires": zeros(5)},
        "placed_product": values | {"templates": [rows], "places": [(0, *wires, numbers(0, 2))], "constraints": 4,
                                    "public_rows": 0, "wires": zeros(5), "out": zeros(4), "bit_reversed": False},
        "read_serde_json": {"text": text, "types": np.array([[4, 2, 8, 1, -1], [1, 8, 0, 0, 0]]),
                            "fields": np.zeros((0, 3), np.int64), "names": [], "out": np.zeros(24, np.uint8)},
    }  # fmt: skip


def calls() -> dict[str, Call]:
    """One good call of every function that takes arrays; thread counts left out."""
    name, field, group = {"curve": "bn254"}, {"field": "fr"}, {"group": "g1"}
    two, points = pack([3, 5], 4).copy(), np.vstack([G1, G1])
    triple = [np.zeros(2, np.uint64) for _ in range(3)]
    return filecoin_calls() | {
        "first_not_canonical": name | field | {"values": two},
        "to_montgomery": name | field | {"values": two, "out": zeros(2)},
        "from_montgomery": name | field | {"values": two, "out": zeros(2)},
        "pointwise": name | {"a": two, "b": two, "minus": two, "scale": ONE, "out": zeros(2)},
        "combine": name | {"vectors": [two, two], "factors": two, "out": zeros(2)},
        "powers": name | {"base": ONE, "first": ONE, "out": zeros(2)},
        "lagrange": name | {"root": root(2), "tau": pack([7], 4), "out": zeros(2)},
        "product": name | matrix() | {"witness": two, "out": zeros(2), "bit_reversed": False},
        "product_points": name | group | matrix() | {"points": points, "out": zeros(2, 8)},
        "ntt": name | {"values": two, "root": root(2), "shift": ONE, "inverse": False, "twiddles": ONE},
        "twiddles": name | {"root": root(4), "out": zeros(2)},
        "bit_reverse": {"values": two},
        "field_op": name | field | {"op": "add", "a": two, "b": two, "out": zeros(2)},
        "msm": name | group | {"bases": points, "scalars": two, "index": np.array([1, 0], np.uint32), "out": zeros(1, 8)},
        "weighted_sum": name | group | {"sums": zeros(2, 16), "exponents": np.array([1, 0], np.uint32), "out": zeros(1, 8)},
        "fixed_base": name | group | {"base": G1, "scalars": two, "out": zeros(2, 8)},
        "scale_points": name | group | {"points": points, "scalar": pack([3], 4), "out": zeros(2, 8)},
        "group_ntt": name | group | {"points": points, "root": root(2), "inverse": False},
        "first_bad_point": name | group | {"points": points, "subgroup": True},
        "decompress": {"curve": "bls12_381"} | group | {"data": infinity(compressed=True), "out": zeros(1, 12)},
        "decode_uncompressed": {"curve": "bls12_381"} | group | {"data": infinity(compressed=False), "out": zeros(1, 12)},
        "pairing_product_is_one": name | {"g1": G1, "g2": G2},
        "pairing": name | {"g1": G1, "g2": G2, "out": zeros(12)},
        "r1cs_terms": name | {"data": r1cs_bytes(), "constraints": 1, "wires": 2},
        "r1cs_fill": name | {"data": r1cs_bytes(), "constraints": 1, "row_ptrs": triple,
                             "wires": [np.zeros(n, np.uint32) for n in (1, 0, 0)],
                             "coefficients": [np.zeros(n, np.uint32) for n in (1, 0, 0)]},
        "number_values": {"records": np.zeros((2, 40), np.uint8), "offset": 4, "seed": two, "out": np.zeros(2, np.uint32)},
    }  # fmt: skip


UNTHREADED = {
    "field_op",
    "weighted_sum",
    "pairing",
    "r1cs_terms",
    "r1cs_fill",
    "number_values",
    "read_serde_json",
}
ANY_WIDTH = {("bit_reverse", "values"), ("number_values", "records")}
WRITTEN = {"out", "row_ptrs"}
WRITTEN_BY = {
    ("ntt", "values"),
    ("group_ntt", "points"),
    ("bit_reverse", "values"),
    ("run_programs", "wires"),
} | {("r1cs_fill", name) for name in ("wires", "coefficients")}


def run(name: str, call: Call, threads: int = 1) -> Any:
    extra = {} if name in UNTHREADED else {"threads": threads}
    return getattr(_core, name)(**call, **extra)


def arrays(call: Call) -> Iterator[tuple[str, Any, Callable[[Any], Call]]]:
    """Every array of a call, those inside of lists and tuples as well, and the same call with another in its place."""
    for key, value in call.items():
        for array, way in inside(value):
            yield key, array, partial(exchanged, call, (key, *way))


Way = tuple[str | int, ...]


def inside(value: Any) -> Iterator[tuple[Any, Way]]:
    """Arrays, and the way to each."""
    if isinstance(value, np.ndarray):
        yield value, ()
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            yield from ((array, (i, *way)) for array, way in inside(each))


def exchanged(value: Any, way: Way, other: Any) -> Any:
    if not way:
        return other
    first, *rest = way
    if isinstance(value, dict):
        return value | {first: exchanged(value[first], tuple(rest), other)}
    items = (exchanged(v, tuple(rest), other) if i == first else v for i, v in enumerate(value))
    return type(value)(items)


NAMES = sorted(calls())


def test_every_function_with_arrays_is_here() -> None:
    plain = {"paths", "path", "use_path", "compiler", "msm_width", "Copier"}
    public = {n for n in dir(_core) if not n.startswith("_")}
    assert public - plain == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_arrays_are_never_converted(name: str) -> None:
    """A converted copy would take the results away with it."""
    run(name, calls()[name])
    for _, array, replaced in arrays(calls()[name]):
        for other in (np.int64, np.float64, np.uint16, array.dtype.newbyteorder(">")):
            if array.dtype != other:
                with pytest.raises(TypeError):
                    run(name, replaced(array.astype(other)))
        if array.size > 1:
            strided = np.repeat(array, 2, axis=-1)[..., ::2]
            assert not strided.flags.c_contiguous
            with pytest.raises(TypeError):
                run(name, replaced(strided))
        with pytest.raises(TypeError):
            run(name, replaced(array.tolist()))


@pytest.mark.parametrize("name", NAMES)
def test_shapes_are_checked(name: str) -> None:
    for key, array, replaced in arrays(calls()[name]):
        with pytest.raises(ValueError, match="expected"):
            run(name, replaced(array[None]))
        if array.ndim == 2 and (name, key) not in ANY_WIDTH:
            for wrong in (np.hstack([array, array[:, :1]]), array[:, :-1].copy()):
                with pytest.raises(ValueError, match="expected"):
                    run(name, replaced(wrong))


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_writable(name: str) -> None:
    for key, array, replaced in arrays(calls()[name]):
        array = array.copy()
        array.flags.writeable = False
        if key in WRITTEN or (name, key) in WRITTEN_BY:
            with pytest.raises(TypeError):
                run(name, replaced(array))
        else:
            run(name, replaced(array))


IN_PLACE = {"to_montgomery": ["values"], "from_montgomery": ["values"], "pointwise": ["a", "b", "minus"],
            "field_op": ["a", "b"], "scale_points": ["points"]}  # fmt: skip
APART = {"product": ["values", "witness"], "product_points": ["points"]}


@pytest.mark.parametrize("name", IN_PLACE)
def test_output_in_place_of_an_input(name: str) -> None:
    for key in IN_PLACE[name]:
        call = calls()[name]
        run(name, call)
        shared = calls()[name]
        shared[key] = shared[key].copy()
        shared["out"] = shared[key]
        run(name, shared)
        assert np.array_equal(shared["out"], call["out"])
        room = np.zeros((3, shared[key].shape[1]), np.uint64)
        room[:2] = shared[key]
        with pytest.raises(ValueError, match=f"out: shares part of its memory with {key}"):
            run(name, shared | {key: room[:2], "out": room[1:]})


@pytest.mark.parametrize("name", APART)
def test_output_apart_from_inputs(name: str) -> None:
    for key in APART[name]:
        call = calls()[name]
        with pytest.raises(ValueError, match=f"out: shares memory with {key}"):
            run(name, call | {"out": call[key]})
    words = zeros(4, 8)
    call = calls()["fixed_base"] | {"scalars": words.reshape(8, 4)[:4], "out": words}
    with pytest.raises(ValueError, match="out: shares memory with scalars"):
        run("fixed_base", call)


@pytest.mark.parametrize("threads", [-(2**31), -1, 0, 2, 7, 2**31 - 1])
def test_any_number_of_threads(threads: int) -> None:
    """2^31 - 1 must neither start as many nor cut the work into as many pieces."""
    for name in set(NAMES) - UNTHREADED:
        once, again = calls()[name], calls()[name]
        assert run(name, once) == run(name, again, threads)
        for (key, one, _), (_, other, _) in zip(arrays(once), arrays(again), strict=True):
            assert np.array_equal(one, other), (name, key)


def test_group_ntt_wants_a_root_of_the_order() -> None:
    for wrong in (ONE, MINUS_ONE, root(8), zeros(1), pack([CURVE.r], 4)):
        points = np.vstack([G1] * 4)
        with pytest.raises(ValueError, match="root: expected a primitive root of unity of order 4"):
            _core.group_ntt("bn254", "g1", points, wrong, False, 1)
        assert np.array_equal(points, np.vstack([G1] * 4))


OUT_OF_MEMORY = """
import resource, sys
import numpy as np
from cuzk import _core

n, threads = 1 << 19, int(sys.argv[1])
bases = np.ones((n, 8), np.uint64)
scalars = np.arange(4 * n, dtype=np.uint64).reshape(n, 4)
scalars[:, 3] = 0
out = np.zeros((1, 8), np.uint64)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for room in (1 << 20, 1 << 22, 1 << 24, 30 << 20):
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
    try:
        _core.msm("bn254", "g1", bases, scalars, None, out, threads)
        print("no error", room)
    except MemoryError:
        print("MemoryError")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space limits and /proc are Linux's")
@pytest.mark.parametrize("threads", [1, 5])
def test_memory_that_runs_out(threads: int) -> None:
    """2^19 scalars are copied by the MSM, 18 MB: less room than that is a MemoryError, whatever was tried last."""
    command = [sys.executable, "-c", OUT_OF_MEMORY, str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["MemoryError"] * 3
