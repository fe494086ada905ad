"""A plugin that closes the streams of the command: the result is shown, or it is exit code 3."""

from __future__ import annotations

import pytest
from hostile_plugin_support import Place, plant_validator
from hostile_plugin_support import place as place  # the fixture

SLOW = pytest.mark.slow


@pytest.mark.medium
@pytest.mark.parametrize(
    "act",
    [
        "os.close(1)",
        pytest.param("os.close(1); os.close(2)", marks=SLOW),
        pytest.param("os.dup2(os.open('/dev/null', os.O_RDONLY), 1)", marks=SLOW),
    ],
)
def test_the_descriptor_of_a_plugin_is_not_that_of_results(place: Place, act: str) -> None:
    plant_validator(place.site, f"def finish(self, target, parts):\n    {act}\n    return iter(())")
    code, out, err = place.run("check", "0.tfrecord")
    assert (code, err) == (0, "")
    assert out.startswith("0.tfrecord")


@pytest.mark.medium
@pytest.mark.parametrize(
    "act",
    ["os.closerange(3, 64)", pytest.param("os.closerange(0, 64)", marks=SLOW)],
)
def test_a_plugin_that_closes_all_is_no_pass_and_no_traceback(place: Place, act: str) -> None:
    plant_validator(place.site, f"def finish(self, target, parts):\n    {act}\n    return iter(())")
    code, out, err = place.run("check", "0.tfrecord")
    assert (code, out) == (3, "")
    assert "Traceback" not in err
    assert err.splitlines()[0].startswith("error: ")
