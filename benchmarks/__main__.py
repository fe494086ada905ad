"""``python -m benchmarks NAME``: run a benchmark and print its table."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

COUNTS = {
    "images": 1000,
    "webdataset": 1000,
    "tracking": 1000,
    "mnist": 60_000,
    "annotations": 100_000,
    "ask": 1_000_000,
    "objects": 2000,
    "scan": 200_000,
    "source": 60_000,
    "pages": 60_000,
    "load": 60_000,
    "check": 44_000,
    "records": 60_000,
    "remote": 10_000,
    "stats": 2_600,
    "catalog": 1000,
    "plan": 10_000_000,
    "pytorch": 1000,
    "engines": 4000,
    "far": 10_000,
    "scaling": 4000,
    "table": 1_000_000,
    "view": 20_000,
}
"""Default number of images, records or datasets, by benchmark."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=sorted(COUNTS))
    parser.add_argument("--count", type=int, help="images, records or datasets")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each")
    parser.add_argument("--work", help="a folder for raw data and builds, on the disk to measure")
    parser.add_argument("--tfds-python", help="a Python that has tensorflow-datasets")
    parser.add_argument(
        "--peers-python", help="a Python that has tfrecreg, and the readers to compare with"
    )
    parser.add_argument(
        "--s3", action="store_true", help="far: a bucket of the server at AWS_ENDPOINT_URL"
    )
    arguments = parser.parse_args()
    arguments.count = arguments.count or COUNTS[arguments.name]
    if arguments.work:
        Path(arguments.work).mkdir(parents=True, exist_ok=True)
    rows = import_module(f"benchmarks.{arguments.name}").main(arguments)
    print("| what | ours | theirs | ratio | target |\n|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
