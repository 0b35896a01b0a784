"""C1: the output of the first phase of a seal's commit, which the second phase makes into proofs.

SealCommitPhase1Output of filecoin-proofs-api, in any of three forms that are told apart by their content:

    bincode                     begins with the registered proof's number
    JSON as serde writes it     {"registered_proof": "StackedDrg32GiBV1_1", "vanilla_proofs": ...}
    Curio's and Lotus' wrapper  {"SectorNum": 1, "Phase1Out": base64 of that JSON, "SectorSize": 34359738368}

The vanilla proofs say many things twice: a challenge's node, for one, stands with each of its layers and is
spelled by the indices of its paths. What says the same is compared here and kept once. That hashes lead where
they should is for the vanilla check.

Definitions: rust-filecoin-proofs-api seal::SealCommitPhase1Output, storage-proofs-porep
stacked::vanilla::{Proof, ReplicaColumnProof, Column, LabelingProof, EncodingProof}.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import FormatError
from cuzk.filecoin.openings import (
    Openings,
    binary_segments,
    merkle_proof,
    octree_segments,
    openings,
)
from cuzk.filecoin.registered import SEAL, RegisteredProof, registered
from cuzk.filecoin.serde import (
    ELEMENT,
    RAW,
    U64,
    Array,
    List,
    Null,
    Number,
    Record,
    Struct,
    Text,
    Variant,
    read_bincode,
    read_json,
    struct,
)
from cuzk.filecoin.shapes import (
    DRG_DEGREE,
    EXPANDER_DEGREE,
    LABEL_PARENTS,
    PUBLISHED,
    Shape,
)
from cuzk.formats.source import Bytes, Readable, Source
from cuzk.vectors import Words

COLUMN_NAMES = (
    "the challenged column",
    *(f"DRG parent {i}" for i in range(DRG_DEGREE)),
    *(f"expander parent {i}" for i in range(EXPANDER_DEGREE)),
)
"""Of the 15 columns that are opened for a challenge, in their order."""

WRAPPER = struct(SectorNum=U64, Phase1Out=Text(), SectorSize=U64)
WRAPPER_KEY = b'"Phase1Out"'
PROOF_NAME = re.compile(rb'"registered_proof"\s*:\s*"(\w{1,80})"')
HEAD_BYTES = 16  # registered proof u32, variant u32, partitions u64


@dataclass(frozen=True)
class C1:
    """P partitions of C challenges over L layers; arrays hold plain scalars, four words each."""

    name: str
    """What to call it in messages."""
    proof: RegisteredProof
    sector_number: int | None
    """From the wrapper; the other forms do not say it."""
    comm_r: bytes
    comm_d: bytes
    replica_id: bytes
    seed: bytes
    ticket: bytes
    comm_c: bytes
    comm_r_last: bytes
    nodes: NDArray[np.uint64]
    """(P, C): the challenged nodes."""
    data: Openings
    """(P, C) in tree D, whose root is comm_d."""
    replica: Openings
    """(P, C) in tree R_last."""
    columns: Words
    """(P, C, 15, L, 4): labels of the challenged node, its 6 DRG and its 8 expander parents."""
    column_openings: Openings
    """(P, C, 15) in tree C."""
    label_parents: Words
    """(P, C, L, 37, 4): the parents' labels as they are hashed, which the columns hold too."""


@cache
def layout(proof: RegisteredProof) -> Struct:
    """The type of the whole output."""
    size = proof.shape.name
    variant = f"StackedDrg{size}V1"
    challenges = List(_challenge(proof.shape), proof.shape.challenges, "challenge")
    return struct(
        registered_proof=Variant(proof.name, proof.number),
        vanilla_proofs=Variant(
            variant, PUBLISHED.index(size), List(challenges, proof.partitions, "partition")
        ),
        comm_r=ELEMENT,
        comm_d=ELEMENT,
        replica_id=ELEMENT,
        seed=RAW,
        ticket=RAW,
    )


def _challenge(shape: Shape) -> Struct:
    node = Number(8, below=shape.nodes)
    octree = merkle_proof(octree_segments(shape))
    column = struct(
        column=struct(
            index=Number(4, below=shape.nodes), rows=List(ELEMENT, shape.layers, "layer"), _h=Null()
        ),
        inclusion_proof=octree,
    )
    labeling = struct(parents=List(ELEMENT, LABEL_PARENTS), layer_index=Number(4), node=node)
    return struct(
        comm_d_proofs=merkle_proof(binary_segments(shape.log2_nodes)),
        comm_r_last_proof=octree,
        replica_column_proofs=struct(
            c_x=column,
            drg_parents=List(column, DRG_DEGREE, "DRG parent"),
            exp_parents=List(column, EXPANDER_DEGREE, "expander parent"),
        ),
        labeling_proofs=List(labeling, shape.layers, "layer"),
        encoding_proof=labeling,
    )


def read_c1(what: Readable) -> C1:
    """A C1 output in any of its forms. FormatError names what is wrong, and where."""
    source = Source.open(what, "a C1 output")
    start = source.data[:4096].tobytes()
    if not start.lstrip(b" \t\r\n").startswith(b"{"):
        return _from_bincode(source)
    if WRAPPER_KEY not in start:
        return _from_json(source.data, source.name, None)
    wrapper = read_json(WRAPPER, source.data, source.name)
    begin, length = int(wrapper["Phase1Out"]["begin"]), int(wrapper["Phase1Out"]["length"])
    where = f"{source.name}: Phase1Out"
    try:
        text = binascii.a2b_base64(source.data[begin : begin + length].data, strict_mode=True)
    except binascii.Error as error:
        raise FormatError(f"{where}: expected base64, found {error}") from None
    c1 = _from_json(np.frombuffer(text, dtype=np.uint8), where, int(wrapper["SectorNum"]))
    if (size := int(wrapper["SectorSize"])) != c1.proof.shape.sector_bytes:
        raise FormatError(
            f"{source.name}: SectorSize: expected {c1.proof.shape.sector_bytes} as "
            f"{c1.proof.name} says, found {size}"
        )
    return c1


def _from_json(text: Bytes, where: str, sector_number: int | None) -> C1:
    match = PROOF_NAME.search(text.data)
    if match is None:
        raise FormatError(
            f'{where}: expected a C1 output with a field "registered_proof" and its name, found none'
        )
    proof = registered("seal", match[1].decode("ascii", "replace"), f"{where}: registered_proof")
    return _c1(read_json(layout(proof), text, where), where, proof, sector_number)


def _from_bincode(source: Source) -> C1:
    data, where = source.data, source.name
    if source.size < HEAD_BYTES:
        raise FormatError(f"{where}: expected a C1 output, found {source.size} bytes only")
    number, variant = (int(word) for word in data[:8].view("<u4"))
    if number >= len(SEAL):
        raise FormatError(
            f"{where}: expected a C1 output in JSON or bincode, which begins with a number up to "
            f"{len(SEAL) - 1}, found {number}"
        )
    proof = SEAL[number]
    heads = {
        "variant": (PUBLISHED.index(proof.shape.name), variant),
        "partitions": (proof.partitions, int.from_bytes(data[8:16].tobytes(), "little")),
        "bytes": (layout(proof).dtype.itemsize, source.size),
    }
    for name, (expected, found) in heads.items():
        if expected != found:
            raise FormatError(
                f"{where}: vanilla_proofs: {name}: expected {expected} of {proof.name}, found {found}"
            )
    return _c1(read_bincode(layout(proof), data, where), where, proof, None)


def _c1(output: Record, where: str, proof: RegisteredProof, sector_number: int | None) -> C1:
    for name in ("comm_d", "comm_r", "seed"):
        if not output[name].any():
            raise FormatError(f"{where}: {name}: expected a value other than zero, found zero")
    challenges = output["vanilla_proofs"]["content"]["items"]["items"]
    octree = octree_segments(proof.shape)
    columns = challenges["replica_column_proofs"]
    parts = [columns["c_x"][..., None]]
    parts += [columns[name]["items"] for name in ("drg_parents", "exp_parents")]
    opened = [openings(part["inclusion_proof"], octree) for part in parts]
    labeling = challenges["labeling_proofs"]["items"]
    c1 = C1(
        name=where,
        proof=proof,
        sector_number=sector_number,
        comm_r=output["comm_r"].tobytes(),
        comm_d=output["comm_d"].tobytes(),
        replica_id=output["replica_id"].tobytes(),
        seed=output["seed"].tobytes(),
        ticket=output["ticket"].tobytes(),
        comm_c=opened[0].root[0, 0, 0].tobytes(),
        comm_r_last=challenges["comm_r_last_proof"]["data"]["content"]["root"][0, 0].tobytes(),
        nodes=np.array(labeling["node"][..., 0], dtype=np.uint64),
        data=openings(challenges["comm_d_proofs"], binary_segments(proof.shape.log2_nodes)),
        replica=openings(challenges["comm_r_last_proof"], octree),
        columns=np.concatenate([part["column"]["rows"]["items"] for part in parts], axis=2),
        column_openings=Openings(
            arities=opened[0].arities,
            leaf=np.concatenate([part.leaf for part in opened], axis=2),
            siblings=np.concatenate([part.siblings for part in opened], axis=2),
            index=np.concatenate([part.index for part in opened], axis=2),
            root=np.concatenate([part.root for part in opened], axis=2),
        ),
        label_parents=np.array(labeling["parents"]["items"], dtype=np.uint64),
    )
    indices = np.concatenate([part["column"]["index"] for part in parts], axis=2)
    _compare_repeated(c1, indices, labeling, challenges["encoding_proof"])
    return c1


def _compare_repeated(c1: C1, column_indices: Array, labeling: Array, encoding: Array) -> None:
    """What is said twice must be said alike."""
    node, last = c1.nodes, labeling[..., -1]
    layers = np.arange(1, c1.proof.shape.layers + 1)
    challenged = c1.column_openings.index[..., 0]
    index = "the index that its path spells"
    _same(c1, "labeling_proofs: layer", "layer_index", labeling["layer_index"], layers)
    _same(c1, "labeling_proofs: layer", "node", labeling["node"], node[..., None])
    _same(c1, "encoding_proof", "layer_index", encoding["layer_index"], layers[-1])
    _same(c1, "encoding_proof", "node", encoding["node"], node)
    parents = encoding["parents"]["items"], last["parents"]["items"]
    _same(c1, "encoding_proof: parent", "label", *parents, words=True)
    _same(c1, "comm_d_proofs", index, c1.data.index, node)
    _same(c1, "comm_r_last_proof", index, c1.replica.index, node)
    _same(c1, "c_x", index, challenged, node)
    _same(c1, "column", index, c1.column_openings.index, column_indices)
    for place, paths, root in (
        ("comm_d_proofs", c1.data, c1.comm_d),
        ("comm_r_last_proof", c1.replica, c1.comm_r_last),
        ("column", c1.column_openings, c1.comm_c),
    ):
        _same(c1, place, "root", paths.root, np.frombuffer(root, "<u8"), words=True)


def _same(
    c1: C1, place: str, what: str, found: Array, expected: Array, *, words: bool = False
) -> None:
    """``words``: values are rows of four words, shown as bytes in hexadecimal."""
    expected = np.broadcast_to(expected, found.shape)
    different = found != expected
    if not different.any():
        return
    if words:
        different = different.any(axis=-1)
    p, c, *rest = (int(i) for i in np.argwhere(different)[0])
    if rest and place == "column":
        place = COLUMN_NAMES[rest[0]]
    elif rest:
        place = f"{place} {rest[0]}"
    here = (p, c, *rest)
    shown = [a[here].tobytes().hex() if words else str(a[here]) for a in (expected, found)]
    raise FormatError(
        f"{c1.name}: partition {p}: challenge {c}: {place}: {what}: "
        f"expected {shown[0]} as elsewhere in the output, found {shown[1]}"
    )
