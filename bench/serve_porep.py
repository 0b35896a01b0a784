"""PoReps of sparse sectors through a real daemon, asked for as Curio does: under a key made here, verified here.

    python -m bench.serve_porep --size 32GiB --keys DIR --key-only --grow     the key alone, where there is none
    python -m bench.serve_porep --size 32GiB --keys DIR --device cuda:0 --sectors 3 --grow

Starts ``cuzk serve`` with the circuit, preloads its key by PreloadSRS, sends the C1s of all sectors at a time from a
client's process, and verifies every proof from public data: exit status 1 where one does not hold, or holds for
another seed. Prints times of each sector and partition, what the device did meanwhile by the spans, and memory: the
ledgers' next to what driver and kernel say. ``--grow``: see bench.whole_proof.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.grow_memory import grow_memory
from bench.serve_daemon import Daemon, machine
from bench.serve_load import load
from bench.serve_memory import Watch, peaks
from bench.serve_porep_report import show, use
from bench.serve_sectors import stated
from bench.sparse_sector import seal_of
from cuzk.errors import CuzkError
from cuzk.filecoin.key_sizes import proving_bytes, setup_bytes
from cuzk.filecoin.own_keys import own_key, write_key
from cuzk.filecoin.parameters import Parameters
from cuzk.filecoin.registered import RegisteredProof
from cuzk.filecoin.templates import store
from cuzk.filecoin.templates.catalogue import circuit_of
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.verify import check_proof
from cuzk.formats.bellman import read_vk
from cuzk.prover.devices import thread_count
from cuzk.server.client import Client
from cuzk.verifier import Verifier

MARGIN = 8 << 30  # beside what a key and a proof are counted to take
DEADLINE = 1800.0  # seconds, Curio's for a proof
SPANS = 20_000
Row = dict[str, Any]


def key(proof: RegisteredProof, circuit: CircuitShape, folder: Path, threads: int) -> Row:
    """Seconds to make and to write it; the .vk's path. Nothing is made where it is there."""
    files = Parameters(proof.kind, proof.shape)
    params, vk = (folder / f"{files.stem}.{suffix}" for suffix in ("params", "vk"))
    row: Row = {"key_bytes": 0, "made_s": 0.0, "written_s": 0.0}
    if not params.exists():
        folder.mkdir(parents=True, exist_ok=True)
        began = time.perf_counter()
        made = own_key(circuit, threads=threads)
        there = time.perf_counter()
        write_key(made, files, folder)
        row |= {"made_s": there - began, "written_s": time.perf_counter() - there}
    return row | {"key_bytes": params.stat().st_size, "vk": str(vk)}


def settings(circuit: str, keys: Path, options: Mapping[str, Any]) -> str:
    """The daemon's."""
    threads = f"threads = {options['threads']}\n" if options["threads"] else ""
    return (
        '[daemon]\nlisten = "127.0.0.1:0"\nstatus_listen = "127.0.0.1:0"\nstate = "state"\n'
        f'[devices]\nuse = ["{options["device"]}"]\n{threads}'
        f'[filecoin]\nparameters = "{keys.absolute()}"\ninsecure_keys = true\n'
        f'[[circuit]]\nid = "{circuit}"\nkind = "filecoin"\n'
    )


def serve(folder: Path, proof: RegisteredProof, keys: Path, options: Mapping[str, Any]) -> Row:
    """One daemon from its start to its end."""
    (folder / "cuzk.toml").write_text(settings(proof.circuit, keys, options))
    daemon = Daemon(folder)
    try:
        with Client(daemon.address()) as client, Watch(client) as watch:
            return _asked(daemon, client, watch, proof, options)
    except CuzkError as error:
        sys.exit(f"serve_porep: {error}\n{daemon.log()[-2000:]}")
    finally:
        with suppress(Exception):  # killed below
            daemon.stop()
        daemon.kill()


def _asked(
    daemon: Daemon, client: Client, watch: Watch, proof: RegisteredProof, options: Mapping[str, Any]
) -> Row:
    asked = {
        "address": daemon.address(),
        "size": proof.shape.name,
        "sectors": list(range(1, 1 + options["sectors"])),
        "threads": thread_count(options["threads"]),
    }
    with ThreadPoolExecutor(1) as pool:
        began = time.perf_counter()
        loading = pool.submit(client.preload, proof.circuit)
        with load("porep", **asked) as sender:
            _, milliseconds = loading.result()
            preload = {"load_ms": milliseconds, "ready_s": time.perf_counter() - began}
            loaded = watch.look()
            sectors = sender.work(DEADLINE)["sectors"]
    watch.look()
    with urllib.request.urlopen(f"{daemon.page()}/status?jobs=1000&spans={SPANS}") as answer:
        state = json.load(answer)
    return {
        **preload, "loaded": loaded, "sectors": sectors, "jobs": state["jobs"], "use": use(state),
        "ledger": watch.reserved, "limits": watch.limits, "driver": watch.taken, "peak": peaks(daemon), "log": daemon.log(),
    }  # fmt: skip


def verify(row: Row, proof: RegisteredProof, vk: str, threads: int) -> None:
    """Stops the benchmark where a sector has no valid proof, or one of another statement too."""
    verifier = Verifier(read_vk(Path(vk)), insecure_key=True, threads=threads)
    for sector in row["sectors"]:
        if sector["status"] != "COMPLETED":
            sys.exit(f"{sector['job']}: {sector['status']}: {sector['message']}")
        data, statement = bytes.fromhex(sector["proof"]), stated(proof, sector["public"])
        if reason := check_proof(verifier, statement, data):
            sys.exit(f"{sector['job']}: the proof does not verify: {reason}")
        if not check_proof(verifier, replace(statement, seed=bytes(31) + b"\1"), data):
            sys.exit(f"{sector['job']}: the proof verifies for another seed, too")


def run(options: argparse.Namespace) -> None:
    """All steps, each shown when it is done."""
    proof, threads = seal_of(options.size), thread_count(options.threads)
    files = Parameters(proof.kind, proof.shape)
    began = time.perf_counter()
    circuit = circuit_of(files, store.default_folder())
    print(
        f"{circuit.name}: templates made or found in {time.perf_counter() - began:.2f} s",
        flush=True,
    )
    if options.grow:
        there = (options.keys / f"{files.stem}.params").exists()
        needed = (
            proving_bytes(circuit) if there else max(setup_bytes(circuit), proving_bytes(circuit))
        )
        grow_memory(needed + MARGIN, threads)
        print(f"memory grown in {time.perf_counter() - began:.1f} s", flush=True)
    made = key(proof, circuit, options.keys, threads)
    print(
        f"key: {made['key_bytes'] / 1e9:.2f} GB, made in {made['made_s']:.1f} s, written in {made['written_s']:.1f} s",
        flush=True,
    )
    if options.key_only:
        return
    with tempfile.TemporaryDirectory(prefix="cuzk-bench-") as folder:
        row = serve(Path(folder), proof, options.keys, vars(options))
    verify(row, proof, made["vk"], threads)
    print(json.dumps(row) if options.json else "\n".join(show(row)), flush=True)
    print(machine())


def main() -> None:
    """Exit status 1 and one line where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="2KiB", help="of the sectors: 2KiB to 64GiB")
    parser.add_argument("--keys", type=Path, required=True, help="where the key is, or will be")
    parser.add_argument("--key-only", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--sectors", type=int, default=2)
    parser.add_argument("--grow", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.sectors < 1:
        parser.error("expected at least one sector")
    try:
        run(options)
    except CuzkError as error:
        raise SystemExit(f"serve_porep: {error}") from None


if __name__ == "__main__":
    main()
