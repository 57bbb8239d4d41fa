"""Models that ``fairseq-plugins export`` made. Here are neither PyTorch nor fairseq: NumPy, onnxruntime, text tools.

    pip install "fairseq-plugins[runtime]"

    import fairseq_plugins.exported
    fairseq_plugins.exported.load("work/exported").translate(["Der Hund schläft."])

==================  ===================================================================================================
``folder``          the folder that holds a model: what it is, its checksums, its format
``graphs``          ONNX graphs in onnxruntime
``beam_search``     over sentences and hypotheses at once
``translation``     text to text
``language_model``  how probable a text is
``classification``  the classes of texts
``command_line``    what ``fairseq-plugins translate`` does with an exported model
==================  ===================================================================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from .classification import ExportedClassifier
    from .language_model import ExportedLanguageModel
    from .translation import ExportedTranslationModel

__all__ = ["load"]


def load(
    path: str | Path, threads: int | None = None
) -> ExportedTranslationModel | ExportedLanguageModel | ExportedClassifier:
    """An exported model, ready to ``translate``, to say the ``perplexity`` of text, or to ``classify``.

    Args:
        path: the folder.
        threads: that compute; None for one a core.

    Raises:
        InputError: there is no such folder, or it is damaged, of another format, or of a newer version.
    """
    from .classification import CLASSIFIER, ExportedClassifier
    from .folder import ExportedFolder
    from .language_model import LANGUAGE_MODEL, ExportedLanguageModel
    from .translation import TRANSLATION, ExportedTranslationModel

    folder = ExportedFolder.read(path)
    kind = folder.card.get("kind")
    if kind == TRANSLATION:
        return ExportedTranslationModel(folder, threads)
    if kind == LANGUAGE_MODEL:
        return ExportedLanguageModel(folder, threads)
    if kind == CLASSIFIER:
        return ExportedClassifier(folder, threads)
    raise InputError(f"{path}: there is no kind of model '{kind}' here; export the model again")
