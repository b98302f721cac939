# SPDX-License-Identifier: GPL-2.0-only
"""Another reader of shell, for tests: it shares nothing with the code that writes the scripts.

A script is a list of tokens: operators, and words in chunks: ("text", literal characters),
("expansion", as it stands), ("active", a character that the shell looks at where it is bare).
"""

import re

Chunk = tuple[str, str]
Token = str | tuple[Chunk, ...]

_OPERATOR = re.compile(r"&&|\|\||<<|>>|>&|<&|;;|[;&|()<>]")
_EXPANSION = re.compile(r"\$(?:\w+|\{\w+\}|[?!#@*$-])")
_ACTIVE = "*?[]~{}!^"
# Runs of characters that stand for themselves.
_PLAIN = re.compile(r"""[^\s\\#'"$`&|<>;()*?\[\]~{}!^]+""")
_PLAIN_IN_QUOTES = re.compile(r"""[^"\\$`]+""")


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.tokens: list[Token] = []
        self.word: list[Chunk] = []
        self.begun = False
        self.quoted = False
        self.ends: list[tuple[str, bool]] = []  # of here documents: the word, and if it was quoted

    def add(self, kind: str, text: str) -> None:
        self.begun = True
        if kind == "text" and self.word and self.word[-1][0] == "text":
            self.word[-1] = ("text", self.word[-1][1] + text)
        elif text:
            self.word.append((kind, text))

    def end_word(self) -> None:
        if self.begun:
            if self.tokens and self.tokens[-1] == "<<":
                self.ends.append(("".join(text for _, text in self.word), self.quoted))
            self.tokens.append(tuple(self.word))
        self.word, self.begun, self.quoted = [], False, False

    def read(self) -> list[Token]:
        while self.at < len(self.text):
            if plain := _PLAIN.match(self.text, self.at):
                self.add("text", plain[0])
                self.at = plain.end()
            else:
                self.step()
        self.end_word()
        return self.tokens

    def step(self) -> None:
        c = self.text[self.at]
        if c == "\n":
            self.end_word()
            self.tokens.append("\n")
            self.at += 1
            while self.ends:
                self.here(*self.ends.pop(0))
        elif c in " \t":
            self.end_word()
            self.at += 1
        elif c == "\\":
            if self.text[self.at + 1] != "\n":
                self.add("text", self.text[self.at + 1])
            self.at += 2
        elif c == "#" and not self.begun:
            end = self.text.find("\n", self.at)
            self.at = end if end >= 0 else len(self.text)
        elif c == "'":
            end = self.text.index("'", self.at + 1)
            self.add("text", self.text[self.at + 1 : end])
            self.quoted, self.at = True, end + 1
        elif c == '"':
            self.at, self.quoted = self.at + 1, True
            self.add("text", "")
            while self.text[self.at] != '"':
                self.in_double_quotes()
            self.at += 1
        elif c in "$`":
            self.expansion()
        elif operator := _OPERATOR.match(self.text, self.at):
            self.end_word()
            self.tokens.append(operator[0])
            self.at = operator.end()
        else:
            self.add("active" if c in _ACTIVE else "text", c)
            self.at += 1

    def in_double_quotes(self) -> None:
        c = self.text[self.at]
        if c == "\\" and self.text[self.at + 1] in '$`"\\\n':
            self.add("text", self.text[self.at + 1].strip("\n"))
            self.at += 2
        elif c in "$`":
            self.expansion()
        else:
            plain = _PLAIN_IN_QUOTES.match(self.text, self.at)
            self.add("text", plain[0] if plain else c)
            self.at += len(plain[0]) if plain else 1

    def expansion(self) -> None:
        if self.text.startswith("$(", self.at):
            depth, end = 0, self.at + 1
            while True:  # no parenthesis is quoted where the code writes this
                depth += {"(": 1, ")": -1}.get(self.text[end], 0)
                end += 1
                if not depth:
                    break
            inner = tokens(self.text[self.at + 2 : end - 1])
            self.add("expansion", repr(inner))
            self.at = end
        elif found := _EXPANSION.match(self.text, self.at):
            self.add("expansion", found[0])
            self.at = found.end()
        else:
            assert self.text[self.at] != "`", "a backtick that is active"
            self.add("text", "$")
            self.at += 1

    def here(self, end: str, quoted: bool) -> None:
        lines = []
        while True:
            stop = self.text.index("\n", self.at)
            line = self.text[self.at : stop]
            self.at = stop + 1
            if line == end:
                break
            assert quoted or not set(line) & set("$`\\"), "an expansion in a here document"
            lines.append(line)
        self.tokens.append((("text", "\n".join(lines)),))


def tokens(script: str) -> list[Token]:
    """The tokens of a script."""
    return _Reader(script).read()
