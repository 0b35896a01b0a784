"""A short set of every benchmark, under three minutes on two processors: ``python -m bench``."""

from __future__ import annotations

import subprocess
import sys

SHORT = (
    ("ntt", "--sizes", "12,16", "--seconds", "0.1"),
    ("msm", "--sizes", "12,15"),
    ("prove", "--sizes", "12,15", "--runs", "3"),
)


def main() -> None:
    for name, *options in SHORT:
        print(f"\n{name} {' '.join(options)}", flush=True)
        status = subprocess.run([sys.executable, "-m", f"bench.{name}", *options]).returncode
        if status:
            sys.exit(status)


if __name__ == "__main__":
    main()
