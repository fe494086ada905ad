"""A gate or a waiver that could never apply is refused by every command that would apply it."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tfrecreg.cli.main import main

WAIVER = '[[waivers]]\nowner = "ada"\nreason = "known"\nexpires = 2027-01-31\n'


@pytest.fixture
def say(
    digits_registry: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, list[str]]]:
    """``say(config, "check", "digits")``: exit code, and the lines on stderr."""
    monkeypatch.setenv("TFRECREG_JOBS", "1")
    file = digits_registry / "tfrecreg.toml"
    before = file.read_text("utf-8")

    def call(config: str, *arguments: str) -> tuple[int, list[str]]:
        file.write_text(f"{before}\n{config}\n", "utf-8")
        capsys.readouterr()
        code = main(["-C", str(digits_registry), *arguments])
        return code, capsys.readouterr().err.splitlines()

    return call


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            "[gates.digts]\nfail_on = 'warning'",
            "`gates.digts` matches no dataset; did you mean `digits`?",
        ),
        (f'{WAIVER}code = "CRC999"', "`waivers[0].code` matches no code: `CRC999`; did"),
        (f'{WAIVER}code = "OWN*"', "`waivers[0].code` matches no code: `OWN*`"),
        (f'{WAIVER}code = "crc002"', "`waivers[0].code` matches no code: `crc002`"),
        (
            f'{WAIVER}code = "CRC*"\n{WAIVER}fingerprint = "SHD777:digits:*"',
            "`waivers[1].fingerprint` matches no code: `SHD777`; did you mean `SHD007`?",
        ),
        (
            '[gates.default.severity]\nDUP02 = "error"',
            "`gates.default.severity.DUP02` matches no code: `DUP02`; did you mean `DUP002`?",
        ),
        (
            '[gates.digits.severity]\n"OLD*" = "error"',
            '`gates.digits.severity."OLD*"` matches no code',
        ),
        (
            f'{WAIVER}code = "SRC018 *gone*"',
            "`waivers[0].code` matches no code: `SRC018`; SRC018 became SRC091",
        ),
        (
            f'{WAIVER}fingerprint = "SRC018:digits:*"',
            "`waivers[0].fingerprint` matches no code: `SRC018`; SRC018 became SRC091",
        ),
        (
            '[gates.default.severity]\n"SRC02[12]" = "info"',
            '`gates.default.severity."SRC02[12]"` matches no code: `SRC02[12]`; SRC021 became '
            "SRC111, SRC022 became SRC114 or SRC119",
        ),
    ],
)
def test_what_could_never_apply_is_named(
    say: Callable[..., tuple[int, list[str]]], config: str, message: str
) -> None:
    code, said = say(config, "check", "digits")
    assert code == 2
    assert said[0].startswith(f"error: `tfrecreg.toml`: {message}")
    assert said[1:] == []


def test_a_waiver_that_lasts_too_long_is_refused(
    say: Callable[..., tuple[int, list[str]]],
) -> None:
    today = datetime.datetime.now(datetime.timezone.utc).date()
    last = today + datetime.timedelta(days=90)
    late = WAIVER.replace("2027-01-31", "2099-01-31") + 'code = "CRC*"\n'
    limit = "[policy]\nmax_waiver_days = 90\n"
    for command in (("check", "digits"), ("audit",)):
        code, said = say(limit + late, *command)
        assert code == 2
        assert said == [
            f"error: `tfrecreg.toml`: `waivers[0].expires` is 2099-01-31, later than {last}: "
            "`policy.max_waiver_days` is 90"
        ]
        code, said = say(limit + late.replace("2099-01-31", str(last)), *command)
        assert (code, said) == (0, [])
        assert say(late, *command)[0] == 0
        assert say(limit.replace("90", "99999999") + late, *command)[0] == 0
    code, said = say("[policy]\nmax_waiver_days = 0\n", "check", "digits")
    assert code == 2
    assert "`policy.max_waiver_days`" in said[0]


def test_every_command_that_applies_a_policy_refuses_it(
    say: Callable[..., tuple[int, list[str]]], digits_registry: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    ran = ("check", "digits", "--fail-on", "never", "--format", "json", "--output", str(report))
    assert say("", *ran)[0] == 0
    shards = shutil.copytree(digits_registry / "data/digits", tmp_path / "shards")
    state = (digits_registry / "data/digits/manifest.json").read_bytes()
    for arguments in (
        ("check",),
        ("check", str(shards / "digits-test.tfrecord-00000-of-00002")),
        ("build", "digits"),
        ("build", "digits", "--dry-run"),
        ("release", "digits", "--bump", "major"),
        ("adopt", "digits2", f"{shards}/*-of-*"),
        ("gate", "digits", "--report", str(report)),
    ):
        code, said = say("[gates.digts]", *arguments)
        assert (code, said[0]) == (
            2,
            "error: `tfrecreg.toml`: `gates.digts` matches no dataset; did you mean `digits`?",
        ), arguments
    assert (digits_registry / "data/digits/manifest.json").read_bytes() == state
    assert not (digits_registry / "registry/digits/2.0.0").exists()
    # Others read the same file, and apply nothing of it.
    assert say("[gates.digts]", "list")[0] == 0
