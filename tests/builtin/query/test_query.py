"""Questions in SQL: rows, caches, columns of foreign records, access, formats, errors."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from check_support import framed
from tests_support import interruptible

import tfrecreg as tr
from tfrecreg.builtin.query.ask import ask
from tfrecreg.builtin.query.connection import Connection
from tfrecreg.cli.main import main
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.values.errors import NoShardsError, TfrecregError, UsageError
from tfrecreg.core.workers.local import LocalEngine

pytest.importorskip("duckdb", reason="the extra `query` is not installed")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/tfrecreg/catalogs"


def aged(path: Path) -> Path:
    """The file as if it was written a while ago, so that notes of it are kept."""
    long_ago = time.time() - 100
    os.utime(path, (long_ago, long_ago))
    return path


def written(path: Path, *payloads: bytes) -> Path:
    path.write_bytes(framed(*payloads))
    return aged(path)


def rows(target: object, sql: str) -> list[dict[str, object]]:
    with ask(str(target)) as questions:
        return questions.answer(sql).rows()


def columns(target: object) -> dict[str, str]:
    with ask(str(target)) as questions:
        return dict(questions.tables()[0].columns)


def test_a_release_is_a_table(digits_registry: Path) -> None:
    with ask("digits@1.0.0", registry=str(digits_registry)) as questions:
        found = questions.answer(
            "SELECT split, count(*) AS n, count(DISTINCT key) AS keys, min(width) AS w "
            "FROM records GROUP BY split ORDER BY split"
        )
        assert found.rows() == [
            {"split": "test", "n": 60, "keys": 60, "w": 28},
            {"split": "train", "n": 200, "keys": 200, "w": 28},
        ]
        assert found.notes == ()
    assert list(digits_registry.glob(".tfrecreg/cache/catalogs/shards/*/*.parquet"))


def test_columns_of_foreign_records_follow_the_rule(tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.tfrecord",
        encode(
            {
                "n": int64_feature(1),
                "mixed": int64_feature(1),
                "Width": int64_feature(5),
                "width": int64_feature(6),
                "key": bytes_feature(b"own"),
                'a"b; DROP': float_feature(0.5),
                "list": int64_feature([1, 2]),
            }
        ),
        encode({"n": int64_feature(2), "mixed": bytes_feature(b"\xff"), "list": int64_feature([])}),
        encode(
            {"n": int64_feature(3), "list": int64_feature(range(17)), "b": bytes_feature(b"x" * 65)}
        ),
        b"no example",
    )
    assert list(columns(path))[8:] == [
        "Width",
        'a"b; DROP',
        "b.size",
        "key_1",
        "list",
        "list.count",
        "mixed.text",
        "mixed.int64",
        "n",
        "width_1",
    ]
    found = rows(path, "SELECT * FROM records ORDER BY record")
    assert [each["list"] for each in found] == [[1, 2], [], None, None]
    assert [each["list.count"] for each in found] == [2, 0, 17, None]
    assert [each["mixed.text"] for each in found] == [None, "\\xff", None, None]
    assert [each["b.size"] for each in found] == [None, None, 65, None]
    assert [each["payload"] for each in found] == ["example"] * 3 + ["other"]


@pytest.mark.parametrize(
    "name",
    [
        *("image/object/bbox/xmin", "a.b", "a b", "A", "sélection", "名前", "🙂", "*", "SELECT"),
        *('"', "'", "'; DROP VIEW records; --", '"; SELECT 1; --', "a\nb", "a\tb", "\x1b[31m"),
        *("%s", "{0}", "$1", "?", "\\", "v0", "filename", "n" * 500, " ", "\u202e", "/etc/passwd"),
    ],
)
def test_any_name_of_a_feature_is_a_column(name: str, tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.tfrecord",
        encode({name: int64_feature(1), "other": int64_feature(5)}),
        encode({"other": int64_feature(6)}),
    )
    quoted = '"' + name.replace('"', '""') + '"'
    assert rows(path, f"SELECT {quoted} AS v, other FROM records ORDER BY record") == [
        {"v": 1, "other": 5},
        {"v": None, "other": 6},
    ]


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_that_sql_does_not_have_are_columns(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "x.tfrecord", encode({name: int64_feature(1)}))
    (column,) = list(columns(path))[8:]
    quoted = '"' + column.replace('"', '""') + '"'
    assert rows(path, f"SELECT {quoted} AS v FROM records") == [{"v": 1}]


def test_records_without_any_example_have_no_features(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tfrecord", b"", b"no example", b"\xff" * 9)
    assert list(columns(path)) == [
        *("split", "shard", "record", "offset", "bytes", "key", "digest", "payload"),
    ]
    found = rows(path, "SELECT record, bytes FROM records ORDER BY record")
    assert found == [{"record": n, "bytes": size} for n, size in enumerate((0, 10, 9))]


@pytest.mark.medium
def test_any_number_of_jobs_gives_the_same_rows(
    digits_original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrecreg.core.workers.local.WORTH_SECONDS", 0)
    found = []
    for jobs in (1, 2):
        folder = tmp_path / f"jobs{jobs}"
        shutil.copytree(digits_original / "data/digits", folder)
        (folder / "manifest.json").unlink()
        (folder / "ledger.jsonl").unlink()
        shards = f"{folder}/*.tfrecord-*"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache{jobs}"))
        with LocalEngine(jobs) as engine, ask(shards, engine=engine) as questions:
            found.append(questions.answer("SELECT * EXCLUDE (shard) FROM records").rows())
    assert found[0] == found[1]
    assert len(found[0]) == 260


def test_more_than_a_thousand_features_are_noted(tmp_path: Path) -> None:
    many = encode({f"f{number:04d}": int64_feature(number) for number in range(1001)})
    with ask(str(written(tmp_path / "x.tfrecord", many))) as questions:
        assert len(questions.tables()[0].columns) == 8 + 1000
        assert questions.notes == (
            f"`{tmp_path / 'x.tfrecord'}` has more than 1,000 features: only the first have "
            "columns",
        )


@pytest.mark.parametrize("folder", ["shards", "places"])
@pytest.mark.parametrize("damage", ["cut", "shortened", "emptied", "replaced", "gone"])
def test_a_damaged_catalog_is_made_again(
    folder: str, damage: str, tmp_path: Path, own_cache: Path
) -> None:
    path = written(tmp_path / "x.tfrecord", encode({"n": int64_feature(7)}))
    assert rows(path, "SELECT n FROM records") == [{"n": 7}]
    (file,) = own_cache.glob(f"{folder}/*/*")
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        left = {"cut": data[: len(data) // 2], "shortened": data[:-1], "emptied": b""}
        file.write_bytes(left.get(damage, b"not a catalog"))
    assert rows(path, "SELECT n FROM records") == [{"n": 7}]
    assert file.read_bytes() == data


def test_damaged_records_are_left_out_and_noted(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tfrecord", *(encode({"n": int64_feature(n)}) for n in range(3)))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with ask(str(path)) as questions:
        assert [row["n"] for row in questions.answer("SELECT n FROM records")] == [0, 2]
        (note,) = questions.notes
    assert note.startswith("1 damaged place is left out of")


def test_what_is_no_tfrecord_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(b"PK\x03\x04" * 100)
    with pytest.raises(NoShardsError, match="is not a TFRecord"):
        ask(str(path))


@pytest.mark.parametrize(
    "sql",
    [
        "COPY records TO '{0}/out.csv'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{1}' (FORMAT parquet, USE_TMP_FILE false)",
        "WITH x AS (COPY (SELECT 1) TO '{1}' (FORMAT parquet, USE_TMP_FILE false)) SELECT * FROM x",
        "ATTACH '{0}/other.db'",
        "SELECT * FROM read_csv('{0}/secret.csv')",
        "SELECT * FROM read_text('{0}/secret.csv')",
        "SELECT * FROM glob('{0}/*')",
        "SELECT * FROM '{0}/secret.csv'",
        "SELECT * FROM read_parquet('https://127.0.0.1:9/x.parquet')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA threads = 1",
        "SET enable_external_access = true",
        "SELECT 1; DROP VIEW records",
        "CREATE TABLE t AS SELECT 1",
        "EXPORT DATABASE '{0}/out'",
    ],
)
def test_a_question_reaches_nothing_but_its_tables(
    sql: str, tmp_path: Path, own_cache: Path
) -> None:
    path = written(tmp_path / "x.tfrecord", encode({"n": int64_feature(1)}))
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    with ask(str(path)) as questions:
        (part,) = own_cache.glob("shards/*/*")
        before, names = part.read_bytes(), sorted(each.name for each in tmp_path.iterdir())
        with pytest.raises(UsageError):
            questions.answer(sql.format(tmp_path, part))
        assert part.read_bytes() == before
        assert sorted(each.name for each in tmp_path.iterdir()) == names


def asked(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["query", *map(str, arguments)])
    out, err = capfd.readouterr()
    return code, out, err


def test_formats(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "x.tfrecord", encode({"t": bytes_feature(b"=1+1\x1b")}))
    sql = 'SELECT t, record AS "a|b" FROM records'
    assert asked(capfd, path, sql)[1] == "t         a|b\n=1+1\\x1b    0\n"
    assert asked(capfd, path, sql, "--format", "csv")[1] == "t,a|b\n'=1+1\x1b,0\n"
    assert asked(capfd, path, sql, "--format", "jsonl")[1] == '{"t": "=1+1\\u001b", "a|b": 0}\n'
    assert json.loads(asked(capfd, path, sql, "--json")[1])["rows"] == [{"t": "=1+1\x1b", "a|b": 0}]
    assert "| a\\|b |" in asked(capfd, path, sql, "--format", "markdown")[1]
    nested = "SELECT [1, 2] AS a, {'b': 'c', 'd': NULL} AS e, record = 0 AS f FROM records"
    assert asked(capfd, path, nested, "--format", "csv")[1] == (
        'a,e,f\n"[1, 2]","{""b"": ""c"", ""d"": null}",true\n'
    )
    target = tmp_path / "answer.parquet"
    assert asked(capfd, path, sql, "--format", "parquet", "--output", target)[0] == 0
    assert target.read_bytes()[:4] == b"PAR1"
    code, out, _ = asked(capfd, path)
    assert code == 0
    assert out.count("tfrecreg query ") == 3


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.csv", b"n\n0\n"),
        ("a.json", b"{"),
        ("a.jsonl", b'{"n": 0}\n'),
        ("A.PARQUET", b"PAR1"),
        ("a.md", b"| n |\n"),
        ("a.txt", b"  n\n  0\n"),
    ],
)
def test_the_suffix_of_a_file_is_its_format(
    name: str, start: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    payloads = [encode({"n": int64_feature(number)}) for number in range(1200)]
    path, target = written(tmp_path / "x.tfrecord", *payloads), tmp_path / name
    sql = "SELECT n FROM records ORDER BY n"
    assert asked(capfd, path, sql, "--output", target)[0] == 0
    assert target.read_bytes().startswith(start)
    if name == "a.csv":
        assert target.read_bytes().count(b"\n") == 1201
    code, _, err = asked(capfd, path, sql, "--output", target, "--format", "parquet")
    assert code == (0 if name in ("A.PARQUET", "a.txt") else 2)
    assert code == 0 or "does not match the format `parquet`" in err


@pytest.mark.parametrize("sql", ["", " \n"])
def test_an_empty_question_is_refused(
    sql: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "x.tfrecord", encode({"n": int64_feature(1)}))
    code, _, err = asked(capfd, path, sql)
    assert (code, err.splitlines()[0]) == (2, "error: the question is empty")


def test_a_comment_may_come_first(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "x.tfrecord", encode({"n": int64_feature(5)}))
    assert asked(capfd, path, "/* n */ SELECT n FROM records", "--format", "csv")[1] == "n\n5\n"


@pytest.mark.parametrize(
    ("sql", "error", "hint"),
    [
        (
            "SELECT * FROM nothere",
            "error: Table with name nothere does not exist",
            "hint: `tfrecreg query TARGET` without SQL shows",
        ),
        (
            "SELECT * FROM records WHERE n ::: 1",
            'error: syntax error at or near ":"',
            "hint: ",
        ),
        (
            "SELECT recrd FROM records",
            'error: Referenced column "recrd" not found in FROM clause! Candidate bindings: "rec',
            "hint: ",
        ),
        ("COPY records TO 'x'", "error: expected one SELECT", "hint: as in: SELECT"),
    ],
)
def test_errors_of_sql_are_one_line(
    sql: str, error: str, hint: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "x.tfrecord", encode({"n": int64_feature(1)}))
    code, out, err = asked(capfd, path, sql)
    assert (code, out) == (2, "")
    first, second = err.splitlines()
    assert first.startswith(error)
    assert second.startswith(hint)


def test_targets_have_letters(tmp_path: Path) -> None:
    paths = [
        str(written(tmp_path / f"{name}.tfrecord", encode({"n": int64_feature(name)})))
        for name in (1, 2)
    ]
    with ask(paths) as questions:
        assert questions.answer("SELECT a.n AS x, b.n AS y FROM a, b").rows() == [{"x": 1, "y": 2}]
        assert questions.answer("SELECT sum(n)::INT AS s FROM records").rows() == [{"s": 3}]
    with ask([paths[0]] * 2) as questions:  # one target twice
        assert questions.answer("SELECT a.n + b.n AS s FROM a, b").rows() == [{"s": 2}]


@pytest.mark.medium
def test_a_relation_outlives_the_one_that_it_is_made_of(digits_original: Path) -> None:
    release = tr.open(digits_original)["digits@1.0.0"]
    few = release.table(progress=False).filter("label = '7'").aggregate("count(*)")
    gc.collect()
    assert few.fetchall() == [
        (row["n"],)
        for row in release.query("SELECT count(*) AS n FROM records WHERE label = '7'").rows()
    ]


@pytest.mark.medium
def test_an_interrupt_ends_a_question(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tfrecord", encode({"n": int64_feature(1)}))
    sql = "SELECT * FROM range(10000000) a, range(1000000) b WHERE (a.range + b.range) = -1"
    with interruptible():
        asking = subprocess.Popen(
            [sys.executable, "-m", "tfrecreg", "query", str(path), sql, "-j", "1"],
            stderr=subprocess.PIPE,
            text=True,
        )
    while asking.poll() is None and not list(tmp_path.glob("cache/tfrecreg/catalogs/shards/*/*")):
        time.sleep(0.05)
    time.sleep(1)  # it is asking by now; an earlier interrupt ends it as well
    asking.send_signal(signal.SIGINT)
    _, err = asking.communicate(timeout=60)
    assert (asking.returncode, err.strip()) == (130, "error: interrupted")


def test_a_connection_closes_while_it_answers() -> None:
    connection = Connection(threads=1)
    connection.lock((), ())
    ended: list[TfrecregError] = []

    def ask() -> None:
        try:
            connection.batches("SELECT count(*) FROM range(1000000000000)")
        except TfrecregError as error:
            ended.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.5)
    connection.close()
    asking.join(20)
    assert len(ended) == 1
