"""What outputs are scored by: metrics, the comparison of two systems, and scorers for fairseq-generate."""
