"""Workers, scratch files and memory of the search for duplicates."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from check_support import Digits
from duplicates_support import codes, image, record, write
from memory_support import PRINT_PEAK, on_linux

from tfrecreg.builtin.validators import duplicates
from tfrecreg.builtin.validators.duplicate_matches import RUN_ROW, Run
from tfrecreg.builtin.validators.duplicates import (
    DuplicatesCodec,
    DuplicatesOptions,
    DuplicatesPart,
    DuplicatesValidator,
    DuplicatesVisitor,
)
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.framing import frame_header, masked_crc
from tfrecreg.core.registry.find import bare_files, target_of
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.workers.local import LocalEngine


class TestRuns:
    def test_workers_find_what_one_process_finds_and_leave_nothing_behind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payloads = [record(image(number % 70)) for number in range(100)]
        write(tmp_path, "train", payloads, shards=3)
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(scratch))
        options = CheckOptions(only=("duplicates",))
        paths = [str(path) for path in tmp_path.iterdir() if path.is_file()]
        one, two = (check(paths, options=options, engine=LocalEngine(jobs)) for jobs in (1, 2))
        assert one == two
        assert [finding.count for finding in one[0].findings] == [30]
        assert list(scratch.iterdir()) == []

    def test_a_worker_that_shares_no_folder_hands_its_runs_back(self, tmp_path: Path) -> None:
        payloads = [record(image(number % 70)) for number in range(100)]
        target = target_of(
            bare_files([str(path) for path in write(tmp_path, "train", payloads, 2)])
        )
        validator = DuplicatesValidator()

        class Elsewhere(LocalEngine):
            def run(self, function: Any, tasks: Any) -> Any:
                assert validator._folder is not None
                folder = Path(validator._folder.storage.root)
                away = folder.with_name(f"{folder.name}-away")
                for task in tasks:
                    folder.rename(away)
                    made = function(task)
                    away.rename(folder)
                    yield made

        result = run_scan(target, [validator], Elsewhere(1))
        assert result.complete
        assert [finding.count for finding in result.findings] == [30]

    def test_a_check_that_is_cut_short_leaves_nothing_behind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path, "train", [record(image(1))])
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(scratch))

        class Breaking(LocalEngine):
            def run(self, function: Any, tasks: Any) -> Any:
                for task in tasks:
                    function(task)
                    raise KeyboardInterrupt
                yield

        target = target_of(bare_files([str(tmp_path)]))
        validator = DuplicatesValidator()
        with pytest.raises(KeyboardInterrupt):
            run_scan(target, [validator], Breaking(1))
        del validator
        import gc

        gc.collect()
        assert list(scratch.iterdir()) == []

    def test_what_was_found_is_kept_for_the_next_check(self, digits: Digits) -> None:
        for path in sorted(digits.folder.glob("digits-*")):
            data = path.read_bytes()
            first = data[: 16 + int.from_bytes(data[:8], "little")]
            path.unlink()
            path.write_bytes(data + first)
            os.utime(path, (1, 1))
        seen = [digits.check("duplicates", cached=True) for _ in range(2)]
        assert [each["summary"]["cached"] for each in seen] == [0, 4]
        assert seen[0]["findings"] == seen[1]["findings"]
        assert seen[0]["measures"] == seen[1]["measures"]
        assert codes(seen[1]) == [("DUP001", "digits:test", 2), ("DUP001", "digits:train", 2)]

    def test_a_shard_of_too_many_records_is_read_again(
        self, digits: Digits, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(duplicates, "_MOST_KEPT", 50)
        for path in digits.folder.rglob("*"):
            os.utime(path, (1, 1))
        seen = [digits.check("duplicates", cached=True) for _ in range(2)]
        # The shards of `train` have 100 records each, those of `test` 30.
        assert [each["summary"]["cached"] for each in seen] == [0, 2]
        labels = Run(0, 51, "", bytes(51 * RUN_ROW.itemsize))  # of one image
        assert (
            DuplicatesCodec(LocalStorage("/nowhere")).pack(DuplicatesPart(labelled=[labels]))
            is None
        )

    def test_a_record_too_large_to_be_held_is_counted_as_not_compared(self) -> None:
        from functools import partial

        from scan_support import shard

        from tfrecreg.core.records.batch import StreamEnd

        make = partial(DuplicatesVisitor, DuplicatesOptions(), (), None)
        visitor = make(shard(LocalStorage("/nowhere"), "x"))
        visitor.batch(RecordBatch(0, [0], [1 << 31], [0], b"", whole=False))
        visitor.batch(RecordBatch(1, [9], [2], [0], b"\xff\xff"))
        part = visitor.close(StreamEnd("none", 0, 0, 0, 0, None, None))
        assert (part.unheld, part.compared) == (1, 1)


MEASURE = f"""
import sys
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
(report,) = check([sys.argv[1]], options=CheckOptions(only=("duplicates",)))
print(*(finding.count for finding in report.findings), report.records)
{PRINT_PEAK}"""


def peak(folder: Path) -> tuple[list[int], float]:
    """Counts of the findings and number of records; most memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder)], capture_output=True, text=True, check=True
    )
    counts, kibibytes = done.stdout.splitlines()
    return [int(count) for count in counts.split()], int(kibibytes) * 1024 / 1e6


def many(folder: Path, records: int, shards: int) -> None:
    """Tiny records, of which every thousandth is the same."""
    header = frame_header(9)
    for shard in range(shards):
        path = folder / f"x-train.tfrecord-{shard:05d}-of-{shards:05d}"
        with path.open("wb") as file:
            for number in range(records // shards):
                value = shard << 32 | number if number % 1000 else 1 << 63
                payload = b"\xff" + value.to_bytes(8, "little")
                file.write(header + payload + masked_crc(payload).to_bytes(4, "little"))


@on_linux
@pytest.mark.slow
def test_five_million_records_stay_under_250_mb(tmp_path: Path) -> None:
    many(tmp_path, 5_000_000, 5)
    counts, most = peak(tmp_path)
    assert counts == [4_999, 5_000_000]
    assert most < 250
