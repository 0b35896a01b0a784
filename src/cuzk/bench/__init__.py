"""Measurements behind ``cuzk bench``: every case proves its result right, then is timed.

A case makes its inputs (:mod:`inputs`), asks a backend for the result, compares it with what the
construction of the inputs says it must be (:mod:`logarithms`), and takes medians (:mod:`clocks`).
"""
