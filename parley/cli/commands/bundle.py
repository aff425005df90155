"""`parley bundle`: a release folder in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from common.release import folder as releases
from common.release.archive import bundle
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import AsJson, Overwrite

app = new_app()


@app.command(name="bundle")
def bundle_release(
    release: Annotated[Path, typer.Argument(help="The release folder.")],
    *,
    out: Annotated[Path, typer.Option(help="The .zip to write.")],
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Put a release folder into one .zip; the same release gives the same bytes.

    Every file is compared with the manifest first. `parley verify` reads the .zip as it is.
    """
    releases.check_file(out, overwrite=overwrite)
    with console.progress("bundling") as tell:
        bundle(release, target=out, tell=tell)
    size = out.stat().st_size
    console.show({"out": str(out), "bytes": size}, f"{out}: {size:,} bytes", as_json=json)
