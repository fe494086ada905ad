"""Why shards that were made again are not what they were: what the build was made with, and now."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from tfrecreg.errors import RefusedError
from tfrecreg.manifest import Manifest
from tfrecreg.operations.builds.remember import raw_files
from tfrecreg.operations.repair.raw import RawData
from tfrecreg.operations.repair.remake import RemadeShard
from tfrecreg.text import safe

__all__ = ["refusal"]


def refusal(
    name: str,
    manifest: Manifest,
    wrong: Sequence[RemadeShard],
    raw: RawData,
) -> RefusedError:
    """The error for shards that came out with other bytes.

    Args:
        name: of what was to be repaired, as a user writes it.
        manifest: what it has to be.
        wrong: the shards in question, at least one.
        raw: what they were made from.
    """
    first = wrong[0]
    more = f", and so do {len(wrong) - 1} more" if len(wrong) > 1 else ""
    told = "; ".join(_differences(manifest, raw))
    return RefusedError(
        f"`{name}` cannot be repaired, and nothing was changed: `{safe(first.path)}` comes out "
        f"with other bytes{more}: {_why(first, manifest)}",
        hint=f"{told or 'the same plugin and the same raw size as then'}; bring back what it was "
        "made from, or restore the files from DVC or a backup",
    )


def _why(shard: RemadeShard, manifest: Manifest) -> str:
    if shard.differ:
        noun = "record differs, it is" if shard.differ == 1 else "records differ, the first is"
        return f"{shard.differ:,} {noun} `{safe(shard.first)}`: {shard.reason}"
    entry = next(each for each in manifest.shards if each.path == shard.path)
    if shard.stream_blake3 == entry.stream_blake3:
        return "its records are the same, and only their compression differs"
    return "its records or their order differ"


def _differences(manifest: Manifest, raw: RawData) -> Iterator[str]:
    source, prepared = manifest.source, raw.prepared
    if prepared is not None:
        then = f"{source.distribution} {source.version}"
        now = f"{prepared.distribution} {prepared.version}"
        if then != now:
            yield f"it was made by {safe(then)}, here is {safe(now)}"
        codecs = {"zlib": zlib.ZLIB_RUNTIME_VERSION, **prepared.source.codecs()}
        for codec, version in sorted(manifest.codecs.items()):
            found = codecs.get(codec, "none")
            if found != version:
                yield f"it was made with {safe(codec)} {safe(version)}, here is {safe(found)}"
        size = raw_files(prepared.source, prepared.raw)[0]
        if size != manifest.raw:
            yield (
                f"the raw data were {manifest.raw.files:,} files of {manifest.raw.stored:,} bytes, "
                f"here are {size.files:,} of {size.stored:,}"
            )
