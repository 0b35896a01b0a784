"""The native core. Arrays are C-contiguous numpy arrays that the caller owns; the GIL is released.

``curve`` is "bn254" or "bls12_381", ``group`` "g1" or "g2", ``field`` "fp" or "fr". Shapes: scalars (n, 4),
G1 points (n, 8) or (n, 12), G2 points (n, 16) or (n, 24) of uint64. Nothing here reads or writes outside
the arrays; sizes that do not fit raise ValueError, as does an ``out`` that shares memory with inputs where
results would depend on the order of work. Arrays are never converted: another type or order is a TypeError.
Any number of threads may be asked for; a call starts 1024 at most.
"""

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
U16 = NDArray[np.uint16]
U8 = NDArray[np.uint8]

# Which build of the arithmetic runs: "adx" where the CPU has BMI2 and ADX, else "portable".
def paths() -> list[str]: ...
def path() -> str: ...
def use_path(name: str) -> None: ...
def compiler() -> str: ...  # what built this module, for reports

# Field vectors (field.hpp, vector.hpp)
def first_not_canonical(curve: str, field: str, values: U64, threads: int) -> int: ...  # index, or -1
def to_montgomery(curve: str, field: str, values: U64, out: U64, threads: int) -> None: ...
def from_montgomery(curve: str, field: str, values: U64, out: U64, threads: int) -> None: ...
def pointwise(  # out = (a * b - minus) * scale; b None is ones, minus None zeros; scale (1, 4); all Montgomery; out may be an input
    curve: str, a: U64, b: U64 | None, minus: U64 | None, scale: U64, out: U64, threads: int
) -> None: ...
def combine(  # out = sum_k factors[k] * vectors[k], Montgomery
    curve: str, vectors: list[U64], factors: U64, out: U64, threads: int
) -> None: ...
def powers(curve: str, base: U64, first: U64, out: U64, threads: int) -> None: ...  # out_i = first * base^i
def lagrange(  # out_i = L_i(tau) over the domain of `root`, Montgomery; tau must not lie in the domain
    curve: str, root: U64, tau: U64, out: U64, threads: int
) -> None: ...

# Sparse matrices (sparse.hpp): see cuzk.r1cs.SparseMatrix
def product(  # witness plain; out (size, 4) Montgomery, rows past the matrix zeroed; out[bitrev(i)] if bit_reversed
    curve: str, row_ptr: U64, wires: U32, coefficients: U32, values: U64,
    witness: U64, out: U64, bit_reversed: bool, threads: int,
) -> None: ...
def product_points(  # out_i = sum of coefficient * points[wire] over row i
    curve: str, group: str, row_ptr: U64, wires: U32, coefficients: U32, values: U64,
    points: U64, out: U64, threads: int,
) -> None: ...

# NTT (ntt.hpp). forward: natural -> bit-reversed; inverse: bit-reversed -> natural; in place, all Montgomery.
def ntt(  # twiddles: a table for this root (or for a larger domain's), else one is made for the call
    curve: str, values: U64, root: U64, shift: U64, inverse: bool, threads: int, twiddles: U64 | None = None
) -> None: ...
def twiddles(curve: str, root: U64, out: U64, threads: int) -> None: ...  # out (n/2, 4) for a root of order n
def bit_reverse(values: U64, threads: int = 1) -> None: ...  # permute rows in place, any row width

# Single operations on field elements, for tests: field "fp", "fr" or "fp2" (c0, c1); op "add", "subtract", "multiply", or
# "negate", "twice", "square", "invert" (which leave b unread); Montgomery; below the modulus
def field_op(curve: str, field: str, op: str, a: U64, b: U64, out: U64) -> None: ...

# Points (curve.hpp, msm.hpp, fixed_base.hpp)
def msm(  # scalars plain and below r; index None or (n,): bases[k] takes scalars[index[k]]; out (1, words)
    curve: str, group: str, bases: U64, scalars: U64, index: U32 | None, out: U64, threads: int,
    width: int = 0,  # bits of a window; 0: chosen
) -> None: ...  # bases must have order r: s P is taken as -(r - s) P where that is shorter
def msm_width(curve: str, n: int) -> int: ...  # bits of a window that msm takes for n scalars of full length
def weighted_sum(  # out = sum_i 2^exponents[i] * sums[i], exponents below 1024; sums in extended form x, y, zz, zzz (n, 2 * point words), Montgomery
    curve: str, group: str, sums: U64, exponents: U32, out: U64
) -> None: ...
def fixed_base(curve: str, group: str, base: U64, scalars: U64, out: U64, threads: int) -> None: ...
def scale_points(curve: str, group: str, points: U64, scalar: U64, out: U64, threads: int) -> None: ...
def group_ntt(curve: str, group: str, points: U64, root: U64, inverse: bool, threads: int) -> None: ...

# Filecoin's hashes, over the scalar field of BLS12-381 (poseidon.hpp, sha256.hpp, merkle_roots.hpp). Nodes are (n, 4) plain
# words, the 32 bytes read little-endian; a value that is not below r is a ValueError where Poseidon takes it.
def poseidon(  # inputs (n, 4 * arity), arity 2, 4, 8 or 11; constants: cuzk.filecoin.poseidon's table; tag (1, 4) plain
    arity: int, constants: U64, tag: U64, inputs: U64, out: U64, threads: int
) -> None: ...
def poseidon_roots(  # a table for each level; siblings (n, 4 * sum of arity - 1), level after level; indices (n,) of the leaves
    arities: list[int], constants: list[U64], leaves: U64, siblings: U64, indices: U64, out: U64, threads: int
) -> None: ...
def tree_d_nodes(pairs: U64, out: U64, threads: int) -> None: ...  # pairs (n, 8); SHA-256 with the two top bits cleared
def tree_d_roots(leaves: U64, siblings: U64, indices: U64, out: U64, threads: int) -> None: ...  # siblings (n, 4 * levels)
def sdr_labels(  # layers (n,) from 1; parents (n, 4 * 14): six of the layer, then eight of the one before (not read in layer 1)
    replica_id: U64, layers: U32, nodes: U64, parents: U64, out: U64, threads: int
) -> None: ...

# Programs and rows of templates (program.hpp, assign.hpp, placed_rows.hpp), over the scalar field of BLS12-381
Program = tuple[U8, U32, U32, U8, int, int, int]  # opcodes, starts, operands, port_bits; variables, public inputs, data
Places = tuple[int, U32, U32, U32, U32]  # a program; ports (n, p), first variable, public input (n,): wires; first datum
def run_programs(  # coefficients Montgomery, 0 and 1 are +1 and -1; a wave's places need earlier waves only; data, wires plain
    programs: list[Program], coefficients: U64, waves: list[list[Places]], data: U64, wires: U64, threads: int
) -> None: ...

PlacedRows = tuple[U32, U32, U16, U8, U8, int]  # starts, columns, coefficients; port_bits, aux_bits; public inputs
def placed_product(  # one of A, B, C times plain wires, rows Montgomery; places as above with rows for data; A: public_rows more
    templates: list[PlacedRows], coefficients: U64, places: list[Places], constraints: int, public_rows: int,
    wires: U64, out: U64, bit_reversed: bool, threads: int
) -> None: ...

# Checks and pairing (pairing.hpp, check.hpp, encodings.hpp)
def first_bad_point(  # (index, reason) with reason "range", "curve" or "subgroup"; (-1, "") when all are good
    curve: str, group: str, points: U64, subgroup: bool, threads: int
) -> tuple[int, str]: ...
def decompress(  # big-endian zcash encoding, compressed (n, 48 / 96) bytes -> points; (index, reason) of the first bad one
    curve: str, group: str, data: NDArray[np.uint8], out: U64, threads: int
) -> tuple[int, str]: ...
def decode_uncompressed(  # likewise, (n, 96 / 192) bytes; flags and ranges are checked, the curve is not
    curve: str, group: str, data: NDArray[np.uint8], out: U64, threads: int
) -> tuple[int, str]: ...
def pairing_product_is_one(curve: str, g1: U64, g2: U64, threads: int) -> bool: ...
def pairing(curve: str, g1: U64, g2: U64, out: U64) -> None: ...  # one pairing, final exponentiation done; out (12, fp_words) Montgomery

# Readers' inner loops (records.hpp); `data` and `records` may be read-only views of a mapped file
def r1cs_terms(  # count pass over section 2 of an .r1cs: terms of A, B, C with a non-zero coefficient; ValueError names the constraint
    curve: str, data: NDArray[np.uint8], constraints: int, wires: int
) -> tuple[int, int, int]: ...
def r1cs_fill(  # fill pass: CSR arrays of A, B, C (row_ptrs may be longer than constraints + 1: the rest stays); returns the dictionary (k, 4) plain, 1 and r-1 first
    curve: str, data: NDArray[np.uint8], constraints: int,
    row_ptrs: list[U64], wires: list[U32], coefficients: list[U32],
) -> U64: ...
def number_values(  # records (n, stride) bytes: 32-byte values at `offset` numbered by first use after the distinct values of `seed` (m, 4); out (n,); returns all values (k, 4)
    records: NDArray[np.uint8], offset: int, seed: U64, out: U32
) -> U64: ...
def read_serde_json(  # JSON into the bytes of its bincode, by a description of the type (serde_json.hpp, cuzk.filecoin.serde); "" or what is wrong, with offset and place
    text: NDArray[np.uint8], types: NDArray[np.int64], fields: NDArray[np.int64], names: list[str], out: NDArray[np.uint8]
) -> str: ...

# Copies by threads that wait for the next one (copier.hpp); arrays are kept alive until they are waited for
class Copier:
    def __init__(self, threads: int) -> None: ...  # that copy at once, the caller of wait among them
    def begin(self, target: NDArray[np.uint8], source: NDArray[np.uint8]) -> int: ...  # (n,) each; the copy's number, from 1 on
    def wait(self, number: int) -> int: ...  # until it and all before it are done; the number of the last that is
    def close(self) -> None: ...  # gives up what is not done and ends the threads; the next begin starts them again
    @property
    def threads(self) -> int: ...  # that are alive now, the caller not counted
