"""What circuits are said to take, beside what they take."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from files import files
from own_files import circuit, own_files
from served import catalogue_of, circom, filecoin, witness_request

from circuits import chain
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.transfers import Transfers
from cuzk.catalogue.filecoin import TERMS_PER_WIRE
from cuzk.catalogue.key_facts import KeyFacts, KeyOnDisk
from cuzk.catalogue.needs import (
    CONVERTING_BYTES,
    PINNED_BYTES,
    WIRES_A_BYTE,
    WORKING_BYTES,
    ahead,
    estimate,
    measured,
    tier,
)
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.filecoin.key_sizes import params_bytes, proving_bytes
from cuzk.filecoin.parameters import DIGESTS
from cuzk.filecoin.registered import Kind
from cuzk.filecoin.templates.matrices import matrices
from cuzk.filecoin.witness.system import constraint_system
from cuzk.formats.bellman import write_params
from cuzk.formats.iden3.r1cs import write_r1cs
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.groth16 import BELLMAN, SNARKJS
from cuzk.prover import session
from cuzk.prover.plan import PROCESS_BYTES, sum_bytes
from cuzk.prover.standing import Standing
from cuzk.setup import Secrets, insecure_setup
from emulator import EmulatedMachine

SOURCE = Path(session.__file__).resolve().parents[2]
GIB = 1 << 30
CODE = """
import json, pickle, sys
from cuzk.prover.report import peak_bytes
catalogue, request = pickle.loads(sys.stdin.buffer.read())
before = peak_bytes()
estimated = catalogue.needs("c", "cpu")
opened = catalogue.open("c", "cpu", 2, 1)
real = opened.needs()
for _ in range(5):
    prepared = opened.prepare(request)
    opened.finish(prepared, [opened.prove(prepared, 0)])
opened.close()
print(json.dumps([dict(estimated.key), dict(estimated.partition), dict(real.key), dict(real.partition),
                  before, peak_bytes()]))
"""


def made(folder: Path, curve: Curve, recipe: str, log_n: int) -> tuple[Path, Path, Path]:
    """Key, circuit and witness of 2^log_n rows."""
    given = chain(curve, (1 << log_n) - 2)
    matrices = given.matrices()
    key = insecure_setup(matrices, Secrets(tau=77, alpha=3, beta=5, delta=7), recipe, threads=2)
    write_r1cs(folder / "c.r1cs", matrices)
    write_wtns(folder / "w.wtns", given.witness())
    (write_zkey if recipe == SNARKJS else write_params)(folder / "key", key)
    return folder / "key", folder / "c.r1cs", folder / "w.wtns"


@pytest.mark.parametrize(
    ("curve_", "recipe", "beside", "log_n"),
    [
        (BN254, SNARKJS, False, 12),
        (BLS12_381, BELLMAN, True, 12),
        pytest.param(BN254, SNARKJS, True, 16, marks=pytest.mark.slow),
        pytest.param(BLS12_381, SNARKJS, False, 16, marks=pytest.mark.slow),
        pytest.param(BLS12_381, BELLMAN, True, 16, marks=pytest.mark.slow),
    ],
)
def test_a_process_stays_within_the_estimate(
    tmp_path: Path, curve_: Curve, recipe: str, beside: bool, log_n: int
) -> None:
    """Of a worker that has nothing loaded before."""
    key, r1cs, witness = made(tmp_path, curve_, recipe, log_n)
    settings = circom("c", key, circuit=r1cs if beside else None, insecure_key=True)
    given = pickle.dumps((catalogue_of(settings), witness_request("c", witness)))
    run = subprocess.run(
        [sys.executable, "-c", CODE],
        input=given, capture_output=True, check=True, env={"PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    *needs, before, peak = json.loads(run.stdout)
    estimated, real = (needs[i]["host"] + needs[i + 1]["host"] for i in (0, 2))
    taken = peak - before
    assert taken < estimated, f"estimated {estimated}, taken {taken}"
    coming = min(CONVERTING_BYTES, key.stat().st_size) if recipe == BELLMAN else 0
    assert taken < real + coming, f"said {real}, taken {taken}"  # what is on its way in goes
    assert real <= estimated < 1.5 * real + coming


@pytest.mark.parametrize("beside", [False, True])
def test_from_sizes_and_from_a_loaded_key(curve: Curve, beside: bool) -> None:
    made_files = files(curve.name)
    settings = circom("c", made_files.zkey, circuit=made_files.r1cs if beside else None)
    catalogue = catalogue_of(settings)
    estimated = catalogue.needs("c", "cpu")
    opened = catalogue.open("c", "cpu", 1, 1)
    real = opened.needs()
    opened.close()
    assert estimated.key.keys() == estimated.partition.keys() == {"host"}
    assert real.key["host"] <= estimated.key["host"] <= real.key["host"] + 1000
    assert real.partition == estimated.partition
    vectors = 32 * (16 + 4)  # four over a domain of 4, four wires
    assert real.partition["host"] == vectors + WORKING_BYTES


def test_terms_of_all_circuits() -> None:
    """Of every published size; a PoRep's recording takes seconds, so that of 32 GiB by the counts published of it.

    Of the matrices written out none has more than four of five terms; places take no more than is said.
    """
    for name in DIGESTS:
        kind = Kind(name.partition("-")[0])
        if kind is Kind.POREP:
            continue
        shape = circuit(name)
        wires = shape.inputs + shape.aux
        assert 0.97 < sum(shape.terms) / (TERMS_PER_WIRE[kind] * wires) <= 1, name
        assert max(shape.terms) < 0.8 * sum(shape.terms), name
        assert constraint_system(shape).a.nbytes <= wires // WIRES_A_BYTE, name
    porep_terms, porep_wires = 309_405_051 + 130_327_340 + 282_656_500, 328 + 130_169_893
    assert 0.97 < porep_terms / (TERMS_PER_WIRE[Kind.POREP] * porep_wires) <= 1


def test_a_filecoin_circuit() -> None:
    """From the counts of its key's file: as much as what is known of the circuit says, within 3 %.

    A key as small as this one is converted in one piece; its points alone stay.
    """
    settings = filecoin("window-2KiB", insecure_key=True)
    catalogue = catalogue_of(settings, parameters=own_files("window-2KiB"))
    estimated = catalogue.needs("window-2KiB", "cpu")
    shape = circuit("window-2KiB")
    vectors = proving_bytes(shape) - PROCESS_BYTES - params_bytes(shape) - sum_bytes(15)
    assert estimated.partition["host"] == vectors + WORKING_BYTES
    key = 2 * params_bytes(shape) + constraint_system(shape).a.nbytes
    assert key < estimated.key["host"] < 1.03 * key
    on_gpu = catalogue.needs("window-2KiB", "cuda:0")
    written = max(m.nbytes for m in (matrices(shape).a, matrices(shape).b, matrices(shape).c) if m)
    assert written < on_gpu.key["host"] - estimated.key["host"] < 1.5 * written
    opened = catalogue.open("window-2KiB", "cpu", 2, None)
    real = opened.needs()
    opened.close()
    stays = estimated.key["host"] - params_bytes(shape)
    assert 0.97 * stays < real.key["host"] <= stays
    assert real.partition == estimated.partition


def test_on_a_gpu(tmp_path: Path) -> None:
    """The key's points and matrices stay there; a proof's vectors and sums come and go."""
    key, _, _ = made(tmp_path, BLS12_381, SNARKJS, 12)
    facts = KeyOnDisk.at(key, insecure=True).facts()
    on_gpu, on_cpu = estimate(facts, "cuda:0"), estimate(facts, "cpu")
    assert on_gpu.key["host"] == on_cpu.key["host"]
    assert on_gpu.key.keys() == {"host", "cuda:0"}
    assert on_gpu.partition.keys() == {"host", "pinned", "cuda:0"}
    points = sum(n * (96 if group == "g1" else 192) for group, n in facts.queries)
    assert points < on_gpu.key["cuda:0"] < 2 * points
    vectors = 32 * (3 << 12)
    assert on_gpu.partition["cuda:0"] > vectors
    assert on_gpu.partition["host"] < on_cpu.partition["host"]


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_gpu_that_is_emulated(curve: Curve, lanes: int) -> None:
    """The plan's bytes, within the estimate, which knows no processors."""
    key = files(curve.name).zkey
    backend = CudaBackend(curve, EmulatedMachine())
    estimated = estimate(KeyOnDisk.at(key).facts(), "cuda:0")
    with session.Prover(key, device=backend, lanes=lanes) as prover:
        standing = prover.standing
        made_here = prover.prove(files(curve.name).wtns).report
        found = measured(standing)
        after = prover.standing
    name = backend.name
    assert standing.lanes == lanes
    assert after == standing
    assert 0 < made_here.device_resident_bytes <= found.key[name] <= estimated.key["cuda:0"]
    assert 0 < found.partition[name] <= estimated.partition["cuda:0"]
    assert found.key[name] + lanes * found.partition[name] <= made_here.device_planned_bytes
    assert tier(standing) == "hot"


def test_points_that_do_not_fit_make_a_key_warm(curve: Curve) -> None:
    backend = CudaBackend(curve, EmulatedMachine(), transfers=Transfers(points="host"))
    with session.Prover(files(curve.name).zkey, device=backend) as prover:
        standing = prover.standing
        points = sum(n * 8 * curve.point_words(group) for group, n in KeyOnDisk.at(files(curve.name).zkey).facts().queries)  # fmt: skip
    assert standing.streamed == points
    assert tier(standing) == "warm"


def test_what_a_prover_says_of_a_gpu() -> None:
    standing = Standing("cuda:1", "a GPU", 2, 10, 20, 30, 40, 0)
    found = measured(standing)
    assert dict(found.key) == {"host": 10, "cuda:1": 30}
    assert dict(found.partition) == {
        "host": 20 + WORKING_BYTES,
        "pinned": 20 + PINNED_BYTES,
        "cuda:1": 40,
    }
    assert tier(standing) == "hot"
    streamed = Standing("cuda:1", "a GPU", 2, 10, 20, 30, 40, 50)
    assert tier(streamed) == "warm"
    assert measured(streamed).key["pinned"] == 50


def test_a_witness_is_staged_on_a_gpu_with_one_lane_alone() -> None:
    one = Standing("cuda:1", "a GPU", 1, 10, 20, 30, 40, 0)
    assert ahead(one) == {"host": 20}
    assert ahead(replace(one, lanes=2)) == {}
    assert ahead(replace(one, device="cpu")) == {}


def test_the_largest_key_on_the_largest_card() -> None:
    """32 GiB PoRep, by the published counts: 44 GiB of points, with which a proof fits in 139 GiB."""
    aux, inputs = 130_169_893, 328
    a, b, h = inputs + 129_753_292, 1 + 33_112_281, (1 << 27) - 1
    queries = (("g1", a), ("g1", b), ("g2", b), ("g1", aux), ("g1", h))
    size = sum(n * (96 if group == "g1" else 192) for group, n in queries)
    facts = KeyFacts(BLS12_381, "porep", aux + inputs, 27, queries, size, True, circuit_terms=722_388_891)  # fmt: skip
    needs = estimate(facts, "cuda:0")
    assert 44 * GIB < needs.key["cuda:0"] < 66 * GIB  # matrices, maps and tables with the points
    assert needs.key["cuda:0"] + needs.partition["cuda:0"] < 139 * GIB
