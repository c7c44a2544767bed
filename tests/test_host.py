"""What tells this machine's CPU from others."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from mxc.compiler.cache import Cache
from mxc.compiler.targets.cpu.machine import host


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells one start of the system from another")
@pytest.mark.parametrize("apart", [False, True])
def test_llvm_is_asked_once_for_each_start_of_the_system_and_each_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                      apart: bool) -> None:
    """apart: another process can be asked, which is done where the answer is kept."""
    os.chmod(tmp_path, 0o700)
    asked: list[int] = []
    name = llvm.get_host_cpu_name()
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: asked.append(1) or name)
    monkeypatch.setattr(host, "BOOT", str(tmp_path / "boot"))
    other = host._names_apart()
    assert other is not None and other["cpu"] == name
    monkeypatch.setattr(host, "_names_apart", lambda: asked.append(1) or other if apart else None)

    def names() -> dict[str, str]:
        return host.llvm_names(Cache(tmp_path))

    first = names()
    assert names() == first and first["cpu"] == name and len(asked) == 2  # nobody says which start this is
    (tmp_path / "boot").write_text("one\n")
    assert names() == names() == first and len(asked) == 3
    (tmp_path / "boot").write_text("another\n")
    assert names() == names() == first and len(asked) == 4
    own = host._own_parts()
    monkeypatch.setattr(host, "_own_parts", lambda: own | {"features": "sse2"})
    assert names() == names() == first and len(asked) == 5
    assert host.llvm_names(None) == first and len(asked) == 6
