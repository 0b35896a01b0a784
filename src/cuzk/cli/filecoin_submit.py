"""``cuzk filecoin submit``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from cuzk.cli.client import check_written, finish, job_options
from cuzk.cli.connection import Service, service_options
from cuzk.cli.options import FILE, json_option
from cuzk.errors import CuzkError, FormatError
from cuzk.filecoin.c1 import read_c1
from cuzk.filecoin.registered import Kind, RegisteredProof
from cuzk.filecoin.statement import PostStatement, SealStatement, Statement, UpdateStatement
from cuzk.filecoin.statement_json import read_statement
from cuzk.filecoin.task import expect_stated
from cuzk.filecoin.vanilla import read_post

KINDS = {
    Kind.POREP: "porep-c2",
    Kind.UPDATE: "snap-update",
    Kind.WINDOW: "window-post",
    Kind.WINNING: "winning-post",
}


@click.command("submit", short_help="Hand a C1, a PoSt, an update to a service.")
@click.argument("inputs", metavar="INPUT...", type=FILE, nargs=-1, required=True)
@click.option(
    "--statement",
    type=FILE,
    help="Public data in JSON, as for `cuzk filecoin prove`; not with a C1.",
)
@click.option(
    "--miner", type=click.IntRange(min=0), metavar="ID", help="The actor id; needed with a C1."
)
@click.option(
    "--sector", type=click.IntRange(min=0), metavar="N", help="The sector's number, with a C1."
)
@job_options
@service_options
@json_option
def submit_command(
    inputs: tuple[Path, ...],
    statement: Path | None,
    miner: int | None,
    sector: int | None,
    name: str | None,
    priority: str | None,
    deadline: float | None,
    wait: bool,
    output: Path | None,
    service: Service,
    as_json: bool,
) -> None:
    """Hand INPUT to a proving service, as `cuzk filecoin prove` takes it: a C1 with --miner and --sector; or vanilla proofs
    in bincode with --statement. Prints the job's id, or with --wait writes the proof.

    \b
    Examples:
      cuzk filecoin submit c1.json --miner 1000 --sector 7 --id porep-1000-7
      cuzk filecoin submit 9.vproof 10.vproof --statement statement.json --wait
    """
    named = {f"INPUT {path}": path for path in inputs} | (
        {"--statement": statement} if statement else {}
    )
    check_written({"-o": output}, {"-o": Path("proof.bin")}, named, wait=wait)
    fields = (
        _of_c1(inputs, miner, sector) if statement is None else _of_statement(inputs, statement)
    )
    request = {"miner": miner or 0, "id": name, "priority": priority or "", "deadline": deadline}
    with _named(inputs), service.connect() as client:
        vanilla = [path.read_bytes() for path in inputs]
        taken = client.submit_filecoin(fields.pop("kind"), vanilla, **{**request, **fields})
        finish(client, taken, output, None, wait=wait, as_json=as_json)


def _of_c1(inputs: tuple[Path, ...], miner: int | None, sector: int | None) -> dict[str, Any]:
    if len(inputs) != 1:
        raise FormatError(
            f"INPUT: expected one C1, found {len(inputs)} files: a PoSt or an update needs --statement"
        )
    if miner is None:
        raise FormatError("--miner: expected the actor id with a C1, found none")
    c1 = read_c1(inputs[0])
    number = c1.sector_number if sector is None else sector
    if number is None:
        raise FormatError("--sector: expected the sector's number with this C1, found none")
    return {**_of_proof(c1.proof), "sector": number}


@contextmanager
def _named(inputs: tuple[Path, ...]) -> Iterator[None]:
    """What a service says of a vanilla proof, of the file that it was read from."""
    try:
        yield
    except CuzkError as error:
        said = re.match(r"vanilla_proofs\[(\d+)\](: .*)", str(error), re.DOTALL)
        if said is None or int(said[1]) >= len(inputs):
            raise
        raise type(error)(inputs[int(said[1])].name + said[2]) from None


def _of_statement(inputs: tuple[Path, ...], path: Path) -> dict[str, Any]:
    statement: Statement = read_statement(path)[0]
    known = _of_proof(statement.proof)
    if isinstance(statement, SealStatement):
        raise FormatError(f"{path}: expected a PoSt or an update, found a seal: its C1 says it all")
    if isinstance(statement, UpdateStatement):
        if statement.h_select is not None:
            raise FormatError(f"{path}: h_select: expected none: the service proves production's")
        names = ("comm_r_old", "comm_d_new", "comm_r_new")
        return known | {name: getattr(statement, name) for name in names}
    return known | _of_post(inputs, path, statement)


def _of_post(inputs: tuple[Path, ...], path: Path, statement: PostStatement) -> dict[str, Any]:
    """A request has no sectors but its vanilla proofs': whether they are the statement's is looked at here."""
    if statement.randomness is None:
        raise FormatError(f"{path}: randomness: expected it for a service, found challenges alone")
    expect_stated(read_post(inputs, statement.proof), statement)
    return {"randomness": statement.randomness, "partition": statement.partition}


def _of_proof(proof: RegisteredProof) -> dict[str, Any]:
    return {
        "kind": KINDS[proof.kind],
        "registered_proof": proof.number,
        "sector_size": proof.shape.sector_bytes,
    }
