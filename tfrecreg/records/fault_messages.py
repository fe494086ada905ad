"""The texts of faults: expected against found, and the effect on other records."""

from __future__ import annotations

from tfrecreg.records.frame_scan import stored_length
from tfrecreg.records.framing import HEADER_BYTES, MAX_LENGTH, OVERHEAD, masked_crc
from tfrecreg.records.resync import Resolution

LFS_POINTER = "a git-LFS pointer"
"""What stands in the place of a file that git-LFS did not fetch."""
_KNOWN = (
    (b"version https://git-lfs", LFS_POINTER),
    (b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", "an ArrayRecord, or other Riegeli records"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"PAR1", "a Parquet file"),
    (b"\x89HDF", "an HDF5 file"),
)


def header_detail(head: bytes, at: int, found: Resolution) -> str:
    """CRC001: a header whose checksum does not hold."""
    stored = stored_length(head)
    text = (
        f"length checksum should be 0x{masked_crc(head[:8]):08x}, "
        f"found 0x{int.from_bytes(head[8:HEADER_BYTES], 'little'):08x}"
    )
    if found.length is None:
        return text + lost(at, found)
    if found.length == stored:
        text += f"; the length {stored} itself is right"
    else:
        text += f"; length should be {found.length}, found {stored}"
    return text + ("; the data are intact" if found.intact else "; the data are damaged too")


def data_detail(crc: int, stored: int, at: int, found: Resolution) -> str:
    """CRC002: data whose checksum does not hold."""
    return f"data checksum should be 0x{crc:08x}, found 0x{stored:08x}" + lost(at, found)


def cut_detail(at: int, length: int, end: int) -> str:
    """CRC003: a record that the file ends in."""
    return f"the record should end at byte {at + OVERHEAD + length}, the stream ends at byte {end}"


def trailing_detail(head: bytes, left: int) -> str:
    """CRC004: bytes that begin no record."""
    if left < HEADER_BYTES:
        return f"{left} bytes are left, a record takes at least {OVERHEAD}: 0x{head.hex()}"
    begin = "zeros" if not any(head) else f"0x{head[:HEADER_BYTES].hex()}"
    return f"{left} bytes begin no record, and none follows: they begin with {begin}"


def huge_detail(length: int, found: Resolution) -> str:
    """CRC005: a length that no record has."""
    text = f"length should be at most {MAX_LENGTH}, found {length}; its checksum holds"
    if found.length == length:
        return text + "; the data are there, and intact"
    return text if found.length is None else f"{text}; the data are intact, {found.length} bytes"


def gzip_rest(at: int, behind: int, *, lost: bool, going: bool, known: bool) -> str:
    """CRC007: what becomes of the records, behind the words on the damage itself.

    Args:
        at: byte of the stream where the first damaged record starts.
        behind: byte of the stream where reading goes on.
        lost: whether anything is lost at all.
        going: whether anything follows.
        known: whether `behind` is certain.
    """
    if not lost:
        return "; no record is lost"
    if not going:
        return f"; the stream is lost from byte {at} on"
    if known:
        return f"; bytes {at} to {behind} of the stream are lost and count as one record"
    return f"; the stream is lost from byte {at} on, of unknown length: it counts as one record"


def stranger_detail(head: bytes, size: int) -> str:
    """CRC008: a file that is not a TFRecord."""
    kind = next((name for magic, name in _KNOWN if head.startswith(magic)), "")
    if not kind and not any(head):
        kind = "zeros"
    begin = f"0x{head[:HEADER_BYTES].hex()}" + (f" ({kind})" if kind else "")
    return f"no valid record in {size} bytes that begin with {begin}"


def lost(at: int, found: Resolution) -> str:
    """The loss besides the record itself: empty, or a clause that begins with `;`."""
    if found.next is None:
        return "; no sound record follows"
    if found.exact:
        return ""
    return (
        f"; the {found.next - at} bytes up to the next sound record, at byte {found.next}, "
        "are lost and count as one record"
    )
