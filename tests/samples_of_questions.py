"""Passages with questions, made by hand, in the forms of the published data sets."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

FROG = "A frog lived in a well. One day a frog fetched the ball of the king's youngest daughter."
WOLF = "A wolf came to the house of the pigs. The wolf's way in was through the chimney."
HEN = 'The hen asked: "Who will help me?" Nobody did, so she baked the bread alone.'

SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "Tales",
            "paragraphs": [
                {
                    "context": FROG,
                    "qas": [
                        {
                            "id": "q1",
                            "question": "Who fetched it?",
                            "answers": [{"text": "frog", "answer_start": FROG.rindex("frog")}],
                        },
                        {
                            "id": "q2",
                            "question": "Whose ball?",
                            "answers": [
                                {"text": "youngest daughter", "answer_start": FROG.index("youngest")},
                                {"text": "daughter", "answer_start": FROG.index("daughter")},
                            ],
                        },
                    ],
                },
                {
                    "context": WOLF,
                    "qas": [
                        {
                            "id": "q3",
                            "question": "Whose way in?",
                            "answers": [{"text": "wolf's", "answer_start": WOLF.index("wolf's")}],
                        }
                    ],
                },
            ],
        }
    ],
}


def write_csv(path: Path, rows: Sequence[Sequence[object]]) -> None:
    """Writes a CSV file, as the data sets' own are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def narrativeqa(folder: Path) -> Path:
    """A sample in NarrativeQA's form: three summaries with six questions."""
    sets = {"frog": "train", "hen": "valid", "wolf": "test"}
    write_csv(
        folder / "documents.csv", [["document_id", "set", "kind"], *([d, s, "gutenberg"] for d, s in sets.items())]
    )
    texts = {"frog": FROG, "hen": HEN, "wolf": "\n\n".join(WOLF.split(". "))}
    rows = [[d, sets[d], text, text.lower()] for d, text in texts.items()]
    write_csv(
        folder / "third_party/wikipedia/summaries.csv", [["document_id", "set", "summary", "summary_tokenized"], *rows]
    )
    asked = [
        ("frog", "Who fetched the ball?", "A frog", "The frog in the well"),
        ("frog", "Whose ball was it?", "the king's youngest daughter", "The princess's"),
        ("frog", "Why?", "Because princesses, who else, cry", 'she cried, "loudly"'),
        ("hen", "Who helped the hen?", "Nobody", "no one"),
        ("wolf", "How did he come in?", "through the chimney", "By the chimney"),
        ("wolf", "What became of him?", "He ended badly, boiled", "Soup"),
    ]
    rows = [[d, sets[d], *texts_of] for d, *texts_of in asked]
    write_csv(folder / "qaps.csv", [["document_id", "set", "question", "answer1", "answer2"], *rows])
    return folder
