"""Folders of files: what each becomes, and what is skipped."""

from __future__ import annotations

import hashlib
import os
import sys

import pytest
from image_support import png
from media_support import aiff, flac, mp3, mp4, opus, wav

from tfrecreg.core.values.errors import MissingExtraError, UsageError


def test_files_go_in_byte_for_byte_with_what_their_headers_say(raw) -> None:
    sound, video, picture = wav(0.25), mp4(), png(5, 4)
    raw.put("a.wav", sound)
    raw.put("deep/er/b.MP4", video)
    raw.put("c.png", picture)
    raw.put("d.txt", "hello")
    raw.put("e", b"\0")
    made = raw.made()
    assert {key: sorted(found) for (_, key), found in made.written.items()} == {
        "a.wav": [
            "audio/channels",
            "audio/duration",
            "audio/encoded",
            "audio/filename",
            "audio/format",
            "audio/key/sha256",
            "audio/sample_rate",
        ],
        "deep/er/b.MP4": [
            "video/duration",
            "video/encoded",
            "video/filename",
            "video/format",
            "video/key/sha256",
        ],
        "c.png": [
            "image/encoded",
            "image/filename",
            "image/format",
            "image/height",
            "image/key/sha256",
            "image/width",
        ],
        "d.txt": ["file/bytes", "file/filename", "file/key/sha256"],
        "e": ["file/bytes", "file/filename", "file/key/sha256"],
    }
    assert made.written["train", "a.wav"] == {
        "audio/encoded": [sound],
        "audio/filename": [b"a.wav"],
        "audio/format": [b"wav"],
        "audio/channels": [1],
        "audio/sample_rate": [8000],
        "audio/duration": [0.25],
        "audio/key/sha256": [hashlib.sha256(sound).hexdigest().encode()],
    }
    assert made.written["train", "deep/er/b.MP4"]["video/duration"] == [2.0]
    assert "min_count: 1" in raw.source().schema()


@pytest.mark.parametrize(
    ("name", "data", "code", "detail"),
    [
        ("a.wav", b"", "SRC110 media", "the sound or video has no bytes"),
        ("a.mp3", b"<html>", "SRC110 media", "not a sound or a video of a known format"),
        (
            "a.wav",
            b"FORM....AIFFCOMM\0\0\0\x12\0\1\0\0\0d\0\x10@\x7f" + b"\xff" * 8,
            "SRC110 media",
            "a damaged AIFF: the sample rate is above 2^63",
        ),
        ("a.mp4", wav(), "SRC110 media", "expected a video, found a sound: WAV"),
        ("a.m4a", mp4(sound=False), "SRC110 media", "this MP4 has no sound"),
        ("a.jpg", b"", "SRC110 empty", "the file has no bytes"),
    ],
)
def test_a_file_without_a_valid_header_is_skipped(raw, name, data, code, detail) -> None:
    raw.put(name, data)
    assert raw.made().skipped == {("train", name): (code, detail)}


@pytest.mark.parametrize("chunk", [b"", b"LIST" + (4001).to_bytes(4, "little") + bytes(4002)])
def test_a_file_that_ends_too_early_has_a_remark(raw, chunk: bytes) -> None:
    sound = wav()
    raw.put("a.wav", sound[:36] + chunk + sound[36:-4000])
    made = raw.made()
    assert made.remarked() == {
        "SRC014": "expected 8000 bytes of sound, found at most 4000; written unchanged"
    }
    assert made.values("audio/duration") == [[0.25]]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (wav(0.25, rate=16000, channels=2), ("wav", 0.25, 16000, 2)),
        (wav()[:40] + b"\xff" * 4 + wav()[44:], ("wav", 0.5, 8000, 1)),
        (flac(rate=48000, channels=1, samples=12000), ("flac", 0.25, 48000, 1)),
        (b"ID3\4\0\0\0\0\0\2xx" + flac(), ("flac", 1.0, 44100, 2)),
        (mp3(2000), ("mp3", 2000 * 1152 / 44100, 44100, 1)),
        (mp3(10, tag=300, end=b"TAG" + bytes(125)), ("mp3", 11520 / 44100, 44100, 1)),
        (mp4(first=False), ("mp4", 2.0, 48000, 2)),
        (aiff(0.5), ("aiff", 0.5, 8000, 1)),
        (opus(1.5), ("ogg", 1.5, 48000, 2)),
    ],
)
def test_a_sound_says_how_long_it_is(raw, data, expected) -> None:
    raw.put("a.wav", data)
    made = raw.made()
    found = made.written["train", "a.wav"]
    kind, duration, rate, channels = expected
    assert found["audio/format"] == [kind.encode()]
    assert found["audio/duration"] == [pytest.approx(duration)]
    assert (found["audio/sample_rate"], found["audio/channels"]) == ([rate], [channels])
    assert made.remarks == []


def test_without_tinytag_one_line_names_the_extra(raw, monkeypatch) -> None:
    raw.put("a.wav", wav())
    monkeypatch.setitem(sys.modules, "tinytag", None)
    with pytest.raises(MissingExtraError) as caught:
        raw.source().schema()
    assert (caught.value.extra, caught.value.exit_code) == ("media", 3)
    raw.put("a.txt", "x")
    assert list(raw.made("suffixes=txt").written) == [("train", "a.txt")]


def test_a_file_above_the_limit_is_skipped(raw, monkeypatch) -> None:
    monkeypatch.setattr("tfrecreg.core.build.media._MAX_BYTES", 10)
    raw.put("a.bin", b"x" * 11)
    assert raw.made().skipped["train", "a.bin"] == (
        "SRC110",
        "the file has 11 bytes, more than 10",
    )


def test_folders_are_classes_if_the_option_says_so(raw) -> None:
    raw.put("yes/a.wav", wav())
    raw.put("no/deep/é/b.wav", wav())
    made = raw.made("labels=folder")
    assert made.values("class/text") == [["é".encode()], [b"yes"]]
    assert made.values("class/label") == [[1], [0]]
    assert raw.source("labels=folder").labels() == {"class/label": ["yes", "é"]}
    assert "class/label" not in raw.made().written["train", "yes/a.wav"]
    raw.put("loose.wav", wav())
    assert raw.error("labels=folder").message.startswith(
        "`loose.wav` has no class: it is not in the folder of a class, but directly in `"
    )


def test_folders_named_like_splits_are_splits(raw) -> None:
    raw.put("Train/yes/a.wav", wav())
    raw.put("val/no/a.wav", wav())
    made = raw.made("labels=folder")
    assert list(made.written) == [("train", "yes/a.wav"), ("validation", "no/a.wav")]
    assert raw.source().raw_path("validation", "no/a.wav") == "val/no/a.wav"
    assert list(raw.made("layout=flat").written) == [
        ("train", "Train/yes/a.wav"),
        ("train", "val/no/a.wav"),
    ]
    raw.put("more/b.wav", wav())
    message = raw.error().message
    assert "like splits (`Train` and `val`) beside other folders (`more`)" in message
    assert {split for split, _ in raw.made("layout=split").written} == {
        "train",
        "validation",
        "more",
    }
    raw.put("a-b/b.wav", wav())
    assert "`a-b`" in raw.error("layout=split").message


def test_a_note_beside_folders_of_splits_is_left_out(raw) -> None:
    raw.put("train/a.wav", wav())
    raw.put("test/a.wav", wav())
    raw.put("README.md", "# Words")
    raw.put("LICENSE", "")
    made = raw.made()
    assert list(made.written) == [("test", "a.wav"), ("train", "a.wav")]
    assert made.remarked() == {"SRC015": "other files: `LICENSE`, `README.md`"}
    assert {each.path for each in raw.source().raw_files()} == {"test/a.wav", "train/a.wav"}


def test_files_of_one_stem_are_one_record(raw) -> None:
    raw.put("x/clip.wav", wav())
    raw.put("x/clip.TXT", "hello")
    raw.put("x/clip.json", "{}")
    raw.put("alone.wav", wav())
    raw.put("two.wav", wav())
    raw.put("two.txt", "a")
    raw.put("two.TXT", "b")
    made = raw.made("pair=wav,txt")
    ((place, found),) = made.written.items()
    assert place == ("train", "x/clip")
    assert found["txt/bytes"] == [b"hello"]
    assert found["audio/duration"] == [0.5]
    assert made.skipped == {
        ("train", "alone"): ("SRC112", "no `.txt` next to `alone.wav`"),
        ("train", "two"): ("SRC112", "two `.txt` files next to `two.TXT`, `two.wav`"),
    }
    assert made.remarked() == {"SRC015": "other files: `x/clip.json`"}
    source = raw.source("pair=wav,txt")
    assert source.raw_path("train", "x/clip") == "x/clip.wav"
    assert {file.path for file in source.raw_files()} == {"x/clip.wav", "x/clip.TXT"}


def test_two_sounds_of_a_pair_keep_their_suffixes(raw) -> None:
    raw.put("a.wav", wav())
    raw.put("a.mp3", mp3())
    (found,) = raw.made("pair=wav,mp3").written.values()
    assert {name.partition("/")[0] for name in found} == {"wav", "mp3"}


def test_a_damaged_half_of_a_pair_is_named(raw) -> None:
    raw.put("x/clip.png", png(5, 4)[:20])
    raw.put("x/clip.txt", "hello")
    ((code, detail),) = raw.made("pair=txt,png").skipped.values()
    ((same, alone),) = raw.made("suffixes=png").skipped.values()
    assert code == same
    assert detail == f"`x/clip.png`: {alone}"


def test_suffixes_choose_files(raw) -> None:
    raw.put("a.wav", wav())
    raw.put("b.txt", "x")
    raw.put(".hidden", "x")
    raw.put(".git/a.wav", "x")
    raw.put(".git/b.wav", "x")
    made = raw.made("suffixes=.WAV")
    assert list(made.written) == [("train", "a.wav")]
    assert [remark.detail for remark in made.remarks] == [
        "hidden files: `.git`, `.hidden`",
        "other files: `b.txt`",
    ]


def test_names_that_cannot_be_opened_are_skipped(raw, tmp_path) -> None:
    raw.put("a.txt", "x")
    os.mkfifo(raw.path / "pipe.txt")
    (raw.path / "gone.txt").symlink_to("nowhere")
    (raw.path / "loop").symlink_to(".")
    (tmp_path / "out.txt").write_text("out")
    (raw.path / "out.txt").symlink_to("../out.txt")
    made = raw.made()
    assert {key: code for (_, key), (code, _) in made.skipped.items()} == {
        "pipe.txt": "SRC111",
        "gone.txt": "SRC111 link",
        "loop": "SRC111 link",
    }
    assert made.written["train", "out.txt"]["file/bytes"] == [b"out"]
    assert raw.made("symlinks=inside").skipped["train", "out.txt"][0] == "SRC111 link"
    assert raw.made("symlinks=none").skipped["train", "out.txt"] == (
        "SRC111 link",
        "a symbolic link, which `symlinks=none` does not follow",
    )


def test_a_name_that_is_not_utf8_is_skipped(raw) -> None:
    raw.put(b"caf\xe9.txt", "x")
    raw.put("a.txt", "x")
    assert raw.made().codes() == ["SRC111"]


@pytest.mark.parametrize(
    ("names", "options"),
    [([], []), (["a.txt"], ["suffixes=wav"]), (["a.wav"], ["layout=split"])],
)
def test_a_folder_without_the_files_asked_for_is_refused(raw, names, options) -> None:
    for name in names:
        raw.put(name, wav())
    assert f"`{raw.path}`" in raw.error(*options).message


@pytest.mark.parametrize("options", [["pair=wav"], ["pair=wav,.WAV"], ["pair=a,b", "suffixes=a"]])
def test_an_option_of_another_form_is_a_usage_error(raw, options) -> None:
    with pytest.raises(UsageError) as caught:
        raw.source(*options)
    assert caught.value.exit_code == 2


def test_the_folder_is_described(raw) -> None:
    raw.put("yes/a.wav", wav())
    raw.put("yes/b", "x")
    assert raw.source("labels=folder").describe() == {
        "layout": "no splits",
        "files": "`1 .` and `1 .wav`",
        "features": "audio/…, file/…",
        "classes": "1 (`yes`)",
    }
