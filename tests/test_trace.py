"""The file that Perfetto opens, read back by its rules."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

from cuzk.timeline import Span
from cuzk.trace import chrome_trace


def read(trace: bytes) -> list[dict[str, Any]]:
    """Trace Event Format, JSON Object Format: what must be there of the events used."""
    document = json.loads(trace, parse_float=Decimal, parse_int=Decimal)
    events = document["traceEvents"]
    assert document["displayTimeUnit"] in ("ms", "ns")
    for event in events:
        assert event["ph"] in ("X", "M")
        assert isinstance(event["name"], str)
        assert all(event[key] == int(event[key]) for key in ("pid", "tid"))
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
        else:
            kind = {"process_name": "name", "thread_name": "name"}
            kind |= {"process_sort_index": "sort_index", "thread_sort_index": "sort_index"}
            assert set(event["args"]) == {kind[event["name"]]}
    return list(events)


def expect_nested(events: list[dict[str, Any]]) -> dict[str, list[list[str]]]:
    """Per row: names from the outermost in, in the order of the file; two spans nest or do not overlap."""
    found: dict[str, list[list[str]]] = {}
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    for place, name in rows.items():
        open_spans: list[tuple[Decimal, str]] = []
        last = Decimal(0)
        for event in events:
            if event["ph"] != "X" or (event["pid"], event["tid"]) != place:
                continue
            start, end = event["ts"], event["ts"] + event["dur"]
            assert start >= last
            last = start
            while open_spans and open_spans[-1][0] <= start:
                open_spans.pop()
            assert not open_spans or end <= open_spans[-1][0]
            open_spans.append((end, event["name"]))
            found.setdefault(name, []).append([n for _, n in open_spans])
    return found


def test_the_file_has_a_row_for_each_thread_and_stream() -> None:
    spans = [
        Span("MainThread", "commit", 10.0, 10.5),
        Span("MainThread", "commit.a", 10.0, 10.25, {"points": 3}),
        Span("cuda:0 upload", "copy to device", 10.1, 10.2, {"bytes": 1 << 40, "how": "pinned"}),
        Span("cuda:0 compute", "sum g1", 10.2, 10.3),
        Span("cuda:1 compute", "sum g2", 10.0000015, 10.0000025),
        Span("staging for cuda:0", 'quoted "\\\n\u2028', 10.2, 10.3),
    ]
    events = read(chrome_trace(reversed(spans)))
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert processes == {0: "host", 1: "cuda:0", 2: "cuda:1"}
    order = {e["pid"]: e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index"}
    assert order[0] < order[1] < order[2]
    rows = {e["args"]["name"]: (e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    place = {
        (e["pid"], e["tid"]): e["args"]["sort_index"]
        for e in events
        if e["name"] == "thread_sort_index"
    }
    assert place[rows["cuda:0 compute"]] < place[rows["cuda:0 upload"]]
    assert len(set(rows.values())) == len(rows) == 5
    assert expect_nested(events) == {
        "MainThread": [["commit"], ["commit", "commit.a"]],
        "cuda:0 upload": [["copy to device"]],
        "cuda:0 compute": [["sum g1"]],
        "cuda:1 compute": [["sum g2"]],
        "staging for cuda:0": [['quoted "\\\n\u2028']],
    }
    one = {e["name"]: e for e in events if e["ph"] == "X"}
    assert (one["commit"]["ts"], one["commit"]["dur"]) == (0, 500_000)
    assert (one["sum g2"]["ts"], one["sum g2"]["dur"]) == (Decimal("1.5"), 1)
    assert one["copy to device"]["args"] == {"bytes": 1 << 40, "how": "pinned"}


def test_spans_that_overlap_on_one_track_get_rows_of_their_own() -> None:
    spans = [Span("worker", f"{k}", 0.1 * k, 0.1 * k + 0.15) for k in range(6)]
    rows = expect_nested(read(chrome_trace(spans)))
    assert rows == {
        "worker": [["0"], ["2"], ["4"]],
        "worker (2)": [["1"], ["3"], ["5"]],
    }


def test_random_spans_make_a_file_that_nests() -> None:
    dice = random.Random(4)
    spans = []
    for k in range(300):
        start = dice.uniform(0, 1)
        spans.append(Span(f"t{k % 3}", f"{k}", start, start + dice.choice([0, 1e-9, 0.01, 0.3])))
    rows = expect_nested(read(chrome_trace(spans)))
    assert sorted(row[-1] for names in rows.values() for row in names) == sorted(
        span.name for span in spans
    )


def test_a_file_of_nothing() -> None:
    assert [e["name"] for e in read(chrome_trace([]))] == ["process_name", "process_sort_index"]
