"""The files that make a folder of shards a dataset of TensorFlow Datasets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tfrecreg.config import DatasetConfig
from tfrecreg.errors import ManifestError, UsageError
from tfrecreg.manifest.model import Manifest, ShardEntry
from tfrecreg.operations.export.connectors import Connectors, Json
from tfrecreg.storage.interface import Storage
from tfrecreg.text import safe

BUILD_VERSION = "0.0.0"
"""The version that a build, which has none, is exported as: TFDS demands one."""

_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


def require_split_names(manifest: Manifest) -> None:
    """Make sure that TFDS can read every split by its name.

    Raises:
        UsageError: it cannot.
    """
    if any(split.name == "all" for split in manifest.splits):
        raise UsageError(
            "TFDS cannot read a split named `all`: that is its name for all splits together",
            hint="rename the split in the raw data, then build again",
        )


def require_shards_of_splits(manifest: Manifest, name: str) -> None:
    """Make sure that splits and shards name each other, as in every manifest that tfrecreg writes.

    Args:
        manifest: of the build or release.
        name: its reference.

    Raises:
        ManifestError: a shard is of a split that the manifest does not list, or a split with
            records has no shard.
    """
    listed = {split.name for split in manifest.splits}
    used = {shard.split for shard in manifest.shards}
    empty = [each.name for each in manifest.splits if each.records and each.name not in used]
    for split, problem in (
        *(
            (split, "has shards of the split `{}`, which it does not list")
            for split in used - listed
        ),
        *((split, "lists the split `{}`, but has no shard of it") for split in empty),
    ):
        raise ManifestError(
            f"the manifest of `{name}` {problem.format(safe(split))}",
            hint=f"`tfrecreg check {name}` has the details; restore the manifest, or build again",
        )


def write_files(
    stage: Storage,
    connectors: Connectors,
    info: Json,
    metadata: Json,
    license_text: str,
) -> None:
    """Write all that TFDS reads beside the shards.

    Raises:
        StorageError: the file system refused.
    """
    # In TFDS's own layout, so that a diff against what it writes itself shows what differs.
    _write(stage, "features.json", json.dumps(connectors.to_json(), indent=4, sort_keys=True))
    _write(stage, "dataset_info.json", json.dumps(info, indent=2, sort_keys=True))
    _write(stage, "metadata.json", json.dumps(metadata, indent=2, sort_keys=True))
    for name, names in connectors.label_files.items():
        _write(stage, name, "".join(f"{each}\n" for each in names))
    if license_text:
        _write(stage, "LICENSE", license_text)


def dataset_info(
    manifest: Manifest,
    config: DatasetConfig,
    supervised: tuple[str, str] | None,
    shards: Mapping[str, Sequence[ShardEntry]],
) -> Json:
    """What `dataset_info.json` holds.

    Args:
        manifest: of the build or release.
        config: license, description and citation.
        supervised: the features that `as_supervised` gives.
        shards: by split, in the order of their numbers.
    """
    version = manifest.release.version if manifest.release is not None else BUILD_VERSION
    info: Json = {
        "name": manifest.dataset,
        "version": version,
        "fileFormat": "tfrecord",
        "description": config.description,
        "citation": config.citation,
        "splits": [
            {
                "name": split.name,
                "filepathTemplate": _TEMPLATE,
                "shardLengths": [str(shard.records) for shard in shards[split.name]],
                # As TFDS counts: the payloads, without framing.
                "numBytes": str(split.payload_bytes),
            }
            for split in manifest.splits
        ],
    }
    if config.license:
        info["redistributionInfo"] = {"license": config.license}
    if manifest.raw.stored:
        info["downloadSize"] = str(manifest.raw.stored)
    if manifest.provenance is not None and manifest.provenance.note:
        info["releaseNotes"] = {version: manifest.provenance.note}
    if supervised is not None:
        info["supervisedKeys"] = {"tuple": {"items": [{"featureKey": key} for key in supervised]}}
    return info


def _write(stage: Storage, path: str, text: str) -> None:
    with stage.create(path) as writer:
        writer.write(text.encode("utf-8"))
