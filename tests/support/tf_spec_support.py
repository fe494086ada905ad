"""TensorFlow's parse specification of a schema."""

from __future__ import annotations

import builtins
from typing import Any

from tfrecreg.core.schema.compiled import tf_source
from tfrecreg.core.schema.definition import Schema


def feature_spec(tf: Any, schema: Schema) -> dict[str, Any]:
    """What the printed source defines."""
    space: dict[str, Any] = {"tf": tf, "__builtins__": builtins}
    exec(tf_source(schema), space)
    found: dict[str, Any] = space["FEATURES"]
    return found
