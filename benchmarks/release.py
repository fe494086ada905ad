"""The program that the benchmark `tracking` times: one release, or `dvc add` of the same folder.

usage: python -m benchmarks.release dvc|plain|add RAW OUT      prints the seconds of that process
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    kind, raw, out = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    Path(out).mkdir(parents=True)
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1", "DVC_SITE_CACHE_DIR": f"{out}/.site"}

    def run(*command: str) -> float:
        start = time.perf_counter()
        subprocess.run(command, cwd=out, check=True, capture_output=True, env=environment)
        return time.perf_counter() - start

    ours = (sys.executable, "-m", "tfrecreg")
    dvc = (sys.executable, "-m", "dvc")
    if kind != "plain":
        run("git", "init", "-q")
    run(*ours, "init", *(["--no-dvc"] if kind == "plain" else []))
    run(*ours, "build", "bench", "--source", "imagefolder", "--raw", str(Path(raw).absolute()))
    last = (*dvc, "add", "data/bench") if kind == "add" else (*ours, "release", "bench")
    print(f"{kind} seconds={run(*last):.3f}")


if __name__ == "__main__":
    main()
