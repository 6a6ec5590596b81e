"""A second build of a program without building: a copy whose embedded build id is another."""

import pathlib
import shutil

from cluster import bin_folder

# common/build_id: the text lies in a slot that is longer than it.
MARK = b"llmctl-build-id="
SLOT_BYTES = 96


def with_build_id(program: str, folder: pathlib.Path, build_id: str) -> pathlib.Path:
    """`folder`/`program`, which says that it is of this build and is the same otherwise."""
    folder.mkdir(exist_ok=True)
    path = folder / program
    shutil.copy(bin_folder() / program, path)
    data = bytearray(path.read_bytes())
    at = data.find(MARK)
    assert at >= 0 and data.find(MARK, at + 1) < 0, f"{program} has no build id, or several"
    text = MARK + build_id.encode()
    assert len(text) < SLOT_BYTES
    data[at:at + SLOT_BYTES] = text.ljust(SLOT_BYTES, b"\0")
    path.write_bytes(data)
    return path


def with_another_digest(program: str, path: pathlib.Path):
    """Replaces `path` as a package manager does: another file of the same name, here the same program."""
    fresh = path.with_suffix(".new")
    shutil.copy(bin_folder() / program, fresh)
    with fresh.open("ab") as file:
        file.write(b"another build\n")
    fresh.rename(path)
