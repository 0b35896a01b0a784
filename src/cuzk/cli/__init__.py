"""The command line."""

from cuzk.cli.app import main

__all__ = ["main"]
