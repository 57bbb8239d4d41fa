"""``fairseq-plugins options``: what an architecture or a recurrent layer can be asked for."""

from __future__ import annotations

from collections.abc import Sequence

from .command_parser import CommandParser


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "options",
        "Prints the options of a recurrent layer or an architecture, or the names of all of them.",
        ("", "mc_rnn", "dpn_iwslt_de_en"),
    )
    options.add_argument("name", nargs="?", metavar="KIND or ARCH", help="mc_rnn, dpn_iwslt_de_en, …; else a list")
    return options


def main(arguments: Sequence[str]) -> None:
    """Prints them."""
    name = parser().parse_args(arguments).name
    from . import register

    register()
    from .models.listing import options_text

    print(options_text(name))
