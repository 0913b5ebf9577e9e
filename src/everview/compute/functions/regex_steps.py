"""Regular expressions that RE2 does not know, matched step by step: looks, references back, beginnings of words.

An expression is a program of instructions, run with a stack of places to go back to. Without references back an
instruction never has to be tried twice at one place, so the steps are at most as many as there are instructions, for
each character. With them there may be exponentially many. So steps are limited (54000), and each few thousand of them
it is looked whether the result is still wanted.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from everview.compute.cancel import check_wanted
from everview.compute.functions import regex_syntax as tree
from everview.compute.functions.contract import Failure
from everview.compute.functions.regex_render import nodes

STEPS_MAX = 1_000_000  # of one search
PROGRAM_MAX = 20_000
_LOOK_STEPS = 4_096
_NONE = (-1, -1)

Instruction: TypeAlias = tuple[Any, ...]
CHAR, SPLIT, JUMP, SAVE, EDGE, LOOK, BACK, PROGRESS, MATCH = range(9)


@lru_cache(maxsize=65_536)
def is_word(character: str) -> bool:
    """Whether it is a letter or digit of any script, or `_`."""
    return character == "_" or unicodedata.category(character)[0] in "LN"


class Program:
    def __init__(self, syntax: tree.Syntax) -> None:
        self._ignore_case = syntax.ignore_case
        self._back = any(isinstance(node, tree.Back) for node in nodes(syntax.root))
        self._groups = syntax.groups
        self._slots = 2 * (syntax.groups + 1)  # and one for each loop
        self._code: list[Instruction] = []
        self._emit_program(syntax.root)

    def search(self, text: str, start: int) -> list[tuple[int, int]] | None:
        """The spans of the whole and of its groups where it first matches; (-1, -1) for a group that takes no part."""
        budget = _Budget()
        tried: set[int] | None = None if self._back else set()
        for begin in range(start, len(text) + 1):
            slots = self._run(0, text, begin, budget, tried=tried)
            if slots is not None:
                spans = [(slots[place], slots[place + 1]) for place in range(2, 2 * self._groups + 2, 2)]
                return [(begin, slots[1]), *(span if min(span) >= 0 else _NONE for span in spans)]
        return None

    def _emit_program(self, root: tree.Node) -> int:
        entry = len(self._code)
        self._emit(root)
        self._add(MATCH)
        return entry

    def _add(self, *instruction: Any) -> int:
        if len(self._code) >= PROGRAM_MAX:
            tree.refused("it is too complex")
        self._code.append(instruction)
        return len(self._code) - 1

    def _emit(self, node: tree.Node) -> None:
        match node:
            case tree.Chars():
                self._add(CHAR, _test(node, self._ignore_case))
            case tree.Edge(kind):
                self._add(EDGE, _EDGES[kind])
            case tree.Sequence(parts):
                for part in parts:
                    self._emit(part)
            case tree.Choice(options):
                self._emit_choice(options)
            case tree.Group(number, part):
                self._add(SAVE, 2 * number)
                self._emit(part)
                self._add(SAVE, 2 * number + 1)
            case tree.Repeat():
                self._emit_repeat(node)
            case tree.Look(part, ahead, negated):
                place = self._add(JUMP, 0)
                entry = self._emit_program(part)
                self._code[place] = (JUMP, len(self._code))
                self._add(LOOK, entry, ahead, negated)
            case tree.Back(number):
                self._add(BACK, number)

    def _emit_choice(self, options: tuple[tree.Node, ...]) -> None:
        ends = []
        for option in options[:-1]:
            split = self._add(SPLIT, 0, 0)
            self._emit(option)
            ends.append(self._add(JUMP, 0))
            self._code[split] = (SPLIT, split + 1, len(self._code))
        self._emit(options[-1])
        for end in ends:
            self._code[end] = (JUMP, len(self._code))

    def _emit_repeat(self, node: tree.Repeat) -> None:
        for _ in range(node.least):
            self._emit(node.part)
        if node.most is None:
            register = self._slots
            self._slots += 1
            split = self._add(SPLIT, 0, 0)
            self._add(SAVE, register)
            self._emit(node.part)
            progress = self._add(PROGRESS, register, 0)
            self._add(JUMP, split)
            self._code[progress] = (PROGRESS, register, len(self._code))  # a round that took nothing is the last
            self._code[split] = self._split(split, node.lazy)
            return
        splits = []
        for _ in range(node.most - node.least):
            splits.append(self._add(SPLIT, 0, 0))
            self._emit(node.part)
        for split in splits:
            self._code[split] = self._split(split, node.lazy)

    def _split(self, place: int, lazy: bool) -> Instruction:
        """Enter the part or skip it; the preferred way comes first."""
        end = len(self._code)
        return (SPLIT, end, place + 1) if lazy else (SPLIT, place + 1, end)

    def _run(
        self, entry: int, text: str, begin: int, budget: _Budget, *, tried: set[int] | None, end: int | None = None
    ) -> list[int] | None:
        """The slots of a match that begins at `begin`, and ends at `end` if given; None without a match.

        `tried` has what was tried already, of this search, and led nowhere.
        """
        code, size, width = self._code, len(text), len(text) + 1
        slots = [-1] * self._slots
        # What is left to try: an instruction and a place, or (below zero) a slot and its former value.
        stack: list[tuple[int, int]] = [(entry, begin)]
        while stack:
            at, place = stack.pop()
            if at < 0:
                slots[-at - 1] = place
                continue
            while True:
                budget.step()
                if tried is not None:
                    state = at * width + place
                    if state in tried:
                        break
                    tried.add(state)
                instruction = code[at]
                kind = instruction[0]
                at += 1
                if kind == CHAR:
                    if place >= size or not instruction[1](text[place]):
                        break
                    place += 1
                elif kind == SPLIT:
                    stack.append((instruction[2], place))
                    at = instruction[1]
                elif kind == JUMP:
                    at = instruction[1]
                elif kind == SAVE:
                    stack.append((-instruction[1] - 1, slots[instruction[1]]))
                    slots[instruction[1]] = place
                elif kind == EDGE:
                    if not instruction[1](text, place):
                        break
                elif kind == LOOK:
                    if self._sees(instruction, text, place, budget) is instruction[3]:
                        break
                elif kind == BACK:
                    found = self._again(slots, instruction[1], text, place)
                    if found < 0:
                        break
                    place = found
                elif kind == PROGRESS:
                    if slots[instruction[1]] == place:
                        at = instruction[2]
                else:
                    if end is None or place == end:
                        slots[1] = place
                        return slots
                    break
        return None

    def _sees(self, look: Instruction, text: str, place: int, budget: _Budget) -> bool:
        _, entry, ahead, _ = look
        if ahead:
            return self._run(entry, text, place, budget, tried=set()) is not None
        tried: set[int] = set()
        return any(
            self._run(entry, text, begin, budget, tried=tried, end=place) is not None for begin in range(place, -1, -1)
        )

    def _again(self, slots: list[int], number: int, text: str, place: int) -> int:
        """Where the text of a group ends if it stands here once more; below zero if it does not."""
        start, stop = slots[2 * number], slots[2 * number + 1]
        if start < 0 or stop < start:
            return -1
        wanted, there = text[start:stop], text[place : place + stop - start]
        same = wanted == there or (self._ignore_case and wanted.lower() == there.lower())
        return place + stop - start if same else -1


class _Budget:
    """How many steps are left."""

    def __init__(self) -> None:
        self._left = STEPS_MAX

    def step(self) -> None:
        self._left -= 1
        if self._left % _LOOK_STEPS == 0:
            check_wanted()
            if self._left <= 0:
                raise Failure("54000", f"matching a regular expression took more than {STEPS_MAX} steps")


def _test(chars: tree.Chars, ignore_case: bool) -> Callable[[str], bool]:
    def is_in(character: str) -> bool:
        code = ord(character)
        if any(low <= code <= high for low, high in chars.ranges):
            return True
        return (chars.word and is_word(character)) or (chars.not_word and not is_word(character))

    @lru_cache(maxsize=4_096)
    def test(character: str) -> bool:
        forms = {character, character.lower(), character.upper()} if ignore_case else {character}
        return any(is_in(form) for form in forms if len(form) == 1) is not chars.negated

    return test


def _word_at(text: str, place: int) -> bool:
    return 0 <= place < len(text) and is_word(text[place])


_EDGES: dict[str, Callable[[str, int], bool]] = {
    "begin": lambda text, place: place == 0,
    "end": lambda text, place: place == len(text),
    "line begin": lambda text, place: place == 0 or text[place - 1] == "\n",
    "line end": lambda text, place: place == len(text) or text[place] == "\n",
    "word begin": lambda text, place: _word_at(text, place) and not _word_at(text, place - 1),
    "word end": lambda text, place: _word_at(text, place - 1) and not _word_at(text, place),
    "edge": lambda text, place: _word_at(text, place) is not _word_at(text, place - 1),
    "no edge": lambda text, place: _word_at(text, place) is _word_at(text, place - 1),
}
