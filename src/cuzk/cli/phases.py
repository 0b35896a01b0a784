"""``cuzk bench phases``: where the time of proofs goes, host and device, copies, lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import click

from cuzk.bench.callers import WITNESSES
from cuzk.bench.compare import PUBLISHED, STEPS, cells, compared, expect_gpu
from cuzk.bench.figures import summary, tables
from cuzk.bench.phases import POINTS, Way, measure, transfers_of
from cuzk.bench.place import place_of
from cuzk.bench.prove import SMALLEST, VERIFY_TO
from cuzk.bench.subject import Subject
from cuzk.bench.synthetic import RECIPES
from cuzk.bench.turns import Series
from cuzk.cli.measured import LARGEST, curves_option, open_asked, sizes_option
from cuzk.cli.options import FILE, device_option, json_option, threads_option
from cuzk.cli.outputs import check_outputs
from cuzk.cli.terminal import answer, say, table
from cuzk.curves import Curve
from cuzk.formats.source import write_together
from cuzk.prover.devices import thread_count
from cuzk.prover.placement import MOST_LANES
from cuzk.trace import chrome_trace

LOG, COMPARED_LOG = 20, 22
FIXED = {
    "lanes": (1,), "points": ("auto",), "evaluations": False, "witness": "scalars", "tables": False,
}  # fmt: skip


def read_lanes(_ctx: click.Context, _parameter: click.Parameter, value: str) -> tuple[int, ...]:
    """ "2" or "1,2"."""
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() and 1 <= int(part) <= MOST_LANES for part in parts):
        raise click.BadParameter(
            f"expected lanes like 2 or 1,2, at most {MOST_LANES}, found {value!r}."
        )
    return tuple(int(part) for part in parts)


def read_points(_ctx: click.Context, _parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """ "auto" or "auto,host"."""
    parts = tuple(part.strip() for part in value.split(","))
    if not set(parts) <= set(POINTS):
        raise click.BadParameter(f"expected {' or '.join(POINTS)}, or both, found {value!r}.")
    return parts


@click.command("phases", short_help="Proofs by a Prover: phases, idle time, copies, lanes.")
@curves_option("bls12_381")
@sizes_option(None, f"{LOG}, with --compare {COMPARED_LOG}")
@click.option(
    "--recipe", type=click.Choice(RECIPES), default="bellman", show_default=True, help="Whose key."
)
@click.option(
    "--lanes",
    default="1",
    show_default=True,
    metavar="N[,N...]",
    callback=read_lanes,
    help="Proofs at a time, from as many threads; several numbers take turns and are compared.",
)
@click.option(
    "--points",
    default="auto",
    show_default=True,
    metavar="auto|host|auto,host",
    callback=read_points,
    help="The key's: on the GPU as far as memory allows, or in host memory, streamed in every proof.",
)
@click.option("--evaluations", is_flag=True, help="The caller has A w, B w, C w, too.")
@click.option(
    "--witness",
    type=click.Choice(WITNESSES),
    default="scalars",
    show_default=True,
    help="In memory, or a .wtns file that every proof reads.",
)
@click.option(
    "--tables", is_flag=True, help="As for many proofs: a GPU makes tables of the key's points."
)
@click.option(
    "--verify-to",
    type=click.IntRange(0, LARGEST),
    default=VERIFY_TO,
    show_default=True,
    metavar="LOG",
    help="Largest size with a real key; above, A, B, C are compared with logarithms.",
)
@click.option("--proofs", type=click.IntRange(1), default=4, show_default=True, help="In a turn.")
@click.option("--turns", type=click.IntRange(1), default=3, show_default=True, help="Of each way.")
@click.option("--compare", is_flag=True, help="Ways to get key and vectors to a GPU, one by one.")
@click.option(
    "--trace", type=FILE, help="Write the last turn for ui.perfetto.dev or chrome://tracing."
)
@device_option
@threads_option
@json_option
def phases_command(
    compare: bool,
    logs: list[int],
    curves: list[Curve],
    trace: Path | None,
    device: str,
    threads: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """A dense circuit of 2^LOG rows, the witness in host memory; every proof is checked.

    Milliseconds by phase, of host and device; of every stream, what it did with its time; bytes and bandwidth of
    copies; proofs a minute. --compare shows what staging vectors ahead, deferred synchronisation, kept
    buckets, a key on the GPU and two lanes gain.

    \b
    Example:
      cuzk bench phases --log 16 --lanes 1,2 --trace phases.json
    """
    logs = logs or [COMPARED_LOG if compare else LOG]
    _expect(compare, logs, trace, options)
    count, result = thread_count(threads), dict[str, Any](rows=[])
    ways = [step.way for step in STEPS] if compare else list(_ways(options))
    for curve, log_n in product(curves, logs):
        backend = open_asked(device, curve, count)
        if compare:
            expect_gpu(backend)
        if "place" not in result:
            result = {"place": place_of(backend, count), **result}
            _say([", ".join(result["place"].values())], quiet=as_json)
        subject = Subject.of(curve, options["recipe"], log_n, options["verify_to"], count)
        found = measure(
            subject, ways, backend, proofs=options["proofs"], turns=options["turns"], threads=count
        )
        result["rows"] += [series.as_dict() for series in found]
        lines = _comparison(found, result) if compare else _side_by_side(found, result)
        title = f"{curve.name} {options['recipe']} 2^{log_n}"
        _say([title, *lines, f"checked: {subject.check}", ""], quiet=as_json)
    if trace:
        spans = [span for series in found for span in series.turns[-1].spans]
        write_together({trace: [chrome_trace(spans)]})
    if as_json:
        answer(result, [], as_json=True)


def _expect(compare: bool, logs: list[int], trace: Path | None, options: dict[str, Any]) -> None:
    """UsageError for what cannot be measured."""
    if min(logs) < SMALLEST:
        raise click.UsageError(f"--log: expected {SMALLEST} at least, found {min(logs)}.")
    for name, value in FIXED.items():
        if compare and options[name] != value:
            raise click.UsageError(f"--compare: its ways are fixed: leave out --{name}.")
    if trace:
        check_outputs({"--trace": trace}, {})


def _ways(options: dict[str, Any]) -> Iterator[Way]:
    """Every number of lanes with every place for the points."""
    for points, lanes in product(options["points"], options["lanes"]):
        yield Way(
            f"points {points}, {lanes} {'lane' if lanes == 1 else 'lanes'}",
            transfers_of(points),
            lanes,
            options["evaluations"],
            options["witness"],
            options["tables"],
        )


def _comparison(found: Sequence[Series], result: dict[str, Any]) -> list[str]:
    """Adds its rows to the result."""
    rows = compared(found)
    result.setdefault("compared", []).append({**dict(_size(found[0])), "rows": rows})
    return [*table(cells(rows)), PUBLISHED]


def _side_by_side(found: Sequence[Series], result: dict[str, Any]) -> list[str]:
    """Adds to the result what each way makes of the first one's proofs a minute."""
    first, *others = found
    lines = [line for series in found for line in _lines(series)]
    for one in others:
        ratio = round(one.per_minute / first.per_minute, 4)
        entry = {**dict(_size(one)), "name": one.name, "over": first.name, "ratio": ratio}
        result.setdefault("ratios", []).append(entry)
        lines.append(f"{one.name} over {first.name}: {ratio:.3f}x the proofs a minute")
    return lines


def _size(series: Series) -> Iterator[tuple[str, Any]]:
    yield from ((name, series.fields[name]) for name in ("curve", "recipe", "log_n"))


def _lines(series: Series) -> Iterator[str]:
    yield f"{series.name}: {summary(series)}"
    for each in tables(series):
        yield from (f"  {line}" for line in table(each))
    yield from (f"  note: {note}" for note in series.notes())


def _say(lines: Sequence[str], *, quiet: bool) -> None:
    if not quiet:
        say("\n".join(lines))
