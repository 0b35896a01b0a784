"""``python -m cuzk`` is the command ``cuzk``."""

from cuzk.cli import main

if __name__ == "__main__":
    main()
