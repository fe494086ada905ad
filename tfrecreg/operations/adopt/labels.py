"""What the numbers of classes are called in adopted records, and who says it.

From first to last: the request; label files beside the shards, as TensorFlow Datasets writes them
(``<feature>.labels.txt``) and as a build has them (`labels.json`); the build that was there before,
where the shards stay in place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import DecodeError, ValidationError, json

from tfrecreg.errors import UsageError
from tfrecreg.operations.adopt.plan import AdoptPlan
from tfrecreg.operations.builds.names import LABELS_NAME
from tfrecreg.storage import Storage
from tfrecreg.text import safe
from tfrecreg.validators.annotations.label_map import LabelMap, read_label_map

__all__ = ["adopted_labels"]

_MOST_BYTES = 1 << 24
_MOST_CLASSES = 1_000_000
_PATH = 1000


def adopted_labels(
    plan: AdoptPlan,
    said: Sequence[tuple[str, str]],
    before: Mapping[str, list[str]],
    features: Collection[str],
) -> dict[str, list[str]]:
    """Names of classes by feature, in order of their numbers.

    Args:
        plan: the files.
        said: feature and file of its class names, as the request has them.
        before: the names that the build had where the shards stay as they are.
        features: those that the records have.

    Raises:
        UsageError: a file names no classes, a feature that no record has, or two files of one
            feature disagree.
    """
    found = {name: names for name, names in before.items() if name in features}
    found.update(_beside(plan, features))
    for feature, path in said:
        if feature not in features:
            raise UsageError(
                f"`--labels {safe(feature)}={safe(path)}` names a feature that no record has",
                hint=f"there is {', '.join(safe(each) for each in sorted(features)[:5])}",
            )
        found[feature] = _in_order(read_label_map(path), path)
    return dict(sorted(found.items()))


def _beside(plan: AdoptPlan, features: Collection[str]) -> dict[str, list[str]]:
    """Names from files beside the shards. All folders with such a file have to agree."""
    found: dict[str, tuple[list[str], str]] = {}
    places = {
        (file.shard.storage.root, file.shard.path.rpartition("/")[0]): file.shard.storage
        for file in plan.files
    }
    for (_, folder), storage in places.items():
        for feature, names, path in _in_folder(
            storage, folder, features, own=plan.how == "in-place"
        ):
            known, other = found.setdefault(feature, (names, path))
            if known != names:
                raise UsageError(
                    f"`/{safe(other, limit=_PATH)}` and `/{safe(path, limit=_PATH)}` give the "
                    f"classes of `{safe(feature)}` different names",
                    hint=f"find out which is right: --labels {safe(feature)}=FILE",
                )
    return {feature: names for feature, (names, _) in found.items()}


def _in_folder(
    storage: Storage, folder: str, features: Collection[str], *, own: bool
) -> list[tuple[str, list[str], str]]:
    """Feature, names and file, for those that a file of this folder names the classes of.

    In the build's `own` folder `labels.json` is what an adoption wrote before.
    """
    prefix = f"{folder}/" if folder else ""
    found = []
    built = prefix + LABELS_NAME
    if not own and storage.stat(built) is not None:
        for feature, names in _of_build(storage, built).items():
            if feature in features:
                found.append((feature, names, built))
    for feature in features:
        # TFDS has dots for slashes within a name, and hyphens between those of nested features.
        for file in dict.fromkeys((feature.replace("/", "."), feature.replace("/", "-"))):
            path = f"{prefix}{file}.labels.txt"
            if storage.stat(path) is not None:
                text = storage.read(path, limit=_MOST_BYTES).decode("utf-8", "replace")
                found.append((feature, [line.strip() for line in text.splitlines()], path))
                break
    return found


def _of_build(storage: Storage, path: str) -> Mapping[str, list[str]]:
    """The label maps of a build; empty where the file is somebody else's."""
    try:
        return json.decode(storage.read(path, limit=_MOST_BYTES), type=dict[str, list[str]])
    except (DecodeError, ValidationError):
        return {}


def _in_order(names: LabelMap, path: str) -> list[str]:
    """The names in order of their numbers, empty where a number has none."""
    last = max(names)
    if min(names) < 0 or last >= _MOST_CLASSES:
        wrong = min(names) if min(names) < 0 else last
        raise UsageError(
            f"the label map `{safe(path, limit=_PATH)}` has a class of number {wrong}: expected 0 "
            f"to {_MOST_CLASSES - 1}",
            hint="class numbers count from 0 or 1",
        )
    try:
        "".join(names.values()).encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the label map `{safe(path, limit=_PATH)}` is not UTF-8",
            hint="`iconv -f latin1 -t utf-8` makes it so",
        ) from error
    return [names.get(number, "") for number in range(last + 1)]
