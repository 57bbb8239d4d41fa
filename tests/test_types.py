"""What the type checker is told not to look at."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

import fairseq_plugins

PACKAGE = Path(fairseq_plugins.__file__).parent

# As many as there are; only ever fewer.
MOST = 19


def ignored_errors() -> list[str]:
    """Every comment that hides an error, with its place."""
    comments = []
    for path in sorted(PACKAGE.rglob("*.py")):
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.COMMENT and "type: ignore" in token.string:
                    comments.append(f"{path.relative_to(PACKAGE)}:{token.start[0]}: {token.string}")
    return comments


def test_every_ignored_error_has_a_code_and_a_reason() -> None:
    has_both = re.compile(r"# type: ignore\[[a-z, -]+\]  # (?!noqa)\w").search
    assert [comment for comment in ignored_errors() if not has_both(comment)] == []


def test_few_errors_are_ignored() -> None:
    comments = ignored_errors()
    assert 0 < len(comments) <= MOST, "\n".join(comments)


def test_the_package_says_that_it_has_types() -> None:
    assert (PACKAGE / "py.typed").is_file()
