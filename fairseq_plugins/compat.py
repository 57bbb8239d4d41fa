"""What fairseq 0.12 needs on today's Python and PyTorch, and nothing else."""


def apply() -> None:
    """Applies every repair once."""
