"""``cuzk serve`` with :mod:`hanging_mount`: ``python serve_mounted.py PLACE serve ...``. A look is late after half a second,
and what the one before it found is good for no longer."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from hanging_mount import MountedCatalogue

import cuzk.cli.serve as command
from cuzk.catalogue.answering import AnsweringCatalogue
from cuzk.cli import main

if __name__ == "__main__":
    place = Path(sys.argv.pop(1))
    vars(command)["Catalogue"] = partial(MountedCatalogue, place)
    vars(command)["AnsweringCatalogue"] = partial(AnsweringCatalogue, wait=0.5, good=0.5)
    main()
