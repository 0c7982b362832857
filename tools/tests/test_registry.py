# SPDX-License-Identifier: Apache-2.0
"""The registry's helpers: scopes, credentials and containerd's hosts file."""
import base64
import tomllib

import pytest
from nodensdev.registry import hosts_toml
from nodensdev.registry.token_server import Config, claims, credentials, parse_scope

CONFIG = Config("127.0.0.1", 1, "issuer", "key", "certificate", {"user": "secret"})


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_a_scope_is_type_name_and_actions() -> None:
    assert parse_scope("repository:a/b:pull,push") == {"type": "repository", "name": "a/b", "actions": ["pull", "push"]}


def test_a_repository_name_may_hold_a_port() -> None:
    assert parse_scope("repository:host:5000/a:pull")["name"] == "host:5000/a"


@pytest.mark.parametrize(("header", "wanted"), [
    (None, None), ("Bearer x", None), (basic("user:secret"), ("user", "secret")), (basic("user:a:b"), ("user", "a:b")),
    ("Basic !", ("", "")),
])
def test_credentials_are_parsed_and_malformed_ones_never_match(header: str | None, wanted: tuple[str, str] | None) -> None:
    assert credentials(header) == wanted


def test_a_token_without_a_user_grants_nothing() -> None:
    query = {"service": ["s"], "scope": ["repository:a:pull repository:b:pull"]}
    assert claims(CONFIG, query, None)["access"] == []
    assert [item["name"] for item in claims(CONFIG, query, "user")["access"]] == ["a", "b"]


def test_containerd_can_read_its_hosts_file() -> None:
    data = tomllib.loads(hosts_toml())
    assert data["host"][data["server"]]["ca"].endswith("ca.pem")
