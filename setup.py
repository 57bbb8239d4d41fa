"""Puts ``configs/`` into the package where it is built; all else is in pyproject.toml.

Install with scripts/install.sh, which lets fairseq compile against the PyTorch that is there.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConfigurations(build_py):
    """Copies ``configs/`` into the package that is built."""

    def run(self) -> None:
        super().run()
        # An editable installation finds them in the checkout.
        if not self.editable_mode:
            shutil.copytree("configs", Path(self.build_lib) / "fairseq_plugins" / "configs", dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithConfigurations})
