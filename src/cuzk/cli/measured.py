"""What the measurements of ``cuzk bench`` can all be asked: sizes, curves, a device."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from cuzk.backends import Backend
from cuzk.cli.app import environment
from cuzk.curves import Curve, curve_named
from cuzk.prover.devices import open_device

LARGEST = 28
_SIZES = re.compile(r"([0-9]{1,2})(?:(?:\.\.|-)([0-9]{1,2}))?")


def read_sizes(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> list[int]:
    """ "16..20", "16-20", "16,18,20" or "20" as logarithms."""
    found: list[int] = []
    if value is None:
        return found
    for part in value.split(","):
        match = _SIZES.fullmatch(part.strip())
        if not match or int(match[1]) > int(match[2] or match[1]):
            raise click.BadParameter(f"expected sizes like 16..20 or 16,18,20, found {value!r}.")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    if max(found) > LARGEST:
        raise click.BadParameter(f"expected at most {LARGEST}, found {value!r}.")
    return found


def read_curves(_ctx: click.Context, _parameter: click.Parameter, value: str) -> list[Curve]:
    """One curve by any of its names, or both."""
    if value == "both":
        return [curve_named("bn254"), curve_named("bls12_381")]
    return [curve_named(value, "--curve")]


def curves_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``curves``: a list."""
    return click.option(
        "--curve",
        "curves",
        default=default,
        show_default=True,
        metavar="bn254|bls12_381|both",
        callback=read_curves,
        help="Which curve.",
    )


def sizes_option(
    default: str | None, which: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``logs``: a list, empty where none are given and there is no default; ``which`` says what is taken then."""
    return click.option(
        "--log",
        "logs",
        default=default,
        show_default=default or which,
        metavar="SIZES",
        callback=read_sizes,
        help="log2 of the sizes: 16..20 or 16,18,20.",
    )


def open_asked(device: str, curve: Curve, threads: int) -> Backend:
    """The device that was asked for, or the best; DeviceUnavailable."""
    return open_device(environment().device(device), curve, threads)[0]
