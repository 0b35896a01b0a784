"""``cuzk filecoin verify``."""

from __future__ import annotations

from pathlib import Path

import click

import cuzk
from cuzk.cli.filecoin_files import locate_key, params_option, trust_key
from cuzk.cli.options import FILE, digest_option, insecure_option, json_option, threads_option
from cuzk.cli.terminal import answer, one_line, say
from cuzk.errors import FormatError
from cuzk.filecoin.proof_bytes import MOST_BYTES
from cuzk.filecoin.statement import Statement, derived
from cuzk.filecoin.statement_json import read_statement
from cuzk.filecoin.trust import KeyFile
from cuzk.filecoin.verify import check_proof
from cuzk.formats.source import Source
from cuzk.prover.devices import thread_count
from cuzk.verifier import Verifier


@click.command("verify", short_help="Check a proof: exit status 0 or 1.")
@click.argument("statement", type=FILE)
@click.argument("proof", type=FILE, required=False)
@params_option
@click.option("--key", type=FILE, help="The .vk or .params file, whatever its name.")
@digest_option
@insecure_option
@threads_option
@json_option
def verify_command(
    statement: Path,
    proof: Path | None,
    params: Path | None,
    key: Path | None,
    key_digest: str | None,
    insecure_key: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Check PROOF (192 bytes a partition) for the public data in STATEMENT: exit status 0 valid, 1 not valid, 2 malformed.

    STATEMENT is JSON: a registered proof type and public data (docs/formats.md), or a record of rust-fil-proofs'
    regression files, which holds the proof as well.
    """
    stated, recorded = read_statement(statement)
    if (proof is None) == (recorded is None):
        found = "none" if proof is None else "one in STATEMENT, too"
        raise FormatError(f"PROOF: expected one proof, found {found}")
    name, data = statement.name, recorded or b""
    if proof is not None:
        name, data = proof.name, _proof_bytes(proof)
    path = locate_key(stated.proof, "vk", params, key)
    named = key is not None
    file = trust_key(
        stated.proof, path, "vk", named=named, digest=key_digest, insecure=insecure_key
    )
    count = thread_count(threads)
    vk = cuzk.load_verifying_key(path, insecure_key=insecure_key, threads=count)
    verifier = Verifier(vk, insecure_key=insecure_key, threads=count)
    _conclude(check_proof(verifier, stated, data, name), name, stated, file, as_json)


def _proof_bytes(path: Path) -> bytes:
    source = Source.open(path, "a proof")
    if source.size > MOST_BYTES:
        raise FormatError(
            f"{source.name}: expected a proof of at most {MOST_BYTES} bytes, found {source.size}"
        )
    return source.data.tobytes()


def _conclude(reason: str, name: str, stated: Statement, file: KeyFile, as_json: bool) -> None:
    facts = {
        "valid": not reason,
        "type": stated.proof.name,
        "challenges": "derived" if derived(stated) else "given",
        "published_key": file.published,
    }
    if not reason:
        answer(facts, ["valid"], as_json=as_json)
        if not derived(stated):
            say("note: the challenges were given, not derived: valid for these alone", error=True)
        return
    message = one_line(f"{name}: {reason}")
    say(f"not valid: {message}", error=True)
    if as_json:
        answer(facts | {"error": {"code": "not-valid", "message": message}}, [], as_json=True)
    click.get_current_context().exit(1)
