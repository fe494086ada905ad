"""`tfrecreg completion`.

The module has completion scripts for bash, zsh and fish, and answers their requests. If an argument
may be a path or a name, Click's own scripts drop the paths or the names. Bash splits words at `@`,
so Click's script treats `mnist@1.0.0` as two words. Click's scripts also print errors. The names
and paths come from :mod:`tfrecreg.core.terminal.complete`.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from tfrecreg.core.terminal.session import COMPLETE, Session, session_command


@session_command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(session: Session, shell: str) -> None:
    """Print the completion script for a shell.

    For bash: tfrecreg completion bash >> ~/.bashrc. For zsh, append the script to ~/.zshrc, after
    compinit. For fish, write it to ~/.config/fish/completions/tfrecreg.fish. The script completes
    commands, options, paths, datasets, releases, sources, validators, codes and formats.
    """

    root = click.get_current_context().find_root()
    script = SHELLS[shell](root.command, {}, "tfrecreg", COMPLETE).source()
    if not session.printed_json({"shell": shell, "script": script}):
        click.echo(script)


_CURSOR = "\x1f"
"""Marks the end of the typed text; it cannot be typed."""

_BASH = """\
%(complete_func)s() {
    local kind value reply paths="" found
    COMPREPLY=()
    reply=$(TFRECREG_LINE="${COMP_LINE:0:COMP_POINT}" TFRECREG_WORD="$2" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null) || return 0
    while IFS=, read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            file) paths=-f ;;
            dir) paths=-d ;;
        esac
    done <<< "$reply"
    [[ $paths ]] || return 0
    if (( ${#COMPREPLY[@]} == 0 )); then
        # Without a name the shell completes paths as it always does.
        if [[ $paths == -d ]]; then compopt -o dirnames; else compopt -o default; fi
        return 0
    fi
    while IFS= read -r value; do
        [[ $value ]] || continue
        COMPREPLY+=("$value")
        compopt -o filenames
    done <<< "$(compgen $paths -- "$2")"
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a plain described response
    local kind key help
    (( ! $+commands[%(prog_name)s] )) && return 1
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
%(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")
    for kind key help in "${(@)response}"; do
        case $kind in
            plain)
                if [[ $help == _ ]]; then plain+=("$key"); else described+=("$key:$help"); fi ;;
            dir) _path_files -/ ;;
            file) _path_files -f ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#plain )) && compadd -U -V unsorted -a plain
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = """\
function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp | string \
collect) COMP_CWORD=(commandline -ct | string collect) %(prog_name)s 2>/dev/null)
    for completion in $response
        set -l item (string split -m 1 "," -- $completion)
        switch $item[1]
            case dir
                __fish_complete_directories (commandline -ct)
            case file
                __fish_complete_path (commandline -ct)
            case plain
                echo $item[2]
        end
    end
end

complete --no-files --keep-order --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class _Bash(BashComplete):
    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        words = split_arg_string(os.environ["TFRECREG_LINE"] + _CURSOR)
        return words[1:-1], words[-1].removesuffix(_CURSOR)

    def complete(self) -> str:
        _, typed = self.get_completion_args()
        items = self.get_completions(*self.get_completion_args())
        # For bash, the word to replace begins after an `@` or `=`.
        if typed.startswith("-") and "=" in typed:
            typed = typed.partition("=")[2]
        word = os.environ.get("TFRECREG_WORD", typed)
        before = typed.removesuffix(word) if typed.endswith(word) else ""
        return "\n".join(f"{each.type},{str(each.value).removeprefix(before)}" for each in items)


class _Zsh(ZshComplete):
    source_template = _ZSH

    def format_completion(self, item: CompletionItem[str]) -> str:
        # The script asks the shell for paths; each item has three lines.
        return f"{item.type}\n_\n_" if item.type != "plain" else super().format_completion(item)


class _Fish(FishComplete):
    source_template = _FISH


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
"""Completion classes by shell name."""


def register() -> None:
    for name, kind in SHELLS.items():
        add_completion_class(kind, name)
