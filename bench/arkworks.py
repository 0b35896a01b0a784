"""arkworks through the PyPI package groth16py: ``python arkworks.py KEY.zkey WITNESS.wtns PROOF PUBLIC``.

Run by the interpreter that has groth16py, so nothing of cuzk is imported here. Writes the proof as
snarkjs' JSON and prints the seconds of {"load", "prove", "prove_cpu"}. groth16py gives 256 bytes: big-endian A, B,
C in the order of Ethereum's precompile, where an element of Fp2 is c1, c0.
"""

import json
import sys
import time
from pathlib import Path

import groth16py  # type: ignore[import-not-found]


def public_signals(wtns: bytes, count: int) -> list[str]:
    """Wires 1 to ``count`` of a .wtns with one header of 32-byte values, as circom writes it."""
    values = wtns[76:]  # 12 of frame, 12 + 40 of header, 12 of the second section
    return [
        str(int.from_bytes(values[32 * i : 32 * i + 32], "little")) for i in range(1, count + 1)
    ]


def main() -> None:
    zkey, wtns, proof, public = sys.argv[1:]
    start = time.perf_counter()
    proving, verifying = groth16py.import_zkey(zkey)
    loaded = time.perf_counter()
    cpu = time.process_time()
    made = groth16py.prove_wtns(proving, wtns)
    proved, cpu = time.perf_counter(), time.process_time() - cpu
    v = [str(int.from_bytes(made[i : i + 32], "big")) for i in range(0, 256, 32)]
    points = {
        "pi_a": [v[0], v[1], "1"],
        "pi_b": [[v[3], v[2]], [v[5], v[4]], ["1", "0"]],
        "pi_c": [v[6], v[7], "1"],
        "protocol": "groth16",
        "curve": "bn128",
    }
    Path(proof).write_text(json.dumps(points))
    signals = public_signals(Path(wtns).read_bytes(), verifying.n_public)
    Path(public).write_text(json.dumps(signals))
    print(json.dumps({"load": loaded - start, "prove": proved - loaded, "prove_cpu": cpu}))


if __name__ == "__main__":
    main()
