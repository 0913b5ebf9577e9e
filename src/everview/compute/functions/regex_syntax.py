"""PostgreSQL's regular expressions as trees.

The dialect is PostgreSQL's ARE, with two differences: `\\b` and `\\B` are edges of words, and alternatives are tried
from the left. What PostgreSQL's syntax does not have, such as named groups, is refused (2201B), and so is what is too
large: texts, repetition counts and nesting have limits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from everview.compute.functions.contract import Failure

PATTERN_MAX = 65_536  # characters
REPEAT_MAX = 1_000
DEPTH_MAX = 100

_CLASSES: dict[str, tuple[tuple[int, int], ...]] = {
    "alpha": ((65, 90), (97, 122)),
    "digit": ((48, 57),),
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "upper": ((65, 90),),
    "lower": ((97, 122),),
    "space": ((9, 13), (32, 32)),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "blank": ((9, 9), (32, 32)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
    "cntrl": ((0, 31), (127, 127)),
    "graph": ((33, 126),),
    "print": ((32, 126),),
}
_CONTROL = {"a": 7, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_EDGES = {"A": "begin", "Z": "end", "m": "word begin", "M": "word end", "y": "edge", "Y": "no edge"}
_EDGES |= {"b": "edge", "B": "no edge"}
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_HEX = re.compile(r"[0-9A-Fa-f]+")


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set: ranges of code points, letters, digits and `_` of any script if `word`, or no such."""

    ranges: tuple[tuple[int, int], ...] = ()
    word: bool = False
    not_word: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """A place between characters: begin, end, line begin, line end, word begin, word end, edge, no edge."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several, tried from the left."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part several times; `most` is None for any number."""

    part: Node
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A part that is captured."""

    number: int
    part: Node


@dataclass(frozen=True, slots=True)
class Look:
    """Whether the part matches at a place, ahead of it or behind it."""

    part: Node
    ahead: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class Back:
    """The text of a captured group once more."""

    number: int


Node: TypeAlias = Chars | Edge | Sequence | Choice | Repeat | Group | Look | Back
ANY = Chars(negated=True)
NO_NEWLINE = Chars(((10, 10),), negated=True)


@dataclass(frozen=True, slots=True)
class Syntax:
    """A regular expression: its tree, how many groups capture, and whether case matters."""

    root: Node
    groups: int
    ignore_case: bool


def refused(why: str) -> NoReturn:
    """Raise the failure of a text that is no regular expression."""
    raise Failure("2201B", f"invalid regular expression: {why}")


def parse(pattern: str, flags: str) -> Syntax:
    if len(pattern) > PATTERN_MAX:
        refused(f"it is longer than {PATTERN_MAX} characters")
    return _Parser(pattern, flags).whole()


class _Parser:
    def __init__(self, text: str, flags: str) -> None:
        self._text, self._place = text, 0
        self._groups, self._open = 0, set[int]()
        self._inside_look = 0
        literal = text.startswith("***=")
        if text.startswith(("***:", "***=")):
            self._place = 4
        elif text.startswith("***"):
            refused("quantifier operand invalid")
        embedded = None if literal else re.compile(r"\(\?([a-z]+)\)").match(text, self._place)
        if embedded is not None:
            if set(embedded[1]) - set("cimnstx"):
                refused("invalid embedded option")
            flags += embedded[1]
            self._place = embedded.end()
        self._literal = literal
        self._ignore_case = max(flags.rfind("i"), 0) >= max(flags.rfind("c"), 0) and "i" in flags
        self._by_line = "n" in flags or "m" in flags
        self._expanded = "x" in flags and not literal

    def whole(self) -> Syntax:
        if self._literal:
            root: Node = Sequence(tuple(_one(character) for character in self._text[self._place :]))
        else:
            root = self._choice(0)
            if self._place < len(self._text):
                refused("parentheses () not balanced")
        return Syntax(root, self._groups, self._ignore_case)

    def _peek(self) -> str:
        return self._text[self._place : self._place + 1]

    def _take(self, count: int = 1) -> str:
        taken = self._text[self._place : self._place + count]
        self._place += count
        return taken

    def _blank(self) -> None:
        """Skip comments, and in the expanded syntax white space."""
        while True:
            if self._text.startswith("(?#", self._place):
                end = self._text.find(")", self._place)
                if end < 0:
                    refused("parentheses () not balanced")
                self._place = end + 1
            elif self._expanded and self._peek().isspace():
                self._place += 1
            elif self._expanded and self._peek() == "#":
                end = self._text.find("\n", self._place)
                self._place = len(self._text) if end < 0 else end + 1
            else:
                return

    def _choice(self, depth: int) -> Node:
        if depth > DEPTH_MAX:
            refused(f"it is nested more than {DEPTH_MAX} deep")
        options = [self._sequence(depth)]
        while self._peek() == "|":
            self._take()
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        self._blank()
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom(depth)))
            self._blank()
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, atom: Node) -> Node:
        self._blank()
        counts = self._counts()
        if counts is None:
            return atom
        if isinstance(atom, Edge | Look):
            refused("quantifier operand invalid")
        least, most = counts
        lazy = self._peek() == "?"
        if lazy:
            self._take()
        self._blank()
        if self._counts() is not None:
            refused("quantifier operand invalid")
        return Repeat(atom, least, most, lazy)

    def _counts(self) -> tuple[int, int | None] | None:
        """Read a quantifier: how often the atom in front may occur. None if there is no quantifier."""
        sign = self._peek()
        if sign in ("*", "+", "?") and sign:
            self._take()
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        if sign != "{" or not self._text[self._place + 1 : self._place + 2].isdigit():
            return None
        match = _COUNT.match(self._text, self._place)
        if match is None:
            refused("invalid repetition count(s)")
        self._place = match.end()
        least = int(match[1][:9])
        most = least if match[2] is None else int(match[3][:9]) if match[3] else None
        if max(least, most or 0) > REPEAT_MAX or (most is not None and least > most):
            refused(f"invalid repetition count(s), of which {REPEAT_MAX} is the greatest")
        return least, most

    def _atom(self, depth: int) -> Node:
        character = self._take()
        match character:
            case "(":
                return self._parenthesis(depth)
            case "[":
                return self._bracket()
            case "\\":
                return self._escape()
            case ".":
                return NO_NEWLINE if self._by_line else ANY
            case "^":
                return Edge("line begin" if self._by_line else "begin")
            case "$":
                return Edge("line end" if self._by_line else "end")
            case "*" | "+" | "?":
                refused("quantifier operand invalid")
            case "{" if self._peek().isdigit():
                refused("quantifier operand invalid")
            case _:
                return _one(character)

    def _parenthesis(self, depth: int) -> Node:
        number, look = 0, None
        if self._peek() == "?":
            kinds = {"?:": None, "?=": (True, False), "?!": (True, True), "?<=": (False, False), "?<!": (False, True)}
            opening = next((each for each in kinds if self._text.startswith(each, self._place)), None)
            if opening is None:
                refused("quantifier operand invalid")
            self._take(len(opening))
            look = kinds[opening]
        elif not self._inside_look:  # a look captures nothing
            self._groups += 1
            number = self._groups
            self._open.add(number)
        self._inside_look += look is not None
        inner = self._choice(depth + 1)
        self._inside_look -= look is not None
        if self._take() != ")":
            refused("parentheses () not balanced")
        self._open.discard(number)
        if look is not None:
            return Look(inner, *look)
        return Group(number, inner) if number else Sequence((inner,))

    def _escape(self) -> Node:
        character = self._take()
        if character == "":
            refused("invalid escape \\ sequence")
        if character in _EDGES:
            return Edge(_EDGES[character])
        if character in "dDwWsS":
            return _shorthand(character)
        if character in "123456789":
            return self._back(character)
        return _one(chr(self._code(character)))

    def _back(self, digits: str) -> Node:
        more = re.compile(r"\d*").match(self._text, self._place)
        if more is not None and more[0] and int(digits + more[0][:4]) <= self._groups:
            digits += more[0]
            self._place = more.end()
        number = int(digits)
        if number > self._groups or number in self._open or self._inside_look:
            refused("invalid backreference number")
        return Back(number)

    def _code(self, character: str) -> int:
        if character in _CONTROL:
            return _CONTROL[character]
        if character == "c" and self._peek():
            return ord(self._take()) & 31
        if character in "uUx":
            digits = _HEX.match(self._text, self._place)
            text = "" if digits is None else digits[0][: {"u": 4, "U": 8, "x": 8}[character]]
            if not text or (character != "x" and len(text) != {"u": 4, "U": 8}[character]) or int(text, 16) > 0x10FFFF:
                refused("invalid escape \\ sequence")
            self._place += len(text)
            return int(text, 16)
        if character == "0":
            octal = re.compile(r"[0-7]{0,2}").match(self._text, self._place)
            assert octal is not None
            self._place = octal.end()
            return int(octal[0] or "0", 8)
        if character.isalnum() and character.isascii():
            refused("invalid escape \\ sequence")
        return ord(character)

    def _bracket(self) -> Node:
        for edge, kind in (("[:<:]]", "word begin"), ("[:>:]]", "word end")):
            if self._text.startswith(edge, self._place):
                self._take(len(edge))
                return Edge(kind)
        negated = self._peek() == "^"
        if negated:
            self._take()
        ranges: list[tuple[int, int]] = []
        word = not_word = False
        first = True
        while first or self._peek() != "]":
            first = False
            item = self._bracket_item()
            if isinstance(item, Chars):
                ranges += item.ranges if not item.negated else _complement(item.ranges)
                word, not_word = word or item.word, not_word or item.not_word
                continue
            last = item
            if self._peek() == "-" and self._text[self._place + 1 : self._place + 2] not in ("]", ""):
                self._take()
                end = self._bracket_item()
                if isinstance(end, Chars) or end < item:
                    refused("invalid character range")
                last = end
            ranges.append((item, last))
        self._take()
        if negated and self._by_line:
            ranges.append((10, 10))
        return Chars(tuple(ranges), word, not_word, negated)

    def _bracket_item(self) -> int | Chars:
        character = self._take()
        if character == "":
            refused("brackets [] not balanced")
        if character == "[" and self._peek() in (":", ".", "=") and self._peek():
            kind = self._take()
            end = self._text.find(kind + "]", self._place)
            if end < 0:
                refused("brackets [] not balanced")
            name = self._take(end - self._place)
            self._take(2)
            if kind != ":":
                if len(name) != 1:
                    refused("invalid collating element")
                return ord(name)
            if name == "word":
                return Chars(word=True)
            if name not in _CLASSES:
                refused("invalid character class")
            return Chars(_CLASSES[name])
        if character == "\\":
            character = self._take()
            if character == "":
                refused("invalid escape \\ sequence")
            if character in "dDwWsS":
                return _shorthand(character)
            return 8 if character == "b" else self._code(character)
        return ord(character)


def _one(character: str) -> Chars:
    return Chars(((ord(character), ord(character)),))


def _shorthand(letter: str) -> Chars:
    if letter in "wW":
        return Chars(word=letter == "w", not_word=letter == "W")
    return Chars(_CLASSES["digit" if letter in "dD" else "space"], negated=letter in "DS")


def _complement(ranges: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    result, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            result.append((start, low - 1))
        start = max(start, high + 1)
    return [*result, (start, 0x10FFFF)]
