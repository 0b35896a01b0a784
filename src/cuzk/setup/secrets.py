"""The five scalars that a setup must forget: tau, alpha, beta, gamma, delta."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, fields

from cuzk.curves import Curve
from cuzk.errors import FormatError


def random_scalar(curve: Curve) -> int:
    """Uniform in 1..r-1, from the operating system, by rejection."""
    return 1 + secrets.randbelow(curve.r - 1)


@dataclass(frozen=True, kw_only=True, repr=False)
class Secrets:
    """Toxic waste: who knows it can prove anything. Not shown by ``repr``."""

    tau: int
    alpha: int
    beta: int
    delta: int
    gamma: int = 1

    @classmethod
    def drawn(cls, curve: Curve) -> Secrets:
        """Fresh ones from the operating system; gamma stays 1, as in every universal ceremony."""
        tau, alpha, beta, delta = (random_scalar(curve) for _ in range(4))
        return cls(tau=tau, alpha=alpha, beta=beta, delta=delta)

    def checked(self, curve: Curve, log_n: int) -> Secrets:
        """Reduced modulo r; FormatError where one is 0 or tau is a root of unity of order up to 2n."""
        r = curve.r
        reduced = {f.name: getattr(self, f.name) % r for f in fields(self)}
        for name, value in reduced.items():
            if value == 0:
                raise FormatError(
                    f"secret {name}: expected a scalar that is not 0 modulo r, found 0"
                )
        if pow(reduced["tau"], 2 << log_n, r) == 1:
            raise FormatError(
                f"secret tau: expected no root of unity of order up to 2^{log_n + 1}, found one"
            )
        return Secrets(**reduced)
