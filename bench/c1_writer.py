"""A C1 written as sealing software hands it over: bincode's record, serde's JSON, Curio's wrapper around that.

The reader (:mod:`cuzk.filecoin.c1`) keeps once what an output says twice; here it is said twice again.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import numpy as np

from bench.c1 import fill, open_at, to_json
from cuzk.filecoin.c1 import C1, layout
from cuzk.filecoin.openings import Openings, Segment, binary_segments, octree_segments
from cuzk.filecoin.serde import Record
from cuzk.filecoin.shapes import DRG_DEGREE
from cuzk.vectors import Words


def record_of(c1: C1) -> Record:
    """In bincode's layout: its ``tobytes`` are the bincode form."""
    proof, shape = c1.proof, c1.proof.shape
    output = np.zeros((), dtype=layout(proof).dtype)
    fill(
        layout(proof), output, np.random.default_rng(0)
    )  # counts and tags; the rest is written over
    for name in ("comm_r", "comm_d", "replica_id"):
        output[name] = np.frombuffer(getattr(c1, name), "<u8")
    for name in ("seed", "ticket"):
        output[name] = np.frombuffer(getattr(c1, name), np.uint8)
    challenges = output["vanilla_proofs"]["content"]["items"]["items"]
    octree = octree_segments(shape)
    write_paths(challenges["comm_d_proofs"], binary_segments(shape.log2_nodes), c1.data)
    write_paths(challenges["comm_r_last_proof"], octree, c1.replica)
    columns, at = challenges["replica_column_proofs"], 0
    for part in (columns["c_x"], columns["drg_parents"]["items"], columns["exp_parents"]["items"]):
        places = slice(at, at + part.shape[2]) if part.ndim > 2 else 0
        opened = _some(c1.column_openings, places)
        part["column"]["index"] = opened.index
        part["column"]["rows"]["items"] = c1.columns[:, :, places]
        write_paths(part["inclusion_proof"], octree, opened)
        at += DRG_DEGREE if part.ndim > 2 else 1
    labeling = challenges["labeling_proofs"]["items"]
    labeling["parents"]["items"] = c1.label_parents
    labeling["layer_index"] = np.arange(1, shape.layers + 1)
    labeling["node"] = c1.nodes[..., None]
    challenges["encoding_proof"] = labeling[..., -1]
    return output


def c1_json(c1: C1) -> bytes:
    """As serde writes it."""
    return _compact(to_json(layout(c1.proof), record_of(c1)))


def wrapped(text: bytes, sector: int, sector_bytes: int) -> bytes:
    """Curio's wrapper around serde's JSON: what a request's vanilla_proof is."""
    phase1 = base64.b64encode(text).decode()
    return _compact({"SectorNum": sector, "Phase1Out": phase1, "SectorSize": sector_bytes})


def write_paths(proofs: Any, segments: tuple[Segment, ...], paths: Openings) -> None:
    """Leaves, siblings, positions and roots."""
    open_at(proofs, segments, paths.index, paths.root)
    content, at = proofs["data"]["content"], 0
    content["leaf"] = paths.leaf
    for name, arity, levels in segments:
        hashes = content[name]["path"]["items"]["hashes"]["items"]
        for level in range(levels):
            hashes[..., level, :, :] = paths.siblings[..., at : at + arity - 1, :]
            at += arity - 1


def _some(paths: Openings, places: slice | int) -> Openings:
    """Of the columns of every challenge."""

    def of(words: Words) -> Words:
        return words[:, :, places]

    return replace(
        paths, leaf=of(paths.leaf), siblings=of(paths.siblings), index=of(paths.index), root=of(paths.root)
    )  # fmt: skip


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
