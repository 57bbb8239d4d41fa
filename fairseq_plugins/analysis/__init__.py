"""What trained models do, and how their outputs differ: figures and numbers; ``python -m fairseq_plugins.analysis``."""
