# SPDX-License-Identifier: Apache-2.0
"""The registry: it serves what was pushed, over TLS of our own authority, and asks for credentials when it should."""
import ssl
import urllib.error
import urllib.request

import pytest
from nodensdev import images, registry
from nodensdev.command import Failure
from nodensdev.registry import storage

REPOSITORY, TAG = "nodens/multi", "1"
NAME = f"registry.nodens.test:5000/{REPOSITORY}:{TAG}"


def status_without_credentials(site: registry.Site) -> int:
    context = ssl.create_default_context(cafile=str(site.authority))
    try:
        with urllib.request.urlopen(f"https://{site.address}:{site.port}/v2/", context=context, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("auth", ["none", "basic", "token"])
def test_an_image_comes_back_as_it_was_pushed(auth: str) -> None:
    with registry.serving(auth=auth, port=storage.free_port(), sets=("own",)) as site:
        assert status_without_credentials(site) == (200 if auth == "none" else 401)
        client = site.client()
        layout = images.layout("own")
        for item in layout.children(layout.images[NAME]):
            kind = "blobs" if "config" in item.media_type or "layer" in item.media_type else "manifests"
            path = f"/v2/{REPOSITORY}/{kind}/{item.digest}"
            answer = client.call("GET", path, REPOSITORY, headers={"Accept": item.media_type})
            assert answer.status == 200
            assert answer.body == layout.blob(item.digest).read_bytes()


@pytest.mark.parametrize("auth", ["basic", "token"])
def test_wrong_credentials_are_refused(auth: str) -> None:
    with registry.serving(auth=auth, port=storage.free_port(), sets=("own",)) as site:
        client = site.client()
        client.password = "wrong"
        try:
            assert client.call("GET", f"/v2/{REPOSITORY}/manifests/{TAG}", REPOSITORY).status == 401
        except Failure as failure:
            assert "the token server answers 401" in str(failure)


def test_an_unrelated_client_does_not_trust_it() -> None:
    with registry.serving(port=storage.free_port(), sets=("own",)) as site:
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(f"https://{site.address}:{site.port}/v2/", timeout=60)
