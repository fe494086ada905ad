"""The options that say how a dataset is built, of the commands that build it or plan to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import pairs

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--source",
        metavar="S",
        shell_complete=complete.sources,
        help="Source plugin that reads the raw data. Default: the saved one, else the one that "
        "fits best.",
    ),
    click.option(
        "--raw",
        metavar="PATH",
        shell_complete=complete.folders,
        help="Folder of the raw data, or its URL.",
    ),
    click.option(
        "--option",
        "options",
        metavar="K=V",
        multiple=True,
        help="Option of the source. Repeatable.",
    ),
    click.option("--shards", type=int, metavar="N", help="Make N shards of each split."),
    click.option("--shard-size", metavar="SIZE", help="Make shards of about SIZE, such as 128MiB."),
    click.option(
        "--records-per-shard", type=int, metavar="N", help="Put at most N records into a shard."
    ),
    click.option("--hosts", type=int, metavar="N", help="Make enough shards for N training hosts."),
    click.option(
        "--compression",
        type=click.Choice(["none", "gzip"]),
        help="Compression of the shards. Default: none.",
    ),
    click.option(
        "--base",
        metavar="REF|none",
        shell_complete=complete.releases,
        help="Keep the unchanged shards of this release. Default: the latest; none: reshuffle all.",
    ),
    click.option(
        "--default-schema",
        is_flag=True,
        help="If the dataset's schema is missing, use the source's own, even if it differs.",
    ),
    click.option(
        "--max-skipped", metavar="N|P%", help="Accept up to this many skipped items. Default: 0."
    ),
    click.option(
        "--max-dropped",
        metavar="N|P%",
        help="Accept up to this many dropped objects per split. Default: 1%.",
    ),
    click.option(
        "--save-options",
        "save",
        is_flag=True,
        help="Save these settings in datasets/NAME.toml for later builds.",
    ),
)
_TAKEN_OVER = (
    *("source", "raw", "compression", "base", "default_schema"),
    *("max_skipped", "max_dropped", "save"),
)


def settings_options(function: F) -> F:
    """From ``--source`` to ``--save-options``. The command gets `settings`, which are keywords of
    `tfrecreg.core.build.settings.BuildRequest`.
    """

    @wraps(function)
    def call(
        *args: Any,
        options: tuple[str, ...],
        shards: int | None,
        shard_size: str | None,
        records_per_shard: int | None,
        hosts: int | None,
        **more: Any,
    ) -> Any:
        from tfrecreg.core.values.shards import shard_policy

        settings = {name: more.pop(name) for name in _TAKEN_OVER}
        settings["options"] = pairs(options, "--option")
        settings["policy"] = shard_policy(shards, shard_size, records_per_shard, hosts)
        return function(*args, settings=settings, **more)

    for decorate in reversed(_OPTIONS):
        call = decorate(call)
    return cast(F, call)
