"""Whether a wheel holds all of the package: ``python .ci/wheel_contents.py WHEEL``, from the checkout's folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile

PACKAGE = "fairseq_plugins"


def main() -> None:
    """Says what is missing, with exit status 1."""
    tracked = subprocess.run(
        ["git", "ls-files", PACKAGE, "configs"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    expected = {name if name.startswith(PACKAGE) else f"{PACKAGE}/{name}" for name in tracked}
    there = set(zipfile.ZipFile(sys.argv[1]).namelist())
    missing = sorted(expected - there)
    if missing:
        sys.exit(f"error: the wheel lacks {len(missing)} files, such as {missing[0]}")
    print(f"the wheel holds all {len(expected)} files of the package")


if __name__ == "__main__":
    main()
