"""The source `webdataset` against `imagefolder`, of the same images and labels."""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
from argparse import Namespace
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from benchmarks.raw import images

__all__ = ["main"]

SHARD_BYTES = 64 << 20


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        raw, tars, out = (Path(work) / name for name in ("raw", "tars", "out"))
        images(raw, arguments.count)
        weight, classes = pack(raw, tars)

        def build(source: str, folder: Path, *options: str) -> Measured:
            command = [sys.executable, "-m", "benchmarks.build", source, str(folder)]
            return run([*command, f"{out}-{source}", *options])

        folders, shards = alternate(
            arguments.runs,
            lambda: build("imagefolder", raw),
            lambda: build("webdataset", tars, f"classes={classes}"),
        )
        print(folders[-1].output.strip())
        print(shards[-1].output.strip())
        name = f"{arguments.count:,} JPEGs, {weight / 1e6:,.0f} MB: webdataset / imagefolder"
        return [row(name, shards, folders, "at most 1.1")]


def pack(raw: Path, tars: Path) -> tuple[int, str]:
    """Write the images of class folders as shards; bytes of the images, and the class names."""
    tars.mkdir()
    names = sorted(path.name for path in raw.iterdir())
    (tars / "classes.txt").write_text("".join(f"{name}\n" for name in names))
    weight, shard = 0, None
    for path in sorted(raw.rglob("*.jpg"), key=lambda each: each.name):
        if shard is None or shard.offset > SHARD_BYTES:
            if shard is not None:
                shard.close()
            number = len(list(tars.glob("*.tar")))
            shard = tarfile.open(tars / f"train-{number:06d}.tar", "w")  # noqa: SIM115 - closed
        label, data = names.index(path.parent.name), path.read_bytes()
        key = f"{path.parent.name}/{path.stem}"
        for member, content in ((f"{key}.jpg", data), (f"{key}.cls", str(label).encode())):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            shard.addfile(info, io.BytesIO(content))
        weight += len(data)
    if shard is not None:
        shard.close()
    return weight, "classes.txt"
