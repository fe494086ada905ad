"""The build hook: compiles the scanner (``walk.c``) into the wheel, and adds the schemas.

Where there is no compiler, or it fails, or ``TFRECREG_NO_COMPILE=1`` says so, the wheel goes
without the scanner and is one for all platforms; the scanner in Python finds the same, less
quickly. A wheel is built in a folder of its own and leaves the tree clean; an editable install,
which runs the tree as it lies, gets the library beside its source, where git ignores it.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "tfrecreg/core/records"
SOURCE = f"{FOLDER}/walk.c"
LIBRARY = f"{FOLDER}/libwalk.so.1"
NO_COMPILE = "TFRECREG_NO_COMPILE"

SHARED_SCHEMAS = "tfrecreg/core/build/sources"
"""The package of `objects*.pbtxt`, which several sources use."""

_SECONDS = 120


class NotCompiledError(Exception):
    """Why there is no library."""


class CompileHook(BuildHookInterface[BuilderConfig]):
    """What hatchling calls before and after it makes a wheel."""

    PLUGIN_NAME = "custom"
    _work: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the schemas and the compiled library; without a compiler, warn and leave it out."""
        root = Path(self.root)
        library = root / LIBRARY
        if version != "editable":
            build_data["force_include"].update(schema_places(root))
            self._work = Path(tempfile.mkdtemp(prefix="tfrecreg-build-"))
            library = self._work / library.name
        try:
            compile_scanner(root / SOURCE, library, os.environ)
        except NotCompiledError as error:
            self.app.display_warning(f"tfrecreg: no compiled scanner, the one in Python: {error}")
            return
        if version != "editable":
            build_data["force_include"][str(library)] = LIBRARY
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag(sysconfig.get_platform())}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled: it is in the wheel now."""
        del version, build_data, artifact_path
        if self._work is not None:
            shutil.rmtree(self._work, ignore_errors=True)


def schema_places(root: Path) -> dict[str, str]:
    """The place in the wheel of each schema: `coco_rle.pbtxt` belongs to the source `coco`."""
    places = {}
    for path in root.glob("schemas/*.pbtxt"):
        source = path.stem.partition("_")[0]
        package = SHARED_SCHEMAS if source == "objects" else f"tfrecreg_{source}"
        places[str(path)] = f"{package}/{path.name}"
    return places


def platform_tag(platform: str) -> str:
    """The last part of a wheel's name; the library is for no Python in particular."""
    return platform.replace("-", "_").replace(".", "_")


def compile_scanner(source: Path, target: Path, environ: Mapping[str, str]) -> None:
    """Compile the library, which appears whole or not at all.

    Args:
        source: the C file.
        target: the library. Equal sources and compilers make equal bytes, wherever they lie.
        environ: may name the compiler (`CC`) and its flags (`CFLAGS`, `LDFLAGS`, `ARCHFLAGS`).

    Raises:
        NotCompiledError: it is not wanted, there is no compiler, or it failed.
    """
    if environ.get(NO_COMPILE, "0") not in ("", "0"):
        raise NotCompiledError(f"{NO_COMPILE} is set")
    compiler = _compiler(environ)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    flags, more = platform_flags(sys.platform, sysconfig.get_platform(), environ)
    made = target.absolute().with_name(f"{target.name}.{os.getpid()}")
    command = [
        *compiler,
        *("-O3", "-Wall", "-fPIC", "-shared", f"-DTFRECREG_SOURCE=UINT64_C(0x{digest})"),
        *shlex.split(environ.get("CFLAGS", "")),
        *flags,
        *(source.name, "-o", str(made)),
        *shlex.split(environ.get("LDFLAGS", "")),
    ]
    try:
        done = subprocess.run(
            command,
            cwd=source.parent,  # so that no path of this machine is in the library
            env={**environ, **more},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode != 0 or not made.exists():
            said = done.stderr.strip() or f"exit code {done.returncode}"
            raise NotCompiledError(f"`{shlex.join(compiler)}` failed: {said}")
        made.replace(target)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotCompiledError(f"`{shlex.join(compiler)}` failed: {error}") from error
    finally:
        made.unlink(missing_ok=True)


def platform_flags(
    system: str, platform: str, environ: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """What a platform's compiler needs to be told: flags, and variables of its environment.

    Args:
        system: as in `sys.platform`.
        platform: as in `sysconfig.get_platform()`, which becomes the wheel's tag: the library has
            to run where that says.
        environ: what the user has set already.
    """
    if system != "darwin":
        # No build id and no symbols for a debugger: the same library from any folder.
        return ["-Wl,--build-id=none", "-s"], {}
    _, version, machine = platform.split("-", 2)
    machines = ["arm64", "x86_64"] if machine == "universal2" else [machine]
    flags = shlex.split(environ.get("ARCHFLAGS", ""))
    flags = flags or [part for each in machines for part in ("-arch", each)]
    known = "MACOSX_DEPLOYMENT_TARGET" in environ
    return flags, {} if known else {"MACOSX_DEPLOYMENT_TARGET": version}


def _compiler(environ: Mapping[str, str]) -> list[str]:
    """The command that compiles.

    Raises:
        NotCompiledError: there is none.
    """
    named = shlex.split(environ.get("CC", ""))
    path = environ.get("PATH", os.defpath)
    if named:
        return named
    found = next((each for each in ("cc", "gcc", "clang") if shutil.which(each, path=path)), None)
    if found is None:
        raise NotCompiledError("there is no C compiler (`cc`, `gcc` or `clang`)")
    return [found]
