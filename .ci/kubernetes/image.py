#!/usr/bin/env python3
"""image.py NAME PROGRAM OUT: packs one static program as an image whose entry point it is, in the form of `docker save`.

Such an image has nothing else in it: no shell, no libraries and no file of the system.
"""

import hashlib
import io
import json
import sys
import tarfile


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, contents in files:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(contents), 0o755
            tar.addfile(member, io.BytesIO(contents))
    return out.getvalue()


def digest(contents):
    return hashlib.sha256(contents).hexdigest()


name, program, out = sys.argv[1:]
with open(program, "rb") as file:
    layer = archive([("usr/bin/program", file.read())])
config = json.dumps({
    "architecture": "amd64",
    "os": "linux",
    "config": {"Entrypoint": ["/usr/bin/program"], "User": "65532:65532"},
    "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(layer)]},
}).encode()
manifest = json.dumps([{"Config": digest(config) + ".json", "RepoTags": [name], "Layers": [digest(layer) + ".tar"]}])
image = archive([
    (digest(config) + ".json", config),
    (digest(layer) + ".tar", layer),
    ("manifest.json", manifest.encode()),
])
with open(out, "wb") as file:
    file.write(image)
