"""Whole proofs of circuits of millions of rows, under keys made here: minutes, and gigabytes of memory and disk.

``make filecoin``. Each key lives as long as its test.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from c1_files import c1_8mib
from made_posts import RANDOMNESS, made_sector
from made_sectors import updated
from own_files import circuit

from cuzk.filecoin import key_sizes
from cuzk.filecoin.c1 import read_c1
from cuzk.filecoin.own_keys import own_key, write_key
from cuzk.filecoin.parameters import parameters_named
from cuzk.filecoin.prove import WholeProof, prove
from cuzk.filecoin.registered import UPDATE, registered
from cuzk.filecoin.statement import PostStatement, SealStatement, Sector, Statement, UpdateStatement
from cuzk.filecoin.statement_json import read_statement, statement_json
from cuzk.filecoin.task import Task, post_task, seal_task, update_task
from cuzk.filecoin.vanilla import read_post
from cuzk.filecoin.verify import check_proof
from cuzk.formats.bellman import read_vk
from cuzk.verifier import Verifier
from proof_files import EQUATION

pytestmark = [pytest.mark.slow, pytest.mark.filecoin]


def proved(task: Task, folder: Path, params_bytes: int) -> tuple[WholeProof, Verifier]:
    """Under a new key that went through its files, of which one has so many bytes."""
    name = task.proof.circuit
    files = write_key(own_key(circuit(name), threads=2), parameters_named(name), folder)
    assert files["params"].stat().st_size == params_bytes
    assert params_bytes == key_sizes.params_bytes(circuit(name))
    whole = prove(circuit(name), task, files["params"], insecure_key=True)
    files["params"].unlink()
    return whole, Verifier(read_vk(files["vk"]), insecure_key=True, threads=2)


def expect_only(
    whole: WholeProof, verifier: Verifier, statement: Statement, others: list[Statement]
) -> None:
    """The proof is one of the statement, and of no other."""
    stored = read_statement(statement_json(statement))[0]
    assert check_proof(verifier, stored, whole.data) == ""
    for other in others:
        assert check_proof(verifier, other, whole.data) == EQUATION, other


def other_seals(statement: SealStatement) -> list[Statement]:
    one = (1).to_bytes(32, "little")
    return [
        *(replace(statement, **{n: one}) for n in ("replica_id", "comm_d", "comm_r", "seed")),  # type: ignore[arg-type]
        replace(statement, porep_id=one),
        replace(statement, proof=registered("seal", statement.proof.number - 5)),
    ]


def test_porep_of_2_kib(fixtures: Path, tmp_path: Path) -> None:
    case = json.loads((fixtures / "filecoin" / "c1-2KiB.public.json").read_text())
    c1 = read_c1(fixtures / "filecoin" / "c1-2KiB.bincode")
    task = seal_task(c1, prover_id=bytes.fromhex(case["prover_id"]), sector=case["sector"])
    whole, verifier = proved(task, tmp_path, 1_114_707_768)
    assert isinstance(task.statement, SealStatement)
    expect_only(whole, verifier, task.statement, other_seals(task.statement))


def test_a_real_porep_of_8_mib(fixtures: Path, tmp_path: Path) -> None:
    """What sealing software of a devnet's miner handed over."""
    data, prover, sector = c1_8mib(fixtures)
    task = seal_task(read_c1(data), prover_id=prover, sector=sector)
    whole, verifier = proved(task, tmp_path, 1_429_027_896)
    assert isinstance(task.statement, SealStatement)
    expect_only(whole, verifier, task.statement, other_seals(task.statement))


def test_winning_post_of_2_kib(tmp_path: Path) -> None:
    proof = registered("post", "StackedDrgWinning2KiBV1")
    sector = made_sector(proof, 5)
    statement = PostStatement(proof, RANDOMNESS, (Sector(5, sector.comm_r),))
    task = post_task(read_post([sector.blob], proof), statement)
    whole, verifier = proved(task, tmp_path, 47_299_128)
    others: list[Statement] = [
        replace(statement, randomness=bytes(31) + b"\1"),
        replace(statement, sectors=(Sector(6, sector.comm_r),)),
        replace(statement, sectors=(Sector(5, RANDOMNESS),)),
    ]
    expect_only(whole, verifier, statement, others)


def test_update_of_2_kib(tmp_path: Path) -> None:
    proof = UPDATE[0]
    update, commitments = updated(proof, proof.shape.update_h_values[0])
    statement = UpdateStatement(proof, *commitments)
    whole, verifier = proved(update_task(update, statement), tmp_path, 655_789_464)
    one = (1).to_bytes(32, "little")
    others: list[Statement] = [
        *(replace(statement, **{n: one}) for n in ("comm_r_old", "comm_d_new", "comm_r_new")),  # type: ignore[arg-type]
        replace(statement, h_select=1),
    ]
    expect_only(whole, verifier, statement, others)
