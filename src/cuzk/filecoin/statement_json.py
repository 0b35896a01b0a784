"""Statements in JSON: what ``cuzk filecoin verify`` checks a proof against.

    {"registered_seal_proof": TYPE, "comm_r", "comm_d", "seed",
        "replica_id", or "prover_id" or "miner", "sector" and "ticket" that it follows from; ["porep_id"]}
    {"registered_post_proof": TYPE, "randomness", "sectors": [{"sector", "comm_r"}, ...], ["partition"]}
    {"registered_update_proof": TYPE, "comm_r_old", "comm_d_new", "comm_r_new", ["h_select"]}

TYPE is a number or a name (Rust's or Go's). 32 bytes are 64 hexadecimal digits in the order of the bytes, or an
array of 32 numbers. "challenges" may stand for "seed" ([[node, ...] of each partition]) and for "randomness"
([node, ...] in each sector). A record of rust-fil-proofs' regression files is read, too:

    {"porep_config": {"sector_size", "partitions", "porep_id", "api_version", "api_features"},
        "comm_r", "comm_d", "prover_id", "sector_id", "ticket", "seed", "proof"}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from cuzk.errors import FormatError
from cuzk.filecoin.derive import prover_id, replica_id
from cuzk.filecoin.json_fields import Fields, read_object
from cuzk.filecoin.parents import Nodes
from cuzk.filecoin.proof_bytes import MOST_BYTES
from cuzk.filecoin.registered import SEAL, Challenges, Kind, RegisteredProof, registered
from cuzk.filecoin.shapes import WINDOW_CHALLENGES, WINNING_CHALLENGES
from cuzk.filecoin.statement import (
    PostStatement,
    SealStatement,
    Sector,
    Statement,
    UpdateStatement,
)
from cuzk.formats.source import Readable, Source

FAMILY = {f"registered_{family}_proof": family for family in ("seal", "post", "update")}
RECORD = "porep_config"
FEATURES = {
    "SyntheticPoRep": Challenges.SYNTHETIC,
    "NonInteractivePoRep": Challenges.NON_INTERACTIVE,
}
MOST_PARTITION = (1 << 32) - 1


def read_statement(what: Readable) -> tuple[Statement, bytes | None]:
    """The statement, and the proof that a regression record holds beside it."""
    source = Source.open(what, "a statement in JSON")
    fields = read_object(source)
    if RECORD in fields.values:
        return _record(fields)
    named = [name for name in FAMILY if name in fields.values]
    if len(named) != 1:
        found = " and ".join(named) or "none"
        raise FormatError(
            f"{source.name}: expected one of the fields {', '.join(FAMILY)}, found {found}"
        )
    proof = registered(FAMILY[named[0]], fields.type(named[0]), f"{source.name}: {named[0]}")
    statement: Statement
    if proof.kind is Kind.POREP:
        statement = _seal(fields, proof)
    elif proof.kind is Kind.UPDATE:
        statement = _update(fields, proof)
    else:
        statement = _post(fields, proof)
    fields.expect_no_more()
    return statement, None


def statement_json(statement: Statement) -> bytes:
    """The same statement as a text."""
    family = statement.proof.family
    fields: dict[str, Any] = {f"registered_{family}_proof": statement.proof.name}
    if isinstance(statement, SealStatement):
        for name in ("replica_id", "comm_d", "comm_r", "seed", "porep_id"):
            fields[name] = getattr(statement, name).hex()
        if statement.challenges is not None:
            del fields["seed"]
            fields["challenges"] = statement.challenges.tolist()
    elif isinstance(statement, UpdateStatement):
        for name in ("comm_r_old", "comm_d_new", "comm_r_new"):
            fields[name] = getattr(statement, name).hex()
        if statement.h_select is not None:
            fields["h_select"] = statement.h_select
    else:
        if statement.randomness is not None:
            fields["randomness"] = statement.randomness.hex()
        if statement.proof.kind is Kind.WINDOW:
            fields["partition"] = statement.partition
        fields["sectors"] = [_sector_fields(sector) for sector in statement.sectors]
    return (json.dumps(fields, indent=1) + "\n").encode()


def _sector_fields(sector: Sector) -> dict[str, Any]:
    fields: dict[str, Any] = {"sector": sector.number, "comm_r": sector.comm_r.hex()}
    if sector.challenges is not None:
        fields["challenges"] = list(sector.challenges)
    return fields


# Seal


def _seal(fields: Fields, proof: RegisteredProof) -> SealStatement:
    porep_id = fields.node("porep_id") if "porep_id" in fields.values else proof.porep_id()
    comm_d, comm_r = fields.commitment("comm_d"), fields.commitment("comm_r")
    challenges = None
    if "challenges" in fields.values:
        each = [range(proof.shape.nodes)] * proof.shape.challenges
        rows = fields.array("challenges", proof.partitions, "partition")
        challenges = _nodes([row.numbers(each, "challenge") for row in rows])
        seed = bytes(32)
    elif proof.challenges is Challenges.NON_INTERACTIVE and "seed" not in fields.values:
        seed = bytes(32)
    else:
        seed = fields.node("seed")
    if "replica_id" in fields.values:
        replica = fields.element("replica_id")
    else:
        by_actor = "miner" in fields.values
        prover = prover_id(fields.number("miner")) if by_actor else fields.node("prover_id")
        number, ticket = fields.number("sector"), fields.node("ticket")
        replica = replica_id(prover, number, ticket, comm_d, porep_id)
    return SealStatement(proof, replica, comm_d, comm_r, seed, porep_id, challenges)


def _nodes(rows: Sequence[Sequence[int]]) -> Nodes:
    return np.array(rows, dtype=np.uint64)


def _record(fields: Fields) -> tuple[SealStatement, bytes]:
    proof, porep_id = _configured(fields.object(RECORD))
    names = ("comm_d", "comm_r")
    comm_d, comm_r = (fields.commitment(name) for name in names)
    prover, ticket, seed = (fields.node(name) for name in ("prover_id", "ticket", "seed"))
    data = fields.octets("proof", None, MOST_BYTES)
    replica = replica_id(prover, fields.number("sector_id"), ticket, comm_d, porep_id)
    fields.expect_no_more()
    return SealStatement(proof, replica, comm_d, comm_r, seed, porep_id), data


def _configured(config: Fields) -> tuple[RegisteredProof, bytes]:
    """The registered proof type of a PoRepConfig, and its PoRep id."""
    size, partitions = config.number("sector_size"), config.number("partitions")
    version, features = config.text("api_version"), config.texts("api_features")
    porep_id = config.node("porep_id")
    config.expect_no_more()
    kinds = [FEATURES.get(feature) for feature in features] or [Challenges.INTERACTIVE]
    for proof in SEAL:
        api = f"V{proof.api.value.replace('.', '_')}_0"
        known = proof.shape.sector_bytes, [proof.challenges], proof.partitions
        if known == (size, kinds, partitions) and version == api:
            return proof, porep_id
    # 1.2 without a feature has no registered type: as 1.1
    plain = [p for p in SEAL if (p.shape.sector_bytes, p.partitions) == (size, partitions)]
    if version == "V1_2_0" and not features and plain:
        return plain[1], porep_id
    raise FormatError(
        f"{config.where}: expected the configuration of a registered seal proof, found sectors of {size} "
        f"bytes, {partitions} partitions, {version}, features {features}"
    )


# PoSt and SnapDeals


def _post(fields: Fields, proof: RegisteredProof) -> PostStatement:
    winning = proof.kind is Kind.WINNING
    most = 1 if winning else proof.shape.window_sectors
    randomness = fields.element("randomness") if "randomness" in fields.values else None
    partition = 0
    if not winning and "partition" in fields.values:
        partition = fields.number("partition", MOST_PARTITION)
    count = WINNING_CHALLENGES if winning else WINDOW_CHALLENGES
    each = [range(proof.shape.nodes)] * count
    sectors = []
    for entry in fields.objects("sectors", most, "sector"):
        challenges = None
        if randomness is None:
            challenges = tuple(entry.item("challenges").numbers(each, "challenge"))
        known = randomness is not None or "sector" in entry.values
        number = entry.number("sector") if known else 0
        sectors.append(Sector(number, entry.commitment("comm_r"), challenges))
        entry.expect_no_more()
    return PostStatement(proof, randomness, tuple(sectors), partition)


def _update(fields: Fields, proof: RegisteredProof) -> UpdateStatement:
    names = ("comm_r_old", "comm_d_new", "comm_r_new")
    old, data, new = (fields.commitment(name) for name in names)
    h_select = fields.number("h_select", 5) if "h_select" in fields.values else None
    return UpdateStatement(proof, old, data, new, h_select)
