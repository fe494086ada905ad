"""The few lines of code that use a version in a framework: ``tfrecreg show REF --code``.

Names of splits and features come from data. They stand in the code as literals of ASCII only.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tfrecreg.errors import TfrecregError, UsageError
from tfrecreg.example.decode import decode_or_none
from tfrecreg.example.kinds import PayloadKind
from tfrecreg.images.model import ImageError
from tfrecreg.images.read import read_header
from tfrecreg.manifest.adopted import adopted_kind
from tfrecreg.records.access import Records
from tfrecreg.registry.absence import absent_schema
from tfrecreg.registry.lookup import Resolved
from tfrecreg.schema.compiled import compile_schema
from tfrecreg.schema.definition import Schema
from tfrecreg.schema.proto import parse_schema
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe

_SIZE = (224, 224, 3)
"""Height, width and channels of images, where no image of the version is here to look at."""


@dataclass(frozen=True, slots=True)
class _Version:
    """What the code needs to know of a version. All texts are Python literals."""

    resolved: Resolved
    reference: str
    split: str
    registry: str
    """``, registry='…'``, or empty for the registry of the current folder."""
    schema: Schema | None
    """None if its records are not Examples."""

    @property
    def where(self) -> str:
        """The arguments that name the split."""
        return f"{self.reference}, {self.split}{self.registry}"

    @property
    def source(self) -> str:
        """The arguments of `data_source`."""
        if self.schema is None:
            return f"{self.where}, raw=True"
        return f"{self.where}, decode=True" if self.schema.images() else self.where


def snippet(resolved: Resolved, framework: str, *, registry: str | None = None) -> str:
    """Python code that uses a version, ready to paste.

    Args:
        resolved: the build or release.
        framework: one of :data:`FRAMEWORKS`.
        registry: path of the registry, for code that runs outside of it.

    Raises:
        UsageError: there is no such framework, or its code does not fit the version.
        SchemaError: the schema does not parse.
        ManifestError: the schema was changed after it was released.
    """
    if framework not in FRAMEWORKS:
        raise UsageError(
            f"no code for `{safe(framework)}`{did_you_mean(framework, FRAMEWORKS)}",
            hint=f"available: {listed(tuple(FRAMEWORKS))}",
        )
    splits = [each.name for each in resolved.manifest.splits]
    if not splits:
        raise UsageError(
            f"`{resolved.name}` has no split that code could read",
            hint=f"tfrecreg check {resolved.name}",
        )
    version = _Version(
        resolved,
        ascii(resolved.name),
        ascii("train" if "train" in splits else splits[0]),
        "" if registry is None else f", registry={registry!a}",
        _schema(resolved),
    )
    return FRAMEWORKS[framework](version)


def _schema(resolved: Resolved) -> Schema | None:
    if adopted_kind(resolved.manifest) is not PayloadKind.EXAMPLE:
        return None
    text = resolved.schema
    if text is None:
        raise absent_schema(resolved.dataset)
    return parse_schema(text, resolved.schema_path)


def _tf(version: _Version) -> str:
    if version.schema is None:
        body = "    print(batch.shape)  # payloads"
    else:
        body = "    print({name: value.shape for name, value in batch.items()})"
    return f"""\
import tfrecreg

train = tfrecreg.load({version.where}, batch_size=32, shuffle=True, seed=1)
for batch in train:
{body}
    break
"""


def _keras(version: _Version) -> str:
    image, label, classes = _supervised(version)
    height, width, channels = _image_shape(version.resolved, image)
    return f"""\
import keras
import tfrecreg

train = tfrecreg.load(
    {version.where},
    batch_size=32,
    shuffle=True,
    seed=1,
    decode=True,
    channels={channels},
    image_size=({height}, {width}),
    as_supervised=({image!a}, {label!a}),
)
model = keras.Sequential(
    [
        keras.Input(({height}, {width}, {channels})),
        keras.layers.Rescaling(1 / 255),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense({classes}, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train, epochs=1)
"""


def _numpy(version: _Version) -> str:
    if version.schema is None:
        body = """\
order = train.order(seed=1, epoch=0)
for number in order:
    payload = train[number]
    print(len(payload))
    break
"""
    else:
        body = """\
order = train.order(seed=1, epoch=0)
for batch in train.batches(32, order):
    print({name: getattr(value, "shape", len(value)) for name, value in batch.items()})
    break
"""
    return f"""\
import tfrecreg

train = tfrecreg.data_source({version.source})
{body}"""


def _grain(version: _Version) -> str:
    return f"""\
import grain.python as grain
import tfrecreg

train = tfrecreg.data_source({version.source})
# A batch is a list of elements; without batch_fn it is one of arrays, if all have equal shapes.
dataset = grain.MapDataset.source(train).shuffle(seed=1).batch(32, batch_fn=list)
for batch in dataset:
    print(len(batch))
    break
"""


def _torch(version: _Version) -> str:
    return f"""\
import tfrecreg
from torch.utils.data import DataLoader

train = tfrecreg.data_source({version.source})
order = train.order(seed=1, epoch=0)
# A batch is a list of elements; without collate_fn it is one of tensors, if all have equal shapes.
loader = DataLoader(train, batch_size=32, sampler=order, num_workers=0, collate_fn=list)
for batch in loader:
    print(len(batch))
    break
"""


def _tfds(version: _Version) -> str:
    if version.schema is None:
        raise _not_for(version, "TensorFlow Datasets", "its records are not Examples")
    name = version.resolved.name
    folder = f"{name.replace('@', '-')}-tfds"
    # safe() keeps a line break in the path of the registry inside the comment.
    path = version.registry and f"-C {shlex.quote(_registry_of(version))} "
    return f"""\
# first, at the command line: {safe(f"tfrecreg {path}export {name} --to tfds {folder}", limit=5000)}
import tensorflow_datasets as tfds

builder = tfds.builder_from_directory({folder!a})
train = builder.as_dataset(split={version.split}, shuffle_files=True)
for example in train.take(1):
    print(sorted(example))
"""


def _registry_of(version: _Version) -> str:
    return version.resolved.registry.storage.root


def _mlflow(version: _Version) -> str:
    return f"""\
import mlflow
import tfrecreg

dataset = tfrecreg.describe({version.reference}{version.registry})
with mlflow.start_run():
    mlflow.set_tags({{"dataset": dataset["reference"], "dataset.content": dataset["content"]}})
    mlflow.log_dict(dataset, "dataset.json")
"""


def _wandb(version: _Version) -> str:
    return f"""\
import tfrecreg
import wandb

dataset = tfrecreg.describe({version.reference}{version.registry})
with wandb.init(project={version.resolved.dataset.name!a}, config={{"dataset": dataset}}) as run:
    run.tags = (dataset["reference"],)
"""


FRAMEWORKS: Mapping[str, Callable[[_Version], str]] = {
    "tf": _tf,
    "keras": _keras,
    "numpy": _numpy,
    "grain": _grain,
    "torch": _torch,
    "tfds": _tfds,
    "mlflow": _mlflow,
    "wandb": _wandb,
}
"""The code by framework: the values of `show --code`."""


def _supervised(version: _Version) -> tuple[str, str, int]:
    """The features with image and class, and the number of classes.

    Raises:
        UsageError: the version does not have both, each once in every example.
    """
    labels = version.resolved.manifest.labels
    if version.schema is None:
        raise _not_for(version, "Keras", "its records are not Examples")
    single = [
        each
        for each in compile_schema(version.schema).features
        if each.is_required and each.tensor_shape == ()
    ]
    images = [each.name for each in single if each.is_image]
    classes = [each.name for each in single if each.kind == "INT" and labels.get(each.name)]
    if not images or not classes:
        what = "image" if not images else "class with names"
        raise _not_for(version, "Keras", f"no feature holds one {what} in every example")
    return images[0], classes[0], len(labels[classes[0]])


def _not_for(version: _Version, framework: str, why: str) -> UsageError:
    name = version.resolved.name
    return UsageError(
        f"there is no code for {framework} that fits `{name}`: {why}",
        hint=f"tfrecreg show {name} --code tf",
    )


def _image_shape(resolved: Resolved, feature: str) -> tuple[int, int, int]:
    """Height, width and channels of the first image, as code for the version should read it."""
    try:
        storage = resolved.storage()
        first = next(each for each in resolved.manifest.shards if each.records)
        with Records(first.path, storage=storage) as records:
            example = decode_or_none(records[0]) or {}
        header = read_header(example[feature].values[0])
    except (TfrecregError, ImageError, StopIteration, LookupError, TypeError):
        return _SIZE
    return header.height, header.width, 1 if header.channels == 1 else 3
