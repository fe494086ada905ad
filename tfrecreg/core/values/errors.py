"""The exceptions of this package with their exit codes and hints, and how to install what lacks.

Each error a user can cause is one of these; the command line prints it as one line and its hint
as another. Any other exception is a bug and keeps its traceback::

    TfrecregError
    ├── UsageError            exit 2   a bad reference, option or path
    │   ├── ConfigError                `tfrecreg.toml`
    │   ├── UntrustedPluginError       a local plugin that this machine does not trust
    │   ├── RawDataError               raw data that is not what its source reads
    │   ├── SchemaError                a schema that does not parse
    │   ├── ManifestError              a manifest that does not parse or breaks its own digest
    │   ├── NotHereError               a build, release or schema that is not on this machine
    │   ├── NoShardsError              no TFRecord file where some were named
    │   ├── NoSuchRecordError          a record's number that is not there (also an IndexError)
    │   └── ConflictError              a version that exists with other content
    ├── RefusedError          exit 1   findings, skipped items or a number that understates
    │   └── DamagedRecordError         a record was asked for whose checksums do not hold
    └── FailureError          exit 3   the tool, a plugin or the machine
        ├── NewerFormatError           a file written by a newer tfrecreg
        ├── MissingExtraError          an optional dependency is not installed
        ├── PluginError                a plugin is broken or clashes with another
        │   └── UnknownPluginError exit 2   no plugin announces that name
        └── StorageError               a file cannot be read or written
            ├── MissingFileError   exit 2   a file or folder that is not there
            └── TransferError               a store gave other bytes on a second read

Whatever touches a file can raise a StorageError: docstrings of private functions name it only where
they say more.

A distribution that did not come from an index says where it came from in ``direct_url.json``:
https://packaging.python.org/specifications/direct-url/. An index may have nothing of that name, or
another version.
"""

from __future__ import annotations

import json
from functools import cache
from shlex import quote
from typing import Any

from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.text import safe

_LIMIT = 1000
"""Characters of a URL or a path."""


def install_command(distribution: str = OURS, extra: str = "", version: str = "") -> str:
    """The command that adds an extra, or installs the distribution."""
    origin, tool = _installed(distribution), _tool()
    name, extras = safe(distribution, limit=80), f"[{extra}]" if extra else ""
    if origin is None:
        pinned = f"=={safe(version, limit=40)}" if version else ""
        return f"{tool} install {quote(name + extras + pinned)}"
    if "dir_info" in origin:
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"{tool} install {editable}{quote(_path(origin) + extras)}"
    return f"{tool} install {quote(f'{name}{extras} @ {_url(origin)}')}"


def upgrade_hint() -> str:
    """What to do for a newer tfrecreg."""
    origin, tool = _installed(OURS), _tool()
    if origin is None:
        return f"{tool} install --upgrade {OURS}"
    where = _path(origin) if "dir_info" in origin else _url(origin)
    return f"this tfrecreg was installed from `{where}`: install a newer one"


@cache
def _installed(distribution: str) -> dict[str, Any] | None:
    """Where a distribution came from; None for an index, or if it is not installed."""
    try:
        found = json.loads(_read(distribution, "direct_url.json"))
        known = {"dir_info", "archive_info", "vcs_info"} & found.keys()
        usable = isinstance(found["url"], str) and all(
            isinstance(found[each], dict) for each in known
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return found if usable and known else None


@cache
def _tool() -> str:
    by_uv = _read(OURS, "INSTALLER").strip() == "uv" and not _read("pip", "METADATA")
    return "uv pip" if by_uv else "pip"


def _read(distribution: str, name: str) -> str:
    from importlib import metadata

    try:
        return metadata.distribution(distribution).read_text(name) or ""
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return ""


def _path(origin: dict[str, Any]) -> str:
    from urllib.parse import unquote, urlsplit

    return safe(unquote(urlsplit(origin["url"]).path), limit=_LIMIT)


def _url(origin: dict[str, Any]) -> str:
    url, found = origin["url"], origin.get("vcs_info")
    if found is not None:
        at = found.get("requested_revision") or found.get("commit_id")
        url = f"{found.get('vcs')}+{url}{f'@{at}' if at else ''}"
    return safe(url, limit=_LIMIT)


class TfrecregError(Exception):
    """The base class of all errors that this package raises deliberately.

    Args:
        message: what, where, expected against found; one line, no full stop.
        hint: what to do next; one line.

    Example:
        >>> try:
        ...     reg["mnist@7.*"]
        ... except tr.TfrecregError as error:
        ...     print(error.message, "|", error.hint, "|", error.exit_code)
        no release `mnist@7.*` | available: 1.0.0 | 2
    """

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        # A traceback does not show attributes, but its reader needs the hint.
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments are lost by the default pickling, and errors cross processes.
        return _rebuild, (type(self), self.message, self.hint)


def _rebuild(kind: type[TfrecregError], message: str, hint: str) -> TfrecregError:
    return kind(message, hint=hint)


class UsageError(TfrecregError):
    """The request is invalid.

    Example:
        >>> try:
        ...     reg["mnist"].release("1.0")
        ... except tr.UsageError as error:
        ...     print(error.message)
        `1.0` is not a version: expected MAJOR.MINOR.PATCH
    """

    exit_code = 2


class ConfigError(UsageError):
    """`tfrecreg.toml` does not parse or has an invalid value."""


class DatasetConfigError(ConfigError):
    """`datasets/NAME.toml` does not parse or has an invalid value: no other dataset is affected."""


class UntrustedPluginError(UsageError):
    """A local plugin is not trusted on this machine."""


class RawDataError(UsageError):
    """The raw data are not what the source reads."""


class SchemaError(UsageError):
    """A schema does not parse or contradicts itself."""


class ManifestError(UsageError):
    """A manifest does not parse, or does not match its digest."""


class NotHereError(UsageError):
    """A build, release or schema of the registry is not on this machine."""


class NoShardsError(UsageError):
    """There is no TFRecord file where some were named."""

    def __init__(self, message: str, *, hint: str = "", place: str = "") -> None:
        super().__init__(message, hint=hint)
        self.place = place


class ConflictError(UsageError):
    """The version exists already, with other content."""


class NoSuchNameError(UsageError, KeyError):
    """The registry has no dataset, release or stage of that name.

    Example:
        >>> try:
        ...     reg["mnits@1.0.0"]
        ... except KeyError as error:
        ...     print(error.message)
        no dataset `mnits`; did you mean `mnist`?
    """


class NoSuchRecordError(UsageError, IndexError):
    """The shard has no record of that number."""


class RefusedError(TfrecregError):
    """The command worked, and its result is a refusal.

    Args:
        findings: the reasons for the refusal.

    Example:
        >>> try:
        ...     reg["mnist"].built.check(expect={"train": 300}).raise_for_findings()
        ... except tr.RefusedError as error:
        ...     print([finding.code for finding in error.findings])
        ['SHD010']
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", findings: tuple[Finding, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.findings = findings


class DamagedRecordError(RefusedError):
    """The checksums of a requested record do not hold."""


class FailureError(TfrecregError):
    """The tool, a plugin or the machine failed.

    Example:
        >>> try:
        ...     tr.read("no/such/file.tfrecord", 0)
        ... except tr.FailureError as error:
        ...     print(type(error).__name__)
        MissingFileError
    """

    exit_code = 3


class NewerFormatError(FailureError):
    """The file was written by a newer tfrecreg."""


class MissingExtraError(FailureError):
    """A feature needs a package that is not installed.

    Args:
        feature: the requested feature, as the start of a sentence: ``"loading with tf.data"``.
        extra: the extra that provides it: ``"tf"``.
        distribution: the distribution that has the extra.
    """

    def __init__(self, feature: str, extra: str, distribution: str = "tfrecreg") -> None:
        super().__init__(
            f"{feature} needs the extra `{extra}`, which is not installed",
            hint=install_command(distribution, extra),
        )
        self.feature = feature
        self.extra = extra
        self.distribution = distribution

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.feature, self.extra, self.distribution)


class PluginError(FailureError):
    """A plugin is broken, unknown, or clashes with another."""


class DisabledPluginError(PluginError):
    """The plugin of that name is switched off."""

    exit_code = 2


class UnknownPluginError(PluginError):
    """No plugin has that name."""

    exit_code = 2

    def brought_by(self, distribution: str, version: str, when: str) -> UnknownPluginError:
        """The same error, if the distribution to install is known."""
        named, install = safe(distribution, limit=80), install_command(distribution)
        message = (
            f"{self.message.partition(';')[0]}; `{named}` {safe(version, limit=40)} provided it"
        )
        return UnknownPluginError(
            f"{message} for {when}",
            hint=f"install that distribution, such as by `{install}`",
        )


class StorageError(FailureError):
    """The file system, or its replacement, refused an operation.

    Its ``__cause__`` is the :class:`OSError` with its errno, if there was one.
    """


class TransferError(StorageError):
    """A store gave other bytes when the same range was read again: not damage in the store."""


class MissingFileError(StorageError):
    """A requested file or folder does not exist."""

    exit_code = 2
