"""The command line; importing a command's module adds it to the group."""

from cuzk.cli import keys, prove, show
from cuzk.cli.app import main

__all__ = ["keys", "main", "prove", "show"]
