"""Regular expressions in the syntax of RE2 and of Java, and what these two can match.

RE2 takes time in proportion to the text whatever the expression is; it has no looks and no references back. Java goes
back and tries again, which for some expressions takes more time than anyone has. So Java gets only expressions for
which that takes at most the square of the length of the text.
"""

from __future__ import annotations

from collections.abc import Iterator

from everview.compute.functions import regex_syntax as tree

_SHORT = 10  # a repetition of so few costs no more than a constant
LETTERS = "\\p{L}\\p{N}_"
_WORD_SET = f"[{LETTERS}]"
_JAVA_EDGES = {
    "begin": "\\A",
    "end": "\\z",
    "line begin": "(?<![^\\n])",
    "line end": "(?![^\\n])",
    "word begin": f"(?:(?<!{_WORD_SET})(?={_WORD_SET}))",
    "word end": f"(?:(?<={_WORD_SET})(?!{_WORD_SET}))",
    "edge": f"(?:(?<={_WORD_SET})(?!{_WORD_SET})|(?<!{_WORD_SET})(?={_WORD_SET}))",
    "no edge": f"(?:(?<={_WORD_SET})(?={_WORD_SET})|(?<!{_WORD_SET})(?!{_WORD_SET}))",
}
_RE2_EDGES = {
    "begin": "\\A",
    "end": "\\z",
    "line begin": "(?m:^)",
    "line end": "(?m:$)",
    "edge": "\\b",
    "no edge": "\\B",
}


def nodes(node: tree.Node) -> Iterator[tree.Node]:
    yield node
    match node:
        case tree.Sequence(parts) | tree.Choice(parts):
            for part in parts:
                yield from nodes(part)
        case tree.Repeat(part) | tree.Group(_, part) | tree.Look(part):
            yield from nodes(part)


def re2(syntax: tree.Syntax) -> str | None:
    """The expression for RE2; None if RE2 cannot say it."""
    for node in nodes(syntax.root):
        if isinstance(node, tree.Back | tree.Look) or (isinstance(node, tree.Edge) and node.kind not in _RE2_EDGES):
            return None
        if _is_rest(node):
            return None
    return f"(?s{'i' if syntax.ignore_case else ''}){_text(syntax.root, _RE2_EDGES)}"


def size(syntax: tree.Syntax, *, letters: int = 600) -> int:
    """About how many instructions RE2 makes of it, if a set of letters is so many."""
    return _size(syntax.root, letters)


def _size(node: tree.Node, letters: int) -> int:
    match node:
        case tree.Chars(ranges, word, not_word):
            return 1 + 3 * len(ranges) + letters * (word or not_word)
        case tree.Sequence(parts) | tree.Choice(parts):
            return 1 + sum(_size(part, letters) for part in parts)
        case tree.Repeat(part, least, most):
            return 1 + max(least, most or 0, 1) * _size(part, letters)
        case tree.Group(_, part) | tree.Look(part):
            return 2 + _size(part, letters)
        case tree.Edge() | tree.Back():
            return 1


def asks_for_words(syntax: tree.Syntax) -> bool:
    """Whether it has edges of words, which RE2 knows only in texts of ASCII."""
    return any(isinstance(node, tree.Edge) and node.kind in ("edge", "no edge") for node in nodes(syntax.root))


def java(syntax: tree.Syntax) -> str | None:
    """The expression for Java; None if Java cannot say it, or could take too long over it."""
    many, anchored = 0, _begins(syntax.root)
    for node in nodes(syntax.root):
        match node:
            case tree.Back() | tree.Look():
                return None
            case tree.Chars() if _is_rest(node):
                return None
            case tree.Repeat(part, least, most):
                if not isinstance(_bare(part), tree.Chars):
                    return None
                many += most is None or most - least > _SHORT
    if many > 1 + anchored:
        return None
    return f"(?s{'iu' if syntax.ignore_case else ''}){_text(syntax.root, _JAVA_EDGES)}"


def _is_rest(node: tree.Node) -> bool:
    """Whether it is a set like [^\\W_], letters without some, which neither syntax has."""
    return isinstance(node, tree.Chars) and node.negated and node.not_word


def _begins(node: tree.Node) -> bool:
    """Whether a match can only begin where the text does."""
    match node:
        case tree.Edge(kind):
            return kind == "begin"
        case tree.Sequence(parts):
            return bool(parts) and _begins(parts[0])
        case tree.Group(_, part):
            return _begins(part)
    return False


def _bare(node: tree.Node) -> tree.Node:
    while isinstance(node, tree.Group) or (isinstance(node, tree.Sequence) and len(node.parts) == 1):
        node = node.part if isinstance(node, tree.Group) else node.parts[0]
    return node


def _text(node: tree.Node, edges: dict[str, str]) -> str:
    match node:
        case tree.Chars():
            return _set(node)
        case tree.Edge(kind):
            return edges[kind]
        case tree.Sequence(parts):
            return "".join(f"(?:{_text(each, edges)})" if _loose(each) else _text(each, edges) for each in parts)
        case tree.Choice(options):
            return "|".join(_text(each, edges) for each in options)
        case tree.Group(_, part):
            return f"({_text(part, edges)})"
        case tree.Repeat(part, least, most, lazy):
            inner = _text(part, edges)
            whole = inner if isinstance(part, tree.Chars | tree.Group) else f"(?:{inner})"
            return f"{whole}{_times(least, most)}{'?' if lazy else ''}"
        case tree.Look() | tree.Back():
            raise AssertionError("callers have looked for these")


def _loose(node: tree.Node) -> bool:
    """Whether it needs parentheses between others."""
    return isinstance(node, tree.Choice) or (
        isinstance(node, tree.Sequence) and len(node.parts) == 1 and _loose(node.parts[0])
    )


def _times(least: int, most: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    return short or (f"{{{least}}}" if most == least else f"{{{least},{'' if most is None else most}}}")


def _set(chars: tree.Chars) -> str:
    inside = [_character(low) if low == high else f"{_character(low)}-{_character(high)}" for low, high in chars.ranges]
    if not inside and not chars.word and not chars.not_word:
        return "." if chars.negated else "[^\\x{0}-\\x{10FFFF}]"
    if len(inside) == 1 and not (chars.negated or chars.word or chars.not_word) and "-" not in inside[0]:
        return inside[0]
    if chars.word:
        inside.append(LETTERS)
    if not chars.not_word:
        return f"[{'^' if chars.negated else ''}{''.join(inside)}]"
    # Neither syntax has a word inside of a set for what is no letter, digit or `_`.
    others = f"[^{LETTERS}]"
    return f"(?:{others}|[{''.join(inside)}])" if inside else others


def _character(code: int) -> str:
    character = chr(code)
    return character if character.isalnum() and code < 128 else f"\\x{{{code:X}}}"
