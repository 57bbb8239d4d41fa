"""Packages that are not installed: which extra brings them. Standard library only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from .errors import InputError
from .package_files import IS_CHECKOUT

EXTRAS = {
    "filelock": "layers",
    "torch": "layers",
    "fairseq": "train",
    "langcodes": "runtime",
    "lxml": "train",
    "nltk": "train",
    "omegaconf": "train",
    "onnx": "export",
    "onnxruntime": "runtime",
    "onnxscript": "export",
    "pytrec_eval": "train",
    "rapidfuzz": "train",
    "regex": "runtime",
    "rouge_score": "train",
    "sacrebleu": "train",
    "sacremoses": "runtime",
    "scipy": "train",
    "sentencepiece": "runtime",
    "sklearn": "train",
    "subword_nmt": "runtime",
    "tqdm": "train",
    "language_data": "serve",
    "multipart": "serve",
    "prometheus_client": "serve",
    "py3langid": "serve",
    "python_multipart": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "pysbd": "runtime",
    "jinja2": "report",
    "matplotlib": "report",
    "jieba": "chinese",
    "opencc": "chinese",
    "soundfile": "audio",
    "soxr": "audio",
    "snakemake": "workflow",
    "shtab": "train",
}
"""What is imported → the smallest extra of this package that brings it."""
_TEXT_TOOLS = ("langcodes", "regex", "sacremoses", "sentencepiece", "subword_nmt")
"""Trainings need them too, before anything else that they lack."""


@contextlib.contextmanager
def explain_missing_packages() -> Iterator[None]:
    """Makes one sentence of an import that fails because an extra is not installed.

    Raises:
        InputError: the sentence.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise InputError(f"{package} is not installed for {sys.executable}: {_remedies(package)}") from error


def _remedies(package: str) -> str:
    extra = EXTRAS[package]
    if package not in _TEXT_TOOLS or IS_CHECKOUT:
        return remedy(extra)
    return f"{remedy('train')}, or {remedy(extra)} for exported models alone"


def remedy(extra: str) -> str:
    """How an extra is installed."""
    if IS_CHECKOUT:
        is_default = extra in ("layers", "runtime", "train", "report")
        return "run scripts/install.sh" + ("" if is_default else f" --extras {extra}")
    return f"pip install 'fairseq-plugins[{extra}]'"
