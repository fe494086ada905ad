"""What other tools left beside the shards: descriptions, label maps, a schema, unfinished files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.example.model import DeclaredFeature
from tfrecreg.core.registry.foreign.folders import descriptions, shard_sets
from tfrecreg.core.registry.foreign.tfds import (
    FEATURES_NAME,
    INFO_NAME,
    NotTfdsError,
    TfdsInfo,
    is_unfinished,
    read_features,
)
from tfrecreg.core.registry.manifest.model import SCHEMA_NAME
from tfrecreg.core.values.config import DatasetConfig
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.shards import normal_splits
from tfrecreg.core.values.text import safe

_PATH = 1000
_MOST_TEXT = 10_000
_OF_CONFIG = ("license", "description", "citation")
"""What the file of a dataset has a key for."""


@dataclass(slots=True)
class FilesBeside:
    """What lies beside the shards of an adoption."""

    infos: list[tuple[TfdsInfo, list[Shard]]] = field(default_factory=list)
    """Descriptions of TFDS, each with the shards in its folder."""
    features: dict[str, DeclaredFeature] = field(default_factory=dict)
    """What they, or the user, say of features, by flat name."""
    notes: list[str] = field(default_factory=list)
    """What was found, used and not read: one line each."""

    def splits(self) -> dict[str, str]:
        """The split of each shard that a description lists, by path."""
        found: dict[str, str] = {}
        for info, shards in self.infos:
            normal = normal_splits(split.name for split in info.splits)
            names = {
                name: normal[split.name] for split in info.splits for name in info.files(split)
            }
            for shard in shards:
                split = names.get(shard.path.rpartition("/")[2])
                if split is not None:
                    found[shard.path] = split
        return found

    def terms(self) -> dict[str, str]:
        """License, description, citation and so on, by the keys of a dataset's file; those that it
        has none for come under a key of their own: ``version``, ``homepage``, ``doi``.
        """
        if not self.infos:
            return {}
        first = self.infos[0][0]
        found = {
            "license": first.license.strip(),
            "description": first.description.strip(),
            "citation": first.citation.strip(),
            "version": first.version,
            "homepage": first.urls[0] if first.urls else "",
            "doi": first.doi,
        }
        return {name: text for name, text in found.items() if text}


def without_unfinished(shards: Sequence[Shard]) -> tuple[list[Shard], list[str]]:
    """Leave out what TFDS did not finish to write, and say so.

    Unfinished files are left out, and an unfinished folder beside a finished one. Of an unfinished
    folder alone the splits are taken of which all shards are there.
    """
    notes: list[str] = []
    whole: list[Shard] = []
    for shard in shards:
        name = shard.path.rpartition("/")[2]
        if is_unfinished(name):
            notes.append(f"left out as unfinished: `{safe(shard.name, limit=_PATH)}`")
        else:
            whole.append(shard)
    started = [shard for shard in whole if _folder(shard)]
    finished = [shard for shard in whole if not _folder(shard)]
    if started and finished:
        folders = sorted({_folder(shard) for shard in started})
        notes += [f"left out as unfinished: the folder `{safe(each)}`" for each in folders]
        whole = finished
    elif started:
        parts = {shard.path for shard in _parts_of_sets(started, notes)}
        whole = [shard for shard in started if shard.path not in parts]
    if not whole:
        raise UsageError(
            f"TensorFlow Datasets did not finish any split here: {'; '.join(notes[:3])}",
            hint="`download_and_prepare` makes the dataset again; `--split` names single files",
        )
    return whole, notes


def _folder(shard: Shard) -> str:
    """The name of the unfinished folder that a shard is in; empty without one."""
    parts = shard.path.split("/")[:-1]
    return next((part for part in parts if is_unfinished(part)), "")


def _parts_of_sets(shards: Sequence[Shard], notes: list[str]) -> Iterator[Shard]:
    """The shards of sets of which some are missing."""
    for subject, members in shard_sets(shards):
        of = members[0][1].of
        there = {name.number for _, name in members}
        missing = [number for number in range(of or 0) if number not in there]
        if missing:
            named = ", ".join(f"{number:05d}" for number in missing[:5])
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            notes.append(
                f"left out as unfinished: {len(members)} of the {of} shards of "
                f"`{safe(subject, limit=_PATH)}`; missing: {named}{more}"
            )
            yield from (shard for shard, _ in members)


def look_beside(
    shards: Sequence[Shard], pixels: Iterable[tuple[str, tuple[int, int, int]]]
) -> FilesBeside:
    """Read the descriptions in the folders of the shards."""
    found = descriptions(shards)
    beside = FilesBeside(infos=found.infos, notes=found.notes)
    for info, members in found.infos:
        try:
            features = read_features(members[0].storage, members[0].path.rpartition("/")[0])
        except NotTfdsError as error:
            shown = safe(info.path.removesuffix(INFO_NAME), limit=_PATH)
            beside.notes.append(f"`{shown}{FEATURES_NAME}` is not used: {error}")
            continue
        if features is None:
            continue
        for name in features.unknown[:5]:
            beside.notes.append(f"`{FEATURES_NAME}` declares `{safe(name)}` of an unknown kind")
        beside.features.update(features.features)
    for name, size in pixels:
        known = beside.features.get(name) or DeclaredFeature(None)
        beside.features[name] = replace(known, pixels=size, is_image=False)
    return beside


def schema_beside(shards: Sequence[Shard]) -> str | None:
    """The path of a `schema.pbtxt` of TFX: in the folder of all shards, or of their splits."""
    folders = {shard.path.rpartition("/")[0] for shard in shards}
    above = {folder.rpartition("/")[0] for folder in folders}
    places = [*folders] if len(folders) == 1 else []
    places += above if len(above) == 1 else []
    for folder in places:
        path = f"{folder}/{SCHEMA_NAME}"
        if shards[0].storage.stat(path) is not None:
            return f"/{path}"
    return None


def terms_lines(terms: Mapping[str, str], config: DatasetConfig, path: str) -> Iterator[str]:
    """What the description says about the dataset, and the lines of TOML that keep it."""
    missing = {
        key: text for key, text in terms.items() if key in _OF_CONFIG and not getattr(config, key)
    }
    rest = {key: text for key, text in terms.items() if key not in _OF_CONFIG}
    if rest:
        yield "the description beside the shards: " + ", ".join(
            f"{key} {safe(text, limit=200)}" for key, text in rest.items()
        )
    if missing:
        yield f"to keep what it says, add to `{path}`:"
        for key, text in missing.items():
            yield f"{key} = {_toml(text)}"


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def _toml(text: str) -> str:
    """A string of TOML on one line, without a character that a terminal would act on."""
    text = text[:_MOST_TEXT].encode("utf-8", "replace").decode("utf-8")
    shown = (_ESCAPES.get(each) or _shown(each) for each in text)
    return f'"{"".join(shown)}"'


def _shown(character: str) -> str:
    return character if character.isprintable() else f"\\U{ord(character):08X}"
