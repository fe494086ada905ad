"""DVC, in process. Each of its commands takes seconds to start; its API takes half a second
once.
"""

from __future__ import annotations

import contextlib
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
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tfrecreg.core.registry.git import work_tree
from tfrecreg.core.storage.paths import advice, path_text
from tfrecreg.core.storage.renames import exclusive
from tfrecreg.core.values.errors import (
    FailureError,
    MissingExtraError,
    StorageError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.text import safe

PIPELINE_NAME = "dvc.yaml"
"""The file that describes the stages of a pipeline."""
LOCK_NAME = "dvc.lock"
"""The file in which DVC records the outputs of a pipeline's stages."""

_STATE = ".tfrecreg/dvc"
_HARDLINK_LOCK = re.compile(rb"^\s*hardlink_lock\s*=\s*(true|1|yes|on)\s*$", re.I | re.M)
_locked: ContextVar[frozenset[Path]] = ContextVar("locked", default=frozenset())
"""DVC repositories whose lock the current context holds."""
_one_at_a_time = threading.RLock()
"""The changes of :func:`_quiet` affect the whole process."""
_LOGGERS = ("dvc", "dvc_data", "dvc_objects", "scmrepo")


def available() -> bool:
    """Whether the `dvc` extra is installed. Does not import it."""
    return find_spec("dvc") is not None


def usable(root: str) -> bool:
    """Whether `root` is in a DVC repository, and DVC is installed."""
    return initialised(root) and available()


@dataclass(frozen=True, slots=True)
class Kept:
    """A folder in DVC's cache."""

    value: str
    """DVC's hash of the folder (``….dir``)."""
    files: dict[str, str]
    """Absolute path of the object in the cache, by path in the folder."""


def initialised(root: str) -> bool:
    """Whether `root` is in a DVC repository. Does not import DVC.

    A repository outside the git work tree of `root` does not count: git would not see its pointers.
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
    """Hold DVC's own lock, as its commands do that add, check out or remove files.

    Does not import DVC: the lock is that of zc.lockfile, flock(2) on ``.dvc/tmp/lock``. If DVC is
    configured to lock by hard links (``core.hardlink_lock``), its own code takes the lock, and
    gives up after three seconds. The lock is reentrant. Outside a DVC repository there is none.
    """
    folder = _repository(root)
    if folder is None or folder in _locked.get():
        yield
        return
    path = folder / ".dvc/tmp/lock"
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(exist_ok=True)
            if _locks_by_hard_links(folder):
                stack.enter_context(_hardlink_lock(root, path))
            else:
                stack.enter_context(exclusive(str(path), waiting))
        except OSError as error:
            raise StorageError(
                f"DVC's lock `{path_text(str(path))}` cannot be taken: {error.strerror}",
                hint=advice(error) or "check who owns the folder, and its permissions",
            ) from error
        token = _locked.set(_locked.get() | {folder})
        try:
            yield
        finally:
            _locked.reset(token)


def _locks_by_hard_links(folder: Path) -> bool:
    for name in ("config", "config.local"):
        path = folder / ".dvc" / name
        if path.is_file() and _HARDLINK_LOCK.search(path.read_bytes()):
            return True
    return False


@contextlib.contextmanager
def _hardlink_lock(root: str, path: Path) -> Iterator[None]:
    with _quiet(root, "dvc status"):
        from dvc.lock import make_lock

        lock = make_lock(str(path), tmp_dir=str(path.parent), hardlink_lock=True)
        lock.lock()
    try:
        yield
    finally:
        lock.unlock()


def pointer(folder: str) -> str:
    """The pointer file in git of a folder that DVC tracks: ``data/mnist.dvc``."""
    return f"{folder}.dvc"


def initialise(root: str) -> None:
    """Create a DVC repository in `root`: `dvc init`, with `--subdir` below a git work tree's root
    and with `--no-scm` outside git.
    """
    tree = work_tree(root)
    where = Path(root).resolve()
    with _quiet(root, "dvc init"):
        from dvc.repo import Repo

        below = tree is not None and tree != where
        Repo.init(str(where), no_scm=tree is None, subdir=below).close()


def keep(root: str, folder: str, adding: Callable[[], None] | None = None) -> Kept:
    """Ensure that `folder` is in DVC's cache: as the output of a pipeline's stage, or by adding it,
    as `dvc add` does.

    DVC does not verify the bytes of objects that are already in its cache: a caller that needs this
    hashes them, and holds DVC's lock (:func:`locked`) from before this call until then.
    """
    with locked(root), opened(root, f"dvc add {folder}") as repo:
        # DVC treats a path through a symbolic link as one outside its repository.
        where = Path(root).resolve() / folder
        value = _made_by_stage(repo, where, folder)
        if value is None:
            if adding is not None:
                adding()
            value = _add(repo, where, folder)
        return Kept(value, _listed(repo, value))


def _add(repo: Any, where: Path, folder: str) -> str:
    stages = repo.add(str(where))
    value = stages[0].outs[0].hash_info.value
    if not isinstance(value, str):
        raise FailureError(
            f"DVC tracked `{safe(folder)}` and reported no hash for it",
            hint=f"try `dvc add {folder}` by hand",
        )
    return value


def _made_by_stage(repo: Any, where: Path, folder: str) -> str | None:
    made = [out for out in repo.index.outs if Path(out.fs_path) == where and out.stage.cmd]
    if not made:
        return None
    stage = made[0].stage  # the stage of an old `.dvc` file has no name
    name = str(getattr(stage, "name", stage.addressing))
    value = made[0].hash_info.value if made[0].hash_info is not None else None
    if not isinstance(value, str) or made[0].workspace_status():
        raise UsageError(
            f"`{folder}` is not what `{LOCK_NAME}` records for the stage `{safe(name)}`",
            hint=f"dvc repro {safe(name)}; or, to keep the current data: dvc commit {safe(name)}",
        )
    if made[0].changed_cache():
        raise UsageError(
            f"DVC's cache does not have the output of the stage `{safe(name)}`",
            hint=f"dvc commit {safe(name)}",
        )
    return value


def cached_files(root: str, value: str) -> dict[str, str]:
    """The files of a folder in DVC's cache on this machine. Only reads."""
    with opened(root, "dvc status") as repo:
        return _listed(repo, value)


def _listed(repo: Any, value: str) -> dict[str, str]:
    cache = repo.cache.local
    listing = Path(cache.oid_to_path(value))
    if not listing.is_file():
        return {}
    listed = json.loads(listing.read_bytes())
    places = {each["relpath"]: cache.oid_to_path(each["md5"]) for each in listed}
    return {path: place for path, place in places.items() if Path(place).is_file()}


def tracked_hash(data: bytes, where: str, folder: str) -> str | None:
    """DVC's hash of a folder, from one of its own files."""
    if not available():
        raise MissingExtraError("reading DVC's files", "dvc")
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(data.decode("utf-8"))
    except (YAMLError, UnicodeDecodeError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    stages = found.get("stages") if where.endswith(LOCK_NAME) else {"": found}
    above = posixpath.dirname(where)
    for stage in stages.values() if isinstance(stages, dict) else ():
        outs = stage.get("outs") if isinstance(stage, dict) else None
        for out in outs if isinstance(outs, list) else ():
            if not isinstance(out, dict) or not isinstance(out.get("path"), str):
                continue
            if posixpath.normpath(posixpath.join(above, out["path"])) == folder:
                value = out.get("md5")
                return value if isinstance(value, str) else None
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
    """DVC without its messages, its telemetry, and its world-writable folder of pickles."""
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
        # DVC's exceptions have no common base class: its own errors, its libraries', the system's.
        lines = str(error).strip().splitlines() or [type(error).__name__]
        hint = f"`{command}` shows more"
        raise FailureError(f"DVC refused: {safe(lines[0], limit=500)}", hint=hint) from error
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
    """A private folder for DVC's state, which holds pickles.

    DVC itself creates `repo` in it writable for everybody (``mode=0o777`` under an umask of 0), and
    does not change an existing one.
    """
    folder = Path(root).resolve() / _STATE
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for each in (folder, folder / "repo"):
            each.mkdir(mode=0o700, exist_ok=True)
            each.chmod(0o700)
    except OSError as error:
        raise StorageError(
            f"`{path_text(str(folder))}` cannot be made private: {error.strerror}",
            hint="check who owns the folder, and its permissions",
        ) from error
    return folder
