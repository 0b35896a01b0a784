"""``cuzk submit``, ``await``, ``cancel``, ``preload``, ``evict``, ``metrics``: a proving service's commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cuzk.cli.app import cuzk_group
from cuzk.cli.connection import Service, service_options
from cuzk.cli.options import FILE, json_option
from cuzk.cli.outputs import check_outputs
from cuzk.cli.terminal import answer, one_line, size
from cuzk.cli.waiting import outputs, wait_for, write_result
from cuzk.errors import FormatError
from cuzk.server.client import Client, Submitted
from cuzk.server.requests import PRIORITIES

output_option = click.option(
    "-o", "--output", type=FILE, help="The proof; proof.json (Filecoin: proof.bin) if not given."
)
public_option = click.option(
    "--public", type=FILE, help="A circuit's public signals; public.json if not given."
)


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--id``, ``--priority``, ``--deadline``, ``--wait`` and ``-o``."""
    for option in (
        output_option,
        click.option("--wait", is_flag=True, help="Wait for the proof and write it."),
        click.option(
            "--deadline",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="Give the job up where it is not done by then.",
        ),
        click.option(
            "--priority",
            type=click.Choice([name for name in PRIORITIES if name]),
            help="normal if not given; Filecoin's by their kind.",
        ),
        click.option(
            "--id", "name", help="The job's name: a repeat of the same request is the same job."
        ),
    ):
        command = option(command)
    return command


@cuzk_group.command("submit", short_help="Hand it a witness.")
@click.argument("circuit")
@click.argument("witness", type=FILE)
@job_options
@public_option
@service_options
@json_option
def submit_command(
    circuit: str,
    witness: Path,
    name: str | None,
    priority: str | None,
    deadline: float | None,
    wait: bool,
    output: Path | None,
    public: Path | None,
    service: Service,
    as_json: bool,
) -> None:
    """Hand WITNESS (.wtns) to a proving service that has CIRCUIT, and print the job's id.

    With --wait the proof is written as the service verified it; `cuzk verify` checks it once more.

    \b
    Examples:
      cuzk submit membership witness.wtns --wait
      cuzk submit membership witness.wtns --id order-17 --priority high --deadline 600
    """
    otherwise = {"-o": Path("proof.json"), "--public": Path("public.json")}
    check_written({"-o": output, "--public": public}, otherwise, {"WITNESS": witness}, wait=wait)
    with service.connect() as client:
        taken = client.submit_circuit(
            circuit, witness, id=name, priority=priority or "", deadline=deadline
        )
        finish(client, taken, output, public, wait=wait, as_json=as_json)


def check_written(
    given: dict[str, Path | None],
    otherwise: dict[str, Path],
    inputs: dict[str, Path],
    *,
    wait: bool,
) -> None:
    """Refuse, before anything is sent, what could not be written, and names of files without ``wait``."""
    named = [option for option, path in given.items() if path is not None]
    if named and not wait:
        raise FormatError(f"{named[0]}: expected --wait with it: the proof is not there before")
    if wait:
        check_outputs({name: given[name] or otherwise[name] for name in given}, inputs)


def finish(
    client: Client,
    taken: Submitted,
    output: Path | None,
    public: Path | None,
    *,
    wait: bool,
    as_json: bool,
) -> None:
    """What follows a submission: its id, or with ``wait`` the proof."""
    if wait:
        result = wait_for(client, taken.job, None, quiet=as_json)
        write_result(result, output, public, as_json=as_json)
    else:
        answer({"job": taken.job, "place": taken.place}, [one_line(taken.job)], as_json=as_json)


@cuzk_group.command("await", short_help="Wait for a job and write its proof.")
@click.argument("job")
@output_option
@public_option
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Wait no longer than this; exit status 3 then, and the job goes on.",
)
@service_options
@json_option
def await_command(
    job: str,
    output: Path | None,
    public: Path | None,
    timeout: float | None,
    service: Service,
    as_json: bool,
) -> None:
    """Wait for JOB and write its proof. One that ended is answered for as long as the service keeps its result.

    \b
    Example:
      cuzk await order-17 -o proof.json --timeout 600
    """
    check_outputs(outputs(output, public), {})
    with service.connect() as client:
        result = wait_for(client, job, timeout, quiet=as_json)
    write_result(result, output, public, as_json=as_json)


@cuzk_group.command("cancel", short_help="Cancel a job, waiting or in work.")
@click.argument("job")
@service_options
@json_option
def cancel_command(
    job: str,
    service: Service,
    as_json: bool,
) -> None:
    """Cancel JOB, whatever is done with it. Nothing happens to one that has ended."""
    with service.connect() as client:
        running = client.cancel(job)
        said = "cancelled; work on it had begun" if running else _why_not_running(client, job)
    answer({"job": job, "was_running": running}, [f"{one_line(job)}: {said}"], as_json=as_json)


def _why_not_running(client: Client, job: str) -> str:
    states = {view["id"]: view["state"] for view in client.status()["jobs"]}
    state = states.get(job, "some time ago")
    return (
        "cancelled; no work on it had begun" if state == "cancelled" else f"ended before: {state}"
    )


@cuzk_group.command("preload", short_help="Load a circuit's key before it is needed.")
@click.argument("circuit")
@service_options
@json_option
def preload_command(
    circuit: str,
    service: Service,
    as_json: bool,
) -> None:
    """Load the key of CIRCUIT on every device, so that the next proof need not wait for it."""
    with service.connect() as client:
        loaded, spent = client.preload(circuit)
    said = "was loaded already" if loaded else f"loaded in {spent} ms"
    facts = {"circuit": circuit, "already_loaded": loaded, "milliseconds": spent}
    answer(facts, [f"{one_line(circuit)}: {said}"], as_json=as_json)


@cuzk_group.command("evict", short_help="Unload a circuit's key.")
@click.argument("circuit")
@service_options
@json_option
def evict_command(
    circuit: str,
    service: Service,
    as_json: bool,
) -> None:
    """Unload the key of CIRCUIT; one that is in use stays."""
    with service.connect() as client:
        loaded, freed = client.evict(circuit)
    said = f"unloaded, {size(freed)} free" if loaded else "was not loaded"
    facts = {"circuit": circuit, "was_loaded": loaded, "freed_bytes": freed}
    answer(facts, [f"{one_line(circuit)}: {said}"], as_json=as_json)


@cuzk_group.command("metrics", short_help="Counters, for Prometheus.")
@service_options
@json_option
def metrics_command(service: Service, as_json: bool) -> None:
    """Print counters and gauges in Prometheus' text form."""
    with service.connect() as client:
        text = client.metrics()
    answer({"prometheus": text}, [text.rstrip("\n")], as_json=as_json)
