"""What a salvage did, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from tfrecreg.manifest.salvaged import SALVAGE_NAME
from tfrecreg.operations.salvage import Cut, SalvageResult, ShardResult
from tfrecreg.report.layout import Line, count, line
from tfrecreg.text import safe, si_bytes

__all__ = ["print_salvage"]

_SHOWN = 5
"""So many cuts and keys of a shard are shown; the report has all of them."""

_STATUS = {
    "sound": ("sound", "green"),
    "salvaged": ("salvaged", "yellow"),
    "refused": ("no TFRecord", "bold red"),
    "missing": ("missing", "bold red"),
    "unreadable": ("not read", "bold red"),
}


def print_salvage(console: Console, result: SalvageResult) -> None:
    """Each shard with what was cut out of it and which keys are lost; then what that means."""
    if result.passed:
        passed = count(result.passed, "shard")
        console.print(line(f"{passed}: what the manifest names, passed over"))
    if not result.shards:
        console.print(line(("nothing to salvage", "bold green"), "; nothing was written"))
        return
    for shard in result.shards:
        console.print(
            line((f"{safe(shard.name)}: ", "bold"), _STATUS[shard.status], _counts(shard))
        )
        for text in _details(shard):
            console.print(text)
    written = safe(result.output, limit=1000)
    console.print(line(("written: ", "bold"), written))
    if result.damaged:
        where = f"{written}/{SALVAGE_NAME}"
        console.print(line(("marked: ", "bold"), f"`tfrecreg check` finds SHD009, see {where}"))
    else:
        console.print(line(("nothing was wrong", "bold green"), ": the copies have the same bytes"))


def _counts(shard: ShardResult) -> str:
    if shard.status in ("refused", "unreadable"):
        return f": {safe(shard.reason, limit=500)}"
    parts = [f"{count(shard.kept, 'record')} kept"]
    if shard.repaired:
        parts.append(f"{shard.repaired:,} repaired")
    least = "" if shard.exact else "at least "
    if shard.status != "sound":
        parts.append(f"{least}{shard.lost:,} lost")
    return ", " + ", ".join(parts)


def _details(shard: ShardResult) -> Iterator[Line]:
    for cut in shard.cuts[:_SHOWN]:
        yield line("    ", *_place(cut), f": {safe(cut.detail, limit=500)}")
    if shard.cuts_total > _SHOWN:
        yield line(f"    … and {shard.cuts_total - _SHOWN:,} more")
    if shard.lost_keys:
        yield line(("    lost keys: ", "bold"), _keys(shard.lost_keys))
    elif shard.lost and shard.lost_keys is None:
        yield line(("    lost keys: ", "bold"), "no index tells")
    if shard.unproven:
        kept = f"of {count(shard.unproven, 'record')} nothing but their checksums tells that "
        yield line(("    note: ", "bold"), f"{kept}damaged gzip did not make them up")
    if shard.doubts is not None:
        where = (
            f"{count(shard.doubtful, 'record')} set apart in {safe(shard.doubts.path)}: nothing "
        )
        yield line(("    doubtful: ", "bold"), f"{where}tells whether they are the shard's")
    if shard.reason and shard.status not in ("refused", "unreadable"):
        yield line(("    note: ", "bold"), safe(shard.reason, limit=500))


def _place(cut: Cut) -> Iterator[tuple[str, str]]:
    what: str = cut.what
    if cut.record is not None:
        number = f"record {cut.record:,}"
        what = {"header": f"header of {number}", "record": number}.get(what, f"{what}, {number}")
    yield f"{cut.code} {what}, offset {cut.offset:,}, {si_bytes(cut.length)}", "bold"


def _keys(keys: Sequence[str]) -> str:
    shown = ", ".join(safe(key) for key in keys[:_SHOWN])
    more = len(keys) - _SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown
