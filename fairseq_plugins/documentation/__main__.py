"""``scripts/update_docs.sh``: writes the pages and the parts of pages that are generated, or says which are stale."""

from __future__ import annotations

if __name__ == "__main__":
    from fairseq_plugins.startup import prepare_command

    prepare_command()

import argparse
import sys
from collections.abc import Sequence

from ..experiments import configuration as configurations
from ..experiments import recorded_runs
from ..experiments.command_line import run_module
from ..files import atomic_file
from ..package_files import ROOT
from ..versions import add_version_argument
from .pages import generated

_DESCRIPTION = (
    "Makes docs/results/, docs/options.md, README's table of models and its part about the quick start, of what the "
    "project knows: results/, where 'evaluate --record' keeps runs, and configs/tables, the papers' figures."
)


def main(arguments: Sequence[str]) -> None:
    """Writes them, or looks for stale ones."""
    parser = argparse.ArgumentParser(prog="scripts/update_docs.sh", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing; say what is stale, with exit status 1")
    add_version_argument(parser)
    options = parser.parse_args(arguments)
    stale = []
    recorded = recorded_runs.load_all()
    for configuration in sorted({record.configuration for record in recorded if record.configuration is not None}):
        # A metric may be the user's own.
        configurations.load(ROOT / configuration).load_extensions()
    made = generated(ROOT, recorded)
    for path, text in made.items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not options.check:
            with atomic_file(path) as stream:
                stream.write(text)
    # Of a data set that is recorded no more.
    for path in sorted({*(ROOT / "docs" / "results").glob("*.md")} - made.keys()):
        stale.append(str(path.relative_to(ROOT)))
        if not options.check:
            path.unlink()
    if options.check and stale:
        sys.exit(f"error: stale: {', '.join(stale)}; run scripts/update_docs.sh")
    print(f"written: {', '.join(stale)}" if stale else "every page is as it would be written")


if __name__ == "__main__":
    run_module(main)
