"""A config from the Hugging Face hub: 'hf:organisation/repository', or with '@revision'.

What is in the local cache is used as it is; else the hub is asked once, with a short timeout, before anything is
fetched, so that a hub that is away costs no waiting.
"""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from planner.errors import BadFile
from planner.specs.huggingface.files import CONFIG, SIDE_QUANTIZATION

PREFIX = "hf:"
REPOSITORY = re.compile(r"^([\w.-]{1,96}/[\w.-]{1,96})(?:@([\w./-]{1,96}))?$", re.ASCII)
TIMEOUT_S = 3.0
TRUE = ("1", "ON", "YES", "TRUE")
MISSING, REDIRECTED = 404, range(300, 400)


def fetched(name: str) -> tuple[Path, str]:
    """(path of the config, repository) of 'hf:organisation/repository'. Raises BadFile."""
    match = REPOSITORY.match(name.removeprefix(PREFIX))
    if match is None:
        raise BadFile(name, "is not hf:organisation/repository", "such as hf:Qwen/Qwen3-8B")
    repository, revision = match[1], match[2]
    hub = library(name)
    found = one(hub, name, repository, revision, CONFIG, local=True)
    if found is None:
        refuse_offline(name)
        if not there(hub, name, repository, revision, CONFIG):
            raise BadFile(name, f"no such repository, or no {CONFIG} in it", "name the repository of a model")
        found = one(hub, name, repository, revision, CONFIG, local=False)
        if there(hub, name, repository, revision, SIDE_QUANTIZATION):
            one(hub, name, repository, revision, SIDE_QUANTIZATION, local=False)
    if found is None:
        raise BadFile(name, "the hub does not answer", "check the network, or name a local folder")
    return found, repository


def library(name: str) -> Any:
    """huggingface_hub. Raises BadFile where it is not installed."""
    try:
        importlib.import_module("huggingface_hub.errors")
        return importlib.import_module("huggingface_hub")
    except ImportError:
        raise BadFile(name, "needs huggingface_hub", "run pip install '.[hub]' in the checkout") from None


def one(hub: Any, name: str, repository: str, revision: str | None, file: str, *, local: bool) -> Path | None:
    """A file of a repository, from the local cache alone or from the hub; None where there is none. Raises BadFile."""
    try:
        found = hub.hf_hub_download(repository, file, revision=revision, local_files_only=local, etag_timeout=TIMEOUT_S)
    except hub.errors.EntryNotFoundError:  # and its kin for the local cache
        return None
    except Exception as error:  # the library lets errors of its transport through
        what = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise BadFile(name, f"cannot be fetched: {what}", "check the name, your access and the network") from None
    return Path(found)


class Stay(HTTPRedirectHandler):
    """A redirect says that the file is there; nothing follows it."""

    def redirect_request(self, *answer: Any) -> None:
        """None: the redirect comes back as the answer."""


def there(hub: Any, name: str, repository: str, revision: str | None, file: str) -> bool:
    """Whether the hub has a file, asked once: the library itself would ask again and again. Raises BadFile."""
    address = hub.hf_hub_url(repository, file, revision=revision)
    request = Request(address, method="HEAD", headers=hub.utils.build_hf_headers())
    try:
        build_opener(Stay).open(request, timeout=TIMEOUT_S).close()
    except HTTPError as error:
        if error.code == MISSING:
            return False
        if error.code not in REDIRECTED:
            what = f"the hub answers {error.code} {error.reason}"
            raise BadFile(name, what, "check the name, and your access to it") from None
    except (OSError, ValueError):
        raise BadFile(name, "the hub cannot be reached", "check the network, or name a local folder") from None
    return True


def refuse_offline(name: str) -> None:
    """Raises BadFile where the hub is switched off."""
    if any(os.environ.get(key, "").upper() in TRUE for key in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")):
        raise BadFile(name, "is not in the local cache, and HF_HUB_OFFLINE is set", "name a local folder")
