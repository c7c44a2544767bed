"""Python's parser, asked by several threads at once."""
from __future__ import annotations

import ast

import pytest

from mxc.compiler.system import syntax


def test_parses_again_where_another_thread_came_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def parse(text: str, mode: str) -> ast.AST:
        asked.append(text)
        if len(asked) < 4:
            raise SystemError("AST constructor recursion depth mismatch (before=186, after=19)")
        return compile(text, "", mode, ast.PyCF_ONLY_AST)

    monkeypatch.setattr(ast, "parse", parse)
    assert isinstance(syntax.parse("a + 1", "eval").body, ast.BinOp) and len(asked) == 4


def test_what_is_no_syntax_is_told_at_once() -> None:
    with pytest.raises(SyntaxError):
        syntax.parse("a +", "eval")
