"""A catalogue of a world in which a 2 KiB update has two partitions, as does every process that is sent it.

No registered proof of several partitions has a small circuit: the smallest, 8 MiB updates, has four of 10 million rows.
So the table of shapes is changed before anything is made of it. The circuit is an update's all the same, with the
partition's number among its inputs, and the two proofs are one. Not for a process that tests other things; circuits are
kept by their names, so it wants a home of its own.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import cuzk.filecoin.shapes as shapes

if "cuzk.filecoin.registered" in sys.modules:
    raise ImportError("expected the first import of anything of Filecoin's")
shapes.SHAPES["2KiB"] = replace(shapes.SHAPES["2KiB"], update_partitions=2)

from cuzk.catalogue import Catalogue  # noqa: E402


class PartedCatalogue(Catalogue):
    """Unpickling it imports this module first."""
