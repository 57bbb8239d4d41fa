"""Compiling on first use: the cache, processes side by side, killed builds, machines without a compiler."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from fairseq_plugins import kernels
from fairseq_plugins.kernels import extension
from fairseq_plugins.kernels.multi_channel import cpu
from fairseq_plugins.modules import MultiChannelRNN
from tests.commands import CHECKOUT

# Small, so that these tests compile it in seconds.
SOURCE = """
#include <pybind11/pybind11.h>
int twice(int x) { return 2 * x; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("twice", &twice); }
"""
LOAD = """
import sys
from pathlib import Path
from fairseq_plugins.kernels import extension
print(extension.load(Path(sys.argv[1])).twice(21))
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A C++ file, with a cache of its own."""
    monkeypatch.setenv(extension.CACHE_VARIABLE, str(tmp_path / "cache"))
    path = tmp_path / "twice.cpp"
    path.write_text(SOURCE)
    return path


def start(source: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        [sys.executable, "-c", LOAD, str(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def cached(source: Path) -> list[str]:
    """What is in the cache, without its lock."""
    return sorted(path.name for path in (source.parent / "cache").glob("*/*") if path.suffix != ".lock")


def test_compiles_once_and_again_after_a_change(source: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        assert extension.load(source).twice(4) == 8
        assert "/twice.cpp for this machine, once" in caplog.text
        caplog.clear()
        assert extension.load(source).twice(4) == 8
        assert not caplog.text
        assert len(cached(source)) == 1
        source.write_text(SOURCE.replace("2 * x", "x + x"))
        assert extension.load(source).twice(4) == 8
        assert len(cached(source)) == 2


def test_compiles_again_after_a_change_in_a_header(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its own folder, and of those that kernels share."""
    shared = source.parent / "kernels" / "cpu"
    shared.mkdir(parents=True)
    monkeypatch.setattr(extension, "_KERNELS", shared.parent)
    (source.parent / "factor.h").write_text("#define FACTOR 2\n")
    (shared / "summand.h").write_text("#define SUMMAND 0\n")
    included = '#include "cpu/summand.h"\n#include "factor.h"\n' + SOURCE.replace("2 * x", "FACTOR * x + SUMMAND")
    source.write_text(included)
    assert extension.load(source).twice(4) == 8
    (source.parent / "factor.h").write_text("#define FACTOR 3\n")
    assert extension.load(source).twice(4) == 12
    (shared / "summand.h").write_text("#define SUMMAND 1\n")
    assert extension.load(source).twice(4) == 13


def test_everything_that_is_compiled_is_packaged() -> None:
    """package_data of setup.py; a source that includes what is not there would compile in a checkout alone."""
    kernels = CHECKOUT / "fairseq_plugins" / "kernels"
    sources = {path for path in kernels.rglob("*") if path.suffix in (".cpp", ".h")}
    assert sources
    patterns = re.search(r'"fairseq_plugins.kernels": \[(.*?)\]', (CHECKOUT / "setup.py").read_text()).group(1)
    assert sources == {path for pattern in re.findall(r'"(.*?)"', patterns) for path in kernels.glob(pattern)}


def test_two_processes_at_once_and_a_build_that_was_killed(source: Path) -> None:
    killed = start(source)
    deadline = time.monotonic() + 600
    while not any(name.endswith(".build") for name in cached(source)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    killed.communicate()
    assert not any(name.endswith(".so") for name in cached(source))

    both = [start(source), start(source)]
    for process in both:
        output, errors = process.communicate(timeout=800)
        assert (process.returncode, output.strip()) == (0, "42"), errors
    assert [Path(name).suffix for name in cached(source)] == [".so"], "the killed build has been removed"


def test_errors_of_the_compiler_are_reported(source: Path) -> None:
    source.write_text("this is not C++")
    with pytest.raises(RuntimeError, match="Error building extension"):
        extension.load(source)
    assert cached(source) == []


def test_a_build_that_failed_can_be_repeated(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("CXX", "no-such-compiler")
        with pytest.raises((RuntimeError, OSError, subprocess.SubprocessError)):
            extension.load(source)
    assert extension.load(source).twice(4) == 8


def test_without_a_compiler_the_layer_warns_once_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(kernels.BACKEND_VARIABLE, raising=False)
    monkeypatch.setenv(extension.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    cpu.compiled.cache_clear()
    try:
        layer = MultiChannelRNN(3, 4, 3)
        x = torch.randn(5, 2, 3)
        first, second = layer(x).output, layer(x).output
        step, _ = layer.step(x[0], layer.initial_state(2))
    finally:
        cpu.compiled.cache_clear()
    assert caplog.text.count("the C++ kernels cannot be compiled here") == 1
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "eager")
    assert first.equal(second) and first.equal(layer(x).output)
    torch.testing.assert_close(step, first[0])
