"""Gates and waivers that could never apply, refused before any work is judged by them.

The configuration is parsed without knowing which datasets and codes there are. Here both are known:
the datasets of the registry, the codes of the bundled validators and those of the plugins that are
installed.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import groupby

from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.config import CONFIG_NAME, Config
from tfrecreg.core.values.errors import ConfigError
from tfrecreg.core.values.gating import Waiver
from tfrecreg.core.values.suggest import did_you_mean, listed
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import KeyPath

_DEFAULT = "default"
_POINTER, _SCHEMA = ".dvc", ".pbtxt"
_ALL_CODES = "`tfrecreg explain` lists all codes; those of a plugin are known where it is installed"


def expect_policy(
    registry: Registry, *names: str | None, today: datetime.date | None = None
) -> None:
    """Refuse a policy that is silently not applied, and a waiver that covers nearly everything, or
    for longer than `policy.max_waiver_days`.
    """
    config = registry.config
    _expect_datasets(registry, {_DEFAULT, *filter(None, names)})
    if config.waivers or any(gate.severity for gate in config.gates.values()):
        known = list(plugins_of(config).codes())
        _expect_severities(config, known)
        last = _last_day(config, today)
        for number, waiver in enumerate(config.waivers):
            place = KeyPath(CONFIG_NAME) / "waivers" / number
            _expect_waiver(waiver, place, known)
            if last is not None and waiver.expires > last:
                raise (place / "expires").error(
                    f"is {waiver.expires}, more than {config.policy.max_waiver_days} days from "
                    "today, the `policy.max_waiver_days`",
                    hint=f"let it expire on {last} or earlier, and renew it then",
                )


def _last_day(config: Config, today: datetime.date | None) -> datetime.date | None:
    """The last day that a waiver may have; None for any."""
    days = config.policy.max_waiver_days
    if days is None:
        return None
    day = today or datetime.datetime.now(datetime.timezone.utc).date()
    return day + datetime.timedelta(days=min(days, (datetime.date.max - day).days))


def _expect_datasets(registry: Registry, names: set[str]) -> None:
    unknown = [name for name in registry.config.gates if name not in names]
    if not unknown:
        return
    datasets = _datasets(registry)
    for name in unknown:
        if name not in datasets:
            raise (KeyPath(CONFIG_NAME) / "gates" / name).error(
                f"matches no dataset{did_you_mean(name, datasets)}",
                hint=f"datasets: {listed(sorted(datasets))}; for a new dataset, add "
                f"`{layout.DATASETS}/{safe(name)}.toml`",
            )


def _datasets(registry: Registry) -> set[str]:
    """Configured, built or released, or known to git by a schema or by DVC's pointer."""
    found = set(registry.dataset_names())
    for folder, suffix in (("schemas", _SCHEMA), (layout.BUILDS, _POINTER)):
        for entry in registry.storage.list(folder, recursive=False):
            name = entry.path.rpartition("/")[2]
            if name.endswith(suffix):
                found.add(name.removesuffix(suffix))
    return found


def _expect_severities(config: Config, known: Iterable[str]) -> None:
    # The default's first: a key of it is in every gate.
    for name in sorted(config.gates, key=lambda each: each != _DEFAULT):
        for glob in config.gates[name].severity:
            if not any(fnmatchcase(code, glob) for code in known):
                place = KeyPath(CONFIG_NAME) / "gates" / name / "severity" / glob
                raise place.error(f"matches no code{did_you_mean(glob, known)}", hint=_ALL_CODES)


def _expect_waiver(waiver: Waiver, place: KeyPath, known: list[str]) -> None:
    if not any(fnmatchcase(code, waiver.code) for code in known):
        raise _no_code(place / "code", waiver.code, known)
    named, colon, _ = waiver.fingerprint.partition(":")
    # A `*` may match more than the rest of the code.
    start = f"{named.partition('*')[0]}*" if "*" in named or not colon else named
    if not any(fnmatchcase(code, start) for code in known):
        raise _no_code(place / "fingerprint", named, known)
    families = list(_covered_families(waiver, known))
    if len(families) > 1:
        raise place.error(
            f"covers every finding of {listed(families)}",
            hint="a waiver must cover one family of codes, such as `IMG*`, or the `fingerprint` of "
            "one dataset",
        )


def _no_code(place: KeyPath, pattern: str, known: Iterable[str]) -> ConfigError:
    return place.error(
        f"matches no code: `{safe(pattern)}`{did_you_mean(pattern, known)}", hint=_ALL_CODES
    )


def _covered_families(waiver: Waiver, known: Iterable[str]) -> Iterator[str]:
    """The families whose every code it covers, in any dataset, split and shard."""
    for family, codes in groupby(sorted(known), key=lambda code: code[:3]):
        if all(
            fnmatchcase(code, waiver.code)
            and fnmatchcase(f"{code}:any dataset:any split:any subject", waiver.fingerprint)
            for code in codes
        ):
            yield family
