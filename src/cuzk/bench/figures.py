"""A series as tables for a person: rows of cells, milliseconds."""

from __future__ import annotations

from cuzk.bench.turns import Series

Table = list[list[str]]


def tables(series: Series) -> list[Table]:
    """Phases; streams and threads; copies and streamed sums, where there are any."""
    found = [_phases(series), _tracks(series)]
    if copies := series.copies():
        rows = [
            [
                " ".join(filter(None, (kind.track, kind.name, kind.how))),
                str(kind.count),
                f"{kind.nbytes / 1e6:.1f}",
                f"{1e3 * kind.seconds:.2f}",
                f"{kind.gigabytes_per_second:.1f}",
                f"{1e3 * kind.hidden:.2f}",
            ]
            for kind in copies
        ]
        found.append([["copies", "count", "MB", "ms", "GB/s", "ms behind work"], *rows])
    if batches := series.batches():
        rows = [
            [each.device, str(each.count), f"{1e3 * each.seconds:.2f}", f"{1e3 * each.between:.2f}"]
            for each in batches
        ]
        found.append([["batches of streamed sums", "count", "ms", "ms between"], *rows])
    return found


def summary(series: Series) -> str:
    """One line."""
    idle, asked = series.device_idle, series.fields["lanes"]
    parts = [
        *([] if series.lanes == asked else [f"in {series.lanes} of {asked} lanes"]),
        f"{series.wall.median:.2f} ms a proof ({series.wall.least:.2f} to {series.wall.most:.2f})",
        f"{series.per_minute:.1f} proofs a minute",
        *([] if idle is None else [f"the device computes nothing for {100 * idle:.1f} %"]),
    ]
    return ", ".join(parts)


def _phases(series: Series) -> Table:
    host, sums = series.phases(), series.sums() or {}
    device = series.phases(device=True) | {f"commit.{name}": ms for name, ms in sums.items()}
    rows = [
        [name, f"{ms:.2f}", f"{device[name]:.2f}" if name in device else ""]
        for name, ms in host.items()
    ]
    return [["phase, ms", "host", "device"], *rows]


def _tracks(series: Series) -> Table:
    rows = [
        [
            use.track,
            *(f"{1e3 * part:.2f}" for part in (use.work, use.waiting, use.nothing)),
            f"{100 * use.idle:.1f}",
        ]
        for use in series.uses()
    ]
    return [["stream or thread, ms of all turns", "works", "waits", "nothing", "idle %"], *rows]
