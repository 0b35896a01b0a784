"""Reading C1 outputs: ``python -m bench.c1 [--proof 8] [--runs 5]``.

Makes an output of the given registered proof type whose node values are random (no hash in it holds: the
reader checks none), writes it in all three forms, proves that the reader gives the same values from each,
then times it. Numbers of proofs: 5 is 2 KiB, 8 is 32 GiB, 18 is 32 GiB non-interactive.
"""

from __future__ import annotations

import argparse
import base64
import json
import time
from typing import Any

import numpy as np

from cuzk.filecoin.c1 import C1, layout, read_c1
from cuzk.filecoin.openings import Segment, binary_segments, octree_segments
from cuzk.filecoin.registered import RegisteredProof, registered
from cuzk.filecoin.serde import Bytes32, List, Null, Number, Record, Struct, Type, Variant


def synthetic(proof: RegisteredProof, seed: int = 1) -> Record:
    """An output in bincode's layout, consistent in all that it says twice."""
    random = np.random.default_rng(seed)
    kind = layout(proof)
    output = np.zeros((), dtype=kind.dtype)
    fill(kind, output, random)
    shape = proof.shape
    challenges = output["vanilla_proofs"]["content"]["items"]["items"]
    octree, binary = octree_segments(shape), binary_segments(shape.log2_nodes)
    nodes = random.integers(1, shape.nodes, challenges.shape, dtype=np.uint64)
    open_at(challenges["comm_d_proofs"], binary, nodes, output["comm_d"])
    open_at(challenges["comm_r_last_proof"], octree, nodes, output["comm_r"])
    columns = challenges["replica_column_proofs"]
    for part in (columns["c_x"], columns["drg_parents"]["items"], columns["exp_parents"]["items"]):
        index = nodes
        if part.ndim > 2:
            index = random.integers(0, shape.nodes, part.shape, dtype=np.uint64)
        part["column"]["index"] = index
        open_at(part["inclusion_proof"], octree, index, output["replica_id"])
    labeling = challenges["labeling_proofs"]["items"]
    labeling["layer_index"] = np.arange(1, shape.layers + 1)
    labeling["node"] = nodes[..., None]
    challenges["encoding_proof"] = labeling[..., -1]
    return output


def fill(kind: Type, values: Any, random: np.random.Generator) -> None:
    """Counts, tags, and random bytes that are below r."""
    if isinstance(kind, Bytes32):
        values[...] = random.integers(
            0, 1 << (62 if kind.element else 8), values.shape, dtype=values.dtype
        )
    elif isinstance(kind, List):
        values["count"] = kind.count
        fill(kind.item, values["items"], random)
    elif isinstance(kind, Variant):
        values["tag"] = kind.tag
        if kind.content is not None:
            fill(kind.content, values["content"], random)
    elif isinstance(kind, Struct):
        for name, content in kind.fields:
            if not isinstance(content, Null):
                fill(content, values[name], random)


def open_at(proofs: Any, segments: tuple[Segment, ...], index: Any, root: Any) -> None:
    """Positions of the paths to these leaves, and their root."""
    content, shift = proofs["data"]["content"], 0
    content["root"] = root
    for name, arity, levels in segments:
        for level in range(levels):
            elements = content[name]["path"]["items"]
            elements["index"][..., level] = index >> np.uint64(shift) & np.uint64(arity - 1)
            shift += arity.bit_length() - 1


def to_json(kind: Type, value: Any) -> Any:
    """What json.dumps needs to write a value of that type as serde would."""
    if isinstance(kind, Number):
        return int(value)
    if isinstance(kind, Bytes32):
        return list(value.tobytes())
    if isinstance(kind, List):
        return [to_json(kind.item, item) for item in value["items"]]
    if isinstance(kind, Variant):
        content = kind.content
        return kind.name if content is None else {kind.name: to_json(content, value["content"])}
    assert isinstance(kind, Struct)
    return {
        name: None if isinstance(t, Null) else to_json(t, value[name]) for name, t in kind.fields
    }


def forms(proof: RegisteredProof, output: Record) -> dict[str, bytes]:
    """The three forms by name."""
    text = json.dumps(to_json(layout(proof), output), separators=(",", ":")).encode()
    phase1 = base64.b64encode(text).decode()
    wrapper = {"SectorNum": 1, "Phase1Out": phase1, "SectorSize": proof.shape.sector_bytes}
    return {
        "bincode": output.tobytes(),
        "JSON": text,
        "wrapper": json.dumps(wrapper, separators=(",", ":")).encode(),
    }


def expect_same(a: C1, b: C1) -> None:
    """Every array and every commitment."""
    for name in ("comm_r", "comm_d", "replica_id", "seed", "ticket", "comm_c", "comm_r_last"):
        if getattr(a, name) != getattr(b, name):
            raise SystemExit(f"{name} differs between two forms")
    for left, right in ((a, b), (a.data, b.data), (a.replica, b.replica)):
        for name, values in vars(left).items():
            if isinstance(values, np.ndarray) and not np.array_equal(values, vars(right)[name]):
                raise SystemExit(f"{name} differs between two forms")
    if not np.array_equal(a.column_openings.siblings, b.column_openings.siblings):
        raise SystemExit("columns' paths differ between two forms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--proof", type=int, default=8)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    proof = registered("seal", options.proof)
    texts = forms(proof, synthetic(proof))
    reference = read_c1(texts["bincode"])
    print(f"{proof.name}: {proof.partitions} partitions of {proof.shape.challenges} challenges")
    for name, data in texts.items():
        expect_same(read_c1(data), reference)
        seconds = []
        for _ in range(options.runs):
            start = time.perf_counter()
            read_c1(data)
            seconds.append(time.perf_counter() - start)
        seconds.sort()
        print(f"{name:8} {len(data) / 1e6:7.1f} MB  {seconds[len(seconds) // 2] * 1000:7.1f} ms")


if __name__ == "__main__":
    main()
