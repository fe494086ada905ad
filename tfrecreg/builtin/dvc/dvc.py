"""Runs DVC in this process. Importing DVC's API takes half a second once, but each DVC command
takes seconds to start.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import os
import posixpath
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tfrecreg.core.registry.git import work_tree
from tfrecreg.core.storage.paths import path_text
from tfrecreg.core.storage.renames import exclusive
from tfrecreg.core.values.errors import (
    FailureError,
    MissingExtraError,
    StorageError,
    TfrecregError,
    UsageError,
)

PIPELINE_NAME = "dvc.yaml"
"""The file that describes the stages of a pipeline."""
LOCK_NAME = "dvc.lock"
"""The file in which DVC records the outputs of stages."""

_STATE = ".tfrecreg/dvc"
_HARDLINK_LOCK = re.compile(rb"^\s*hardlink_lock\s*=\s*(true|1|yes|on)\s*$", re.I | re.M)
_locked: ContextVar[frozenset[Path]] = ContextVar("locked", default=frozenset())
"""The DVC repositories whose lock the current context holds."""
_one_at_a_time = threading.RLock()
"""Held during :func:`_quiet`, which changes settings of the whole process."""
_LOGGERS = ("dvc", "dvc_data", "dvc_objects", "scmrepo")


def available() -> bool:
    """Whether the `dvc` extra is installed. Does not import it."""
    return find_spec("dvc") is not None


def usable(root: str) -> bool:
    """Whether `root` is in a DVC repository and DVC is installed."""
    return initialised(root) and available()


def initialised(root: str) -> bool:
    """Whether `root` is in a DVC repository. Does not import DVC.

    A repository outside the git work tree of `root` is ignored, because git would not see its
    pointers.
    """
    return _repository(root) is not None


def _repository(root: str) -> Path | None:
    """The folder of the DVC repository that contains `root`."""
    here = Path(root).resolve()
    tree = work_tree(root)
    for folder in (here, *here.parents):
        if (folder / ".dvc" / "config").is_file():
            return folder
        if folder == tree:
            break
    return None


@contextlib.contextmanager
def locked(root: str, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold DVC's own lock, like the commands of DVC that add, check out or remove files.

    This needs no import of DVC, because DVC's lock (of zc.lockfile) is flock(2) on
    ``.dvc/tmp/lock``, and our own locks work the same way. The lock is reentrant. Outside a DVC
    repository, nothing is locked.
    """
    folder = _repository(root)
    if folder is None or folder in _locked.get():
        yield
        return
    path = folder / ".dvc/tmp/lock"
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(exist_ok=True)
            configs = (folder / ".dvc" / name for name in ("config", "config.local"))
            if any(_HARDLINK_LOCK.search(each.read_bytes()) for each in configs if each.is_file()):
                raise UsageError(
                    "tfrecreg needs DVC's lock with flock(2), but `core.hardlink_lock` is set"
                )
            stack.enter_context(exclusive(str(path), waiting))
        except OSError as error:
            raise StorageError(
                f"DVC's lock `{path_text(str(path))}` cannot be taken: {error.strerror}"
            ) from error
        token = _locked.set(_locked.get() | {folder})
        try:
            yield
        finally:
            _locked.reset(token)


def pointer(folder: str) -> str:
    """The pointer file, tracked by git, of a folder that DVC tracks: ``data/mnist.dvc``."""
    return f"{folder}.dvc"


def initialise(root: str) -> None:
    """Create a DVC repository in `root`, as `dvc init` does. It uses `--subdir` if `root` is below
    the root of a git work tree, and `--no-scm` outside git.
    """
    tree = work_tree(root)
    where = Path(root).resolve()
    with _quiet(root, "dvc init"):
        from dvc.repo import Repo

        below = tree is not None and tree != where
        Repo.init(str(where), no_scm=tree is None, subdir=below).close()


def keep(root: str, folder: str, adding: Callable[[], None]) -> tuple[str, dict[str, str]]:
    """Ensure that DVC's cache has `folder`. Adds it like `dvc add`, unless a stage has it as
    output. Returns DVC's hash of the folder (``….dir``), and a mapping from each path in the
    folder to the absolute path of its object in the cache.

    DVC does not verify objects that are already in its cache. A caller that needs verified bytes
    must hash them. The caller must take DVC's lock (:func:`locked`) before this call, and keep it
    until the bytes are hashed.
    """
    with locked(root), opened(root, f"dvc add {folder}") as repo:
        # DVC treats a path through a symbolic link as one outside its repository.
        where = Path(root).resolve() / folder
        value = _made_by_stage(repo, where, folder)
        if value is None:
            adding()
            value = str(repo.add(str(where))[0].outs[0].hash_info.value)
        return value, _listed(repo, value)


def _made_by_stage(repo: Any, where: Path, folder: str) -> str | None:
    made = [out for out in repo.index.outs if Path(out.fs_path) == where and out.stage.cmd]
    if not made:
        return None
    stage = made[0].stage  # the stage of an old `.dvc` file has no name
    name = str(getattr(stage, "name", stage.addressing))
    value = made[0].hash_info.value if made[0].hash_info is not None else None
    if not isinstance(value, str) or made[0].workspace_status():
        raise UsageError(
            f"`{folder}` differs from what `{LOCK_NAME}` records for the stage `{name}`",
            hint=f"run `dvc repro {name}`, or keep the current data with `dvc commit {name}`",
        )
    if made[0].changed_cache():
        raise UsageError(
            f"DVC's cache does not have the output of the stage `{name}`: `dvc commit {name}` "
            "puts it there"
        )
    return value


def cached_files(root: str, value: str) -> dict[str, str]:
    """The cached files of a folder: a map from a path in the folder to a path in DVC's cache. Files
    that the cache lacks are omitted. Changes nothing.
    """
    with opened(root, "dvc status") as repo:
        return _listed(repo, value)


def _listed(repo: Any, value: str) -> dict[str, str]:
    data = cached_list(repo.cache.local, value)
    files = files_in(data) if data is not None else {}
    places = {path: repo.cache.local.oid_to_path(oid) for path, oid in files.items()}
    return {path: place for path, place in places.items() if Path(place).is_file()}


def cached_list(cache: Any, value: str) -> bytes | None:
    """The list of a folder's files; None if the list is missing or damaged in the cache."""
    path = Path(cache.oid_to_path(value))
    data = path.read_bytes() if path.is_file() else b""
    return data if is_object(data, value) else None


def files_in(data: bytes) -> dict[str, str]:
    """Map each path in the list of a folder to the hash of the file."""
    return {str(each["relpath"]): str(each["md5"]) for each in json.loads(data)}


def is_object(data: bytes, oid: str) -> bool:
    """Whether the MD5 of `data` is that of an object."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest() == digest_of(oid)


def digest_of(oid: str) -> str:
    """The hex MD5 in the hash of a file or a folder."""
    return oid.partition(".")[0]


def tracked_hash(data: bytes, where: str, folder: str) -> str | None:
    """DVC's hash of a folder, read from one of DVC's files."""
    if not available():
        raise MissingExtraError("reading DVC's files", "dvc")
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(data.decode("utf-8"))
        stages = found["stages"].values() if where.endswith(LOCK_NAME) else [found]
        for out in (out for stage in stages for out in stage.get("outs", ())):
            if posixpath.normpath(posixpath.join(posixpath.dirname(where), out["path"])) == folder:
                value = out["md5"]
                return value if isinstance(value, str) else None
    except (YAMLError, ValueError, TypeError, AttributeError, KeyError):
        pass  # DVC cannot read such a file either
    return None


@contextlib.contextmanager
def opened(root: str, command: str) -> Iterator[Any]:
    """The DVC repository that contains `root`, as `dvc.repo.Repo`."""
    with _quiet(root, command):
        from dvc.lock import LockNoop
        from dvc.repo import Repo

        with Repo(str(Path(root).resolve())) as repo:
            if _repository(root) in _locked.get():
                repo.lock = LockNoop()  # this process already holds it, and DVC would wait for it
            yield repo


@contextlib.contextmanager
def _quiet(root: str, command: str) -> Iterator[None]:
    """Run DVC without its messages, its telemetry, and its world-writable folder of pickles."""
    if not available():
        raise MissingExtraError("tracking with DVC", "dvc")
    settings = {"DVC_NO_ANALYTICS": "1", "DVC_SITE_CACHE_DIR": str(_private_folder(root))}
    _one_at_a_time.acquire()
    before = {name: os.environ.get(name) for name in settings}
    levels: dict[logging.Logger, int] = {}
    os.environ.update(settings)
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # warnings of DVC and its libraries
            # Importing DVC configures its logging to stdout: import it first, then lower the level.
            import_module("dvc")
            levels = {each: each.level for each in map(logging.getLogger, _LOGGERS)}
            for logger in levels:
                logger.setLevel(logging.CRITICAL)
            yield
    except TfrecregError:
        raise
    except Exception as error:
        # The exceptions of DVC, of its libraries and of the system have no common base class.
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise FailureError(f"DVC refused: {lines[0]}", hint=f"`{command}` shows more") from error
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _one_at_a_time.release()


def _private_folder(root: str) -> Path:
    """A private folder for DVC's state, which contains pickles.

    DVC would create its subfolder `repo` with ``mode=0o777`` under an umask of 0, so everybody
    could write to it. DVC does not change an existing subfolder.
    """
    folder = Path(root).resolve() / _STATE
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for each in (folder, folder / "repo"):
            each.mkdir(mode=0o700, exist_ok=True)
            each.chmod(0o700)
    except OSError as error:
        raise StorageError(
            f"`{path_text(str(folder))}` cannot be made private: {error.strerror}"
        ) from error
    return folder
