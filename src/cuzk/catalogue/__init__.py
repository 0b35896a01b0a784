"""Circuits of a configuration as the engine's catalogue: circom's by their keys, Filecoin's by their proof types."""
