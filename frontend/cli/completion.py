"""`mxc completion`: what a shell needs to complete commands, options and names of files."""
from __future__ import annotations

import argparse
from typing import NamedTuple

DESCRIPTION = """Print what makes a shell complete `mxc`: its commands, their options, and what an option may be; names
of files everywhere else."""
EXAMPLES = """
  mxc completion zsh > "${fpath[1]}/_mxc"
  eval "$(mxc completion bash)"
  mxc completion fish > ~/.config/fish/completions/mxc.fish"""


class Option(NamedTuple):
    """names: as `-o` and `--output`. about: its help. takes: whether a value follows. choices: what that may be."""

    names: tuple[str, ...]
    about: str
    takes: bool
    choices: tuple[str, ...]


class Command(NamedTuple):
    """about: its help. words: what it may begin with, as the actions of `mxc cache`."""

    name: str
    about: str
    options: list[Option]
    words: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc completion`."""
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell: bash, zsh or fish")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    print(SHELLS[options.shell](commands()), end="")
    return 0


def commands() -> list[Command]:
    """All commands, as their own parsers have them."""
    from mxc.cli.main import COMMANDS, commands_of, parser

    found = []
    for name, about in COMMANDS.items():
        own = commands_of(parser([name]))[name]
        options, words = [], tuple[str, ...]()
        for action in own._actions:
            choices = tuple(map(str, action.choices or ()))
            if action.option_strings:
                options.append(Option(tuple(action.option_strings), (action.help or "").replace("%%", "%"),
                                      action.nargs != 0, choices))
            else:
                words += choices
        found.append(Command(name, about, options, words))
    return found


def bash(found: list[Command]) -> str:
    """The script for bash."""
    lines = ["# mxc's commands and options, for bash.", "_mxc() {",
             '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
             '    local command="" words="" files=1 i',
             '    for ((i = 1; i < COMP_CWORD; i++)); do',
             '        [[ ${COMP_WORDS[i]} != -* ]] && { command="${COMP_WORDS[i]}"; break; }', "    done",
             '    case "$command:$before" in']
    for command in found:
        for option in command.options:
            if option.choices:
                lines.append(f"        {'|'.join(f'{command.name}:{name}' for name in option.names)}) "
                             f"words={_quoted(' '.join(option.choices))} files= ;;")
            elif option.takes:
                lines.append(f"        {'|'.join(f'{command.name}:{name}' for name in option.names)}) ;;")
    names = " ".join(each.name for each in found)
    lines.append(f"        :*) words={_quoted(f'{names} --help --version --include --debug')} files= ;;")
    for command in found:
        words = [*command.words, *(name for option in command.options for name in option.names)]
        lines.append(f"        {command.name}:*) words={_quoted(' '.join(words))} ;;")
    return "\n".join([*lines, "    esac", '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
                      '    [[ $word == -* || -z $files ]] || COMPREPLY+=($(compgen -f -- "$word"))', "}",
                      "complete -o filenames -F _mxc mxc", ""])


def zsh(found: list[Command]) -> str:
    """The script for zsh."""
    lines = ["#compdef mxc", "# mxc's commands and options, for zsh.", "_mxc() {", "    local -a commands",
             "    commands=(", *(f"        {_quoted(f'{each.name}:{each.about}')}" for each in found), "    )",
             "    if (( CURRENT == 2 )); then", "        _describe command commands", "        return", "    fi",
             '    local command="$words[2]"', "    shift words", "    (( CURRENT-- ))", '    case "$command" in']
    for command in found:
        lines.append(f"        {command.name}) _arguments \\")
        for option in command.options:
            values = f"({' '.join(option.choices)})" if option.choices else "_files"
            value = f":value:{values}" if option.takes else ""
            about = _brief(option.about).translate({ord(sign): f"\\{sign}" for sign in "[]:"})
            lines += [f"            {_quoted(f'*{name}[{about}]{value}')} \\" for name in option.names]
        lines.append(f"            {_quoted(f'*:word:({chr(32).join(command.words)})')} ;;" if command.words
                     else "            '*:file:_files' ;;")
    start = 'if [ "$funcstack[1]" = "_mxc" ]; then _mxc "$@"; else compdef _mxc mxc; fi'
    return "\n".join([*lines, "    esac", "}", start, ""])


def fish(found: list[Command]) -> str:
    """The script for fish."""
    lines = ["# mxc's commands and options, for fish."]
    names = " ".join(each.name for each in found)
    for command in found:
        none = _quoted(f"not __fish_seen_subcommand_from {names}")
        own = _quoted(f"__fish_seen_subcommand_from {command.name}")
        lines.append(f"complete -c mxc -f -n {none} -a {command.name} -d {_quoted(command.about)}")
        for option in command.options:
            forms = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = f" -x -a {_quoted(' '.join(option.choices))}" if option.choices else " -r" if option.takes else ""
            lines.append(f"complete -c mxc -n {own} {forms}{value} -d {_quoted(_brief(option.about))}")
        if command.words:
            lines.append(f"complete -c mxc -n {own} -f -a {_quoted(' '.join(command.words))}")
    return "\n".join([*lines, ""])


def _brief(about: str) -> str:
    """The first part of an option's help."""
    return about.partition(" (")[0].partition("; ")[0].partition(": ")[0]


def _quoted(text: str) -> str:
    """A text as a word that bash, zsh and fish read alike."""
    return "'" + text.replace("'", "’") + "'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
