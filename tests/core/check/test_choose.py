"""Which validators run: third-party ones like bundled ones, and none is left out silently."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scan_support import files, stream

from tfrecreg.core.check.choose import Choice, choose
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.scan.interface import Baseline, Target
from tfrecreg.core.check.target import check_target
from tfrecreg.core.values.config import Config, GateConfig, parse_config
from tfrecreg.core.values.errors import ConfigError, PluginError, install_command
from tfrecreg.core.values.findings import Severity
from tfrecreg.core.workers.local import LocalEngine

Install = Callable[..., None]

BUNDLED = {"crc", "inflation", "manifest", "schema"}


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return files(tmp_path, stream(5), stream(4))


def chosen(target: Target, *only: str, skip: tuple[str, ...] = (), **gate: Any) -> Choice:
    return choose(target, GateConfig(**gate), only, skip)


def names(choice: Choice) -> list[str]:
    return [each.validator.name for each in choice.running]


def checked(target: Target, config: str = "", jobs: int = 1, **options: Any) -> Report:
    parsed = parse_config(config) if config else Config()
    return check_target(target, parsed, CheckOptions(**options), engine=LocalEngine(jobs))


def test_all_that_apply_run_and_the_others_say_why_not(target: Target) -> None:
    choice = chosen(target)
    assert {"crc", "manifest"} <= {*names(choice)}
    assert names(choice) == sorted(names(choice))
    skipped = {each.name: each.reason for each in choice.skipped}
    assert skipped["schema"] == "no schema: name one with --schema"
    assert skipped["registry"] == "bare files do not belong to a registry"
    assert {*names(choice), *skipped} >= BUNDLED
    assert choice.problems == []


def test_what_the_user_names_beats_what_the_gate_names(target: Target) -> None:
    assert names(chosen(target, validators=("manifest",))) == ["manifest"]
    assert names(chosen(target, "crc", validators=("manifest",))) == ["crc"]
    assert names(chosen(target, "manifest", "crc", "tfrecreg:crc")) == ["crc", "manifest"]


def test_an_unknown_name_in_a_gate_is_an_error_of_the_configuration(target: Target) -> None:
    with pytest.raises(ConfigError, match=r"^`tfrecreg\.toml`: no validator named `crk`; did you"):
        chosen(target, validators=("crk",))


def test_options_of_a_validator_without_any_are_refused(target: Target) -> None:
    with pytest.raises(ConfigError) as told:
        chosen(target, limits={"crc": {"nonsense": 1}})
    assert told.value.message == (
        "`tfrecreg.toml`: `limits.crc.nonsense` is unknown: the validator `crc` has no options"
    )


@pytest.mark.parametrize("name", ["quality", "Crc", "mani fest", "größe"])
def test_limits_for_nobody_make_the_check_incomplete(target: Target, name: str) -> None:
    limits = f'[gates.default]\nlimits."{name}" = {{ x = 1 }}\n'
    report = checked(target, limits)
    assert report.status == "error"
    assert f"`limits.{name}` in `tfrecreg.toml` is not judged: no" in report.errors[0]
    assert {"crc", "manifest"} <= set(report.validators)
    assert checked(target, f'{limits}validators = ["crc"]\n').status == "error"
    assert checked(target, limits, only=("crc",)).status == "pass"
    assert checked(target, limits, skip=(name,)).status == "pass"


@pytest.mark.parametrize(
    "how", [{"only": ("registry",)}, {"only": ("crc",), "skip": ("crc",)}, {"gate": ()}]
)
def test_a_check_that_nobody_makes_is_incomplete(target: Target, how: dict[str, Any]) -> None:
    gate = {"validators": how["gate"]} if "gate" in how else {}
    choice = chosen(target, *how.get("only", ()), skip=how.get("skip", ()), **gate)
    assert names(choice) == []
    assert choice.problems == ["no validator applies to `files`"]


# A third-party validator.


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.usefixtures("light_workers")
def test_a_third_party_validator_runs(install_plugin: Install, target: Target, jobs: int) -> None:
    install_plugin()
    report = checked(target, jobs=jobs)
    assert report.status == "pass"
    assert "even" in report.validators
    (even,) = [each for each in report.findings if each.code == "EVE001"]
    assert (even.count, even.severity, even.rule) == (5, Severity.WARNING, "even-record")
    assert [(each.shard, each.record) for each in even.locations] == [
        ("0.tfrecord", 0),
        ("0.tfrecord", 2),
        ("0.tfrecord", 4),
        ("1.tfrecord", 0),
        ("1.tfrecord", 2),
    ]


DECLARED = """
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class EvenOptions:
        least: int = 1
        of: tuple[str, ...] = ()

    Even.Options = EvenOptions

    def load():
        return Even
"""


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ("{ leest = 4 }", "`limits.even.leest` is not known; did you mean `least`?"),
        ("{ least = '4' }", "`limits.even.least` should be a whole number, found `4`"),
        ("{ least = 4, of = 'a' }", "`limits.even.of` should be a list, each item text, found"),
    ],
)
def test_declared_options_are_held_to_their_declaration(
    install_plugin: Install, target: Target, limits: str, says: str
) -> None:
    install_plugin(more=DECLARED)
    with pytest.raises(ConfigError) as caught:
        checked(target, f"[gates.default]\nlimits.even = {limits}\n")
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith(f"`tfrecreg.toml`: {says}")


def test_gates_know_it(install_plugin: Install, target: Target) -> None:
    install_plugin()
    config = (
        '[gates.default]\nvalidators = ["even"]\nseverity = { EVE001 = "error" }\n'
        "limits.even = { most = 3 }\n"
    )
    report = checked(target, config)
    assert report.status == "fail"
    assert report.validators == ("even",)
    assert report.findings[0].severity is Severity.ERROR
    assert [each.value for each in report.measures] == ["{'most': 3}"]


def test_two_of_one_name_both_run_and_the_name_alone_is_refused(
    install_plugin: Install, target: Target
) -> None:
    install_plugin("first")
    install_plugin("second")
    assert checked(target).validators.count("even") == 2
    assert checked(target, only=("second:even",)).validators == ("even",)
    with pytest.raises(PluginError, match=r"is announced by `first` 1\.5"):
        checked(target, only=("even",))


BROKEN = {
    "does not load": (
        "def load(): raise ImportError('no luck')",
        "the validator `even` of `stranger` 1.5 cannot be loaded: ImportError: no luck",
    ),
    "cannot be made": (
        """
        class Bad(Even):
            def __init__(self): raise ValueError("not today")
        def load(): return Bad
        """,
        "the validator `even` of `stranger` 1.5 failed: ValueError: not today (fake_stranger.py,",
    ),
    "exits": (
        """
        class Bad(Even):
            def __init__(self): raise SystemExit(0)
        def load(): return Bad
        """,
        "the validator `even` of `stranger` 1.5 failed: SystemExit: 0 (fake_stranger.py, line ",
    ),
    "has another name": (
        """
        class Bad(Even):
            name = "odd"
        def load(): return Bad
        """,
        "the validator `even` of `stranger` 1.5 failed: TypeError: its `name` is 'odd'",
    ),
    "cannot say whether it applies": (
        """
        class Bad(Even):
            def applies(self, target): return 1 / 0
        def load(): return Bad
        """,
        "the validator `even` of `stranger` 1.5 failed: ZeroDivisionError: division by zero (",
    ),
    "cannot begin": (
        """
        class Bad(Even):
            def begin(self, target, options): return 1 / 0
        def load(): return Bad
        """,
        "the validator `even` of `stranger` 1.5 failed: ZeroDivisionError: division by zero",
    ),
    "cannot look": (
        """
        class BadEye(Eye):
            def batch(self, batch): return 1 / 0
        class Bad(Even):
            def begin(self, target, options): return BadEye
        def load(): return Bad
        """,
        "the validator `even` of `stranger` 1.5 failed on `0.tfrecord` and 1 more: Zero",
    ),
    "cannot finish": (
        """
        class Bad(Even):
            def finish(self, target, parts): return 1 / 0
        def load(): return Bad
        """,
        "the validator `even` of `stranger` 1.5 failed: ZeroDivisionError: division by zero",
    ),
    "has no needs": (
        """
        class Bad(Even):
            needs = None
        def load(): return Bad
        """,
        "the validator `even` of `stranger` 1.5 failed: ValueError: None is not a valid Need",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("only", [(), ("crc", "even")])
def test_one_that_fails_makes_the_check_incomplete_and_harms_no_other(
    install_plugin: Install, target: Target, how: str, only: tuple[str, ...]
) -> None:
    more, message = BROKEN[how]
    alone = checked(target, only=("crc",))
    install_plugin(more=more)
    report = checked(target, only=only)
    assert (report.status, report.exit_code) == ("error", 3)
    (error,) = report.errors
    assert error.startswith(message)
    assert "crc" in report.validators
    assert [each for each in report.findings if each.code.startswith("CRC")] == list(alone.findings)
    assert report.records == 9


@pytest.mark.parametrize(
    "when", ["def __init__(self)", "def applies(self, target)"], ids=["made", "asked"]
)
def test_a_missing_extra_is_a_reason_not_to_run_unless_it_was_asked_for(
    install_plugin: Install, target: Target, when: str
) -> None:
    more = (
        "from tfrecreg.core.values.errors import MissingExtraError\n"
        f"class Needy(Even):\n    {when}: raise MissingExtraError('looking', 'tfdv')\n"
        "def load(): return Needy\n"
    )
    install_plugin(more=more)
    needs = "looking needs the extra `tfdv`, which is not installed: "
    reason = needs + install_command(extra="tfdv")
    report = checked(target)
    assert report.status == "pass"
    assert ("even", reason) in [(each.name, each.reason) for each in report.skipped]
    report = checked(target, only=("crc", "even"))
    assert report.status == "error"
    assert report.errors == (f"the validator `even`: {reason}",)
    report = checked(target, '[gates.default]\nvalidators = ["crc", "even"]\n')
    assert report.status == "error"


def test_what_a_target_is_compared_with_goes_to_workers(target: Target) -> None:
    class Bound(LocalEngine):
        """An engine with something that no process can hand on."""

        def __init__(self) -> None:
            super().__init__(1)
            self.lock = threading.Lock()

    found = pickle.loads(pickle.dumps(Baseline(replace(target, name="other"), Bound())))
    assert (found.target.name, len(found.target.shards), found.engine.jobs) == ("other", 2, 1)
