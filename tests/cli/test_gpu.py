"""The command line on a machine with a GPU (an emulated one): its report, and every value of CUZK_NO_GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from files import files

from cuzk.cli import main
from cuzk.prover import devices
from emulator.driver import FakeDriver, install


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    files("bn254")  # made before, without it
    monkeypatch.setattr(devices, "OPENING_SECONDS", 0)
    return install(FakeDriver(), monkeypatch)


def prove(where: Path, device: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit status, the device that proved, the error."""
    given = files("bn254")
    with pytest.raises(SystemExit) as ended:
        main(["prove", str(given.zkey), str(given.wtns), "-o", str(where / "proof.json"), "--public",
              str(where / "public.json"), "--device", device, "--threads", "1", "--json"])  # fmt: skip
    output = json.loads(capsys.readouterr().out)
    if "error" in output:
        return int(ended.value.code or 0), "", output["error"]["message"]
    report = output["report"]
    kept_off = device == "auto" and report["device"] == "cpu"  # any proof is large enough here
    assert (report["reason"] == "CUZK_NO_GPU is set") == kept_off
    return int(ended.value.code or 0), report["device"], ""


def test_report(driver: FakeDriver, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = files("bn254")
    with pytest.raises(SystemExit) as ended:
        main(["prove", str(given.zkey), str(given.wtns), "-o", str(tmp_path / "proof.json"), "--public",
              str(tmp_path / "public.json"), "--device", "cuda", "--threads", "1"])  # fmt: skip
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert not ended.value.code
    assert driver.calls
    rows = {row[0]: row[1:] for row in lines}
    assert rows["phase"] == ["ms", "on", "the", "GPU"]
    assert {name: len(rows[name]) for name in ("check", "evaluate", "quotient", "commit", "a", "assemble")} == {
        "check": 1, "evaluate": 2, "quotient": 2, "commit": 2, "a": 1, "assemble": 1,
    }  # fmt: skip
    assert lines[-2][:4] == ["device", "cuda:0", "(asked", "for),"]
    assert lines[-1][-6:-3] == ["GPU", "memory", "at"]


@pytest.mark.parametrize("value", [None, "", "0", "false", "False", "1", "true", "TRUE"])
def test_g10_variable(
    value: str | None,
    driver: FakeDriver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("CUZK_NO_GPU", raising=False)
    if value is not None:
        monkeypatch.setenv("CUZK_NO_GPU", value)
    forbidden = (value or "").lower() in ("1", "true")
    assert prove(tmp_path, "auto", capsys) == (0, "cpu" if forbidden else "cuda:0", "")
    assert bool(driver.calls) != forbidden
    status, device, error = prove(tmp_path, "cuda", capsys)
    if forbidden:
        assert (status, device) == (3, "")
        assert "CUZK_NO_GPU forbids cuda" in error
    else:
        assert (status, device) == (0, "cuda:0")
    assert prove(tmp_path, "cpu", capsys) == (0, "cpu", "")


def test_g10_nonsense(
    driver: FakeDriver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CUZK_NO_GPU", "maybe")
    status, _, error = prove(tmp_path, "auto", capsys)
    assert (status, error) == (
        2,
        "CUZK_NO_GPU: expected 0, 1, false, true or nothing, found 'maybe'",
    )
    assert not driver.calls
