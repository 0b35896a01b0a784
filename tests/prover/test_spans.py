"""What the spans of a proof tell: its phases, sums, copies and waits, on the CPU and on the stand-in for a driver."""

from __future__ import annotations

import gc
import pickle
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from circuits import cubic
from cuzk.backends.cuda import clock
from cuzk.curves import BLS12_381, BN254
from cuzk.errors import KernelError, UnsatisfiedError
from cuzk.prover.attempt import Attempt
from cuzk.prover.session import Prover, Result
from cuzk.timeline import Span
from cuzk.vectors import Scalars
from emulator.driver import FakeDriver, install
from reference_setup import key_from

SUMS = ["commit.a", "commit.b_g1", "commit.b_g2", "commit.l", "commit.h"]


def tree(spans: Iterable[Span]) -> list[str]:
    """ "outer > inner" of the spans of one track, in order."""
    found: list[str] = []
    open_spans: list[Span] = []
    for span in spans:
        while open_spans and open_spans[-1].end <= span.start:
            open_spans.pop()
        assert not open_spans or span.end <= open_spans[-1].end
        open_spans.append(span)
        found.append(" > ".join(s.name for s in open_spans))
    return found


def test_spans_of_a_proof_on_the_cpu() -> None:
    circuit = cubic(BN254)
    with Prover(key_from(circuit.matrices()), device="cpu", threads=1) as prover:
        before = prover.timeline.spans()
        result = prover.prove(circuit.witness())
        again = prover.prove(circuit.witness())
    assert [span.name for span in before] == ["load"]
    names = [name for name in tree(result.spans) if not name.endswith("wait")]
    assert list(dict.fromkeys(names)) == [
        "total", "total > check", "total > evaluate", "total > quotient", "total > commit",
        *(f"total > commit > {name}" for name in SUMS), "total > assemble", "total > verify",
    ]  # fmt: skip
    assert {span.track for span in result.spans} == {threading.current_thread().name}
    assert [{span.facts["proof"] for span in r.spans} for r in (result, again)] == [{1}, {2}]
    whole = next(span for span in result.spans if span.name == "total")
    assert 1e3 * whole.seconds == pytest.approx(result.report.total_ms)
    spent = sum(span.seconds for span in result.spans if span.name == "commit.b_g2")
    assert 1e3 * spent == pytest.approx(result.report.milliseconds["commit.b_g2"])


def test_a_proof_that_fails_leaves_its_spans_with_the_prover() -> None:
    circuit = cubic(BN254)
    wrong = Scalars.from_ints(BN254, [*circuit.witness().ints()[:-1], 5])
    with Prover(key_from(circuit.matrices()), device="cpu", threads=1) as prover:
        with pytest.raises(UnsatisfiedError):
            prover.prove(wrong)
        names = [span.name for span in prover.timeline.spans() if span.facts.get("proof") == 1]
    assert names[0] == "total"
    assert "evaluate" not in names


def test_spans_of_a_proof_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "RENEWED", 1e9)
    driver = install(FakeDriver(), monkeypatch)
    circuit = cubic(BLS12_381)
    witness = circuit.witness()
    with Prover(key_from(circuit.matrices()), device="cuda", threads=1) as prover:
        prover.prove(witness)
        driver.calls.clear()
        result = prover.prove(witness)
        calls, open_events = Counter(driver.calls), len(driver.events)
        assert prover._placement
        machine: Any = prover._placement.first.backend.machine  # type: ignore[attr-defined]
        off = machine.card.clock.origin().error + 1e-4
        prover.prove(witness)
        gc.collect()
        assert len(driver.events) == open_events  # of all that was recorded none is left
    whole = result.spans[0]
    assert whole.name == "total"
    assert all(whole.start - off <= s.start <= s.end <= whole.end + off for s in result.spans)
    assert {span.facts["proof"] for span in result.spans} == {2}

    on = {track: [s for s in result.spans if s.track == track] for track in
          {span.track for span in result.spans}}  # fmt: skip
    compute, upload = on.pop("cuda:0 compute"), on.pop("cuda:0 upload")
    check = on.pop("cuda:0 check")
    assert set(on) == {threading.current_thread().name, "staging for cuda:0"}
    host = on[threading.current_thread().name]

    sums = Counter(span.name for span in compute if span.name.startswith("sum"))
    assert sums == {"sum g1": 4, "sum g2": 1}
    assert {"product", "extend", "pointwise"} <= {span.name for span in compute}
    assert [s.name for s in compute if s.name.startswith("wait")] == ["wait for cuda:0 check"]
    assert [s.name for s in check] == ["wait for cuda:0 upload", "copy to host"]

    assert [(s.name, s.facts["bytes"], s.facts["how"]) for s in upload] == [
        ("copy to device", 32 * len(witness), "staged")
    ]
    stage = [s for s in on["staging for cuda:0"] if s.name == "stage"]
    assert [s.facts["bytes"] for s in stage] == [32 * len(witness)]
    results = [s for s in compute if s.name == "copy to host" and s.facts["how"] == "pinned"]
    assert len(results) == 5
    assert all(int(s.facts["bytes"]) % 192 == 0 for s in results)

    waits = Counter(span.name for span in host if span.name.startswith("wait for"))
    assert waits["wait for a result"] >= 5
    names = tree(s for s in host if s.name != "wait")
    assert all(f"total > commit > {name} > wait for a result" in names for name in SUMS)

    recorded = len(compute) + len(upload) + len(check)
    assert recorded <= 30
    assert (
        calls["cuEventRecord"] <= 2 * recorded + 20
    )  # those of the report, between streams, behind copies
    assert calls["cuEventQuery"] == recorded
    assert calls["cuEventElapsedTime"] == 2 * recorded + 3  # the report's


def test_a_failed_proof_holds_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, start = install(FakeDriver(), monkeypatch), Attempt.start

    def start_and_fail(attempt: Attempt) -> None:
        start(attempt)
        raise KernelError("cuda:0: with all of the work queued")

    circuit = cubic(BN254)
    with Prover(key_from(circuit.matrices()), device="cuda", threads=1) as prover:
        prover.prove(circuit.witness())
        gc.collect()
        there = len(driver.events)
        for _ in range(3):
            with monkeypatch.context() as patch:
                patch.setattr(Attempt, "start", start_and_fail)
                with pytest.raises(KernelError):
                    prover.prove(circuit.witness())
            result = prover.prove(circuit.witness())
            gc.collect()
            assert len(driver.events) == there
        assert {span.facts["proof"] for span in result.spans} == {7}
    assert prover.timeline.dropped == 0


def test_two_proofs_at_a_time_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    install(FakeDriver(), monkeypatch)
    circuit = cubic(BN254)
    results: dict[str, Result] = {}
    with Prover(key_from(circuit.matrices()), device="cuda", threads=1, lanes=2) as prover:

        def work(name: str) -> None:
            results[name] = prover.prove(circuit.witness())

        threads = [threading.Thread(target=work, args=(n,), name=n) for n in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {span.facts["proof"] for r in results.values() for span in r.spans} == {1, 2}
    for name, result in results.items():
        assert len({span.facts["proof"] for span in result.spans}) == 1
        tracks = {span.track for span in result.spans}
        assert {t for t in tracks if t in results} == {name}
        sums = Counter(span.name for span in result.spans if span.name.startswith("sum"))
        assert sums == {"sum g1": 4, "sum g2": 1}
        kept = pickle.loads(pickle.dumps(result))
        assert kept.spans == result.spans
    everything = prover.timeline.spans()
    assert Counter(s.name for s in everything if "proof" in s.facts) == Counter(
        s.name for r in results.values() for s in r.spans
    )
