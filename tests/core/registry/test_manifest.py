"""A manifest survives a round trip, and no change of its file goes unnoticed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.registry.manifest import (
    FORMAT_VERSION,
    Change,
    FileEntry,
    Ledger,
    Manifest,
    Parent,
    Provenance,
    RawTotals,
    ReleaseEntry,
    SchemaEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
    parse_manifest,
    render_manifest,
    seal,
)
from tfrecreg.core.values.documents import canonical_json
from tfrecreg.core.values.errors import ManifestError, NewerFormatError, upgrade_hint


def open_part(data: bytes, original: dict[str, Any]) -> Provenance | None:
    """The provenance of a manifest, the part without a seal; None if anything else changed."""
    try:
        found = json.loads(data.decode())
        provenance = {
            name: value
            for name, value in found.pop("provenance").items()
            if name in Provenance.__dataclass_fields__
        }
        made = Provenance(**provenance)
    except (ValueError, KeyError, TypeError):
        return None
    sealed = {name: value for name, value in original.items() if name != "provenance"}
    return made if found == sealed else None


def build(**changes: Any) -> Manifest:
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        dataset="mnist",
        content="c0" * 32,
        splits=[SplitEntry(name="train", records=2, payload_bytes=30, content="c1" * 32)],
        shards=[
            ShardEntry(
                path="mnist-train.tfrecord-00000-of-00001",
                bytes=62,
                blake3="b0" * 32,
                sha256="50" * 32,
                split="train",
                records=2,
                payload_bytes=30,
                stream_blake3="b0" * 32,
                index="index/mnist-train.tfrecord-00000-of-00001.index",
            )
        ],
        files=[FileEntry(path="labels.json", bytes=3, blake3="b1" * 32, sha256="51" * 32)],
        raw=RawTotals(files=4, stored=20, decoded=40),
        ledger={"train": Ledger(items=3, written=2, skipped={"SRC002": 1})},
        features={"image/encoded": 20, "image/class/label": 2},
        labels={"image/class/label": ["zéro", "one"]},
        source=SourceEntry(
            name="mnist", distribution="tfrecreg", version="0.1.0", options={"pixels": "png"}
        ),
        schema=SchemaEntry(blake3="b2" * 32, bytes=100),
        compression="none",
        codecs={},
    )
    return seal(replace(manifest, **changes))


def release() -> Manifest:
    return build(
        release=ReleaseEntry(
            version="1.1.0",
            build="d0" * 32,
            parent=Parent(version="1.0.0", digest="d1" * 32),
            change=Change(level="minor", reasons=["1 record was added"]),
            dvc="0123.dir",
        ),
        provenance=Provenance(
            created="2024-01-01T00:00:00Z",
            by="ada",
            host="here",
            tfrecreg="0.1.0",
            python="3.11.0",
            note="first",
        ),
    )


def edited(manifest: Manifest, *path: str | int, to: object) -> bytes:
    """The manifest's file with one value set, as somebody with an editor would."""
    plain = json.loads(render_manifest(manifest))
    place = plain
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return json.dumps(plain).encode()


def resealed(plain: dict[str, Any]) -> bytes:
    """The file with the digest that fits what it says."""
    covered = {k: v for k, v in plain.items() if k not in ("digest", "provenance")}
    return json.dumps(plain | {"digest": blake3(canonical_json(covered)).hexdigest()}).encode()


class TestRoundTrip:
    @pytest.mark.parametrize("manifest", [build(), release()], ids=["build", "release"])
    def test_comes_back_as_it_was(self, manifest: Manifest) -> None:
        data = render_manifest(manifest)
        assert parse_manifest(data, "manifest.json") == manifest
        assert render_manifest(parse_manifest(data, "manifest.json")) == data

    def test_file_is_canonical_and_ends_in_a_newline(self) -> None:
        data = render_manifest(build())
        assert data.startswith(b'{"codecs":{},"compression":"none","content":"c0c0')
        assert data.endswith(b'"splits":[{"content":"' + b"c1" * 32 + (
            b'","name":"train","payload_bytes":30,"records":2}]}\n'
        ))  # fmt: skip
        assert "zéro".encode() in data
        assert b"release" not in data
        assert b"provenance" not in data

    def test_digest_is_the_one_written_down(self) -> None:
        # Golden: this format never changes. A new one gets a new `format_version`.
        assert build().digest == (
            "6a17765aa833adfcdc73aca48fda821862c3df2fd981e5e52f5031a2ee70f35a"
        )
        assert release().digest == (
            "e1455b1ee2d81ec06638578b5a7e7230b62017881d1bdcf3e72b2e2840638a8e"
        )


class TestDigest:
    def test_covers_everything_but_itself_and_provenance(self) -> None:
        manifest = release()
        assert seal(replace(manifest, digest="x")) == manifest
        assert seal(replace(manifest, provenance=None)).digest == manifest.digest
        assert seal(replace(manifest, release=None)).digest != manifest.digest

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("dataset",), "other"),
            (("content",), "00" * 32),
            (("shards", 0, "bytes"), 63),
            (("shards", 0, "blake3"), "00" * 32),
            (("files",), []),
            (("ledger", "train", "skipped", "SRC002"), 2),
            (("labels", "image/class/label"), ["one", "zéro"]),
            (("release", "version"), "1.1.1"),
            (("release", "parent"), None),
            (("release", "change", "level"), "patch"),
            (("compression",), "gzip"),
            (("source", "options", "new"), "x"),
            (("unknown",), 1),
            (("shards", 0, "unknown"), 1),
            (("release", "unknown"), None),
        ],
    )
    def test_edit_is_noticed(self, path: tuple[str | int, ...], value: object) -> None:
        with pytest.raises(ManifestError) as caught:
            parse_manifest(edited(release(), *path, to=value), "registry/m.json")
        message = caught.value.message
        assert message.startswith(
            "`registry/m.json` was changed after it was sealed: its digest should be `"
        )
        assert message.endswith(f"found `{release().digest[:16]}…`")

    @given(st.data())
    def test_any_changed_byte_is_noticed_unless_it_means_the_same(
        self, data: st.DataObject
    ) -> None:
        original = release()
        whole = render_manifest(original)
        found = bytearray(whole)
        place = data.draw(st.integers(0, len(found) - 1))
        other = (st.integers(0, 255) | st.sampled_from(b'\t "0aA')).filter(
            lambda byte: byte != found[place]
        )
        found[place] = data.draw(other)
        provenance = open_part(bytes(found), json.loads(whole))
        if provenance is None:
            with pytest.raises((ManifestError, NewerFormatError)):
                parse_manifest(bytes(found), "manifest.json")
            return
        parsed = parse_manifest(bytes(found), "manifest.json")
        assert parsed == replace(original, provenance=provenance)

    def test_provenance_may_be_edited(self) -> None:
        data = edited(release(), "provenance", "note", to="second")
        parsed = parse_manifest(data, "manifest.json")
        assert parsed.provenance is not None
        assert parsed.provenance.note == "second"

    def test_sealed_fields_of_a_newer_tool_are_borne(self) -> None:
        plain = json.loads(render_manifest(build()))
        plain["shards"][0]["later"] = 1
        parsed = parse_manifest(resealed(plain), "manifest.json")
        canonical = canonical_json(json.loads(resealed(plain))) + b"\n"
        assert parse_manifest(canonical, "manifest.json") == parsed
        assert replace(parsed, digest="") == replace(build(), digest="")


class TestRefusals:
    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"", "Expecting value: line 1 column 1"),
            (b"\xff", "'utf-8' codec can't decode byte 0xff in position 0"),
            (b"[]", "it has no `format_version`"),
            (b"null", "it has no `format_version`"),
            (b"{}", "it has no `format_version`"),
            (b'{"format_version": true}', "it has no `format_version`"),
            (b'{"format_version": "1"}', "it has no `format_version`"),
            (b'{"format_version": 0}', "it has no `format_version`"),
            (b'{"format_version": 1, "format_version": 1}', 'the key "format_version" occurs'),
            (b'{"format_version": 1}', "Object missing required field `dataset`"),
            (
                edited(build(), "raw", "stored", to="0"),
                "Expected `int`, got `str` - at `$.raw.stored`",
            ),
            (b"[" * 200_000, "nested too deeply"),
        ],
    )
    def test_other_data_are_refused_with_the_reason(self, data: bytes, reason: str) -> None:
        with pytest.raises(ManifestError) as caught:
            parse_manifest(data, "m\x1b.json")
        assert caught.value.message.startswith(f"`m\\x1b.json` is not a manifest: {reason}")
        assert caught.value.exit_code == 2

    def test_newer_format_says_so(self) -> None:
        data = json.dumps({"format_version": FORMAT_VERSION + 1, "anything": []}).encode()
        with pytest.raises(NewerFormatError) as caught:
            parse_manifest(data, "m.json")
        assert caught.value.message == (
            f"`m.json` has manifest format {FORMAT_VERSION + 1}, "
            f"this tfrecreg supports {FORMAT_VERSION}"
        )
        assert caught.value.hint == upgrade_hint()
        assert caught.value.exit_code == 3

    def test_name_that_is_not_utf8_cannot_be_written(self) -> None:
        manifest = replace(build(), labels={"image/class/label": ["caf\udce9"]})
        for call in (seal, render_manifest):
            with pytest.raises(ManifestError) as caught:
                call(manifest)
            assert caught.value.message.startswith("the manifest of `mnist` cannot be written: ")
