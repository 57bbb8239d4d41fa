"""What trained models do, and how their outputs differ: figures and numbers; ``fairseq-plugins analysis``."""
