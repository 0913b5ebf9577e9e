"""Renders the templates of the Helm chart, as far as they go: a machine that tests need not have Helm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

_ACTION = re.compile(r"(\s*\{\{-|\{\{)\s*(.*?)\s*(-\}\}\s*|\}\})", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"]+')
_PIPE = re.compile(r"""\|(?=(?:[^"]*"[^"]*")*[^"]*$)""")


class NotRendered(Exception):
    """A template says what Helm would refuse, or what is not known here."""


def render(chart: Path, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The objects of a chart whose values are changed as `--set` does, by dotted names."""
    scope: dict[str, Any] = {
        "Values": yaml.safe_load((chart / "values.yaml").read_text()),
        "Release": {"Name": "test"},
        "Chart": {},
    }
    named = yaml.safe_load((chart / "Chart.yaml").read_text())
    scope["Chart"] = {name[0].upper() + name[1:]: value for name, value in named.items()}
    for path, value in values.items():
        *above, last = path.split(".")
        place = scope["Values"]
        for name in above:
            place = place[name]
        assert last in place, f"values.yaml has no {path}"
        place[last] = value
    found = []
    for file in sorted((chart / "templates").glob("*.yaml")):
        text = _Template(file.read_text()).render(scope)
        found += [each for each in yaml.safe_load_all(text) if each is not None]
    return found


class _Template:
    def __init__(self, text: str) -> None:
        self._pieces = list(_pieces(text))

    def render(self, scope: Mapping[str, Any]) -> str:
        text, at, ended = self._block(0, scope)
        if at != len(self._pieces) or ended:
            raise NotRendered(f"{ended or 'a block'} without its beginning or end")
        return text

    def _block(self, at: int, scope: Mapping[str, Any], wanted: bool = True) -> tuple[str, int, str]:
        """Render to the end of a block; gives the text, where to go on, and what ended it. `wanted` evaluates it."""
        text = ""
        while at < len(self._pieces):
            kind, piece = self._pieces[at]
            at += 1
            if kind == "text":
                text += piece
                continue
            word = piece.split()[0]
            if word in ("end", "else"):
                return text, at, word
            if word == "if":
                found, at = self._choice(piece.partition(" ")[2], at, scope, wanted)
                text += found
            elif word == "range":
                found, at = self._repeated(piece, at, scope, wanted)
                text += found
            elif wanted:
                text += _shown(_value(piece, scope))
        return text, at, ""

    def _choice(self, test: str, at: int, scope: Mapping[str, Any], wanted: bool) -> tuple[str, int]:
        holds = wanted and bool(_value(test, scope))
        chosen, at, ended = self._block(at, scope, holds)
        other = ""
        if ended == "else":
            other, at, ended = self._block(at, scope, wanted and not holds)
        if ended != "end":
            raise NotRendered(f"if {test} has no end")
        return chosen if holds else other, at

    def _repeated(self, piece: str, at: int, scope: Mapping[str, Any], wanted: bool) -> tuple[str, int]:
        match = re.fullmatch(r"range (\$\w+), (\$\w+) := (\S+)", piece)
        if match is None:
            raise NotRendered(f"{piece} is not known here")
        items = sorted(_value(match[3], scope).items()) if wanted else []
        texts = [self._block(at, {**scope, match[1]: name, match[2]: value})[0] for name, value in items]
        _, at, ended = self._block(at, scope, False)
        if ended != "end":
            raise NotRendered(f"{piece} has no end")
        return "".join(texts), at


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    for match in _ACTION.finditer(text):
        yield "text", text[at : match.start()]
        yield "action", match[2]
        at = match.end()
    if "{{" in text[at:] or "}}" in text[at:]:
        raise NotRendered("braces that do not match")
    yield "text", text[at:]


def _value(pipeline: str, scope: Mapping[str, Any]) -> Any:
    first, *more = (_WORD.findall(part) for part in _PIPE.split(pipeline))
    value = _called(first, scope)
    for words in more:
        value = _called(words, scope, value)
    return value


def _called(words: list[str], scope: Mapping[str, Any], *piped: Any) -> Any:
    name, arguments = words[0], [*(_atom(word, scope) for word in words[1:]), *piped]
    match name, arguments:
        case "quote", [value]:
            return json.dumps(_shown(value))
        case "toYaml", [value]:
            return yaml.safe_dump(value, default_flow_style=False).rstrip("\n")
        case "nindent", [int(width), str(text)]:
            return "\n" + "\n".join(" " * width + line for line in text.splitlines())
        case "default", [fallback, value]:
            return value or fallback
        case "required", [str(message), value]:
            if value in (None, ""):
                raise NotRendered(message)
            return value
        case "printf", [str(form), *values]:
            return form.replace("%v", "%s") % tuple(map(_shown, values))
        case _, []:
            return _atom(name, scope)
    raise NotRendered(f"{' '.join(words)} is not known here")


def _atom(word: str, scope: Mapping[str, Any]) -> Any:
    if word[0] == '"':
        return json.loads(word)
    if word.isdecimal():
        return int(word)
    if word[0] == "$":
        return scope[word]
    if word[0] != ".":
        raise NotRendered(f"{word} is not known here")
    value: Any = scope
    for name in word[1:].split("."):
        if name not in value:
            raise NotRendered(f"there is no {word}")
        value = value[name]
    return value


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
