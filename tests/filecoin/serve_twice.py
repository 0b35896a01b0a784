"""``cuzk serve`` whose circuits have two partitions (:mod:`twice`): ``python serve_twice.py PLACE serve ...``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from twice import Twice

import cuzk.cli.serve as command
from cuzk.catalogue import Catalogue
from cuzk.cli import main
from cuzk.config import CircuitSettings, FilecoinSettings

if __name__ == "__main__":
    place = Path(sys.argv.pop(1))

    def catalogue(circuits: Sequence[CircuitSettings], filecoin: FilecoinSettings) -> Twice:
        return Twice(Catalogue(circuits, filecoin), place)

    vars(command)["Catalogue"] = catalogue
    main()
