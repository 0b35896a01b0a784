"""The table of a GPU's figures, filled on the CPU: which cases run, what a cell shows, what is left out."""

import json
import sys
from pathlib import Path

import pytest

from bench import floors, gpu_table
from bench.gpu_table import LINES, SIZES, Cell, Table, main, reps, short, wanted
from cuzk.backends import Backend
from cuzk.bench.msm import MsmCase
from cuzk.bench.rows import Row
from cuzk.curves import BLS12_381, BN254
from cuzk.errors import OutOfMemory


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_table", "--device", "cpu", *options])
    main()


def test_a_tiny_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu_table, "reps", lambda _: 1)
    run(monkeypatch, "--log", "5", "--json", str(tmp_path / "table.json"))
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("| device, ms | 2^5 |") == lines.count("| wall, ms | 2^5 |") == 1
    for line in LINES:
        assert sum(text.startswith(f"| {line.title} | ") for text in lines) == 3
    found = json.loads((tmp_path / "table.json").read_text())
    assert [row["bench"] for row in found["rows"]] == ["msm"] * 3 + ["ntt"] * 2 + ["prove"] * 2
    assert found["left_out"] == {}


def test_the_cases_with_a_target() -> None:
    """Three lines of MSM, one of NTT, two of proofs."""
    cases = list(wanted(list(SIZES), ["msm", "ntt", "prove"]))
    assert [log_n for log_n, _ in cases] == sorted(log_n for log_n, _ in cases)
    counts = {line: sum(other is line for _, other in cases) for line in LINES}
    assert list(counts.values()) == [6, 6, 5, 4, 4, 4]
    assert [line.curve for _, line in wanted([26], ["msm"])] == ["bls12_381", "bn254"]
    assert all(reps(log_n) >= 3 for log_n in range(30))


def test_a_cell_has_the_target_and_the_peers_figure() -> None:
    table = Table()
    table.cells[LINES[0], 20] = Cell(8.7654, 9.1)
    table.cells[LINES[0], 26] = Cell(311.2, 312.9)
    assert list(table.markdown("device", [20, 22, 26])) == [
        "| device, ms | 2^20 | 2^22 | 2^26 |",
        "|---|---|---|---|",
        "| MSM G1 BLS12-381 | 8.77 / 9 (21.6) |  | 311 / 320 (566) |",
    ]
    assert list(table.markdown("wall", [20]))[2] == "| MSM G1 BLS12-381 | 9.1 |"
    assert [short(x) for x in (0.19, 3.3, 99.94, 565.7)] == ["0.19", "3.3", "99.9", "566"]


def test_floors() -> None:
    """By hand: 13 windows of 20 bits at 2^24, 16 of 16 at 2^20; passes are not what bounds a transform."""
    assert floors.additions(BLS12_381, "g1") == (2658, 3834)
    assert floors.additions(BN254, "g2") == (3152, 4464)
    expected = (2**24 * 13 * 2658 + 2 * 13 * 2**19 * 3834) / 8.34e9
    assert floors.msm(BLS12_381, "g1", 24) == pytest.approx(expected)
    expected = (2**20 * 16 * 1196 + 2 * 16 * 2**15 * 1724) / 8.34e9
    assert floors.msm(BN254, "g1", 20) == pytest.approx(expected)
    assert floors.ntt(BLS12_381, 24) == pytest.approx(2**24 * 11.125 * 93 / 8.34e9)
    difference = floors.proof(22, 6) - floors.proof(22, 4)
    assert difference == pytest.approx(2 * floors.ntt(BLS12_381, 22))


def test_what_the_budget_leaves_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first case takes a scripted 10 s, so that one of four times its size does not fit into 45 s."""
    now = [0.0]

    def measure(_line: object, backend: Backend, _log_n: int, threads: int) -> list[Row]:
        now[0] += 10.0
        return MsmCase("g1", 3).run(backend, 1, threads)

    monkeypatch.setattr(gpu_table.Line, "measure", measure)
    monkeypatch.setattr("bench.gpu_table.time.monotonic", lambda: now[0])
    run(monkeypatch, "--log", "10,12", "--lines", "ntt", "--budget", "45")
    assert "NTT BLS12-381 Fr 2^12: left out: about 40 s, 35 s were left" in capsys.readouterr().out


def test_a_failing_case_is_told_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_memory(*_: object) -> Row:
        raise OutOfMemory("cuda:0: asked for 12 bytes, 3 are free")

    monkeypatch.setattr("cuzk.bench.msm.MsmCase.run", no_memory)
    with pytest.raises(SystemExit, match="some cases failed"):
        run(monkeypatch, "--log", "4", "--lines", "msm,ntt")
    out = capsys.readouterr().out
    assert "MSM G1 BN254 2^4: OutOfMemory: cuda:0: asked for 12 bytes, 3 are free" in out
    assert "| NTT BLS12-381 Fr | " in out
