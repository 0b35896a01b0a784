"""What the programs of circuits take, from what the readers give: the values and their order.

The order is stated by the modules of the circuits: :mod:`cuzk.filecoin.templates.porep`, ``post``, ``update``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzk.errors import FormatError
from cuzk.filecoin import node_arithmetic as nodes
from cuzk.filecoin.c1 import C1
from cuzk.filecoin.openings import Openings
from cuzk.filecoin.public import production_h_select
from cuzk.filecoin.registered import Kind
from cuzk.filecoin.shapes import UPDATE_H_SELECTS
from cuzk.filecoin.vanilla import PostSectors, UpdatePartitions
from cuzk.vectors import Words


@dataclass(frozen=True)
class Data:
    """Plain numbers of four words."""

    header: Words  # (n, 4)
    units: Words  # (units, n, 4)

    def joined(self) -> Words:
        """(n, 4): the header's, then unit by unit."""
        return np.concatenate((self.header, self.units.reshape(-1, 4)))


def porep_data(c1: C1, partition: int) -> Data:
    """Of one partition."""
    if not 0 <= partition < len(c1.nodes):
        raise FormatError(
            f"{c1.name}: expected a partition below {len(c1.nodes)}, found {partition}"
        )
    header = _nodes(c1.replica_id, c1.comm_d, c1.comm_r, c1.comm_r_last, c1.comm_c)
    columns = c1.columns[partition]  # (C, 15, L, 4)
    in_c = _with_places(c1.column_openings)[partition]  # (C, 15, values, 4)
    challenges = len(columns)
    parents = np.concatenate((columns[:, 1:], in_c[:, 1:]), axis=2)
    units = [
        c1.data.leaf[partition][:, None],
        _with_places(c1.data)[partition],
        parents.reshape(challenges, -1, 4),
        _numbers(c1.nodes[partition])[:, None],
        _with_places(c1.replica)[partition],
        in_c[:, 0],
    ]
    return Data(header, np.concatenate(units, axis=1))


def post_data(post: PostSectors) -> Data:
    """Of one partition of WindowPoSt, the last sector repeated where some are missing; or of a WinningPoSt."""
    challenges = np.concatenate(
        (post.replica.leaf[..., None, :], _with_places(post.replica)), axis=2
    )
    roots = np.stack((post.comm_r_last, post.comm_c, post.comm_r), axis=1)
    if post.proof.kind is Kind.WINNING:
        roots = np.repeat(roots, challenges.shape[1], axis=0)
        units = np.concatenate((roots, challenges[0]), axis=1)
    else:
        units = np.concatenate((roots, challenges.reshape(len(roots), -1, 4)), axis=1)
        missing = post.proof.shape.window_sectors - len(units)
        units = np.concatenate((units, np.repeat(units[-1:], missing, axis=0)))
    return Data(np.zeros((0, 4), dtype=np.uint64), units)


def update_data(update: UpdatePartitions, partition: int, *, h_select: int | None = None) -> Data:
    """Of one partition; ``h_select`` as in the public inputs."""
    shape = update.proof.shape
    if not 0 <= partition < update.proof.partitions:
        raise FormatError(
            f"partition: expected one below {update.proof.partitions}, found {partition}"
        )
    if h_select is None:
        h_select = production_h_select(update.proof)
    if not 0 <= h_select < UPDATE_H_SELECTS:
        raise FormatError(f"h select: expected 0 to {UPDATE_H_SELECTS - 1}, found {h_select}")
    select = np.array([partition | 1 << shape.update_partition_bits + h_select], dtype=np.uint64)
    old, new = update.comm_r_last_old, update.comm_r_last_new
    commitments = [nodes.comm_r(update.comm_c, old), update.comm_d_new]
    commitments += [nodes.comm_r(update.comm_c, new), update.comm_c, old, new]
    in_d = update.data_new.siblings[partition]  # (C, levels, 4)
    of_partition = in_d.shape[1] - shape.update_partition_bits
    below = of_partition - (shape.update_apex_leaves.bit_length() - 1)
    leaves = update.apex_leaves[partition]
    header = np.concatenate(
        (_numbers(select), _nodes(*commitments), leaves, in_d[0, of_partition:])
    )
    units = [
        update.replica_old.leaf[partition][:, None],
        update.data_new.leaf[partition][:, None],
        update.replica_old.siblings[partition],
        update.replica_new.siblings[partition],
        in_d[:, :below],
    ]
    return Data(header, np.concatenate(units, axis=1))


def _nodes(*values: bytes) -> Words:
    return np.frombuffer(b"".join(values), dtype="<u8").reshape(-1, 4)


def _numbers(values: Words) -> Words:
    """(..., 4) of (...)."""
    words = np.zeros((*values.shape, 4), dtype=np.uint64)
    words[..., 0] = values
    return words


def _with_places(paths: Openings) -> Words:
    """(..., values, 4): for each level the node's place among its siblings, then the siblings."""
    parts, index, first = [], paths.index, 0
    for arity in paths.arities:
        parts.append(_numbers(index % np.uint64(arity))[..., None, :])
        parts.append(paths.siblings[..., first : first + arity - 1, :])
        index = index // np.uint64(arity)
        first += arity - 1
    return np.concatenate(parts, axis=-2)
