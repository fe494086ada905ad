"""The program that the benchmark `engines` times: a build or a check on one engine.

usage: python -m benchmarks.engines_run build|check ENGINE JOBS RAW OUT      prints seconds

The seconds have the engine's start in them, and not the imports of tfrecreg. A check needs the
build that was made before in `OUT`.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import closing
from pathlib import Path


def main() -> None:
    import tfrecreg
    from tfrecreg.core.plugins.manager import plugins
    from tfrecreg.core.plugins.records import SourceRecord

    what, name, jobs, raw, out = sys.argv[1:]
    if what == "build" or not Path(out).exists():
        shutil.rmtree(out, ignore_errors=True)
        tfrecreg.init(out, with_dvc=False)
    bench = tfrecreg.open(out)["bench"]
    plugins().load(SourceRecord, "imagefolder")  # imports are not counted
    if what == "check" and not (Path(out) / "data" / "bench").exists():
        bench.build(source="imagefolder", raw=raw, shards=16)
    os.chdir(out)
    start = time.perf_counter()
    with closing(tfrecreg.engine(name, jobs=int(jobs))) as engine:
        if what == "build":
            bench.build(source="imagefolder", raw=raw, shards=16, engine=engine)
        else:
            report = tfrecreg.check("bench", engine=engine)
            assert report.status == "pass"
    print(f"{what} {name} jobs={jobs} seconds={time.perf_counter() - start:.3f}")


if __name__ == "__main__":
    main()
