"""``cuzk serve`` with :mod:`parted_updates`: ``python serve_parted.py PLACE serve ...``."""

from __future__ import annotations

from parted_updates import PartedCatalogue  # isort: skip

import sys
from functools import partial
from pathlib import Path

import cuzk.cli.serve as command
from cuzk.cli import main

if __name__ == "__main__":
    vars(command)["Catalogue"] = partial(PartedCatalogue, Path(sys.argv.pop(1)))
    main()
