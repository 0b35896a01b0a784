"""Whole proofs, as a person runs them, beside other provers.

    python -m bench.prove KEY.zkey WITNESS.wtns ...      given pairs of files
    python -m bench.prove --sizes 12-17                  circuits made here (bench.circuits)
    python -m bench.prove --peers WORK [CURVE/NAME ...]  WORK/out/CURVE/NAME.zkey, .wtns, .vkey.json

With --peers, snarkjs (WORK/node_modules/.bin/snarkjs: npm install snarkjs@0.7.6) and, on BN254, arkworks
(WORK/venv/bin/python with pip install groth16py==0.2.0) prove in the same run, in turns, and snarkjs verifies
every prover's last proof. Every process is pinned to as many processors as it has threads. Then one process
of cuzk (bench.phases, which proves itself right first) gives the times inside: load, proof, verification.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from bench.processes import Summary, alternate, processors, run

ARKWORKS = Path(__file__).with_name("arkworks.py")


@dataclass(frozen=True)
class Case:
    """Files of one circuit."""

    key: Path
    witness: Path
    verifying: Path

    @property
    def name(self) -> str:
        return f"{self.key.parent.name}/{self.key.stem}"


def case_of(key: Path, witness: Path | None = None) -> Case:
    for path in (key, witness or key.with_suffix(".wtns")):
        if not path.is_file():
            sys.exit(f"{path}: no such file")
    return Case(key, witness or key.with_suffix(".wtns"), key.with_suffix(".vkey.json"))


def commands(case: Case, work: Path | None, threads: int, out: Path) -> dict[str, list[str]]:
    """Who proves, and how; each writes NAME.proof.json and NAME.public.json in ``out``."""

    def outputs(name: str) -> list[str]:
        return [str(out / f"{name}.proof.json"), str(out / f"{name}.public.json")]

    files = [str(case.key), str(case.witness)]
    proof, public = outputs("cuzk")
    options = ["--public", public, "--threads", str(threads), "--json", "--insecure-key"]
    found = {"cuzk": [sys.executable, "-m", "cuzk", "prove", *files, "-o", proof, *options]}
    if work is None:
        return found
    snarkjs, python = work / "node_modules/.bin/snarkjs", work / "venv/bin/python"
    if not snarkjs.exists():
        sys.exit(f"{snarkjs}: expected snarkjs, found nothing: npm install --prefix {work} snarkjs")
    found["snarkjs"] = [str(snarkjs), "groth16", "prove", *files, *outputs("snarkjs")]
    if "bls" not in case.key.parent.name and python.exists():
        found["arkworks"] = [str(python), str(ARKWORKS), *files, *outputs("arkworks")]
    return found


def verified(case: Case, name: str, work: Path | None, out: Path) -> str:
    """Who accepted the proof: snarkjs where it is, else `cuzk verify`; stops where it was refused."""
    files = [str(out / f"{name}.public.json"), str(out / f"{name}.proof.json")]
    if work is None:
        command = [sys.executable, "-m", "cuzk", "verify", "--insecure-key", str(case.key), *files]
    else:
        snarkjs = str(work / "node_modules/.bin/snarkjs")
        command = [snarkjs, "groth16", "verify", str(case.verifying), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{case.name}: the proof of {name} was refused: {done.stdout}{done.stderr}")
    return "snarkjs" if work else "cuzk"


def inside(case: Case, threads: int, runs: int, log: IO[bytes]) -> dict[str, Any]:
    """bench.phases in a process of its own."""
    options = ["--threads", str(threads), "--runs", str(runs), "--json"]
    command = [sys.executable, "-m", "bench.phases", str(case.key), str(case.witness), *options]
    found: dict[str, Any] = json.loads(run(command, processors(threads), log).output)
    return found


def compare(case: Case, work: Path | None, threads: int, runs: int) -> dict[str, Any]:
    """One circuit at one number of threads."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        out = Path(folder)
        programs = commands(case, work, threads, out)
        results = alternate(programs, processors(threads), runs, log)
        return {
            "case": case.name,
            "threads": threads,
            "key_bytes": case.key.stat().st_size,
            "verified_by": {name: verified(case, name, work, out) for name in programs},
            "programs": {name: asdict(result) for name, result in results.items()},
            "reported": reported(results),
            "inside": inside(case, threads, runs, log),
        }


def reported(results: dict[str, Summary]) -> dict[str, Any]:
    """What cuzk and arkworks say of their last run: seconds to load the key and to prove."""
    found: dict[str, Any] = {}
    if "arkworks" in results:
        found["arkworks"] = json.loads(results["arkworks"].output)
    spent = json.loads(results["cuzk"].output)["report"]["milliseconds"]
    found["cuzk"] = {"load": spent["load"] / 1e3, "prove": spent["total"] / 1e3}
    return found


def show(row: dict[str, Any]) -> None:
    """A line per program, then what happens inside cuzk."""
    key, ours = row["key_bytes"], row["programs"]["cuzk"]
    phases = row["inside"]["phases"]
    domain, busy = row["inside"]["log_domain"], row["programs"]["cuzk"]["others"]
    print(
        f"{row['case']} 2^{domain}, {row['threads']} threads, key {key / 1e6:.1f} MB"
        f" (others: {busy:.2f} processors)"
    )
    for name, found in row["programs"].items():
        times = found["wall"] / ours["wall"], found["cpu"] / ours["cpu"]
        said = row["reported"].get(name, {})
        split = "  ".join(f"{part} {seconds:.3f}" for part, seconds in said.items())
        print(
            f"    {name:9}{found['wall']:8.3f} s{found['cpu']:8.3f} cpu s"
            f"{found['peak_bytes'] / 1e6:7.0f} MB = {found['peak_bytes'] / key:5.2f} keys"
            f"   x{times[0]:.2f} wall x{times[1]:.2f} cpu  {split}"
        )
    names = ("load", "witness", "evaluate", "quotient", "commit", "assemble", "prove", "verify")
    cells = [f"{n} {phases[n]['wall_ms']:.1f} ({phases[n]['cpu_ms']:.1f})" for n in names]
    print(f"    inside, wall (cpu) ms: {', '.join(cells)}", flush=True)


def compile_package() -> None:
    """As pip does: else a checkout with PYTHONDONTWRITEBYTECODE would compile itself at every start."""
    found = importlib.util.find_spec("cuzk")
    for folder in (found and found.submodule_search_locations) or []:
        compileall.compile_dir(folder, quiet=1)


def self_made(folder: Path, sizes: str, curve: str, kinds: str) -> list[Case]:
    """In a process of its own, so that this one stays small."""
    command = [sys.executable, "-m", "bench.circuits", str(folder)]
    options = ["--curve", curve, "--kinds", kinds, "--sizes", sizes]
    made = subprocess.run([*command, *options], stdout=subprocess.PIPE, text=True, check=True)
    return [case_of(Path(line)) for line in made.stdout.splitlines()]


def cases_of(options: argparse.Namespace, folder: Path) -> list[Case]:
    names: list[str] = options.files
    if options.peers:
        keys = [options.peers / "out" / f"{name}.zkey" for name in names]
        found = keys or (options.peers / "out").glob("*/*.zkey")
        return sorted(map(case_of, found), key=lambda c: c.key.stat().st_size)
    if not names:
        return self_made(folder, options.sizes, options.curve, options.kinds)
    if len(names) % 2:
        sys.exit("expected pairs of KEY and WITNESS")
    return [case_of(Path(k), Path(w)) for k, w in zip(names[::2], names[1::2], strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description="whole proofs, alone or beside other provers")
    parser.add_argument("files", nargs="*", help="KEY WITNESS ..., or CURVE/NAME ... of --peers")
    parser.add_argument("--peers", type=Path, metavar="WORK")
    parser.add_argument("--sizes", default="12-17", help="of circuits made here, log2 of the rows")
    parser.add_argument("--curve", default="bn254", choices=["bn254", "bls12_381"])
    parser.add_argument("--kinds", default="dense,bits")
    parser.add_argument("--threads", default=f"1,{min(2, len(os.sched_getaffinity(0)))}")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one object a line")
    options = parser.parse_args()
    if options.peers:
        options.peers = options.peers.resolve()
    compile_package()
    with tempfile.TemporaryDirectory() as folder:
        for case in cases_of(options, Path(folder)):
            for threads in map(int, options.threads.split(",")):
                row = compare(case, options.peers, threads, options.runs)
                if options.json:
                    print(json.dumps(row), flush=True)
                else:
                    show(row)


if __name__ == "__main__":
    main()
