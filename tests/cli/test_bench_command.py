"""``cuzk bench``: tiny runs of every case, as a person and as a script see them."""

import json

import pytest

from command import cuzk, error_line


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (["msm", "--log", "3..4", "--group", "both"], 4),
        (["msm", "--log", "5", "--scalars", "witness"], 1),
        (["ntt", "--log", "2,4", "--coset"], 4),
        (["prove", "--log", "4", "--recipe", "bellman"], 1),
    ],
)
def test_as_json(arguments: list[str], rows: int) -> None:
    command = ["bench", *arguments, "--curve", "bls12-381", "--threads", "1", "--reps", "1"]
    done = cuzk(*command, "--device", "cpu", "--json")
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)
    assert {"cpu", "arithmetic", "date", "threads"} <= set(found["place"])
    assert len(found["rows"]) == rows
    for row in found["rows"]:
        assert row["bench"] == arguments[0]
        assert row["curve"] == "bls12_381"
        assert row["device"] == "cpu"
        assert row["processor_ms"]["median"] > 0
        assert row["checked"]


def test_as_lines() -> None:
    command = ["bench", "prove", "--log", "5", "--verify-to", "4", "--curve", "bn254"]
    done = cuzk(*command, "--reps", "1", "--threads", "1")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[1].split()[:3] == ["milliseconds", "n", "processor"]
    assert lines[2].startswith("bn254 snarkjs ")
    assert "commit.b_g2" in lines[3]
    assert lines[-1].endswith("the key is synthetic and its proofs verify nowhere")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["msm", "--log", "5..4"], "expected sizes like 16..20"),
        (["msm", "--log", "x"], "expected sizes like 16..20"),
        (["ntt", "--log", "29"], "expected at most 28"),
        (["prove", "--log", "3"], "--log: expected 4 at least, found 3"),
        (["msm", "--curve", "bn999"], "--curve: expected bn128 or bls12381"),
        (["msm", "--scalars", "few"], "'few' is not one of"),
        (["msm", "--device", "tpu"], "device: expected auto, cpu, cuda"),
        (["nothing"], "No such command 'nothing'"),
    ],
)
def test_refusals(arguments: list[str], message: str) -> None:
    assert message in error_line(cuzk("bench", *arguments))


def test_stages_need_a_gpu() -> None:
    done = cuzk("bench", "ntt", "--log", "2", "--device", "cpu", "--stages", "--json")
    assert done.status == 3
    assert "stages: expected a GPU, found cpu" in json.loads(done.out)["error"]["message"]


def test_a_gpu_that_is_forbidden() -> None:
    done = cuzk("bench", "msm", "--device", "cuda", variables={"CUZK_NO_GPU": "1"})
    assert error_line(done, 3).startswith("--device: CUZK_NO_GPU forbids cuda")
