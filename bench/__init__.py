"""Measurements of cuzk: each proves itself right on a small case, then times.

``python -m bench`` runs a short set of all; ``python -m bench.ntt``, ``bench.msm``, ``bench.prove``
and ``bench.phases`` take sizes and files. docs/kernels.md holds the figures.
"""
