"""``cuzk filecoin setup`` and ``cuzk filecoin circuit-info``: a circuit's own keys, and what is known of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from cuzk.cli.filecoin_files import circuit
from cuzk.cli.options import FILE, json_option, threads_option
from cuzk.cli.terminal import answer, progress, size, table
from cuzk.errors import FormatError
from cuzk.filecoin import key_sizes
from cuzk.filecoin.key_sizes import expect_memory, setup_bytes
from cuzk.filecoin.own_keys import expect_room, key_files, own_key, write_key
from cuzk.filecoin.parameters import DIGESTS, Parameters, parameters_named
from cuzk.filecoin.templates import store
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.prover.devices import thread_count


@click.command("setup", short_help="Make a key of your own, for tests.")
@click.argument("name", metavar="TYPE")
@click.option(
    "-o", "--output", type=FILE, required=True, metavar="DIR", help="The directory to write to."
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Say that a key whose proofs anyone can forge is meant: no other kind can be made here.",
)
@threads_option
@json_option
def setup_command(
    name: str, output: Path, insecure: bool, threads: int | None, as_json: bool
) -> None:
    """Make .params and .vk for the circuit of TYPE (window-2KiB, porep-2KiB, StackedDrg2KiBV1_1, ...), for tests.

    The files have Filecoin's names and form. delta = gamma, so that whoever reads them knows that anyone can forge
    their proofs: every command wants --insecure-key with them. DIR is made if it is not there.
    """
    parameters = parameters_named(name, "TYPE")
    if not insecure:
        raise FormatError(
            "--insecure: expected with setup, found none: keys that others can trust come from a ceremony "
            "(cuzk filecoin circuit-info TYPE says which files)"
        )
    key_files(parameters, output)
    with progress("setup", quiet=as_json):
        shape = circuit(parameters)
        expect_memory(setup_bytes(shape), shape, "making a key")
        _make_folder(output)
        expect_room(shape, output)
        key = own_key(shape, threads=thread_count(threads))
        files = write_key(key, parameters, output)
    sizes = {suffix: path.stat().st_size for suffix, path in files.items()}
    facts = {
        "circuit": parameters.circuit,
        "files": {suffix: str(path) for suffix, path in files.items()},
        "bytes": sizes,
        "insecure": True,
    }
    lines = [f"{path}: {size(sizes[suffix])}" for suffix, path in files.items()]
    lines.append(f"insecure key of {parameters.circuit}, for tests: anyone can forge its proofs")
    answer(facts, lines, as_json=as_json)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FormatError(f"-o {path}: expected a directory, found a file") from None
    except OSError as error:
        raise FormatError(f"-o {path}: cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK):
        raise FormatError(f"-o {path}: no permission to write here")


@click.command("circuit-info", short_help="A circuit's sizes and key files.")
@click.argument("name", metavar="TYPE")
@json_option
def circuit_info_command(name: str, as_json: bool) -> None:
    """Rows, wires, densities, key files and memory of the circuit of TYPE.

    TYPE is a circuit (porep-32GiB, winning-32GiB, window-32GiB, update-32GiB, any sector size) or a registered proof
    type (StackedDrg32GiBV1_1, seal-8).
    """
    parameters = parameters_named(name, "TYPE")
    facts = _facts(parameters, circuit(parameters))
    answer(facts, _lines(facts), as_json=as_json)


def _facts(parameters: Parameters, shape: CircuitShape) -> dict[str, Any]:
    params, vk = DIGESTS.get(parameters.circuit, (None, None))
    sizes = {"params": key_sizes.params_bytes(shape), "vk": key_sizes.vk_bytes(shape)}
    published = {"params": params, "vk": vk}
    return {
        "circuit": parameters.circuit,
        "sector_bytes": parameters.shape.sector_bytes,
        **shape.counts(),
        "rows": shape.constraints + shape.inputs,
        "domain": 1 << shape.log_domain,
        "units": shape.units,
        "templates": len(shape.templates),
        "digest": store.digest(shape),
        "identifier": parameters.identifier,
        "files": {
            suffix: {
                "name": f"{parameters.stem}.{suffix}",
                "bytes": sizes[suffix],
                "published_digest": published[suffix],
            }
            for suffix in sizes
        },
        "section_bytes": key_sizes.section_bytes(shape),
        "proving_bytes": key_sizes.proving_bytes(shape),
        "kept_in": str(folder) if (folder := store.default_folder()) else None,
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    counts = {
        "rows": f"{facts['rows']} ({facts['constraints']} constraints, {facts['inputs']} of inputs)",
        "domain": f"2^{facts['domain'].bit_length() - 1}",
        "public inputs, ONE included": facts["inputs"],
        "private variables": facts["aux"],
        "terms of A, B, C": f"{facts['nnz_a']}, {facts['nnz_b']}, {facts['nnz_c']}",
        "private variables in A, in B": f"{facts['a_aux']}, {facts['b_aux']}",
        "units, templates": f"{facts['units']}, {facts['templates']}",
    }
    lines = [f"{facts['circuit']}: sectors of {size(facts['sector_bytes'])}"]
    lines += ["  " + line for line in table([[name, str(value)] for name, value in counts.items()])]
    for file in facts["files"].values():
        digest = file["published_digest"] or "none published"
        lines.append(f"  {file['name']}")
        lines.append(f"    {file['bytes']} bytes ({size(file['bytes'])}), digest {digest}")
    sections = ", ".join(f"{name} {size(count)}" for name, count in facts["section_bytes"].items())
    lines.append(f"  points: {sections}")
    lines.append(f"  memory to prove: {size(facts['proving_bytes'])}")
    lines.append(f"  digest of the circuit {facts['digest']}, kept in {facts['kept_in']}")
    return lines
