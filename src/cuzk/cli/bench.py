"""``cuzk bench``: MSM, NTT and whole proofs, on the CPU or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import click

from cuzk.backends import Backend
from cuzk.bench.clocks import clock_of
from cuzk.bench.inputs import KINDS
from cuzk.bench.msm import BATCHES, PLACES, MsmCase
from cuzk.bench.ntt import ORDERS, NttCase
from cuzk.bench.place import place_of
from cuzk.bench.prove import SMALLEST, VERIFY_TO, ProveCase
from cuzk.bench.rows import Case, Row, heading
from cuzk.bench.stages import staged
from cuzk.bench.synthetic import RECIPES
from cuzk.cli.app import cuzk_group
from cuzk.cli.measured import LARGEST, curves_option, open_asked, sizes_option
from cuzk.cli.options import device_option, json_option, threads_option
from cuzk.cli.phases import phases_command
from cuzk.cli.terminal import answer, say
from cuzk.curves import GROUPS, Curve
from cuzk.prover.devices import thread_count

OPTIONS = (
    curves_option("both"),
    sizes_option("12..16"),
    device_option,
    threads_option,
    click.option(
        "--reps", type=click.IntRange(1), default=7, show_default=True, help="Repetitions of each."
    ),
    click.option(
        "--stages",
        is_flag=True,
        help="On a GPU: once more with every kernel timed by itself, milliseconds and launches of each.",
    ),
    json_option,
)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """What every measurement can be asked; but for ``logs`` it is for :func:`_measure`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@cuzk_group.group("bench", short_help="Measure MSM, NTT and proofs.")
def bench_group() -> None:
    """Measurements: every case first proves its result right, then warm medians are taken.

    Milliseconds are of the processor (all threads) on a CPU, between events in the stream on a GPU, inputs
    resident; "wall" is what a caller waits for.
    """


@bench_group.command("msm", short_help="Multi-scalar multiplication.")
@click.option(
    "--group",
    type=click.Choice([*GROUPS, "both"]),
    default="g1",
    show_default=True,
    help="Whose points.",
)
@click.option(
    "--scalars",
    type=click.Choice(KINDS),
    default="random",
    show_default=True,
    help="Uniform below r; half zeros, a quarter ones, the rest short and long; or all ones.",
)
@click.option(
    "--points",
    type=click.Choice(PLACES),
    default="resident",
    show_default=True,
    help="On the GPU, or in host memory and copied for every sum: from pinned pages or pageable ones.",
)
@click.option(
    "--batches",
    type=click.Choice(BATCHES),
    default="kept",
    show_default=True,
    help="Points in host memory: buckets kept across batches, each batch deferred, or each waited for.",
)
@with_options
def msm_command(
    group: str, scalars: str, points: str, batches: str, logs: list[int], **options: Any
) -> None:
    """2^LOG points, known multiples of the generator, so that the sum is known at any size."""
    groups = GROUPS if group == "both" else (group,)
    cases = [MsmCase(g, log_n, scalars, points, batches) for g in groups for log_n in logs]
    _measure(cases, **options)


@bench_group.command("ntt", short_help="Number-theoretic transform.")
@click.option(
    "--order",
    type=click.Choice([*ORDERS, "both"]),
    default="both",
    show_default=True,
    help="nr: forward, natural to bit-reversed; rn: inverse, bit-reversed to natural.",
)
@click.option("--coset", is_flag=True, help="On the odd coset, as a proof's quotient needs it.")
@with_options
def ntt_command(order: str, coset: bool, logs: list[int], **options: Any) -> None:
    """2^LOG scalars in place, tables already made; checked at a random point and by going back."""
    orders = ORDERS if order == "both" else (order,)
    _measure([NttCase(log_n, coset, orders) for log_n in logs], **options)


@bench_group.command("prove", short_help="Whole proofs, phase by phase.")
@click.option(
    "--recipe",
    type=click.Choice(RECIPES),
    default=RECIPES[0],
    show_default=True,
    help="Whose key: snarkjs' (.zkey), bellman's (.params), or bellman's prepared (cuzk.prepare_key).",
)
@click.option(
    "--verify-to",
    type=click.IntRange(0, LARGEST),
    default=VERIFY_TO,
    show_default=True,
    metavar="LOG",
    help="Largest size with a real key, made here; above, A, B, C are compared with logarithms.",
)
@click.option(
    "--once", is_flag=True, help="As for a single proof: a GPU makes no tables of the key."
)
@with_options
def prove_command(recipe: str, verify_to: int, once: bool, logs: list[int], **options: Any) -> None:
    """A dense circuit of 2^LOG rows, every witness value of full length, the key resident.

    Above --verify-to the key is synthetic: random points, so that times are real but proofs verify nowhere.

    \b
    Example:
      cuzk bench prove --curve bn254 --log 12..16
    """
    if min(logs) < SMALLEST:
        raise click.UsageError(f"--log: expected {SMALLEST} at least, found {min(logs)}.")
    _measure([ProveCase(recipe, log_n, verify_to, not once) for log_n in logs], **options)


def _measure(
    cases: Sequence[Case],
    curves: list[Curve],
    device: str,
    threads: int | None,
    reps: int,
    stages: bool,
    as_json: bool,
) -> None:
    """Rows as they come, or all of them as one object."""
    count, rows = thread_count(threads), list[Row]()
    place: dict[str, str] = {}
    for curve, case in product(curves, cases):
        backend = open_asked(device, curve, count)  # it plans its memory for one kind of work
        if not place:
            place = place_of(backend, count)
            if not as_json:
                say(", ".join(place.values()) + "\n" + heading(clock_of(backend).measures))
        for row in _rows(case, backend, reps, count, stages):
            rows.append(row)
            if not as_json:
                say("\n".join(row.lines()))
    if as_json:
        answer({"place": place, "rows": [row.as_dict() for row in rows]}, [], as_json=True)
        return
    for checked in dict.fromkeys(row.checked for row in rows):
        say(f"checked: {checked}")


def _rows(case: Case, backend: Backend, reps: int, threads: int, stages: bool) -> Iterable[Row]:
    """With ``stages`` once more on a machine that times every kernel: its marks would disturb the medians."""
    rows = case.run(backend, reps, threads)
    if not stages:
        return rows
    again = case.run(staged(backend, threads), 1, threads)
    return [replace(row, stages=other.stages) for row, other in zip(rows, again, strict=True)]


bench_group.add_command(phases_command)
