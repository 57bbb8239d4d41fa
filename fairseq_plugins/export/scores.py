"""What an exported model scores on the development set that its model was chosen by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..corpora.pairs import PairsPreparation
from ..exported.translation import ExportedTranslationModel
from ..files import read_lines
from ..scoring.metrics import Outputs, References, metric_named

_SET = "valid"


def development_scores(folder: Path, preparation: PairsPreparation) -> dict[str, Any] | None:
    """The scores, as ``results.json`` has them, of beam search as ``translate`` does it.

    Args:
        folder: of the exported model.
        preparation: of the data that it was trained on.

    Returns:
        them; None where the text of the development set is not there: tokens were given, or ``raw/`` is deleted.
    """
    source, target = (preparation.file(f"raw/{_SET}.{language}") for language in preparation.languages)
    tokens = preparation.file(f"tokens/{_SET}.{preparation.target_lang}")
    if not (source.is_file() and target.is_file() and tokens.is_file()):
        return None
    results = ExportedTranslationModel.load(folder).translations(list(read_lines(source)))
    pieces = [line.translations[0].pieces if line.translations else [] for line in results]
    outputs = Outputs([preparation.decode_target(" ".join(line)) for line in pieces], [line.text for line in results])
    references = References(
        [list(read_lines(tokens))], [list(read_lines(target))], preparation.lowercase, preparation.target_lang
    )
    return metric_named(preparation.metric).scores(outputs, references)
