"""A real S3 server on loopback: Ceph's object gateway, with all objects in memory.

Anyone can run it, if Debian's packages ``ceph-mon``, ``ceph-osd``, ``ceph-common`` and ``radosgw``
are installed::

    python tests/support/radosgw_support.py

It prints how a client reaches it, and runs until it is interrupted. With a command behind it, it
runs for that long: ``python tests/support/radosgw_support.py aws s3 ls``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

__all__ = ["KEY", "PROGRAMS", "SECRET", "missing_programs", "radosgw"]

KEY, SECRET = "AKIATESTKEYID0000000", "SecretAccessKeyOfTheTests0123456789abcdef"
PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin")

_SECONDS = 60
"""How long each step of the start may take: all of them together take three seconds."""

# Without authentication between the daemons no keyrings are needed; S3's own is not
# concerned. `radosgw` asks monitors for encryption unless told otherwise, which they offer to
# authenticated clients only.
_CONFIGURATION = """\
[global]
fsid = {fsid}
mon_host = [v2:127.0.0.1:{monitor}]
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_mon_client_mode = crc
ms_bind_ipv6 = false
ms_bind_msgr1 = false
public_network = 127.0.0.0/8
cluster_network = 127.0.0.0/8
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 1
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_data_avail_crit = 1
mon_data = {folder}/mon
osd_data = {folder}/osd
osd_objectstore = memstore
memstore_device_bytes = 4294967296
run_dir = {folder}
admin_socket = {folder}/$name.asok
crash_dir = {folder}/crash
log_file = {folder}/$name.log
pid_file =

[client.rgw]
rgw_frontends = beast endpoint=127.0.0.1:{port}
rgw_data = {folder}/rgw
"""


def missing_programs() -> str:
    """The reason why it cannot run here; empty if it can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


@contextlib.contextmanager
def radosgw() -> Iterator[int]:
    """The port of an empty S3 server, whose one user has :data:`KEY` and :data:`SECRET`."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="radosgw-")))
        port = _free_port()
        for name in ("mon", "osd", "rgw", "crash"):
            (folder / name).mkdir()
        fsid, monitor = str(uuid.uuid4()), _free_port()
        configuration = folder / "ceph.conf"
        configuration.write_text(
            _CONFIGURATION.format(fsid=fsid, monitor=monitor, folder=folder, port=port)
        )

        def run(*command: str) -> None:
            done = subprocess.run(
                [command[0], "-c", str(configuration), *command[1:]],
                text=True,
                capture_output=True,
                timeout=_SECONDS,
            )
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")

        def start(*command: str) -> None:
            daemon = subprocess.Popen(
                [command[0], "-c", str(configuration), "-f", *command[1:]],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(_end, daemon)

        monitors, disk = str(folder / "monmap"), str(uuid.uuid4())
        address = f"[v2:127.0.0.1:{monitor}]"
        run("monmaptool", "--create", "--addv", "a", address, "--fsid", fsid, monitors)
        run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitors)
        start("ceph-mon", "-i", "a")
        run("ceph", "osd", "new", disk, "0")
        run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", disk)
        start("ceph-osd", "-i", "0")
        start("radosgw", "-n", "client.rgw")
        _wait_for(port)
        names = ("--uid=tests", "--display-name=tests")
        keys = (f"--access-key={KEY}", f"--secret-key={SECRET}")
        run("radosgw-admin", "-n", "client.rgw", "user", "create", *names, *keys)
        yield port


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _end(daemon: subprocess.Popen[bytes]) -> None:
    # Nothing is kept, so no journal is needed.
    daemon.kill()
    daemon.wait()


def _wait_for(port: int) -> None:
    end = time.monotonic() + _SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


def _main(command: list[str]) -> int:
    missing = missing_programs()
    if missing:
        print(
            f"{missing}\nhint: apt-get install ceph-mon ceph-osd ceph-common radosgw",
            file=sys.stderr,
        )
        return 2
    with radosgw() as port:
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        if command:
            return subprocess.run(command, env={**os.environ, **environment}).returncode
        for name, value in environment.items():
            print(f"export {name}={value}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
