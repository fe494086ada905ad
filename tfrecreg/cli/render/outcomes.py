"""The results of operations that change something, and what they would change.

Build previews, adoption, repair, salvage, pipelines, push, pull and gc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.cli.render.catalog import in_reading_order, print_manifest
from tfrecreg.cli.render.console import Line, PlainTable, count, line
from tfrecreg.cli.render.findings import print_findings
from tfrecreg.manifest.salvaged import SALVAGE_NAME
from tfrecreg.text import safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.operations.adopt.request import AdoptPlan
    from tfrecreg.operations.adopt.run import AdoptResult
    from tfrecreg.operations.builds.growth import Growth
    from tfrecreg.operations.builds.run import Preview
    from tfrecreg.operations.check.report import Report
    from tfrecreg.operations.pipeline.run import Changes, PipelineResult
    from tfrecreg.operations.remote.garbage import Doomed
    from tfrecreg.operations.remote.sending import PushResult
    from tfrecreg.operations.remote.transfer import PullResult
    from tfrecreg.operations.repair.run import RepairResult
    from tfrecreg.operations.salvage.model import Cut, SalvageResult, ShardResult

_FILES = 10
"""The number of files shown per split."""
_SHOWN = 5
"""The number of cuts and keys shown per shard; the report has all of them."""

_STATUS = {
    "sound": ("sound", "green"),
    "salvaged": ("salvaged", "yellow"),
    "refused": ("no TFRecord", "bold red"),
    "missing": ("missing", "bold red"),
    "unreadable": ("not read", "bold red"),
}


def print_page(
    console: Console, path: str, page: str, reports: Sequence[Report], left_out: Sequence[str] = ()
) -> None:
    """Where the page is, and what the check found."""
    for each in reports:
        found = count(len(each.findings), "finding")
        console.print(line(f"{each.target}: {each.status}, {found}"))
    console.print(line(f"wrote {safe(path, limit=1000)}, {si_bytes(len(page.encode()))}"))
    if left_out:
        console.print(line(f"left out: {', '.join(left_out)}; --budget makes room for more"))


def print_preview(console: Console, found: Preview) -> None:
    """The plan of a build that was not run."""
    plan, raw = found.plan, found.raw
    made_of = f"{count(raw.files, 'raw file')}, {si_bytes(raw.stored)}"
    console.print(line(f"would build {plan.dataset} from {made_of}; nothing was written"))
    for name, text in found.found.items():
        console.print(line(f"  {safe(name)}: {safe(text, limit=1000)}"))
    console.print("")
    right = ("items", "shards", "at most about")
    table = PlainTable("split", "items", "shards", "at most about", right=right, indent=2)
    splits = plan.splits()
    for name in sorted(splits, key=in_reading_order):
        shards = [shard for shard in plan.shards if shard.split == name]
        size = si_bytes(sum(found.sizes[shard.path] for shard in shards))
        table.add_row(safe(name), f"{splits[name]:,}", f"{len(shards):,}", size)
    console.print(table)
    console.print("")
    if found.growth is not None:
        print_growth(console, found.growth, would=True)
    print_push_cost(console, found)
    if plan.skipped:
        skipped = count(len(plan.skipped), "item")
        console.print("")
        console.print(line(f"the source skips {skipped} while it lists them"))


def print_growth(console: Console, growth: Growth, *, would: bool = False) -> None:
    """The shards that a build keeps, rewrites and adds, on one line."""
    parts = [
        f"{count(number, 'shard')} {what} ({si_bytes(size)})"
        for number, what, size in (
            (growth.kept, "kept", growth.kept_bytes),
            (growth.rewritten, "rewritten", growth.rewritten_bytes),
            (growth.new, "new", growth.new_bytes),
        )
        if number
    ]
    cost = "" if would else f"; a push sends {si_bytes(growth.written_bytes)} and the indexes"
    console.print(line(f"grown from {growth.base}: {', '.join(parts)}{cost}"))


def print_push_cost(console: Console, found: Preview) -> None:
    """The size of a push of the release, on one line."""
    push = found.push
    if not push.total:
        console.print(line("a push would send nothing: it is the release again"))
        return
    parts = f"shards {si_bytes(push.shards)}, indexes {si_bytes(push.indexes)}"
    where = f" to a remote with {found.growth.base}" if found.growth is not None else ""
    console.print(
        line(
            f"a push of its release would send about {si_bytes(push.total)}{where}: {parts}, "
            f"manifest and lists {si_bytes(push.manifests)}"
        )
    )


def print_plan(console: Console, plan: AdoptPlan) -> None:
    """Each file of an adoption with its split and its new name."""
    doing = {"copy": "copied", "link": "linked", "in-place": "left where they are"}[plan.how]
    files = f"{count(len(plan.files), 'file')} below {safe(plan.base, limit=1000)}"
    console.print(line((f"{plan.dataset}: ", "bold"), f"{files} would be {doing}"))
    table = PlainTable("split", "file", "size", "in the build", right=("size",), indent=2)
    splits = sorted(plan.splits().items(), key=lambda pair: in_reading_order(pair[0]))
    for split, members in splits:
        for file in members[:_FILES]:
            name = f"/{file.shard.path}".removeprefix(plan.base).lstrip("/")
            size = si_bytes(file.bytes)
            table.add_row(safe(split), safe(name, limit=1000), size, safe(file.path, limit=1000))
        if len(members) > _FILES:
            table.add_row(safe(split), f"… {len(members) - _FILES} more", "", "")
    console.print(table)


def print_adopted(console: Console, messages: Console, result: AdoptResult) -> None:
    """The adopted build, and what to do next."""
    from tfrecreg.validators.payload_kinds import described

    manifest = result.manifest
    print_findings(messages, result.findings)
    again = " again, the same as before" if result.unchanged else ""
    title = f"adopted {manifest.dataset}{again}, in {result.folder}"
    print_manifest(console, title, result.folder, manifest, brief=True)
    console.print("")
    console.print(line(("payloads: ", "bold"), described(result.kinds)))
    if manifest.labels:
        named = (f"{safe(name)} ({len(names):,})" for name, names in manifest.labels.items())
        console.print(line(("names of classes: ", "bold"), ", ".join(named)))
    if result.drafted:
        path = safe(result.schema_path, limit=1000)
        text = f"drafted {path} from the records: review it, tighten it, keep it in git"
        messages.print(line(text))


def print_pipeline(console: Console, result: PipelineResult, *, look: bool) -> None:
    """The changes of `dvc.yaml`.

    Args:
        console: the output.
        result: the result of the operation.
        look: whether the changes were only determined, not written.
    """
    datasets = count(len(result.datasets), "dataset")
    if result.current:
        console.print(line(("dvc.yaml", "bold"), f" is up to date, with {datasets}"))
        _print_tracked(console, result)
        return
    state = "is out of date" if look else "was written"
    console.print(line(("dvc.yaml", "bold"), f" {state}, with {datasets}"))
    would = "to be " if look else ""
    for title, names in (
        *_titled(would, result.stages),
        *_titled(f"artifacts {would}", result.artifacts),
        ("missing" if look else "made", result.made),
    ):
        if names:
            console.print(line((f"  {title}: ", "cyan"), ", ".join(safe(each) for each in names)))
    _print_tracked(console, result)


def _print_tracked(console: Console, result: PipelineResult) -> None:
    if result.tracked:
        title = "  no stages, tracked by data/NAME.dvc: "
        console.print(line((title, "cyan"), ", ".join(safe(each) for each in result.tracked)))


def _titled(before: str, changes: Changes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        (f"{before}added", changes.added),
        (f"{before}updated", changes.updated),
        (f"{before}removed", changes.removed),
    )


def print_push(console: Console, result: PushResult, *, verified: bool = False) -> None:
    """The releases that the remote has now.

    Args:
        console: the output.
        result: the result of the operation.
        verified: whether the bytes in the remote were compared, not only their sizes.
    """
    if not result.releases:
        stored = count(result.stored, "release")
        console.print(line(f"nothing to push: the bytes of {stored} are in a bucket"))
        return
    sent = count(result.objects, "object") if result.objects else "nothing new"
    parts = [f"{sent} sent"]
    if result.replaced:
        parts.append(f"{result.replaced:,} of them in place of damaged ones")
    if verified:
        seen = result.verified
        read = f"{count(seen.read, 'object')} read ({si_bytes(seen.bytes)})"
        parts.append(f"{count(seen.checksums, 'checksum')} compared, {read}")
    console.print(line(f"the remote has {', '.join(result.releases)}: {', '.join(parts)}"))


def print_pull(console: Console, result: PullResult) -> None:
    """The folder with the bytes of a release."""
    if result.files:
        what = f"{count(result.files, 'file')}, {si_bytes(result.bytes)}, all as released"
    else:
        what = "here already"
    console.print(line(f"{result.name} is in {result.folder}: {what}"))


def print_gc(console: Console, doomed: Sequence[Doomed], *, applied: bool) -> None:
    """The objects that were removed or may be removed."""
    if not doomed:
        console.print(line("nothing to remove"))
        return
    table = PlainTable("what", "size", "why", "path", right=("size",))
    for each in doomed:
        table.add_row(each.kind, si_bytes(each.bytes), each.why, safe(each.path, limit=1000))
    console.print(table)
    size = si_bytes(sum(each.bytes for each in doomed))
    things = count(len(doomed), "thing")
    told = "removed" if applied else "nothing was removed; `tfrecreg gc --apply` removes"
    console.print(line(f"{told} {things}, {size}"))


def print_repair(console: Console, result: RepairResult) -> None:
    """The rebuilt shards and files, and the proof."""
    if not result.shards and not result.files and not result.copied:
        nothing = ("nothing to repair", "bold green")
        console.print(line(nothing, f": every file of {result.reference} is unchanged"))
        return
    console.print(line((f"repaired {result.reference}", "bold"), f", in {result.folder}"))
    for shard in result.shards:
        made = f"{count(shard.made, 'record')} rebuilt, {shard.taken:,} intact"
        console.print(line(f"  {safe(shard.entry.path)}: {made}"))
    for path in result.files:
        console.print(line(f"  {safe(path)}"))
    for path in result.copied:
        console.print(line(f"  {safe(path)}: restored from a copy"))
    proof = f"every file agrees with the manifest, digest {result.digest[:16]}…"
    console.print(line(("proven", "bold green"), f": {proof}"))


def print_salvage(console: Console, result: SalvageResult) -> None:
    """Each shard with its cuts and lost keys, and what follows from them."""
    if result.passed:
        passed = count(result.passed, "shard")
        console.print(line(f"{passed}: as in the manifest, skipped"))
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
        console.print(line(("no damage found", "bold green"), ": the copies have the same bytes"))


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
        yield line(("    lost keys: ", "bold"), "unknown without an index")
    if shard.unproven:
        kept = f"{count(shard.unproven, 'record')} from damaged gzip verified by checksums only, "
        yield line(("    note: ", "bold"), f"{kept}not by an index")
    if shard.doubts is not None:
        where = f"{count(shard.doubtful, 'record')} moved to {safe(shard.doubts.path)}"
        yield line(("    doubtful: ", "bold"), f"{where}: they may not belong to the shard")
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
