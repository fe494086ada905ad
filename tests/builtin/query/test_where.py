"""A condition in SQL as a list of record numbers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from check_support import framed

from tfrecreg.builtin.query.ask import ask_targets
from tfrecreg.builtin.query.where import matching_records
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.registry.find import find_target
from tfrecreg.core.values.errors import RefusedError, UsageError

pytest.importorskip("duckdb", reason="the extra `query` is not installed")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def found(target: object, where: str) -> list[list[int]]:
    return [each.tolist() for each in matching_records(find_target(str(target)), where)]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards of 6 and 0 records, and one of 4; `n` counts them, and one has none."""
    folder = tmp_path / "shards"
    folder.mkdir()
    payloads = [encode({"n": int64_feature(n), "name": bytes_feature(b"a'b")}) for n in range(9)]
    payloads.append(encode({"name": bytes_feature(b"no n")}))
    (folder / "x-00000-of-00003.tfrecord").write_bytes(framed(*payloads[:6]))
    (folder / "x-00001-of-00003.tfrecord").write_bytes(framed())
    (folder / "x-00002-of-00003.tfrecord").write_bytes(framed(*payloads[6:]))
    return folder


def test_records_are_numbered_in_each_shard_in_their_order(shards: Path) -> None:
    assert found(shards, "n % 2 = 1") == [[1, 3, 5], [], [1]]
    assert found(shards, "n >= 100") == [[], [], []]
    assert found(shards, "true") == [[0, 1, 2, 3, 4, 5], [], [0, 1, 2, 3]]


def test_null_does_not_hold(shards: Path) -> None:
    assert found(shards, "n < 100") == [[0, 1, 2, 3, 4, 5], [], [0, 1, 2]]
    assert found(shards, "NOT (n < 100)") == [[], [], []]
    assert found(shards, "n IS NULL") == [[], [], [3]]


def test_a_condition_may_have_comments_lines_quotes_and_subqueries(shards: Path) -> None:
    assert found(shards, "n = 1 -- the second") == [[1], [], []]
    assert found(shards, "n = 1\n  OR /* ) */ name = 'no n'\n") == [[1], [], [3]]
    assert found(shards, "name = 'a''b' AND n IN (SELECT max(n) FROM records)") == [[], [], [2]]
    assert found(shards, "(n = 2) OR (n = 3)") == [[2, 3], [], []]


def test_functions_that_always_have_the_same_value_are_allowed(shards: Path) -> None:
    assert found(shards, "if(list_avg([n]) > 2, nullif(n, 7), NULL) > 3") == [[4, 5], [], [0, 2]]
    assert found(shards, "name.upper() = 'NO N' OR n IN (FROM range(2))") == [[0, 1], [], [3]]
    assert found(shards, "hash(n) >= 0 AND n = 0") == [[0], [], []]
    assert found(shards, "hour(to_timestamp(3600 * n)) = 2 AND n = 2") == [[2], [], []]
    assert found(shards, f"n + {'0 + ' * 800} 1 = 2") == [[1], [], []]


def test_only_the_shards_of_the_target_are_asked(shards: Path) -> None:
    target = find_target(str(shards))
    last = dataclasses.replace(target, shards=target.shards[2:])
    (numbers,) = matching_records(last, "n = (SELECT min(n) FROM records)")
    assert numbers.tolist() == [0]
    assert numbers.dtype == np.int64


def test_a_shard_named_twice_has_its_numbers_twice(shards: Path) -> None:
    target = find_target(str(shards / "x-00000-of-00003.tfrecord"))
    twice = dataclasses.replace(target, shards=[*target.shards, *target.shards])
    assert [each.tolist() for each in matching_records(twice, "n > 3")] == [[4, 5], [4, 5]]


def test_numbers_are_those_of_a_release(digits_registry: Path) -> None:
    target = find_target("digits@1.0.0", registry=str(digits_registry))
    where = "split = 'train' AND label = '7'"
    with ask_targets([target]) as questions:
        rows = questions.answer(f"SELECT shard, record FROM records WHERE {where}").rows()
    numbers = matching_records(target, where)
    assert [
        (shard.name, number)
        for shard, each in zip(target.shards, numbers, strict=True)
        for number in each.tolist()
    ] == sorted((row["shard"], row["record"]) for row in rows)
    assert sum(map(len, numbers)) == len(rows) > 0


@pytest.mark.parametrize(
    ("where", "part"),
    [
        *(
            (where, "is not one condition")
            for where in (
                "n = 1) OR (n = 2",
                "SELECT * FROM records WHERE n = 1",
                "where n = 1",
                "n = 1; DROP VIEW records",
                "n = 1) LIMIT (1",
                "(n = 1",
                "n IN (COPY records TO '/tmp/x')",
                "n = 1 LIMIT 1",
                "n = 1 ORDER BY n",
            )
        ),
        ("", "the condition is empty"),
        (" -- nothing\n", "expected BOOLEAN"),
        ("n = 1] OR [n = 2", "syntax error"),
        ("n", "`n` is BIGINT, expected BOOLEAN"),
        ("n = 1, n = 2", ""),  # versions of DuckDB say it in other words
        ("nn = 3", 'Referenced column "nn" not found in FROM clause'),
        *(
            (where, f"`{word}` is not constant")
            for where, word in (
                ("random() < 0.5", "random"),
                ("n < 3 AND name > Current_Date", "current_date"),
                ("n IN (SELECT n FROM records USING SAMPLE 10)", "sample"),
                ("n IN (SELECT n FROM records TABLESAMPLE 10%)", "sample"),
                ('"random"() < 0.5', "random"),
                ('system.main."RANDOM"() < 0.5', "random"),
                ('name > "current_date"', "current_date"),
                ("ago(INTERVAL 1 DAY) > name", "ago"),
                ("n IN (SELECT max(n) FROM records ORDER BY uuid())", "uuid"),
                ("list_transform([n], lambda x: nextval('s'))[1] = 1", "nextval"),
                ("n IN (FROM query('SELECT random()'))", "query"),
                ("age(make_date(n, 1, 1)) > INTERVAL 1 DAY", "age"),
            )
        ),
        ("count(*) > 3", "WHERE clause cannot contain aggregates"),
        ("n = 'seven'", "Could not convert string 'seven' to INT64"),
    ],
)
def test_what_is_no_condition_is_refused(shards: Path, where: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        found(shards, where)
    assert part in caught.value.message


def test_files_are_not_read(shards: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("1\n")
    with pytest.raises(UsageError, match="disabled by configuration"):
        found(shards, f"n IN (SELECT column0 FROM read_csv('{tmp_path}/secret.csv'))")


def test_damaged_records_are_refused(shards: Path) -> None:
    path = shards / "x-00002-of-00003.tfrecord"
    data = bytearray(path.read_bytes())
    data[14] ^= 1
    path.write_bytes(data)
    with pytest.raises(RefusedError) as caught:
        found(shards, "n = 1")
    assert caught.value.message == (
        f"`{path}` is damaged, and a condition cannot be evaluated on damaged records"
    )
    assert caught.value.hint == f"`tfrecreg check {shards}` names the damaged records"


def test_shards_that_are_shown_alike_are_refused(shards: Path) -> None:
    first = find_target(str(shards / "x-00000-of-00003.tfrecord")).shards[0]
    other = dataclasses.replace(first, path="x-00002-of-00003.tfrecord")
    target = dataclasses.replace(find_target(str(shards)), shards=(first, other))
    with pytest.raises(UsageError, match="two shards have the same displayed name"):
        matching_records(target, "true")
