"""URLs: how they are taken apart, and what of them is never shown."""

from __future__ import annotations

import pytest

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import named_url, split_url, without_secrets
from tfrecreg.core.storage.raw import storage_at, storage_of
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import DOCS


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@host/a?X-Amz-Signature=1#x", "https://host/a"),
        ("https://token@host/a", "https://host/a"),
        ("s3://key:secret@bucket/a", "s3://bucket/a"),
        ("s3://bucket/a?sig=1", "s3://bucket/a"),
        ("s3://bucket/train-?-of-?", "s3://bucket/train-?-of-?"),
        ("abfs://container@account.dfs.core.windows.net/a", None),
        ("no url", None),
    ],
)
def test_messages_have_no_secrets(url: str, shown: str | None) -> None:
    assert without_secrets(url) == (url if shown is None else shown)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "https://user:hunter2@host/a?sig=hunter2",
            "a URL of `https://` has a password or token, which others could see",
        ),
        ("s3://b/a?sig=hunter2", "`s3://b/a` has a query, but URLs of `s3://` have none"),
        ("git://../..:main@x", "`git://../..:main@x` is not read: `git://` is not known as"),
        ("LOCAL://../x", "`LOCAL://../x` is not read: `LOCAL://` is not known as a remote store"),
        ("zzz://x?y=hunter2", "`zzz://x` is not read: `zzz://` is not known as a remote store"),
        ("reference:///x", "`reference:///x` is not read: `reference://` is not known as"),
        ("s3://", "`s3://` names no bucket or host"),
        ("https:///x?sig=hunter2", "`https:///x` names no bucket or host"),
        ("file:///tmp/x", "`file:///tmp/x` is not read: `file://` is not known as a remote store"),
        ("simplecache::s3://b/x", "`simplecache::s3://b/x` is not read: `simplecache::s3://` is"),
    ],
)
def test_urls_that_are_refused(url: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        named_url(url)
    assert raised.value.message.startswith(message)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(("allowed", "fine"), [("", False), ("zip", False), ("zip, memory", True)])
def test_other_protocols_are_read_where_the_environment_names_them(
    monkeypatch: pytest.MonkeyPatch, allowed: str, fine: bool
) -> None:
    monkeypatch.setenv("TFRECREG_REMOTE_PROTOCOLS", allowed)
    if fine:
        assert named_url("memory://x/y") == "memory://x/y"
        return
    with pytest.raises(UsageError) as raised:
        named_url("memory://x/y")
    assert raised.value.exit_code == 2
    assert raised.value.message == (
        "`memory://x/y` is not read: `memory://` is not known as a remote store"
    )
    assert raised.value.hint == (
        f"{DOCS}/remote-data.md lists the known stores; for another protocol of fsspec that you "
        "trust, set TFRECREG_REMOTE_PROTOCOLS=memory"
    )


def test_a_location_has_its_storage() -> None:
    assert split_url("s3://bucket") == ("s3://bucket", "")
    assert storage_at("/tmp") == LocalStorage("/tmp")
    assert storage_of("/tmp/a") == (LocalStorage("/tmp"), "a")
    storage, path = storage_of("memory://folder/a/b")
    assert (storage.root, path) == ("memory://folder", "a/b")
