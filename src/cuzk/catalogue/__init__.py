"""Circuits of a configuration as the engine's catalogue: circom's by their keys, Filecoin's by their proof types.

route, entries   in the daemon: fields, file status, the beginning of a key's file
check            in a worker: the payload, without a key
open             in a worker: the key on a device
"""

from cuzk.catalogue.catalogue import Catalogue

__all__ = ["Catalogue"]
