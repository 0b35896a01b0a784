"""The commands one after the other, as in README, and what each prints."""

import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from files import files

import cuzk.cli.app as app
from circuits import cubic
from command import COMMAND, cuzk, environment, error_line
from cuzk import _core
from cuzk.cli.prove import _report_lines
from cuzk.curves import BLS12_381, CURVES, Curve
from cuzk.formats.bellman import write_params, write_vk
from cuzk.groth16 import BELLMAN
from cuzk.prover.session import Prover
from cuzk.setup import Secrets, insecure_setup
from until import until

PHASES = ["evaluate", "quotient", "commit", "assemble", "verify"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_from_circuit_to_verified_proof(
    curve: Curve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = files(curve.name)
    monkeypatch.chdir(tmp_path)
    assert app.run(["ptau", "new", curve.snarkjs_name, "3", "-o", "p.ptau"]) == 0
    assert app.run(["setup", str(made.r1cs), "p.ptau", "-o", "c.zkey"]) == 0
    capsys.readouterr()
    assert app.run(["prove", "c.zkey", str(made.wtns)]) == 0
    assert capsys.readouterr().out == ""
    assert app.run(["export", "vk", "c.zkey"]) == 0
    capsys.readouterr()
    for key in ("c.zkey", "verification_key.json"):
        assert app.run(["verify", key, "public.json", "proof.json"]) == 0
        assert capsys.readouterr() == ("valid\n", "")
    expected = ["c.zkey", "p.ptau", "proof.json", "public.json", "verification_key.json"]
    assert names(tmp_path) == expected
    assert json.loads((tmp_path / "public.json").read_bytes()) == ["35"]
    for name in ("proof.json", "public.json", "verification_key.json"):
        text = (tmp_path / name).read_bytes()
        assert b"\0" not in text
        assert text.endswith(b"\n")
        assert not text.endswith(b"\n\n")


def test_report(tmp_path: Path) -> None:
    made = files("bn254")
    options = ("-o", tmp_path / "p.json", "--public", tmp_path / "s.json")
    done = cuzk("prove", made.zkey, made.wtns, *options, "--threads", "1", "--json")
    assert done.status == 0
    assert done.err == ""
    answer = json.loads(done.out)
    assert answer["proof"] == str(tmp_path / "p.json")
    report = answer["report"]
    assert report["device"] == "cpu"
    assert report["reason"]
    assert report["threads"] == 1
    assert report["arithmetic"] in _core.paths()
    assert {*PHASES, "load", "total"} <= report["milliseconds"].keys()
    assert report["peak_bytes"] > 0
    assert re.fullmatch("[0-9a-f]{64}", report["key_digest"])
    assert re.fullmatch("[0-9a-f]{64}", report["circuit_digest"])
    assert report["versions"].keys() >= {"cuzk", "numpy", "python"}
    assert report["constraints"] == 2


def test_table_of_phases_goes_to_standard_error(tmp_path: Path) -> None:
    made = files("bn254")
    done = cuzk("prove", made.zkey, made.wtns, cwd=tmp_path)
    assert done.out == ""
    for phase in PHASES:
        assert re.search(rf"^ *{phase} +[0-9.]+$", done.err, re.MULTILINE), done.err
    assert "device cpu" in done.err
    assert "\x1b" not in done.err
    assert "\r" not in done.err


def test_trace(tmp_path: Path) -> None:
    made = files("bn254")
    options = ("--device", "cpu", "--threads", "1", "--trace", "out.json", "--json")
    done = cuzk("prove", made.zkey, made.wtns, *options, cwd=tmp_path)
    assert done.status == 0
    answer = json.loads(done.out)
    assert answer["trace"] == "out.json"
    assert names(tmp_path) == ["out.json", "proof.json", "public.json"]
    events = json.loads((tmp_path / "out.json").read_bytes())["traceEvents"]
    spans = {event["name"]: event for event in events if event["ph"] == "X"}
    assert {*PHASES, "load", "check", "total", "commit.b_g2"} <= spans.keys()
    assert {event["pid"] for event in events} == {0}
    spent = answer["report"]["milliseconds"]
    for name in ("load", "total", "quotient"):
        assert spans[name]["dur"] == pytest.approx(1000 * spent[name], abs=0.01)  # microseconds
    ended = spans["load"]["ts"] + spans["load"]["dur"]
    assert ended <= spans["total"]["ts"]


def test_no_trace_without_a_proof(tmp_path: Path) -> None:
    made = files("bn254")
    (tmp_path / "out.json").write_text("old")
    done = cuzk("prove", made.zkey, made.false_witness, "--trace", "out.json", cwd=tmp_path)
    error_line(done, 1)
    assert names(tmp_path) == ["out.json"]
    assert (tmp_path / "out.json").read_text() == "old"
    same = cuzk("prove", made.zkey, made.wtns, "--trace", "./proof.json", cwd=tmp_path)
    assert error_line(same) == "--trace proof.json: the same file as -o; name another one"
    nowhere = cuzk("prove", made.zkey, made.wtns, "--trace", "none/out.json", cwd=tmp_path)
    assert "none does not exist" in error_line(nowhere)
    assert names(tmp_path) == ["out.json"]


def test_bar_on_a_terminal(tmp_path: Path) -> None:
    made = files("bn254")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "prove", made.zkey, made.wtns],
        cwd=tmp_path,
        env=environment({"TERM": "xterm"}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux says EIO when the last writer is gone
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.communicate()[0] == b""
    assert process.returncode == 0
    assert b"\x1b[" in shown
    assert b"device cpu" in shown


def test_portable_arithmetic_proves(curve: Curve, tmp_path: Path) -> None:
    made = files(curve.name)
    done = cuzk(
        "prove",
        made.zkey,
        made.wtns,
        "--json",
        cwd=tmp_path,
        variables={"CUZK_CPU_PATH": "portable"},
    )
    assert json.loads(done.out)["report"]["arithmetic"] == "portable"
    done = cuzk("verify", made.vk, "public.json", "proof.json", cwd=tmp_path)
    assert done.out == "valid\n"


def test_a_false_proof(tmp_path: Path) -> None:
    made = files("bn254")
    other = tmp_path / "public.json"
    other.write_text('["36"]\n')
    done = cuzk("verify", made.vk, other, made.proof)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("not valid: proof.json: ")
    assert done.err.count("\n") == 1
    done = cuzk("verify", made.vk, other, made.proof, "--json")
    answer = json.loads(done.out)
    assert (done.status, answer["valid"], answer["error"]["code"]) == (1, False, "not-valid")


def test_proof_bytes_of_bellman(tmp_path: Path) -> None:
    made = files("bls12_381")
    assert cuzk("prove", made.zkey, made.wtns, "-o", "proof.bin", cwd=tmp_path).status == 0
    assert (tmp_path / "proof.bin").stat().st_size == 192
    assert cuzk("verify", made.vk, "public.json", "proof.bin", cwd=tmp_path).out == "valid\n"
    (tmp_path / "proof.bin").unlink()
    (tmp_path / "public.json").unlink()
    bn254 = files("bn254")
    done = cuzk("prove", bn254.zkey, bn254.wtns, "-o", "proof.bin", cwd=tmp_path)
    assert "BLS12-381" in error_line(done)
    assert names(tmp_path) == []


def test_key_of_bellman_with_its_circuit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = files("bls12_381")
    monkeypatch.chdir(tmp_path)
    secrets = Secrets(tau=7, alpha=11, beta=13, gamma=17, delta=19)
    key = insecure_setup(cubic(BLS12_381).matrices(), secrets, BELLMAN)
    write_params(Path("c.params"), key)
    write_vk(Path("c.vk"), key)
    inputs = ["prove", "c.params", str(made.wtns), "-o", "proof.bin"]
    assert app.run(inputs) == 2
    assert ".r1cs" in capsys.readouterr().err
    assert app.run([*inputs, "--circuit", str(made.r1cs)]) == 0
    capsys.readouterr()
    for vk in ("c.params", "c.vk"):
        assert app.run(["verify", vk, "public.json", "proof.bin"]) == 0
        assert capsys.readouterr().out == "valid\n"
    assert app.run(["export", "vk", "c.params"]) == 0
    assert app.run(["verify", "verification_key.json", "public.json", "proof.bin"]) == 0


def test_l2_digest_of_the_key_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """L2: with a digest a flipped byte is refused, both digests named; without, bellman's key is warned of."""
    made = files("bls12_381")
    monkeypatch.chdir(tmp_path)
    secrets = Secrets(tau=7, alpha=11, beta=13, gamma=17, delta=19)
    write_params(Path("c.params"), insecure_setup(cubic(BLS12_381).matrices(), secrets, BELLMAN))
    good = hashlib.blake2b(Path("c.params").read_bytes()).hexdigest()
    inputs = ["prove", "c.params", str(made.wtns), "--circuit", str(made.r1cs)]
    assert app.run(inputs) == 0
    assert "warning: c.params" in capsys.readouterr().err
    for digest in (good, good[:32], good.upper()):
        assert app.run([*inputs, "--key-digest", digest]) == 0
        assert "warning" not in capsys.readouterr().err
    for name in ("proof.json", "public.json"):
        Path(name).unlink()
    for key, rest in (("c.params", ["--circuit", str(made.r1cs)]), (str(made.zkey), [])):
        data = bytearray(Path(key).read_bytes())
        wanted = hashlib.blake2b(data).hexdigest()[:32]
        data[len(data) // 2] ^= 1
        Path("flipped").write_bytes(data)
        command = ["prove", "flipped", str(made.wtns), *rest, "--key-digest", wanted]
        assert app.run(command) == 2
        line = capsys.readouterr().err
        assert "flipped" in line
        assert wanted in line
        assert hashlib.blake2b(data).hexdigest()[:32] in line
    for nonsense in ("", "12", "g" * 32):
        assert app.run([*inputs, "--key-digest", nonsense]) == 2
        assert "hexadecimal digits" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.params", "flipped"]


@pytest.mark.parametrize(
    ("text", "valid"),
    [("[35]", True), ('["35"]', True), ('["0x23"]', True), ("[35.0]", None), ('["3.5e1"]', None)],
)
def test_ways_to_write_a_public_signal(text: str, valid: bool | None, tmp_path: Path) -> None:
    made = files("bn254")
    signals = tmp_path / "public.json"
    signals.write_text(text)
    done = cuzk("verify", made.vk, signals, made.proof)
    if valid:
        assert done.out == "valid\n"
    else:
        assert error_line(done).startswith("public.json")


def test_integers_above_2_53_are_exact(tmp_path: Path) -> None:
    made = files("bn254")
    signals = tmp_path / "public.json"
    signals.write_text(f"[{CURVES['bn254'].r + 35}]")
    line = error_line(cuzk("verify", made.vk, signals, made.proof))
    assert str(CURVES["bn254"].r + 35) in line


def test_export_writes_that_path_and_nothing_else(tmp_path: Path) -> None:
    made = files("bn254")
    inside = tmp_path / "inside"
    inside.mkdir()
    target = inside / "x.json"
    assert cuzk("export", "vk", made.zkey, "-o", target, cwd=tmp_path).status == 0
    assert target.read_bytes() == made.vk.read_bytes()
    assert cuzk("export", "solidity", made.vk, "-o", inside / "v.sol", cwd=tmp_path).status == 0
    assert "function verifyProof" in (inside / "v.sol").read_text()
    done = cuzk("export", "calldata", made.public, made.proof, cwd=tmp_path)
    assert done.out.startswith('["0x')
    assert names(inside) == ["v.sol", "x.json"]
    assert names(tmp_path) == ["inside"]


def test_proving_leaves_no_thread_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = files("bn254")
    monkeypatch.chdir(tmp_path)
    before = threading.active_count(), len(list(Path("/proc/self/task").iterdir()))
    assert app.run(["prove", str(made.zkey), str(made.wtns), "--threads", "3"]) == 0
    assert (threading.active_count(), len(list(Path("/proc/self/task").iterdir()))) == before
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no /proc to see threads in")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    target = tmp_path / "p.ptau"
    target.write_text("old")
    process = subprocess.Popen(
        [*COMMAND, "ptau", "new", "bls12_381", "15", "-o", target, "--threads", "2"],
        env=environment(),
        stderr=subprocess.PIPE,
    )
    tasks = Path(f"/proc/{process.pid}/task")
    until(lambda: len(list(tasks.iterdir())) > 1)  # the native code starts the second thread
    process.send_signal(number)
    err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130
    assert err == "cuzk: interrupted; nothing was written\n"
    assert names(tmp_path) == ["p.ptau"]
    assert target.read_text() == "old"


def test_notes_have_a_line_each() -> None:
    made = files("bn254")
    with Prover(made.zkey, device="cpu") as prover:
        report = prover.prove(made.wtns).report
    notes = ["witness: copied through buffers: pages could not be pinned (limit)", "key: streamed"]
    lines = _report_lines(replace(report, transfers=notes))
    assert [line for line in lines if line.startswith("note: ")] == [f"note: {n}" for n in notes]
    assert len(lines) == len(_report_lines(report)) + 2
