"""Translation of a PCRE-like pattern into the syntax of the engine that runs it.

The two agree on most constructs. The translation takes care of the rest: quoting with \\Q..\\E, code points
\\x{..}, references \\k<..> and \\g{..}, braces that are no quantifier, and characters in sets to which the
engine gives a meaning of its own (nested sets, set operations). Constructs without a counterpart are named
in an UnsupportedSyntax, broken ones raise BrokenPattern.
"""

from __future__ import annotations

import re

_QUANTIFIER = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_CODE_POINT = re.compile(r"\\x\{([0-9A-Fa-f]{1,8})\}")
_NAMED_REFERENCE = re.compile(r"\\k(?:<(\w+)>|'(\w+)'|\{(\w+)\})")
_GROUP_REFERENCE = re.compile(r"\\g(?:\{(\w+)\}|([0-9]+))")
_BRACED_ESCAPE = re.compile(r"\\[pPN]\{[^{}]*\}")
_POSIX_CLASS = re.compile(r"\[:\^?[a-z]+:\]")
_INLINE_MODIFIERS = re.compile(r"\(\?\^?([A-Za-z]+)?(?:-([A-Za-z]+))?[:)]")
_SET_OPERATORS = "[|&~"
_CODE_POINT_MAX = 0x10FFFF


class BrokenPattern(Exception):
    """The pattern is not a pattern."""


class UnsupportedSyntax(Exception):
    """The pattern uses a construct that this engine does not have; the text names it."""


class _Translation:
    """One pass over a pattern, from left to right."""

    def __init__(self, pattern: str, extended: bool) -> None:
        self.pattern = pattern
        self.extended = extended
        self.at = 0
        self.out: list[str] = []

    def run(self) -> str:
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char == "\\":
                self._escape()
            elif char == "[":
                self._set()
            elif char == "{":
                self._brace()
            elif char == "(":
                self._group()
            elif char == "#" and self.extended:
                end = self.pattern.find("\n", self.at)
                self._copy(len(self.pattern) if end < 0 else end)
            else:
                self._copy(self.at + 1)
        return "".join(self.out)

    def _copy(self, end: int) -> None:
        self.out.append(self.pattern[self.at : end])
        self.at = end

    def _emit(self, text: str, end: int) -> None:
        self.out.append(text)
        self.at = end

    def _escape(self) -> None:
        pattern, at = self.pattern, self.at
        letter = pattern[at + 1 : at + 2]
        if letter == "Q":
            end = pattern.find("\\E", at + 2)
            quoted = pattern[at + 2 :] if end < 0 else pattern[at + 2 : end]
            self._emit(re.escape(quoted), len(pattern) if end < 0 else end + 2)
        elif letter == "E":
            self._emit("", at + 2)
        elif match := _CODE_POINT.match(pattern, at):
            self._emit(self._code_point(match[1]), match.end())
        elif match := _NAMED_REFERENCE.match(pattern, at):
            self._emit(f"(?P={match[1] or match[2] or match[3]})", match.end())
        elif match := _GROUP_REFERENCE.match(pattern, at):
            self._emit(f"\\g<{match[1] or match[2]}>", match.end())
        elif match := _BRACED_ESCAPE.match(pattern, at):
            self._copy(match.end())
        elif letter and letter in "LmM":
            raise BrokenPattern
        else:
            self._copy(at + 2)

    @staticmethod
    def _code_point(digits: str) -> str:
        number = int(digits, 16)
        if number > _CODE_POINT_MAX:
            raise BrokenPattern
        return re.escape(chr(number))

    def _set(self) -> None:
        pattern = self.pattern
        start = self.at + 2 if pattern.startswith("[^", self.at) else self.at + 1
        self._copy(start)
        while self.at < len(pattern):
            char = pattern[self.at]
            if char == "]" and self.at > start:
                self._copy(self.at + 1)
                return
            if char == "\\":
                self._escape()
            elif match := _POSIX_CLASS.match(pattern, self.at):
                self._copy(match.end())
            elif char in _SET_OPERATORS or char == "]" or pattern.startswith("--", self.at):
                self._emit("\\" + char, self.at + 1)
            else:
                self._copy(self.at + 1)
        raise BrokenPattern

    def _brace(self) -> None:
        match = _QUANTIFIER.match(self.pattern, self.at)
        if match:
            self._copy(match.end())
        else:
            self._emit("\\{", self.at + 1)

    def _group(self) -> None:
        pattern, at = self.pattern, self.at
        if pattern.startswith("(*", at):
            raise UnsupportedSyntax("a verb such as (*ACCEPT)")
        if pattern.startswith("(?C", at):
            raise UnsupportedSyntax("a callout (?C)")
        if pattern.startswith("(?#", at):
            end = pattern.find(")", at)
            if end < 0:
                raise BrokenPattern
            self._emit("", end + 1)
            return
        match = _INLINE_MODIFIERS.match(pattern, at)
        letters = (match[1] or "") + (match[2] or "") if match else ""
        if letters != "R" and not set(letters) <= set("imsx"):
            raise UnsupportedSyntax("an inline modifier other than i, m, s and x")
        self._copy(at + 1)


def translate(pattern: str, extended: bool) -> str:
    """The pattern in the engine's syntax; extended tells that white space and comments are ignored."""
    return _Translation(pattern, extended).run()
