"""Keys for a circuit: from a universal .ptau with one contribution, or from secrets known to the caller.

key = setup(matrices, ptau)                     # delta drawn from the operating system and forgotten
key = insecure_setup(matrices, Secrets(...))    # tests and benchmarks: whoever knows the secrets can forge
key = prepare(key, matrices)                     # a bellman key for four transforms per proof instead of six
"""

from cuzk.setup.insecure import insecure_setup
from cuzk.setup.phase2 import contribute, initial_key, setup
from cuzk.setup.powers import make_powers_of_tau
from cuzk.setup.prepare import prepare
from cuzk.setup.secrets import Secrets, random_scalar

__all__ = [
    "Secrets",
    "contribute",
    "initial_key",
    "insecure_setup",
    "make_powers_of_tau",
    "prepare",
    "random_scalar",
    "setup",
]
