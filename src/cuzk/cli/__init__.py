"""The command line."""

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit; the console script's entry point."""
    try:
        from cuzk.cli.app import main as run  # here: Ctrl-C is heard while this loads, too
    except KeyboardInterrupt:
        sys.stderr.write("cuzk: interrupted; nothing was written\n")
        sys.exit(130)
    run(arguments)
