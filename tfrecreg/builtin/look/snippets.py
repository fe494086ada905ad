"""Makes code that uses a build or a release, and lists the facts that identify it.

Names of splits and features come from data. The code contains them as pure ASCII literals.
"""

from __future__ import annotations

import shlex
from typing import Any

from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import read_header
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.registry.data import Resolved, expect_schema
from tfrecreg.core.registry.manifest import adopted_kind
from tfrecreg.core.schema.compiled import compile_schema
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import TfrecregError, UsageError
from tfrecreg.core.values.text import did_you_mean, listed, safe

_SIZE = (224, 224, 3)
"""Assumed height, width and channels if this machine has no image of the version."""


_TEMPLATES = {
    "tf": """\
import tfrecreg

train = tfrecreg.load({{ where }}, batch_size=32, shuffle=True, seed=1)
for batch in train:
{% if schema is none %}
    print(batch.shape)  # payloads
{% else %}
    print({name: value.shape for name, value in batch.items()})
{% endif %}
    break
""",
    "keras": """\
{% set image, label, classes, (height, width, channels) = supervised() %}
import keras
import tfrecreg

train = tfrecreg.load(
    {{ where }},
    batch_size=32,
    shuffle=True,
    seed=1,
    decode=True,
    channels={{ channels }},
    image_size=({{ height }}, {{ width }}),
    as_supervised=({{ image }}, {{ label }}),
)
model = keras.Sequential(
    [
        keras.Input(({{ height }}, {{ width }}, {{ channels }})),
        keras.layers.Rescaling(1 / 255),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense({{ classes }}, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train, epochs=1, shuffle=False)
""",
    "numpy": """\
import tfrecreg

train = tfrecreg.data_source({{ source }})
order = train.order(seed=1, epoch=0)
{% if schema is none %}
for number in order:
    payload = train[number]
    print(len(payload))
{% else %}
for batch in train.batches(32, order):
    print({name: getattr(value, "shape", len(value)) for name, value in batch.items()})
{% endif %}
    break
""",
    "grain": """\
import grain.python as grain
import tfrecreg

train = tfrecreg.data_source({{ source }})
# A batch is a list of elements; without batch_fn it is one of arrays, if all have equal shapes.
dataset = grain.MapDataset.source(train).shuffle(seed=1).batch(32, batch_fn=list)
for batch in dataset:
    print(len(batch))
    break
""",
    "torch": """\
import tfrecreg
from tfrecreg.torch import {{ "" if schema is none else "Collate, " }}OrderSampler
from torch.utils.data import DataLoader

train = tfrecreg.data_source({{ source }}{{ channels() }})
sampler = OrderSampler(train, seed=1)
{% if schema is none %}
collate = list
{% elif schema.images() %}
collate = Collate(train, pad_images=True)  # images of a batch may have several sizes
{% else %}
collate = Collate(train)
{% endif %}
loader = DataLoader(train, batch_size=32, sampler=sampler, collate_fn=collate)
for batch in loader:
{% if schema is none %}
    print(len(batch))  # payloads
{% else %}
    print({name: getattr(value, "shape", len(value)) for name, value in batch.items()})
{% endif %}
    break
""",
    "tfds": """\
# first, at the command line: {{ export() }}
import tensorflow_datasets as tfds

builder = tfds.builder_from_directory({{ folder }})
train = builder.as_dataset(split={{ split }}, shuffle_files=True)
for example in train.take(1):
    print(sorted(example))
""",
    "mlflow": """\
import mlflow
import tfrecreg

dataset = {{ registry }}.find({{ reference }}).describe()
with mlflow.start_run():
    mlflow.set_tags({"dataset": dataset["reference"], "dataset.content": dataset["content"]})
    mlflow.log_dict(dataset, "dataset.json")
""",
    "wandb": """\
import tfrecreg
import wandb

dataset = {{ registry }}.find({{ reference }}).describe()
with wandb.init(project={{ project }}, config={"dataset": dataset}) as run:
    run.tags = (dataset["reference"],)
""",
}
FRAMEWORKS = tuple(_TEMPLATES)
"""The values of `show --code`."""


def snippet(resolved: Resolved, framework: str, *, registry: str | None = None) -> str:
    """Python code that uses a version, ready to paste."""
    from jinja2 import Environment, StrictUndefined

    if framework not in FRAMEWORKS:
        raise UsageError(
            f"no code for `{framework}`{did_you_mean(framework, FRAMEWORKS)}",
            hint=f"available: {listed(FRAMEWORKS)}",
        )
    splits = [each.name for each in resolved.manifest.splits]
    if not splits:
        raise UsageError(f"`{resolved.name}` has no splits, so the code would have no data to read")
    schema, name = _schema(resolved), resolved.name
    split = "train" if "train" in splits else splits[0]
    place = "" if registry is None else f", registry={registry!a}"
    where = f"{name!a}, {split!a}{place}"
    folder = f"{name.replace('@', '-')}-tfds"
    how = ", raw=True" if schema is None else ", decode=True" if schema.images() else ""

    def channels() -> str:
        images = () if schema is None else schema.images()
        return f", channels={_image_shape(resolved, images[0])[2]}" if images else ""

    def export() -> str:
        if schema is None or schema.describes_sequences():
            raise _not_for(resolved, "TensorFlow Datasets", "its records are not Examples")
        path = f"-C {shlex.quote(resolved.registry.storage.root)} " if place else ""
        # safe() keeps a line break in the path of the registry inside the comment.
        return safe(f"tfrecreg {path}export {name} --to tfds {folder}", limit=5000)

    return (
        Environment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
        .from_string(_TEMPLATES[framework])
        .render(
            schema=schema,
            where=where,
            source=where + how,
            reference=ascii(name),
            registry="tfrecreg.open()" if registry is None else f"tfrecreg.open({registry!a})",
            split=ascii(split),
            folder=ascii(folder),
            project=ascii(resolved.dataset.name),
            channels=channels,
            export=export,
            supervised=lambda: _supervised(resolved, schema),
        )
    )


def _schema(resolved: Resolved) -> Schema | None:
    """The schema with which the code parses records; None if the code reads raw payloads."""
    kind = adopted_kind(resolved.manifest)
    if kind not in (PayloadKind.EXAMPLE, PayloadKind.SEQUENCE_EXAMPLE):
        return None
    schema = parse_schema(expect_schema(resolved), resolved.schema_path)
    is_read = kind is PayloadKind.EXAMPLE or schema.describes_sequences()
    return schema if is_read else None


def _supervised(
    resolved: Resolved, schema: Schema | None
) -> tuple[str, str, int, tuple[int, int, int]]:
    """The image feature, the class feature, the number of classes, and the shape of an image."""
    labels = resolved.manifest.labels
    if schema is None:
        raise _not_for(resolved, "Keras", "its records are not Examples")
    single = [
        each
        for each in compile_schema(schema).features
        if each.is_required and each.tensor_shape == ()
    ]
    images = [each.name for each in single if each.is_image]
    classes = [each.name for each in single if each.kind == "INT" and labels.get(each.name)]
    if not images or not classes:
        what = "image" if not images else "class with names"
        raise _not_for(resolved, "Keras", f"no feature holds one {what} in every example")
    image, label = images[0], classes[0]
    return ascii(image), ascii(label), len(labels[label]), _image_shape(resolved, image)


def _not_for(resolved: Resolved, framework: str, why: str) -> UsageError:
    return UsageError(f"there is no code for {framework} that fits `{resolved.name}`: {why}")


def _image_shape(resolved: Resolved, feature: str) -> tuple[int, int, int]:
    """Height, width and channels of the first image, as the code should decode it."""
    try:
        storage = resolved.storage()
        first = next(each for each in resolved.manifest.shards if each.records)
        with Records(first.path, storage=storage) as records:
            example = decode_or_none(records[0]) or {}
        header = read_header(example[feature].values[0])
    except (TfrecregError, ImageError, StopIteration, LookupError, TypeError):
        return _SIZE
    return header.height, header.width, 1 if header.channels == 1 else 3


def describe(resolved: Resolved) -> dict[str, Any]:
    """The facts that identify a version: :meth:`tfrecreg.Build.describe`."""
    manifest = resolved.manifest
    release, provenance = manifest.release, manifest.provenance
    return {
        "name": manifest.dataset,
        "version": release.version if release is not None else None,
        "reference": resolved.name,
        "content": manifest.content,
        "records": sum(split.records for split in manifest.splits),
        "splits": {split.name: split.records for split in manifest.splits},
        "bytes": sum(shard.bytes for shard in manifest.shards),
        "schema": manifest.schema.blake3,
        "manifest": manifest.digest,
        "git_commit": (provenance.commit if provenance is not None else "") or None,
    }
