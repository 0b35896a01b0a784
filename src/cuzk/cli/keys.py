"""``cuzk setup``, ``cuzk ptau new`` and ``cuzk export``: keys made, keys written for others."""

from __future__ import annotations

from pathlib import Path

import click

import cuzk
from cuzk.cli.app import cuzk_group
from cuzk.cli.options import FILE, insecure_option, json_option, threads_option
from cuzk.cli.outputs import check_outputs
from cuzk.cli.terminal import answer, progress, size
from cuzk.curves import BN254, curve_named
from cuzk.formats.iden3.ptau import read_ptau, write_ptau
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.formats.snarkjs_json import verification_key_json
from cuzk.formats.solidity import export_calldata, export_solidity
from cuzk.formats.source import write_atomically
from cuzk.prover.devices import thread_count
from cuzk.setup import make_powers_of_tau, setup

output_option = click.option("-o", "--output", type=FILE, required=True, help="The file to write.")


@cuzk_group.command("setup", short_help="Make a proving key for a circuit.")
@click.argument("r1cs", type=FILE)
@click.argument("ptau", type=FILE)
@output_option
@threads_option
@json_option
def setup_command(r1cs: Path, ptau: Path, output: Path, threads: int | None, as_json: bool) -> None:
    """Make a proving key (.zkey) for the circuit R1CS from the powers of tau in PTAU.

    One contribution from the operating system's randomness is added and forgotten: whoever trusts this
    key trusts this machine at this moment, or adds contributions with snarkjs.
    """
    check_outputs({"-o": output}, {"R1CS": r1cs, "PTAU": ptau})
    with progress("setup", quiet=as_json):
        matrices = cuzk.load_circuit(r1cs)
        key = setup(matrices, read_ptau(ptau), threads=thread_count(threads))
    write_zkey(output, key)
    facts = {
        "key": str(output),
        "curve": key.curve.name,
        "constraints": matrices.constraints,
        "public": matrices.public,
        "domain": 1 << key.log_domain,
        "bytes": output.stat().st_size,
    }
    line = (
        f"{output}: key for {matrices.constraints} constraints on {key.curve.title}, "
        f"domain 2^{key.log_domain}, {size(output.stat().st_size)}, one contribution"
    )
    answer(facts, [line], as_json=as_json)


@cuzk_group.group("ptau")
def ptau_group() -> None:
    """Powers of tau (phase 1)."""


@ptau_group.command("new", short_help="Powers made here, for tests and demos.")
@click.argument("curve")
@click.argument("power", type=int)
@output_option
@threads_option
@json_option
def ptau_new_command(
    curve: str, power: int, output: Path, threads: int | None, as_json: bool
) -> None:
    """Make a .ptau for circuits of up to 2^POWER rows on CURVE (bn254, bls12_381), for tests and demos.

    tau, alpha and beta come from the operating system's randomness and are forgotten. Who uses the keys
    made from it trusts whoever ran this command; for real use take a public ceremony's file.
    """
    check_outputs({"-o": output}, {})
    with progress("powers", quiet=as_json):
        powers = make_powers_of_tau(
            curve_named(curve, "CURVE"), power, threads=thread_count(threads)
        )
    write_ptau(output, powers)
    count = output.stat().st_size
    answer(
        {"ptau": str(output), "curve": powers.curve.name, "power": power, "bytes": count},
        [
            f"{output}: powers of tau up to 2^{power} on {powers.curve.title}, {size(count)}; "
            "for tests and demos: whoever uses it trusts this machine"
        ],
        as_json=as_json,
    )


@cuzk_group.group("export", short_help="Write a vk, a contract or calldata.")
def export_group() -> None:
    """Write what others read: a verifying key, a Solidity contract, calldata."""


@export_group.command("vk", short_help="verification_key.json, as snarkjs writes it.")
@click.argument("key", type=FILE)
@click.option("-o", "--output", type=FILE, default="verification_key.json", show_default=True)
@insecure_option
@json_option
def export_vk_command(key: Path, output: Path, insecure_key: bool, as_json: bool) -> None:
    """The verifying key of KEY (.zkey, .params, .vk) as snarkjs' verification_key.json."""
    check_outputs({"-o": output}, {"KEY": key})
    _write(
        output,
        verification_key_json(cuzk.load_verifying_key(key, insecure_key=insecure_key)),
        as_json,
    )


@export_group.command("solidity", short_help="A contract that verifies proofs (BN254).")
@click.argument("key", type=FILE)
@click.option("-o", "--output", type=FILE, default="verifier.sol", show_default=True)
@insecure_option
@json_option
def export_solidity_command(key: Path, output: Path, insecure_key: bool, as_json: bool) -> None:
    """A Solidity contract that verifies proofs for KEY (.zkey or verification_key.json, BN254)."""
    check_outputs({"-o": output}, {"KEY": key})
    _write(
        output,
        export_solidity(cuzk.load_verifying_key(key, insecure_key=insecure_key)).encode(),
        as_json,
    )


def _write(output: Path, content: bytes, as_json: bool) -> None:
    write_atomically(output, [content])
    answer(
        {"file": str(output), "bytes": len(content)},
        [f"{output}: {size(len(content))}"],
        as_json=as_json,
    )


@export_group.command("calldata", short_help="The arguments of the contract's verifyProof.")
@click.argument("public", type=FILE)
@click.argument("proof", type=FILE)
@click.option("-o", "--output", type=FILE, help="Standard output if not given.")
@json_option
def export_calldata_command(public: Path, proof: Path, output: Path | None, as_json: bool) -> None:
    """The arguments of the contract's verifyProof, as snarkjs prints them (BN254)."""
    text = export_calldata(cuzk.load_proof(proof, BN254), cuzk.load_public(public, BN254))
    if output is None:
        answer({"calldata": text}, [text], as_json=as_json)
        return
    check_outputs({"-o": output}, {"PUBLIC": public, "PROOF": proof})
    _write(output, f"{text}\n".encode(), as_json)
