"""The StackedDRG PoRep circuit of one partition.

    header     replica id, comm_d, comm_r (public), comm_r_last, comm_c; comm_r = Poseidon(comm_c, comm_r_last)
    challenge  the leaf's path in tree D; 14 parents' columns with paths in tree C; the node's number; a label for
               each layer; label + data with its path in R_last; the column of labels with its path in tree C

Data (:mod:`program`): header: replica id, comm_d, comm_r, comm_r_last, comm_c. Challenge: the data leaf; for each
level of tree D the place and the sibling; for 6 DRG and 8 expander parents the column's layers, then for each level
the place and the siblings; the challenged node; R_last's levels; C's levels.

Definitions: storage-proofs-porep::stacked::circuit (proof, params, column_proof, create_label, hash).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuzk.filecoin.shapes import DRG_DEGREE, EXPANDER_DEGREE, LABEL_PARENTS, Shape
from cuzk.filecoin.templates.assembly import Assembling
from cuzk.filecoin.templates.circuit import CircuitShape, circuit_shape
from cuzk.filecoin.templates.gadgets import (
    challenge,
    equal,
    field_bits,
    given,
    inputize,
    pack_node,
    unpack,
)
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.paths import node_message, octree_path, tree_d_path
from cuzk.filecoin.templates.poseidon import poseidon_hash
from cuzk.filecoin.templates.recorder import Recorder
from cuzk.filecoin.templates.sha256 import (
    digest_bits,
    label_block,
    label_first_block,
    label_last_block,
)

# Templates


def porep_header(recorder: Recorder) -> list[int]:
    """Outputs: comm_d, comm_r_last, comm_c, 255 bits of the replica id."""
    (replica_id,) = recorder.given()
    inputize(recorder, replica_id)
    bits = unpack(recorder, replica_id)
    (comm_d,) = recorder.given()
    inputize(recorder, comm_d)
    (comm_r,) = recorder.given()
    inputize(recorder, comm_r)
    comm_r_last, comm_c = recorder.given(2)
    equal(recorder, comm_r, poseidon_hash(recorder, [comm_c, comm_r_last]))
    return [comm_d, comm_r_last, comm_c, *bits]


def column(recorder: Recorder, layers: int) -> list[int]:
    """A parent's column. Outputs: its hash, its layers."""
    values = recorder.given(layers)
    return [poseidon_hash(recorder, values), *values]


def column_hash(recorder: Recorder, layers: int) -> list[int]:
    """Ports: the labels of a node. Output: their hash."""
    return [poseidon_hash(recorder, recorder.ports(layers))]


def encode(recorder: Recorder) -> list[int]:
    """Ports: a label, the data. Output: their sum."""
    key, data = recorder.ports(2)
    return [recorder.linear({key: 1, data: 1})]


# The circuit


@dataclass(frozen=True)
class _Layers:
    """Where the labels are made: what they read, per layer."""

    part: Assembling
    library: Library
    replica: Sequence[int]
    node: Sequence[int]  # 64 bits
    drg: Sequence[Sequence[int]]  # columns
    expander: Sequence[Sequence[int]]

    def label(self, layer: int) -> int:
        """The bits of parents are made anew for every label."""
        own = [column[layer - 1] for column in self.drg]
        before = [column[layer - 2] for column in self.expander] if layer > 1 else []
        parents = [
            node_message(self.part.place(self.library(field_bits), [value]))
            for value in (*own, *before)
        ]
        repeated = [parents[i % len(parents)] for i in range(LABEL_PARENTS)]
        first = [*node_message(self.replica), *reversed(self.node)]
        words = self.part.place(self.library(label_first_block, layer), first)
        for i in range(0, LABEL_PARENTS - 1, 2):
            ports = [*words, *repeated[i], *repeated[i + 1]]
            words = self.part.place(self.library(label_block), ports)
        words = self.part.place(self.library(label_last_block), [*words, *repeated[-1]])
        (label,) = self.part.place(self.library(pack_node), digest_bits(words))
        return label


def porep(library: Library, shape: Shape) -> CircuitShape:
    """The circuit of a sector size."""
    name = f"porep-{shape.name}"
    return porep_of(name, library, shape.log2_nodes, shape.arities, shape.layers, shape.challenges)


def porep_of(
    name: str,
    library: Library,
    levels: int,
    arities: Sequence[int],
    layers: int,
    challenges: int,
) -> CircuitShape:
    """``levels``: of tree D; ``arities``: of the others, leaf level first."""
    header = Assembling()
    shared = header.place(library(porep_header))
    unit = Assembling(ports=len(shared))
    _challenge(unit, library, levels, arities, layers)
    return circuit_shape(name, library, header, unit, [shared] * challenges)


def _challenge(
    unit: Assembling, library: Library, levels: int, arities: Sequence[int], layers: int
) -> None:
    comm_d, comm_r_last, comm_c, *replica = unit.ports
    (data,) = unit.place(library(given, 1))
    tree_d_path(unit, library, levels, data, comm_d)
    columns = []
    for _ in range(DRG_DEGREE + EXPANDER_DEGREE):
        digest, *values = unit.place(library(column, layers))
        octree_path(unit, library, arities, digest, comm_c)
        columns.append(values)
    node = unit.place(library(challenge))
    drg, expander = columns[:DRG_DEGREE], columns[DRG_DEGREE:]
    making = _Layers(unit, library, replica, node, drg, expander)
    labels = [making.label(layer) for layer in range(1, layers + 1)]
    (replica_node,) = unit.place(library(encode), [labels[-1], data])
    octree_path(unit, library, arities, replica_node, comm_r_last)
    (digest,) = unit.place(library(column_hash, layers), labels)
    octree_path(unit, library, arities, digest, comm_c)
