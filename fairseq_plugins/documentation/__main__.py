"""``scripts/update_docs.sh``: writes the pages and the parts of pages that are generated, or says which are stale."""

from __future__ import annotations

if __name__ == "__main__":
    from fairseq_plugins.startup import prepare_command

    prepare_command()

import sys
from collections.abc import Sequence

from ..experiments import configuration as configurations
from ..experiments import records
from ..experiments.command_line import ScriptParser, main_of
from ..experiments.configuration import CHECKOUT
from ..files import atomic_file
from .pages import generated


def main(arguments: Sequence[str]) -> None:
    parser = ScriptParser("update_docs")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    stale = []
    known = records.load_all()
    for configuration in sorted({record.configuration for record in known if record.configuration is not None}):
        # A metric may be the user's own.
        configurations.load(CHECKOUT / configuration).load_extensions()
    for path, text in generated(CHECKOUT, known).items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(path.relative_to(CHECKOUT)))
        if not options.check:
            with atomic_file(path) as stream:
                stream.write(text)
    if options.check and stale:
        sys.exit(f"error: stale: {', '.join(stale)}; run scripts/update_docs.sh")
    print(f"written: {', '.join(stale)}" if stale else "every page is as it would be written")


if __name__ == "__main__":
    main_of(main)
