"""The command group, and what every command ends in: an exit status and at most one line of error.

Exit status: 0 done (verify: valid); 1 the proof or the witness is not valid; 2 bad input, bad option,
bad file, and an internal error (a bug: one line as well, ``CUZK_DEBUG=1`` shows the traceback);
3 the device, memory or proving service asked for is not there; 130 interrupted.
With ``--json`` standard output is a single object in every case: the result, or ``error`` with ``code``
and ``message``.
"""

from __future__ import annotations

import json
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from types import FrameType

import click

from cuzk import _core
from cuzk.cli.environment import Environment, apply_environment, debugging, quiet_blas, quiet_grpc
from cuzk.cli.terminal import one_line, say, silence, to_journal
from cuzk.errors import CuzkError

INTERRUPTED = 130
AS_ERROR = "<3>"  # a line's priority, where a journal reads it
MODULES = {
    "await": "client",
    "bench": "bench",
    "cancel": "client",
    "doctor": "show",
    "evict": "client",
    "export": "keys",
    "filecoin": "filecoin",
    "inspect": "show",
    "metrics": "client",
    "preload": "client",
    "prove": "prove",
    "ptau": "keys",
    "serve": "serve",
    "setup": "keys",
    "status": "service_status",
    "submit": "client",
    "verify": "prove",
}
SERVICE = ("serve", "submit", "await", "status", "cancel", "preload", "evict", "metrics")
"""A proving service and its clients: a list of their own in the help, in the order in which one meets them."""


class Commands(click.Group):
    """Imports a command's module, which adds it to the group, when it is asked for."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Those of MODULES."""
        return sorted(MODULES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """None where there is no such command."""
        if name in MODULES:
            import_module(f"cuzk.cli.{MODULES[name]}")
        return super().get_command(ctx, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In two lists."""
        others = [name for name in self.list_commands(ctx) if name not in SERVICE]
        for title, names in (("Commands", others), ("Proving service", SERVICE)):
            found = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, command.get_short_help_str()) for name, command in found if command]
            with formatter.section(title):
                formatter.write_dl(rows, col_max=12)


def version_line() -> str:
    """Version, arithmetic path, GPU support."""
    import cuzk

    cuda = "installed" if find_spec("cuda") and find_spec("cuda.bindings") else "not installed"
    return f"cuzk {cuzk.__version__} (arithmetic: {_core.path()}; CUDA support: {cuda})"


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    apply_environment()
    say(version_line())
    ctx.exit()


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 done (verify: valid), 1 the proof or the witness is not valid, 2 bad input or "
    "option, 3 the device, memory or service is not there, 130 interrupted.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Version, the arithmetic chosen for this CPU, and whether CUDA support is installed.",
)
@click.pass_context
def cuzk_group(ctx: click.Context) -> None:
    """Groth16 proofs for circom's and bellman's keys on BN254 and BLS12-381, by the CPU or an NVIDIA GPU."""
    ctx.obj = apply_environment()
    if ctx.invoked_subcommand is None:
        say(ctx.get_help(), error=True)
        ctx.exit(2)


def environment() -> Environment:
    """What the environment variables said when this command started."""
    found = click.get_current_context().find_object(Environment)
    return found or apply_environment()


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit."""
    arguments = sys.argv[1:] if arguments is None else arguments
    quiet_blas()
    quiet_grpc()
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) != signal.SIG_IGN:  # as under nohup
            signal.signal(ending, _interrupt)
    sys.exit(run(arguments))


def run(arguments: list[str]) -> int:
    """Run a command; the exit status. Every exception ends here."""
    as_json = "--json" in arguments
    try:
        with cuzk_group.make_context("cuzk", list(arguments)) as context:
            cuzk_group.invoke(context)
        return 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except BrokenPipeError:  # the reader of a help text has gone away
        silence(sys.stdout)
        return 0
    except (KeyboardInterrupt, click.Abort):
        return _fail(INTERRUPTED, "interrupted", "interrupted; nothing was written", as_json)
    except Exception as error:
        if debugging():
            traceback.print_exc()
        return _fail(*_explain(error), as_json)


def _explain(error: Exception) -> tuple[int, str, str]:
    """(exit status, code, message)."""
    if isinstance(error, CuzkError):
        return error.exit_status, error.code, str(error)
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "cuzk"
        return 2, "usage", f"{error.format_message().rstrip('.')}. See {command} --help."
    if isinstance(error, click.ClickException):
        return 2, "usage", error.format_message()
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return 2, "file", f"{where}{error.strerror or error}"
    if isinstance(error, MemoryError):
        reason = f": {error}" if str(error) else ""
        return 3, "out-of-memory", f"not enough memory on this machine{reason}"
    kind = type(error).__name__
    return 2, "internal", f"internal error: {kind}: {error}; CUZK_DEBUG=1 shows where"


def _fail(status: int, code: str, message: str, as_json: bool) -> int:
    message = one_line(message)
    say(f"{AS_ERROR if to_journal() else ''}cuzk: {message}", error=True)
    if as_json:
        with suppress(CuzkError):  # standard output itself may be what failed
            say(json.dumps({"error": {"code": code, "message": message}}))
    return status


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end a command as Ctrl-C does: half-written files are removed."""
    raise KeyboardInterrupt
