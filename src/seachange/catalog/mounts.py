"""Detection of the file system of a path: SQLite's locks are not reliable over a network."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from seachange import errors

MOUNTINFO = Path("/proc/self/mountinfo")

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "fuse.ceph",
        "fuse.cephfs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.goofys",
        "fuse.juicefs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "orangefs",
        "pvfs2",
        "smb3",
        "smbfs",
    }
)


def file_system_of(path: PurePosixPath, mountinfo: str) -> str | None:
    """The type of the file system that holds an absolute path, None if no mount does.

    >>> text = "1 0 0:1 / / rw - ext4 /dev/a rw\\n2 1 0:2 / /data rw shared:1 - nfs4 host:/x rw"
    >>> file_system_of(PurePosixPath("/data/db"), text)
    'nfs4'
    """
    inside = f"{path}/".replace("//", "/")
    best: tuple[int, str] | None = None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, types = before.split(), after.split()
        if len(fields) < 5 or not types:
            continue
        point = _unescape(fields[4]).rstrip("/") + "/"
        # A later mount on the same point hides the earlier one.
        if inside.startswith(point) and (best is None or len(point) >= best[0]):
            best = (len(point), types[0])
    return best[1] if best else None


def _unescape(field: str) -> str:
    """Decodes the octal escapes that the kernel writes for blanks and backslashes."""
    if "\\" not in field:
        return field
    for code in (" ", "\t", "\n", "\\"):
        field = field.replace(f"\\{ord(code):03o}", code)
    return field


def refuse_network_file_system(path: Path) -> None:
    if not MOUNTINFO.exists():
        return
    found = file_system_of(PurePosixPath(path.resolve()), MOUNTINFO.read_text())
    if found in NETWORK_FILE_SYSTEMS:
        raise errors.NetworkFileSystem(path=str(path), filesystem=found)
