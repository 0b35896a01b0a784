"""What the programs of circuits take, number by number, from what the readers give."""

from collections.abc import Iterator

from cuzk.filecoin.c1 import C1
from cuzk.filecoin.openings import Openings
from cuzk.filecoin.vanilla import PostSectors, UpdatePartitions
from cuzk.vectors import Words, unpack


def number(words: Words) -> int:
    return unpack(words.reshape(1, 4))[0]


def path(paths: Openings, *item: int) -> Iterator[int]:
    """For each level the place, then the siblings."""
    siblings = iter(unpack(paths.siblings[item]))
    index = int(paths.index[item])
    for arity in paths.arities:
        yield index % arity
        yield from (next(siblings) for _ in range(arity - 1))
        index //= arity


def porep_data(c1: C1, partition: int) -> Iterator[int]:
    for name in ("replica_id", "comm_d", "comm_r", "comm_r_last", "comm_c"):
        yield int.from_bytes(getattr(c1, name), "little")
    for challenge in range(c1.nodes.shape[1]):
        here = partition, challenge
        yield number(c1.data.leaf[here])
        yield from path(c1.data, *here)
        for column in range(1, 15):
            yield from unpack(c1.columns[(*here, column)])
            yield from path(c1.column_openings, *here, column)
        yield int(c1.nodes[here])
        yield from path(c1.replica, *here)
        yield from path(c1.column_openings, *here, 0)


def sector_data(post: PostSectors, sector: int) -> Iterator[int]:
    for words in (post.comm_r_last, post.comm_c, post.comm_r):
        yield number(words[sector])
    for challenge in range(post.replica.index.shape[1]):
        yield number(post.replica.leaf[sector, challenge])
        yield from path(post.replica, sector, challenge)


def update_data(
    found: UpdatePartitions,
    partition: int,
    h: int,
    commitments: tuple[bytes, bytes, bytes],
    apex: list[int],
) -> Iterator[int]:
    """``commitments``: comm_r_old, comm_d_new, comm_r_new; ``apex``: siblings of the partition's path."""
    shape = found.proof.shape
    yield partition | 1 << (shape.update_partition_bits + h)
    for commitment in (*commitments, found.comm_c, found.comm_r_last_old, found.comm_r_last_new):
        yield int.from_bytes(commitment, "little")
    yield from unpack(found.apex_leaves[partition])
    yield from apex
    leaves = shape.update_apex_leaves.bit_length() - 1
    below = shape.log2_nodes - shape.update_partition_bits - leaves
    for challenge in range(shape.update_challenges):
        here = partition, challenge
        yield number(found.replica_old.leaf[here])
        yield number(found.data_new.leaf[here])
        yield from unpack(found.replica_old.siblings[here])
        yield from unpack(found.replica_new.siblings[here])
        yield from unpack(found.data_new.siblings[here][:below])
