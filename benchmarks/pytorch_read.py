"""Epochs of images through a `DataLoader`, for `python -m benchmarks pytorch`.

usage: python -m benchmarks.pytorch_read ours|imagefolder|ours-224|imagefolder-224 FOLDER

FOLDER has the images in `raw`, and in `registry` the build `jpegs` of them. Both decode with Pillow
to uint8 and, for 224, resize with it. It prints the seconds of the faster of two epochs after a
first one, and the CPU seconds of all processes.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from typing import Any

WORKERS, BATCH = 2, 32


def ours(folder: Path, size: int) -> Any:
    """A data source with a sampler of its own order."""
    from torch.utils.data import DataLoader

    import tfrecreg
    from tfrecreg.torch import Collate, OrderSampler

    source = tfrecreg.data_source(
        "jpegs",
        "train",
        registry=folder / "registry",
        features=["image/encoded", "image/class/label"],  # what `ImageFolder` has, too
        decode=True,
        image_size=(size, size) if size else None,
    )
    return DataLoader(
        source,
        batch_size=BATCH,
        sampler=OrderSampler(source, seed=1),
        num_workers=WORKERS,
        persistent_workers=True,
        collate_fn=Collate(source),
    )


def imagefolder(folder: Path, size: int) -> Any:
    """The folder of images of torchvision, with its transforms."""
    from torch.utils.data import DataLoader
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    steps = [transforms.Resize((size, size))] if size else []
    steps.append(transforms.PILToTensor())
    return DataLoader(
        ImageFolder(str(folder / "raw"), transforms.Compose(steps)),
        batch_size=BATCH,
        shuffle=True,
        num_workers=WORKERS,
        persistent_workers=True,
    )


def main() -> None:
    """Read three epochs."""
    kind, name = sys.argv[1:]
    reader, _, size = kind.partition("-")
    loader = (ours if reader == "ours" else imagefolder)(Path(name), int(size or 0))
    taken = []
    for _ in range(3):
        begin, count = time.perf_counter(), 0
        for batch in loader:
            labels = batch["image/class/label"] if reader == "ours" else batch[1]
            count += len(labels)
        taken.append(time.perf_counter() - begin)
    del loader  # its workers end, and are counted
    time.sleep(0.5)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    work = sum(each.ru_utime + each.ru_stime for each in used)
    print(f"{kind} records={count} seconds={min(taken[1:])} processor={work}")


if __name__ == "__main__":
    main()
