"""Which language the name of a corpus's side stands for, and where English sentences end.

Names are free: ``de``, ``deu`` and ``DE_at`` are German, ``title`` and ``sum`` are no languages, though ``sum`` is the
code of one that about nobody means. So a name counts as a language if it is a code of two letters in use (ISO 639-1;
``in``, once Indonesian, is not), if it says its script (``arb_Arab``), or if there are rules for it here.
"""

from __future__ import annotations

import functools
import re
from typing import Any

MOSES = frozenset(
    "as bn ca cs de el en es et fi fr ga gu hi hu is it ja kn ko lt lv ml mni mr nl or pa pl pt ro ru sk sl sv ta tdt "
    "te yue zh".split()
)
"""The languages whose abbreviations, apostrophes or letters sacremoses knows."""


@functools.lru_cache(maxsize=1024)
def language_code(name: str) -> str | None:
    """The code of the language that a name stands for: ``de`` of ``deu``, ``zh`` of ``cmn_Hans``; None of no language.

    Args:
        name: of a side of a corpus, as in ``--tgt-lang``
    """
    # Not at the head of the file: it takes a tenth of a second, and few commands ask.
    import langcodes

    try:
        tag = langcodes.Language.get(name)
        # The languages of a group have its rules: Mandarin (cmn) those of Chinese.
        group = langcodes.Language.get(langcodes.standardize_tag(name, macro=True)).language
    except langcodes.LanguageTagError:
        return None
    code, subtag = tag.language, re.split("[-_]", name)[0].lower()
    if not tag.is_valid() or code is None or (len(subtag) == 2 and subtag != code):
        return None
    if code in MOSES or group not in MOSES:
        return code if code in MOSES or len(code) == 2 or tag.script else None
    return group


def moses_language(name: str) -> str:
    """The language whose rules Moses has for a side of a corpus: English where its name is no language.

    Where there are no rules for the language Moses has general ones, with English abbreviations.
    """
    return language_code(name) or "en"


def has_moses_rules(name: str) -> bool:
    """Whether Moses has rules for the language that a name stands for; true where it stands for none."""
    return moses_language(name) in MOSES


@functools.cache
def sentence_splitter() -> Any:
    """Of English: Punkt with Moses' abbreviations. It would learn them from text, or load what nobody has here."""
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
    from sacremoses.corpus import NonbreakingPrefixes

    parameters = PunktParameters()
    prefixes = (line.split() for line in NonbreakingPrefixes().words("en"))
    parameters.abbrev_types = {prefix[0].lower() for prefix in prefixes if prefix and not prefix[0].startswith("#")}
    return PunktSentenceTokenizer(parameters)
