"""Measurements beside floors, other provers and targets; ``cuzk bench`` is the command for this machine alone.

``python -m bench`` runs a short set on the CPU; ``python -m bench.ntt``, ``bench.msm``, ``bench.prove``
and ``bench.phases`` take sizes and files, each proves itself right on a small case. ``bench/gpu_check.sh``
builds in place on a GPU machine, ``python -m bench.gpu_table`` makes the table of docs/kernels.md there;
``bench.bucket_sums`` and ``bench.digit_sort`` take an MSM apart, ``bench.group_ntt`` prepares keys.
"""
