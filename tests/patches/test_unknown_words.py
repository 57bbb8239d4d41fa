"""``--replace-unk``: what is copied from where; as whole commands in tests/system."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from fairseq import utils
from fairseq.data import Dictionary

from fairseq_plugins.patches import unknown_words
from fairseq_plugins.patches.unknown_words import replace_unknown_words

from .unpatched import fault_of


@pytest.fixture
def dictionary() -> Dictionary:
    dictionary = Dictionary()
    for word in "the cat sat@@ down".split():
        dictionary.add_symbol(word)
    return dictionary


def aligned(source: list[str | None], position: dict[int, int]) -> unknown_words._SourceAlignment:
    return unknown_words._SourceAlignment([], source, position)


def replaced(dictionary: Dictionary, tokens: str, alignment: object, monkeypatch, align_dict=None, **keywords) -> str:
    monkeypatch.setattr(unknown_words, "_replacement", unknown_words.Replacement(align_dict or {}))
    ids = torch.tensor([dictionary.index(token) for token in tokens.split()])
    new_ids, text, _ = utils.post_process_prediction(ids, "?", alignment, None, dictionary, **keywords)
    assert dictionary.string(new_ids) == text
    return text


def test_replaces_unknown_tokens_by_what_they_are_aligned_with(dictionary, monkeypatch) -> None:
    alignment = aligned(["die", "Katze", "Mia"], {0: 0, 1: 2, 2: 1})
    assert replaced(dictionary, "the <unk> <unk> </s>", alignment, monkeypatch) == "the Mia Katze"


def test_replacement_goes_through_the_alignment_dictionary(dictionary, monkeypatch) -> None:
    alignment = aligned(["die", "Katze"], {0: 0, 1: 1})
    assert replaced(dictionary, "<unk> <unk> </s>", alignment, monkeypatch, {"die": "the"}) == "the Katze"


def test_replacement_copies_pieces_before_they_are_joined(dictionary, monkeypatch) -> None:
    alignment = aligned(["Kä@@", "tz@@", "chen", "da"], {0: 0, 1: 1, 2: 2, 3: 3})
    text = replaced(dictionary, "<unk> <unk> <unk> down </s>", alignment, monkeypatch, remove_bpe="@@ ")
    assert text == "Kätzchen down"


def test_unknown_text_stays_unknown_and_is_counted(dictionary, monkeypatch) -> None:
    alignment = aligned(["die", None], {0: 1, 1: 0})
    assert replaced(dictionary, "<unk> <unk> <unk> </s>", alignment, monkeypatch) == "<unk> die <unk>"
    assert unknown_words._replacement.left == 2


def test_tokens_that_are_not_shown_keep_their_positions(dictionary, monkeypatch) -> None:
    alignment = aligned(["xx", "yy"], {1: 1})
    text = replaced(
        dictionary, "cat <unk> </s>", alignment, monkeypatch, extra_symbols_to_ignore={dictionary.index("cat")}
    )
    assert text == "yy"


def test_a_task_that_decodes_in_its_own_way_is_refused(dictionary, monkeypatch) -> None:
    with pytest.raises(ValueError, match="--replace-unk does not work with this task"):
        replaced(dictionary, "<unk>", [(0, 0)], monkeypatch)


def test_a_model_without_attention_is_refused() -> None:
    hypothesis = {"attention": torch.empty(0), "tokens": torch.tensor([3, 2])}
    with pytest.raises(ValueError, match="needs a model with attention"):
        unknown_words._hard_alignment(hypothesis, torch.tensor([5, 2]), pad=1, eos=2)


def test_replace_unk_without_a_dictionary_opens_no_file() -> None:
    assert utils.load_align_dict("@@ ") == {} and utils.load_align_dict(None) is None


def test_commands_that_run_as_modules_are_repaired_too(monkeypatch) -> None:
    def main(cfg: object) -> object:
        return cfg

    command = SimpleNamespace(main=main, __spec__=SimpleNamespace(name="fairseq_cli.generate"))
    monkeypatch.setitem(sys.modules, "__main__", command)
    replace_unknown_words()
    assert command.main is not main


def test_fairseq_takes_no_dictionary_for_a_file(unpatch: Callable[[object, str], None]) -> None:
    unpatch(utils, "load_align_dict")
    with fault_of(replace_unknown_words, FileNotFoundError):
        utils.load_align_dict("@@ ")


def test_fairseq_does_not_know_its_own_alignments(
    dictionary: Dictionary, unpatch: Callable[[object, str], None]
) -> None:
    unpatch(utils, "post_process_prediction")
    tokens = torch.tensor([dictionary.index("the"), dictionary.unk(), dictionary.eos()])
    for alignment in [], [(0, 0), (1, 1)]:  # without --print-alignment, and with it
        with fault_of(replace_unknown_words, IndexError, TypeError):
            utils.post_process_prediction(tokens, "die Katze", alignment, {}, dictionary)
