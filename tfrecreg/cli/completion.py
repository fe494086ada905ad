"""`tfrecreg completion`."""

from __future__ import annotations

import click

from tfrecreg.cli.common import COMPLETE, Face, json_option


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    For bash: tfrecreg completion bash >> ~/.bashrc. For zsh: the same into ~/.zshrc, after
    compinit. For fish: into ~/.config/fish/completions/tfrecreg.fish. It completes commands,
    options, paths, datasets, releases, sources, validators, codes and formats.
    """
    from tfrecreg.cli.shells import SHELLS

    root = ctx.find_root()
    script = SHELLS[shell](root.command, {}, "tfrecreg", COMPLETE).source()
    face: Face = ctx.obj
    if face.as_json:
        face.print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
