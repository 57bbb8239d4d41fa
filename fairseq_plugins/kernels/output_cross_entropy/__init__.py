"""Output projection and (label-smoothed) cross-entropy in one operation."""

from .chunked import output_cross_entropy

__all__ = ["output_cross_entropy"]
