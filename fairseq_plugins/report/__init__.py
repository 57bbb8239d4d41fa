"""HTML pages about experiments: numbers of the analyses as figures, learning curves, samples."""
