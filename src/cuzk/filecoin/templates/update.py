"""The SnapDeals circuit of one partition (EmptySectorUpdate with tree D over SHA-256).

    header     k and h (public) with its bits; comm_r_old, comm_d_new, comm_r_new (public); phi; comm_c, both roots
               R_last, the apex leaves, the partition's path; both comm_r; the apex tree and its path to comm_d_new;
               the challenges' bits, cut from digests of comm_r_new and a number
    challenge  rho from phi and the highest bits, as many as h says; the encoding leaf_r_old + leaf_d_new rho; its
               path in the new R_last, the old leaf's in the old one; the data's path to an apex leaf

Paths have the challenge for index: their bits are bound, and all siblings of a path are allocated before it.

Data (:mod:`program`): header: k and h, comm_r_old, comm_d_new, comm_r_new, comm_c, root R_last old, new, the apex
leaves, the siblings of the partition's path. Challenge: leaf R old, leaf D new; the siblings of the paths in R_last
old, R_last new, and in D below the apex.

Definition: storage-proofs-update::circuit, gadgets.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.filecoin.poseidon import RANDOMNESS_TAG
from cuzk.filecoin.shapes import UPDATE_H_SELECTS, Shape
from cuzk.filecoin.templates.assembly import Assembling
from cuzk.filecoin.templates.circuit import CircuitShape, circuit_shape
from cuzk.filecoin.templates.gadgets import (
    equal,
    given,
    inputize,
    lowest_bits,
    node_bits,
    pick,
    same,
    weighted,
)
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.paths import placed_octree_path, placed_tree_d_path, tree_d_node
from cuzk.filecoin.templates.poseidon import poseidon_hash
from cuzk.filecoin.templates.recorder import ONE, Recorder
from cuzk.filecoin.templates.sha256 import FIELD_BITS, PACKED_BITS

# Templates


def update_header(recorder: Recorder, partition_bits: int, apex_leaves: int) -> list[int]:
    """Outputs: partition, comm_d_new, comm_r_new, phi, both roots, bits of k and h, apex leaves, siblings."""
    (k_and_h,) = recorder.given()
    inputize(recorder, k_and_h)
    bits = lowest_bits(recorder, k_and_h, partition_bits + UPDATE_H_SELECTS)
    partition = recorder.linear(weighted(bits[:partition_bits]))
    commitments = []
    for _ in range(3):
        commitments += recorder.given()
        inputize(recorder, commitments[-1])
    comm_r_old, comm_d_new, comm_r_new = commitments
    phi = poseidon_hash(recorder, [comm_d_new, comm_r_old], RANDOMNESS_TAG)
    comm_c, *roots = recorder.given(3)
    leaves = recorder.given(apex_leaves)
    siblings = recorder.given(partition_bits)
    for root, comm_r in zip(roots, (comm_r_old, comm_r_new), strict=True):
        equal(recorder, poseidon_hash(recorder, [comm_c, root]), comm_r)
    return [partition, comm_d_new, comm_r_new, phi, *roots, *bits, *leaves, *siblings]


def challenge_digest(recorder: Recorder, index: int, digests: int) -> list[int]:
    """Ports: comm_r_new, partition. Outputs: 255 bits of the hash of comm_r_new and a number."""
    comm_r_new, partition = recorder.ports(2)
    number = recorder.linear({partition: digests} | ({ONE: index} if index else {}))
    digest = poseidon_hash(recorder, [comm_r_new, number], RANDOMNESS_TAG)
    return lowest_bits(recorder, digest, FIELD_BITS)


def encoded_leaf(recorder: Recorder, bits: int, *h_values: int) -> list[int]:
    """Ports: phi, the challenge's bits, one bit for each h. Outputs: leaf R old, leaf D new, leaf R new."""
    phi = recorder.port()
    challenge = recorder.ports(bits, bit=True)
    products = []
    for h, selected in zip(h_values, recorder.ports(len(h_values), bit=True), strict=True):
        high = recorder.linear(weighted(challenge[bits - h :]))
        products.append(recorder.product({high: 1}, {selected: 1}))
    rho = poseidon_hash(
        recorder, [phi, recorder.linear(dict.fromkeys(products, 1))], RANDOMNESS_TAG
    )
    leaf_r_old, leaf_d_new = recorder.given(2)
    masked = recorder.product({leaf_d_new: 1}, {rho: 1})
    return [leaf_r_old, leaf_d_new, recorder.linear({leaf_r_old: 1, masked: 1})]


def select(recorder: Recorder, bits: int) -> list[int]:
    """Ports: 2^bits values, bits of an index. Output: the value there; halves from the highest bit down."""
    values = recorder.ports(1 << bits)
    for bit in reversed(recorder.ports(bits, bit=True)):
        half = len(values) // 2
        values = [pick(recorder, bit, values[half + i], values[i]) for i in range(half)]
    return values


# The circuit


def update(library: Library, shape: Shape) -> CircuitShape:
    """The circuit of a sector size."""
    header = Assembling()
    challenges, shared = _header(header, library, shape)
    bound = [[*challenge, *shared] for challenge in challenges]
    unit = Assembling(ports=len(bound[0]))
    _challenge(unit, library, shape)
    return circuit_shape(f"update-{shape.name}", library, header, unit, bound)


def _header(part: Assembling, library: Library, shape: Shape) -> tuple[list[list[int]], list[int]]:
    """Bits of each challenge; bits of h, phi, roots and apex leaves."""
    k_count, leaf_count = shape.update_partition_bits, shape.update_apex_leaves
    slots = iter(part.place(library(update_header, k_count, leaf_count)))
    partition, comm_d_new, comm_r_new = (next(slots) for _ in range(3))
    phi_and_roots = [next(slots) for _ in range(3)]
    k_bits, h_bits, leaves, siblings = (
        [next(slots) for _ in range(n)] for n in (k_count, UPDATE_H_SELECTS, leaf_count, k_count)
    )
    level = leaves
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [tree_d_node(part, library, part.place(library(node_bits), pair)) for pair in pairs]
    apex = placed_tree_d_path(part, library, level[0], k_bits, siblings)
    part.place(library(same), [apex, comm_d_new])
    challenges = _challenge_bits(part, library, shape, [comm_r_new, partition])
    return [[*bits, *k_bits] for bits in challenges], [*h_bits, *phi_and_roots, *leaves]


def _challenge_bits(
    part: Assembling, library: Library, shape: Shape, ports: Sequence[int]
) -> list[list[int]]:
    """Of each challenge, those that say where it is in its partition."""
    bits_each = shape.log2_nodes - shape.update_partition_bits
    per_digest = PACKED_BITS // bits_each
    digests = -(-shape.update_challenges // per_digest)
    found: list[list[int]] = []
    for index in range(digests):
        bits = part.place(library(challenge_digest, index, digests), ports)
        cut = [bits[i * bits_each : (i + 1) * bits_each] for i in range(per_digest)]
        found += cut[: shape.update_challenges - len(found)]
    return found


def _challenge(part: Assembling, library: Library, shape: Shape) -> None:
    slots = iter(part.ports)
    challenge = [next(slots) for _ in range(shape.log2_nodes)]
    h_bits = [next(slots) for _ in range(UPDATE_H_SELECTS)]
    phi, root_r_old, root_r_new, *apex_leaves = slots
    encoding = library(encoded_leaf, len(challenge), *shape.update_h_values)
    leaf_r_old, leaf_d_new, leaf_r_new = part.place(encoding, [phi, *challenge, *h_bits])
    for leaf, root in ((leaf_r_old, root_r_old), (leaf_r_new, root_r_new)):
        siblings = part.place(library(given, shape.siblings))
        found = placed_octree_path(part, library, shape.arities, leaf, challenge, siblings)
        part.place(library(same), [found, root])
    apex_bits = len(apex_leaves).bit_length() - 1
    below = shape.log2_nodes - shape.update_partition_bits - apex_bits
    selecting = [*apex_leaves, *challenge[below : below + apex_bits]]
    (apex_leaf,) = part.place(library(select, apex_bits), selecting)
    siblings = part.place(library(given, below))
    found = placed_tree_d_path(part, library, leaf_d_new, challenge[:below], siblings)
    part.place(library(same), [found, apex_leaf])
