"""What the timeline costs: microseconds of the host for a span of a thread and for one of a device's stream.

    python -m bench.spans [--device cuda] [--count 2000] [--json]

"record" is two marks and the note of them on the way, "read" what is left when a proof ends; "stream" is what two
marks in a row take of the stream itself. The best of five.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from time import perf_counter

from cuzk.backends.cuda.machine import Machine
from cuzk.timeline import Timeline

ROUNDS = 5


def host(count: int) -> float:
    """Of a thread, about a proof."""
    timeline = Timeline()

    def record() -> None:
        for _ in range(count):
            with timeline.span("x", bytes=1):
                pass

    with timeline.about(proof=1):
        return best(record, count)


def device(machine: Machine, count: int) -> dict[str, float]:
    """Of a stream: recorded, read, and on the stream."""
    record, read, stream = [], [], []
    for _ in range(ROUNDS):
        timeline = machine.timeline = Timeline(kept=count, pending=count + 1)
        with timeline.about(proof=1) as found:
            first, start = machine.mark(), perf_counter()
            for _ in range(count):
                machine.record("x", machine.mark(), machine.mark(), bytes=1)
            record.append(perf_counter() - start)
            last = machine.mark()
            machine.finish()
            found.clear()
            start = perf_counter()
        read.append(perf_counter() - start)
        if len(found) != count:
            raise SystemExit(f"expected {count} spans, found {len(found)}")
        stream.append(1e-3 * machine.milliseconds(first, last))
    times = {"record": record, "read": read, "stream": stream}
    return {name: 1e6 * min(found) / count for name, found in times.items()}


def best(work: Callable[[], None], count: int) -> float:
    """Microseconds of one of ``count``."""
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return 1e6 * min(times) / count


def main() -> None:
    """Print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {"host_us": host(options.count)}
    if options.device == "cuda":
        from cuzk.backends.cuda.cuda_machine import CudaMachine
        from cuzk.backends.cuda.device import open_card

        machine = CudaMachine(open_card(0))
        found |= {f"{name}_us": us for name, us in device(machine, options.count).items()}
        found["clock_error_us"] = 1e6 * machine.card.clock.origin().error
    for name, value in found.items():
        print(json.dumps({name: round(value, 3)}) if options.json else f"{name:16} {value:8.2f}")


if __name__ == "__main__":
    main()
