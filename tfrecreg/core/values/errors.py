"""The package's exceptions, with exit codes and hints. Some hints name an install command.

Each error that a user may meet is a :class:`UsageError` (a bad reference, option, path or input), a
:class:`RefusedError` (findings, or a version number that is too low) or a :class:`FailureError`
(the tool, a plugin or the machine failed). The command line prints the error in one line and its
hint in another. Any other exception is a bug and is printed with its traceback.

A distribution that was not installed from an index records its origin in ``direct_url.json``:
https://packaging.python.org/specifications/direct-url/. Install commands then name that origin,
because an index may lack the distribution or have another version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from shlex import quote

from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.text import safe, safe_message

_LIMIT = 1000
"""Maximum length of a URL or a path in characters."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, then the errors that led to it, each once: they may be in a circle."""
    each: BaseException | None = error
    seen: set[int] = set()
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or each.__context__


def install_command(distribution: str = OURS, extra: str = "") -> str:
    place, kind = _origin(distribution)
    name, extras = safe(distribution, limit=80), f"[{extra}]" if extra else ""
    if kind == "url":
        return f"{_tool()} install {quote(f'{name}{extras} @ {place}')}"
    flag = "-e " if kind == "editable" else ""
    return f"{_tool()} install {flag}{quote((place or name) + extras)}"


def upgrade_hint() -> str:
    place, _ = _origin(OURS)
    if not place:
        return f"{_tool()} install --upgrade {OURS}"
    return f"this tfrecreg was installed from `{place}`: install a newer one"


@cache
def _origin(distribution: str) -> tuple[str, str]:
    """The recorded origin of a distribution, and the kind of origin: ``url``, ``folder`` or
    ``editable``. Both texts are empty if the distribution came from an index or is not installed.
    """
    from urllib.parse import unquote, urlsplit

    try:
        found = json.loads(_read(distribution, "direct_url.json"))
        url, folder, vcs = found["url"], found.get("dir_info"), found.get("vcs_info")
        if folder is not None:
            place = safe(unquote(urlsplit(url).path), limit=_LIMIT)
            return place, "editable" if folder.get("editable") else "folder"
        if vcs is not None:
            url = f"{vcs['vcs']}+{url}@{vcs.get('requested_revision') or vcs['commit_id']}"
    except (ValueError, TypeError, KeyError, AttributeError):
        return "", ""
    return safe(url, limit=_LIMIT), "url"


@cache
def _tool() -> str:
    by_uv = _read(OURS, "INSTALLER").strip() == "uv" and not _read("pip", "METADATA")
    return "uv pip" if by_uv else "pip"


def _read(distribution: str, name: str) -> str:
    from importlib import metadata

    try:
        return metadata.distribution(distribution).read_text(name) or ""
    except metadata.PackageNotFoundError:
        return ""


class TfrecregError(Exception):
    """The base class of all errors that this package raises deliberately.

    Args:
        message: what is wrong and where, with the expected and the found value, in one line without
            a full stop. Characters that could mislead a terminal are escaped, and a message is cut
            at 2,000 characters.
        hint: what to do next, in one line, escaped and cut in the same way.

    Example:
        >>> try:
        ...     reg["mnist@7.*"]
        ... except tr.TfrecregError as error:
        ...     print(error.message, "|", error.hint, "|", error.exit_code)
        no release `mnist@7.*` | available: 1.0.0 | 2
    """

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        # Message and hint contain names from data, and whoever catches the error may print them.
        self.message = safe_message(message)
        self.hint = safe_message(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        # A traceback does not show attributes, but readers of a traceback need the hint.
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


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
    """`datasets/NAME.toml` does not parse or has an invalid value. Other datasets are not
    affected."""


class UntrustedPluginError(UsageError):
    """A local plugin is not trusted on this machine."""


class RawDataError(UsageError):
    """The source cannot read the raw data: they are missing or do not have the expected form."""


class SchemaError(UsageError):
    """A schema cannot be parsed, or it contradicts itself."""


class ManifestError(UsageError):
    """A manifest cannot be parsed, or it does not match its digest."""


class NotHereError(UsageError):
    """A build, release or schema of the registry is not on this machine."""


class NoShardsError(UsageError):
    """There is no TFRecord file at the given place."""


class ConflictError(UsageError):
    """A release with this version exists already, and its content differs."""


class NoSuchNameError(UsageError, KeyError):
    """The registry has no dataset, release or stage of the given name.

    Example:
        >>> try:
        ...     reg["mnits@1.0.0"]
        ... except KeyError as error:
        ...     print(error.message)
        no dataset `mnits`; did you mean `mnist`?
    """


class NoSuchRecordError(UsageError, IndexError):
    """The shard has no record with the given number."""


class RefusedError(TfrecregError):
    """The command ran to its end, and its result is a refusal.

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
    """A checksum of the requested record does not match."""


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
        feature: the feature, in words that begin a sentence, such as ``"loading with tf.data"``.
        extra: the name of the extra that installs the package, such as ``"tf"``.
        distribution: the distribution that defines the extra.
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
    """A plugin is broken or unknown, or has the same name as another plugin."""


class DisabledPluginError(PluginError):
    """The plugin of the given name is switched off."""

    exit_code = 2


class UnknownPluginError(PluginError):
    """No plugin has the given name."""

    exit_code = 2

    def brought_by(self, distribution: str, version: str, when: str) -> UnknownPluginError:
        """Copy this error. The copy names the distribution that provided the plugin."""
        named = f"`{safe(distribution, limit=80)}` {safe(version, limit=40)}"
        return UnknownPluginError(
            f"{self.message.partition(';')[0]}; {named} provided it for {when}",
            hint=install_command(distribution),
        )


class StorageError(FailureError):
    """The file system or a store refused an operation.

    If an :class:`OSError` is the reason, ``__cause__`` is this `OSError`, which has the errno.
    """


class TransferError(StorageError):
    """Two reads of the same range returned different bytes, so the stored bytes may be intact."""


class MissingFileError(StorageError):
    """A requested file or folder does not exist."""

    exit_code = 2
