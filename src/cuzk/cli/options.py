"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from pathlib import Path

import click

FILE = click.Path(
    path_type=Path
)  # the readers say what is wrong with one, in the same words everywhere

UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def read_size(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """ "12GiB", "512M", "1.5G" or a number of bytes as bytes; all units are powers of 1024."""
    if value is None:
        return None
    match = _SIZE.fullmatch(value.strip())
    count = int(float(match[1]) * (1 << UNITS[match[2].upper()])) if match else 0
    if not count:
        raise click.BadParameter(f"expected a size like 512M or 12GiB, found {value!r}.")
    return count


json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on standard output, for errors too."
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Threads to use; all of this machine's if not given.",
)
memory_option = click.option(
    "--memory",
    metavar="SIZE",
    callback=read_size,
    help="Refuse to start where more of the host's memory would be needed: 512M, 12GiB, ...",
)
device_option = click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda|cuda:N|cuda:GPU-UUID",
    help="auto: the first GPU where one can be used and the work is large enough for it, else the CPU.",
)
digest_option = click.option(
    "--key-digest",
    metavar="HEX",
    help="BLAKE2b-512 that KEY's file must have: all 128 digits or the first 32, as Filecoin publishes them.",
)
insecure_option = click.option(
    "--insecure-key",
    is_flag=True,
    help="Allow a key without contribution (delta = gamma): anyone can forge its proofs.",
)
