"""Where the numbers of an analysis go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..files import atomic_file


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Writes the numbers of an analysis, and says where."""
    with atomic_file(path) as stream:
        json.dump(content, stream, indent=1, ensure_ascii=False)
        stream.write("\n")
    print(path)
