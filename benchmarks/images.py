"""Building a folder of JPEGs, against an equally safe copy, and against TFDS."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from benchmarks.raw import images

__all__ = ["main"]

HERE = Path(__file__).parent

COPY = """
set -e
rm -rf "$2"
start=$(date +%s.%N)
cp -r "$1" "$2"
sync -f "$2"
find "$2" -type f -print0 | sort -z | xargs -0 -P 2 -n 256 sha256sum > /dev/null
end=$(date +%s.%N)
echo "copy seconds=$(echo "$end $start" | awk '{print $1 - $2}')"
"""
"""A copy that is as safe as a build: all of it is synced to disk (`sync` of a folder alone syncs
only its list of names), and the copy is hashed, on two cores.
"""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        raw, out = Path(work) / "raw", Path(work) / "out"
        images(raw, arguments.count)
        weight = sum(path.stat().st_size for path in raw.rglob("*.jpg"))
        name = f"{arguments.count:,} JPEGs, {weight / 1e6:,.0f} MB"

        def ours() -> Measured:
            command = [sys.executable, "-m", "benchmarks.build", "imagefolder"]
            return run([*command, str(raw), str(out)])

        def copy() -> Measured:
            return run(["sh", "-c", COPY, "copy", str(raw), f"{out}-copy"])

        builds, copies = alternate(arguments.runs, ours, copy)
        rows = [row(f"{name}: build / safe copy", builds, copies, "at most 1.5")]
        print(builds[-1].output.strip())
        if arguments.tfds_python is not None:

            def tfds() -> Measured:
                program = str(HERE / "tfds_build.py")
                python = arguments.tfds_python
                return run(
                    [python, program, "imagefolder", str(raw), f"{out}-tfds"],
                    TF_CPP_MIN_LOG_LEVEL="3",
                )

            builds, others = alternate(max(1, arguments.runs // 2), ours, tfds)
            rows.append(row(f"{name}: TFDS / build", builds, others, "at least 2.5", faster=True))
            rows.append(
                row(
                    f"{name}: TFDS / build, whole processes",
                    builds,
                    others,
                    "at least 10",
                    inner=False,
                    faster=True,
                )
            )
        return rows
