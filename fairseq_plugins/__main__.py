"""``python -m fairseq_plugins`` is the command ``fairseq-plugins``."""

from .command import main

if __name__ == "__main__":
    main()
