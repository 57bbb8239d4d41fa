"""Where this project's own files are: configurations, and in a checkout its records. Standard library only.

In a checkout ``configs/`` lies beside the package; where it is installed without one, in the package.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

_PACKAGE = Path(str(resources.files(__package__)))

IS_CHECKOUT = (_PACKAGE.parent / "pyproject.toml").is_file()
"""Whether the package lies in a checkout of the project."""
ROOT = _PACKAGE.parent if IS_CHECKOUT else _PACKAGE
"""What names such as ``configs/multi30k_de_en/mc_rnn_3.yaml`` begin at, those in records too."""
CONFIGURATIONS = ROOT / "configs"
"""A folder of configurations for each data set, and ``tables/``."""
