"""Notebooks of docs/: run in a kernel, with the outputs that their cells have now."""

import json
from pathlib import Path
from typing import Any


def run_notebook(path: Path) -> str:
    """Run a notebook, and return its text with the outputs of now; raises what a cell raises that is not tagged so."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(path.parent)}}
    quiet = ["--log-level=ERROR"]  # NB: it warns that others on this machine may listen
    NotebookClient(notebook, timeout=900, kernel_name="python3", resources=place, extra_arguments=quiet).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("language_info", None)
    found: dict[str, Any] = json.loads(nbformat.writes(notebook))
    return json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
