"""`tfrecreg completion`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal.session import COMPLETE, Session, session_command


@session_command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(session: Session, shell: str) -> None:
    """Print the completion script for a shell.

    For bash: tfrecreg completion bash >> ~/.bashrc. For zsh: the same into ~/.zshrc, after
    compinit. For fish: into ~/.config/fish/completions/tfrecreg.fish. It completes commands,
    options, paths, datasets, releases, sources, validators, codes and formats.
    """
    from tfrecreg.cli.shells import SHELLS

    root = click.get_current_context().find_root()
    script = SHELLS[shell](root.command, {}, "tfrecreg", COMPLETE).source()
    if not session.printed_json({"shell": shell, "script": script}):
        click.echo(script)
