"""``fairseq-plugins completion``: a script that completes the command's words in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .command_parser import PROGRAM, CommandParser

SHELLS = ("bash", "zsh", "tcsh")


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "completion",
        "Prints a script that completes commands, options and files in a shell.",
        ("bash > ~/.local/share/bash-completion/completions/fairseq-plugins", 'zsh > "${fpath[1]}/_fairseq-plugins"'),
    )
    options.add_argument("shell", choices=SHELLS)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prints it."""
    shell = parser().parse_args(arguments).shell
    import shtab

    print(shtab.complete(_all_commands(), shell))


def _all_commands() -> argparse.ArgumentParser:
    """The parsers of all commands as one."""
    from .command import COMMANDS, PREPARE
    from .corpora.data_sets import PREPARATIONS

    whole = argparse.ArgumentParser(prog=PROGRAM)
    commands = whole.add_subparsers()
    names = commands.add_parser("prepare", help=PREPARE).add_subparsers()
    for branch, table in ((commands, COMMANDS), (names, PREPARATIONS)):
        for name, command in table.items():
            branch.add_parser(name, parents=[command.parser()], add_help=False, help=command.summary)
    return whole
