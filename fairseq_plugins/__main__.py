"""What is here for fairseq: ``python -m fairseq_plugins options [KIND or ARCH]``."""

from __future__ import annotations

if __name__ == "__main__":
    from fairseq_plugins.startup import prepare_command

    prepare_command()

import argparse

from . import register
from .errors import report_input_errors
from .versions import add_version_argument


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fairseq_plugins", description=__doc__)
    add_version_argument(parser)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    options = commands.add_parser("options", help="the options of a recurrent layer or an architecture, or their names")
    options.add_argument("name", nargs="?", metavar="KIND or ARCH", help="mc_rnn, dpn_iwslt_de_en, …; else a list")
    arguments = parser.parse_args()
    register()
    from .models.listing import options_text

    print(options_text(arguments.name))


if __name__ == "__main__":
    report_input_errors(main)
