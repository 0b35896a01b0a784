"""Sums whose points are in host memory against resident ones, in one process, as JSON lines.

    python -m bench.streamed --curve bls12_381 --group g1 --sizes 20,22,24 --sweep --budget 200
    python -m bench.streamed --chain 4 --sizes 22,24    # a sum's share of four that are queued one behind the other

Every line is one way of making one sum: ``wall_ms`` and ``device_ms`` are medians, ``over`` the part of the
resident sum's wall time that it takes longer, ``batches`` how many there were, ``waits_ms`` how long the compute stream
had nothing to do between the first span of a sum and its last. --sweep adds first batches, growths, slots, sorts
ahead and what a batch's rounds leave, one changed at a time. What the budget (seconds) has no time for is left out,
the sweep last.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any

from bench.timing import sizes
from cuzk.backends import Backend
from cuzk.backends.cuda.batches import Sizes
from cuzk.backends.cuda.streamed import Streaming
from cuzk.bench.inputs import distinct, known_points, scalars
from cuzk.bench.logarithms import dot
from cuzk.bench.msm import MsmCase
from cuzk.curves import curve_named
from cuzk.errors import KernelError
from cuzk.prover.devices import open_device, thread_count
from cuzk.setup.scalars import multiple

PLAIN = Streaming()


def ways(*, sweep: bool) -> Iterator[tuple[str, str, Streaming]]:
    """Name, where the points are, how they are streamed."""
    yield "resident", "resident", PLAIN
    yield "kept", "pinned", PLAIN
    yield "kept", "pageable", PLAIN
    yield "kept in buckets", "pinned", replace(PLAIN, left=None)
    yield "deferred", "pinned", Streaming("deferred")
    yield "each", "pinned", Streaming("each")
    yield "each", "pageable", Streaming("each")
    if not sweep:
        return
    for first in (0.08, 0.11, 0.2, 0.3):
        yield f"first {first}", "pinned", replace(PLAIN, sizes=Sizes(first))
    for growth in (1.5, 3.0, 4.0):
        yield f"growth {growth}", "pinned", replace(PLAIN, sizes=Sizes(growth=growth))
    for first, growth in ((1 / 7, 2.0), (1 / 10, 1.8), (1 / 5, 1.4), (1 / 4, 1.0)):
        sizes = Sizes(first, growth)
        yield f"first {first:.2f} growth {growth}", "pageable", replace(PLAIN, sizes=sizes)
    for left in (1.5, 3.0, 5.0):
        yield f"left {left}", "pinned", replace(PLAIN, left=left)
    yield "nothing follows", "pinned", replace(PLAIN, follow=False)
    yield "three slots", "pinned", replace(PLAIN, slots=3)
    for ahead in (0, 1):
        yield f"ahead {ahead}", "pinned", replace(PLAIN, ahead=ahead)


def waits(backend: Backend, since: float) -> tuple[int, float]:
    """Batches of the last sum, and milliseconds between its spans on the compute stream."""
    track = backend.machine.track  # type: ignore[attr-defined]
    spans = [s for s in backend.timeline.spans(since) if s.track == track and "batch" in s.facts]
    starts = [i for i, s in enumerate(spans) if (s.name, s.facts["batch"]) == ("digits", 0)]
    last = spans[starts[-1] :] if starts else []
    count = len({span.facts["batch"] for span in last if span.name == "batch"})
    gaps = sum(max(0.0, b.start - a.end) for a, b in pairwise(last))
    return count, round(1e3 * gaps, 3)


def line(case: MsmCase, backend: Backend, reps: int, threads: int) -> dict[str, Any]:
    """One measured way."""
    since = time.perf_counter()
    row = case.run(backend, reps, threads)[0].as_dict()
    count, gaps = waits(backend, since)
    return {
        "wall_ms": row["wall_ms"]["median"],
        "device_ms": row["device_ms"]["median"],
        "batches": count,
        "waits_ms": gaps,
    }


def chain(case: MsmCase, backend: Backend, count: int, reps: int, threads: int) -> dict[str, Any]:
    """Milliseconds a sum, of so many that are started before the first is waited for; all must be right."""
    backend, curve, n = case.placed(backend, threads), backend.curve, 1 << case.log_n
    known = known_points(curve, case.group, distinct(n), threads)
    factors = scalars(curve, case.kind, n, 3, threads)
    log = dot(factors, known.logarithms, 0, threads)
    expected = multiple(curve, case.group, log).words.tobytes()
    bases, samples = backend.put(known.repeated(n, threads)), []
    for _ in range(reps + 1):  # the first warms up
        given = [backend.put(factors) for _ in range(count)]  # a vector's digits are sorted once
        start = time.perf_counter()
        waiting = [backend.start_msm(bases, each) for each in given]
        found = [wait() for wait in waiting]
        samples.append(1e3 * (time.perf_counter() - start) / count)
        if any(each.words.tobytes() != expected for each in found):
            raise KernelError(
                f"{backend.name}: chain: expected (sum s_i k_i) G, found another point"
            )
    return {"chain": count, "wall_ms": round(median(samples[1:]), 3)}


def main() -> None:
    """Small sizes first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curve", default="bls12_381")
    parser.add_argument("--group", default="g1")
    parser.add_argument("--sizes", type=sizes, default=[20, 22, 24])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--budget", type=float, default=1e9)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--chain", type=int, default=0)
    options = parser.parse_args()
    end, threads = time.monotonic() + options.budget, thread_count(None)
    backend, _ = open_device(options.device, curve_named(options.curve), threads)
    for log_n in options.sizes:
        resident = 0.0
        for name, points, how in ways(sweep=options.sweep):
            if time.monotonic() > end:
                return
            case = MsmCase(options.group, log_n, "random", points, how.form, how)
            if options.chain:
                found = chain(case, backend, options.chain, options.reps, threads)
            else:
                found = line(case, backend, options.reps, threads)
            resident = resident or found["wall_ms"]
            over = round(found["wall_ms"] / resident - 1, 4)
            what = {"log_n": log_n, "way": name, "points": points, **found, "over": over}
            print(json.dumps({"curve": options.curve, "group": options.group, **what}), flush=True)


if __name__ == "__main__":
    main()
