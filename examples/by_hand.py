"""Write Examples by hand, and look at them: no registry, no TensorFlow.

python examples/by_hand.py [--folder DIR]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import tfrecreg as tr

SCHEMA = """
feature { name: "name"    type: BYTES presence { min_fraction: 1 } shape {} }
feature { name: "sides"   type: INT   presence { min_fraction: 1 } shape {}
          int_domain { min: 3 } }
feature { name: "corners" type: FLOAT presence { min_fraction: 1 } }
"""
"""What every record has to look like: one name, one number of sides, any number of corners."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Write Examples by hand, and look at them.")
    parser.add_argument("--folder", type=Path, default=Path("by-hand"), help="where to write")
    folder: Path = parser.parse_args().folder
    shard = folder / "shapes-train.tfrecord-00000-of-00001"
    schema = folder / "shapes.pbtxt"

    # An Example is a map from names to lists of bytes, of int64 or of float32.
    example = tr.to_example(polygon("triangle", 3))
    for name, feature in example.items():
        print(f"{name}: {feature.kind.name} {feature.values}")
    print(f"{len(tr.encode(example))} bytes")

    # The file appears when the block ends. With an index, readers find any record at once.
    with tr.TFRecordWriter(shard, index=True) as writer:
        for sides in range(3, 9):
            name = f"polygon-{sides}"
            writer.write(polygon(name, sides), key=name)
    print(f"wrote {writer.records} records, {shard.stat().st_size} bytes")

    # Records are read by their numbers; negative ones count from the end.
    with tr.Records(shard) as records:
        last = tr.decode(records[-1])
    print(last["name"].values, last["sides"].values)

    # A schema says what the records should be; `check` finds those that are not.
    schema.write_text(SCHEMA, "utf-8")
    report = tr.check(shard, schema=schema)
    print(f"check: {report.status}, {report.records} records")

    # With a schema, a record is a dictionary of NumPy values.
    source = tr.data_source(shard, schema=schema)
    print(source[0]["sides"], source[0]["corners"].dtype, source[0]["corners"].shape)

    # One wrong byte, somewhere in the file: its record is named.
    damaged = folder / "damaged.tfrecord"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    report = tr.check(damaged)
    for finding in report.findings:
        (location,) = finding.locations
        print(f"{finding.code}: record {location.record}, {location.detail}")


def polygon(name: str, sides: int) -> dict[str, object]:
    """The features of a regular polygon with its corners on the unit circle."""
    angles = np.arange(sides) * (2 * np.pi / sides)
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    return {"name": name, "sides": sides, "corners": corners.ravel()}


if __name__ == "__main__":
    main()
