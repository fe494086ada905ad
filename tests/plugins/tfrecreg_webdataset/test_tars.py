"""Headers of tar files: every form that archivers write, and none that leads out or on for ever."""

from __future__ import annotations

import io
import random
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg_webdataset.tars import TarDamage, TarMember, TarWalk

from .conftest import tar

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


def walk(path: Path, data: bytes) -> tuple[list[TarMember], str]:
    (path / "a.tar").write_bytes(data)
    with LocalStorage(path).open("a.tar") as reader:
        found = TarWalk(reader)
        return list(found.members()), found.end_note


def damage(path: Path, data: bytes) -> TarDamage:
    with pytest.raises(TarDamage) as caught:
        walk(path, data)
    return caught.value


@pytest.mark.parametrize("kind", FORMATS)
def test_members_are_where_tarfile_finds_them(tmp_path: Path, kind: int) -> None:
    names = ["a.jpg", "./b/c.txt", "x" * 90 + "/" + "y" * 80 + ".cls", "empty.bin"]
    if kind != tarfile.USTAR_FORMAT:
        names += ["ü/" + "z" * 300 + ".json", "n" * 3000 + ".txt"]
    data = tar({name: name.encode() * 20 if name[0] != "e" else b"" for name in names}, kind)
    found, note = walk(tmp_path, data)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        expected = [(each.name.removeprefix("./"), each.offset_data, each.size) for each in archive]
    assert [(each.name, each.offset, each.size) for each in found] == expected
    assert not any(each.refused or each.is_folder for each in found)
    assert note == ""


def test_the_archives_of_gnu_tar_are_read(tmp_path: Path) -> None:
    program = shutil.which("tar")
    if program is None:
        pytest.skip("there is no program `tar`")
    raw = tmp_path / "raw"
    (raw / "deep").mkdir(parents=True)
    (raw / "deep/a.txt").write_bytes(b"text")
    (raw / "b.txt").hardlink_to(raw / "deep/a.txt")
    (raw / "c.txt").symlink_to("deep/a.txt")
    with (raw / "sparse.bin").open("wb") as file:
        file.truncate(1 << 24)
        for at in range(0, 1 << 24, 1 << 19):  # more holes than a header has room for
            file.seek(at)
            file.write(b"x")
    for form in ("gnu", "pax"):
        out = tmp_path / f"{form}.tar"
        made = [program, f"--format={form}", "-S", "--sort=name", "-cf", str(out), "."]
        subprocess.run(made, cwd=raw, check=True)
        found, note = walk(tmp_path, out.read_bytes())
        kinds = {each.name: each.refused for each in found if not each.is_folder}
        assert kinds["c.txt"] == "a symbolic link"
        assert sorted(kinds.values()) == ["", "a hard link", "a sparse file", "a symbolic link"]
        assert note == ""


def special(kind: bytes, name: str = "a.jpg", link: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def pax(records: bytes, kind: bytes = tarfile.XHDTYPE, size: int | None = None) -> bytes:
    info = tarfile.TarInfo("./PaxHeaders/a")
    info.type, info.size = kind, len(records) if size is None else size
    header = info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")
    return header + records + bytes(-len(records) % 512)


@pytest.mark.parametrize(
    "header",
    [
        special(tarfile.LNKTYPE, link="/etc/passwd"),
        special(tarfile.SYMTYPE, link="../../x"),
        special(tarfile.FIFOTYPE),
        special(tarfile.GNUTYPE_SPARSE),
        special(b"Z"),
        special(tarfile.REGTYPE, "/etc/a.jpg"),
        special(tarfile.REGTYPE, "a/../../b.jpg"),
        special(tarfile.REGTYPE, "\udcff.jpg"),
        special(tarfile.REGTYPE, ""),
        special(tarfile.REGTYPE, "n" * 5000),
        pax(b"17 path=../a.jpg\n") + special(tarfile.REGTYPE),
    ],
)
def test_what_is_no_plain_file_with_a_safe_name_is_refused(tmp_path: Path, header: bytes) -> None:
    found, _ = walk(tmp_path, header + tar({"b.txt": b"x"}))
    assert found[0].refused
    assert [each.name for each in found[1:]] == ["b.txt"]


@pytest.mark.parametrize(
    "data",
    [
        pax(b"9999 path=x\n"),
        pax(b"x path=x\n"),
        pax(b"0 path=x\n"),
        pax(b"9 pathxx\n"),
        pax(b"11 size=-1\n"),
        pax(b"", size=1 << 30),
        pax(b"", size=1000),
        pax(b"", tarfile.GNUTYPE_LONGNAME, 1 << 30),
    ],
)
def test_an_extended_header_is_bounded_and_strict(tmp_path: Path, data: bytes) -> None:
    assert not damage(tmp_path, data).is_other


def test_a_size_that_no_file_has_is_damage(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a.jpg")
    info.size = 1 << 50
    data = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")
    assert damage(tmp_path, data + bytes(2048)).name == "a.jpg"
    info.size = -1
    data = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")
    assert damage(tmp_path, data).name == "a.jpg"


def test_a_cut_at_any_byte_is_found_or_told(tmp_path: Path) -> None:
    whole = tar({f"{number}.txt": bytes([number]) * 700 for number in range(1, 4)})
    end = 3 * (512 + 1024)
    for stop in range(1, len(whole), 97):
        try:
            found, note = walk(tmp_path, whole[:stop])
        except TarDamage:
            assert stop < end or stop % 512
            continue
        if stop < end + 512:
            assert len(found) == (stop + 1536 - 512 - 700) // 1536
            assert note == "it ends without the blocks that end an archive"


def test_a_wrong_checksum_is_damage(tmp_path: Path) -> None:
    whole = bytearray(tar({"1.txt": b"x", "2.txt": b"y"}))
    whole[1024] ^= 1
    assert "byte 1024" in str(damage(tmp_path, bytes(whole)))
    assert damage(tmp_path, b"x" * 600).is_other
    assert not damage(tmp_path, b"").is_other


def test_data_behind_the_end_are_told(tmp_path: Path) -> None:
    found, note = walk(tmp_path, tar({"1.txt": b"x"}) + tar({"2.txt": b"y"}))
    assert [each.name for each in found] == ["1.txt"]
    assert "byte 1024" in note


def test_damaged_bytes_end_in_damage_or_members_inside_the_file(tmp_path: Path) -> None:
    whole = tar({f"{number}/ü.txt": b"text" * number for number in range(6)})
    dice = random.Random(7)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            found, _ = walk(tmp_path, bytes(data))
        except TarDamage:
            continue
        assert all(0 <= each.offset <= len(data) - each.size for each in found)
