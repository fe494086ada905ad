"""A real S3 server on loopback: Ceph's object gateway, with all objects in memory.

It needs Debian's packages ``ceph-mon``, ``ceph-osd``, ``ceph-common`` and ``radosgw``, and runs as
long as a command: ``python tests/support/radosgw_support.py aws s3 ls``.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

KEY, SECRET = "AKIATESTKEYID0000000", "SecretAccessKeyOfTheTests0123456789abcdef"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1",
}

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
ms_bind_msgr1 = false
public_network = 127.0.0.0/8
cluster_network = 127.0.0.0/8
osd_pool_default_size = 1
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
log_file = {folder}/$name.log
pid_file =

[client.rgw]
rgw_frontends = beast endpoint=127.0.0.1:{port}
rgw_data = {folder}/rgw
"""


@contextlib.contextmanager
def radosgw() -> Iterator[int]:
    """The port of an empty S3 server, whose one user has :data:`KEY` and :data:`SECRET`."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="radosgw-")))
        port = _free_port()
        for name in ("mon", "osd", "rgw"):
            (folder / name).mkdir()
        fsid, monitor = str(uuid.uuid4()), _free_port()
        configuration = folder / "ceph.conf"
        configuration.write_text(
            _CONFIGURATION.format(fsid=fsid, monitor=monitor, folder=folder, port=port)
        )

        def run(program: str, *arguments: str) -> None:
            command = [program, "-c", str(configuration), *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)

        def start(program: str, *arguments: str) -> None:
            daemon = subprocess.Popen(
                [program, "-c", str(configuration), "-f", *arguments],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.enter_context(daemon)
            stack.callback(daemon.kill)  # nothing is kept, so no journal is needed

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


def _wait_for(port: int) -> None:
    for _ in range(1200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise TimeoutError("the server does not answer")


if __name__ == "__main__":
    with radosgw() as port:
        environment = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", **ENVIRONMENT}
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **environment}).returncode)
