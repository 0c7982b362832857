# SPDX-License-Identifier: Apache-2.0
"""Writes objects as YAML, with expressions of Helm's templates in place of values."""
import json
import re
from dataclasses import dataclass
from typing import Any

PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./:=-]*[A-Za-z0-9/]|[A-Za-z]")
AMBIGUOUS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
WIDTH = 100


@dataclass(frozen=True)
class Expression:
    """A scalar: `replicas: {{ .Values.replicas }}`."""

    text: str


@dataclass(frozen=True)
class Block:
    """A mapping or list that an expression renders; nothing if it is empty."""

    text: str


@dataclass(frozen=True)
class When:
    """A member or item that is there only under a condition."""

    condition: str
    value: Any


def scalar(value: Any) -> str:
    if isinstance(value, Expression):
        return f"{{{{ {value.text} }}}}"
    if not isinstance(value, str):
        return json.dumps(value)
    return value if PLAIN.fullmatch(value) and value.lower() not in AMBIGUOUS and not value.endswith(":") else json.dumps(value)


def is_flat(value: Any) -> bool:
    return not isinstance(value, (dict, list, Block, When)) and not (isinstance(value, str) and "\n" in value)


def flow(value: Any) -> str:
    """One line; empty if it does not fit or has parts that cannot be one."""
    if isinstance(value, list) and all(map(is_flat, value)):
        text = f"[{', '.join(map(scalar, value))}]"
    elif value == {}:
        text = "{}"
    else:
        return ""
    return text if len(text) <= WIDTH else ""


def member(head: str, value: Any, indent: int) -> list[str]:
    """The lines of `key: value` or `- value`; head ends with `:` or `-`."""
    pad = " " * indent
    deeper = indent + (0 if isinstance(value, list) and head.endswith(":") else 2)
    if isinstance(value, Block):
        return [f"{pad}{head}", f"{pad}  {{{{- toYaml ({value.text}) | nindent {indent + 2} }}}}"]
    if isinstance(value, str) and "\n" in value:
        return [f"{pad}{head} |", *(f"{pad}  {line}".rstrip() for line in value.rstrip("\n").split("\n"))]
    if flow(value) or is_flat(value):
        return [f"{pad}{head} {flow(value) or scalar(value)}"]
    inner = lines(value, deeper)
    if head == "-":
        return [f"{pad}- {inner[0].lstrip()}", *inner[1:]]
    return [f"{pad}{head}", *inner]


def lines(value: Any, indent: int = 0) -> list[str]:
    found: list[str] = []
    pairs = [(f"{scalar(key)}:", one) for key, one in value.items()] if isinstance(value, dict) else [("-", one) for one in value]
    for head, one in pairs:
        if isinstance(one, When):
            found += [f"{' ' * indent}{{{{- {one.condition} }}}}", *member(head, one.value, indent), f"{' ' * indent}{{{{- end }}}}"]
        else:
            found += member(head, one, indent)
    return found


def document(value: Any) -> str:
    return "\n".join(lines(value)) + "\n"


def stream(objects: list[Any], head: str) -> str:
    return head + "---\n".join(map(document, objects))
