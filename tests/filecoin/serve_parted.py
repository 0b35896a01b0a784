"""``cuzk serve`` with :mod:`parted_updates`: ``python serve_parted.py serve ...``."""

from __future__ import annotations

from parted_updates import PartedCatalogue  # isort: skip

import cuzk.cli.serve as command
from cuzk.cli import main

if __name__ == "__main__":
    vars(command)["Catalogue"] = PartedCatalogue
    main()
