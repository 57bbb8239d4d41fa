"""Compiling on first use: the cache, processes side by side, killed builds, machines where it cannot be done."""

from __future__ import annotations

import os
import re
import shlex
import shutil
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
from tests.commands import CHECKOUT, path_without

# Without pybind11, whose headers take seconds to compile.
SOURCE = """
#include <Python.h>
#define JOIN_(prefix, name) prefix##name
#define JOIN(prefix, name) JOIN_(prefix, name)
static PyObject* twice(PyObject*, PyObject* argument) {
  long x = PyLong_AsLong(argument);
  return PyLong_FromLong(2 * x);
}
static PyMethodDef methods[] = {{"twice", twice, METH_O, nullptr}, {}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "twice", nullptr, -1, methods};
PyMODINIT_FUNC JOIN(PyInit_, TORCH_EXTENSION_NAME)() { return PyModule_Create(&definition); }
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
    monkeypatch.setattr(extension, "_reasons", {})
    path = tmp_path / "twice.cpp"
    path.write_text(SOURCE)
    return path


def start(source: Path, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LOAD, str(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONWARNINGS": "ignore", **variables},
        start_new_session=True,
    )


def cached(source: Path) -> list[str]:
    """What is in the cache, without its lock."""
    return sorted(path.name for path in (source.parent / "cache").glob("*/*") if path.suffix != ".lock")


def libraries(source: Path) -> list[Path]:
    return sorted((source.parent / "cache").glob("*/*.so"))


def compiler(folder: Path, script: str = "") -> Path:
    """A C++ compiler that writes down each compilation in ``calls`` beside it; ``script`` is what it does first."""
    path = folder / "compiler"
    path.write_text(
        f'#!/bin/sh\n[ "$1" != --version ] || exec c++ --version\n'
        f'echo called >> {shlex.quote(str(folder / "calls"))}\n{script}\nexec c++ "$@"\n'
    )
    path.chmod(0o755)
    return path


def calls(folder: Path) -> int:
    path = folder / "calls"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.system
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


@pytest.mark.system
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
    """A source that includes what pyproject.toml does not package would compile in a checkout alone."""
    kernels = CHECKOUT / "fairseq_plugins" / "kernels"
    sources = {path for path in kernels.rglob("*") if path.suffix in (".cpp", ".h")}
    assert sources
    patterns = re.search(r'"fairseq_plugins.kernels" = \[(.*?)\]', (CHECKOUT / "pyproject.toml").read_text()).group(1)
    assert sources == {path for pattern in re.findall(r'"(.*?)"', patterns) for path in kernels.glob(pattern)}


@pytest.mark.system
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


def test_the_compilers_first_error_is_the_reason(source: Path) -> None:
    source.write_text("#warning this is none\nnonsense;\nmore;\n")
    with pytest.raises(RuntimeError, match=r"twice.cpp:2:1: error: 'nonsense' does not name a type") as failure:
        extension.load(source)
    assert "\n" not in str(failure.value) and "-isystem" not in str(failure.value)
    (kept,) = cached(source)
    assert kept.endswith(".failed"), "nothing is left of the build"
    assert str(source.parent / "cache") in str(failure.value), "it says where the compiler's output is"
    (content,) = (path.read_text() for path in (source.parent / "cache").glob("*/*.failed"))
    assert "warning: #warning" in content and "-isystem" in content


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("error: no room", "mend that, or name another compiler with CXX=..."),
        (
            "fatal error: Python.h: No such file or directory",
            "install Python's headers (python3-dev on Debian and Ubuntu)",
        ),
    ],
)
def test_what_can_be_done(source: Path, error: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(compiler(source.parent, f"echo 'x.h:1:1: {error}' >&2; exit 1")))
    with pytest.raises(RuntimeError, match=f"{error}.*: {re.escape(remedy)}$"):
        extension.load(source)


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        (
            "x.cpp:1:10: fatal error: Python.h: No such file or directory\ncompilation terminated.",
            "fatal error: Python",
        ),
        (
            "/usr/bin/ld: cannot find -lc10: No such file or directory\ncollect2: error: ld returned 1 exit status",
            "cannot find -lc10",
        ),
        ("ld: symbol(s) not found\nclang: error: linker command failed with exit code 1", "symbol(s) not found"),
        ("c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.", "Killed signal"),
        ("collect2: error: ld returned 1 exit status", "collect2: error"),
        ("In file included from a.h\n\nsomething else\n", "something else"),
        ("", "it said nothing"),
    ],
)
def test_the_cause_in_a_compilers_output(output: str, cause: str) -> None:
    assert cause in extension.cause(output)


@pytest.mark.system
def test_a_build_that_failed_is_not_tried_again_until_something_changes(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = compiler(source.parent, "echo 'x.cpp:1:1: error: no room' >&2; exit 1")
    monkeypatch.setenv("CXX", str(broken))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="x.cpp:1:1: error: no room"):
            extension.load(source)
    assert calls(source.parent) == 1
    process = start(source)
    assert "error: no room" in process.communicate(timeout=100)[1]
    assert calls(source.parent) == 1, "no other process tries it"

    other = source.parent / "other"
    other.mkdir()
    monkeypatch.setenv("CXX", str(compiler(other)))
    assert extension.load(source).twice(4) == 8, "another compiler is tried"
    assert calls(other) == 1


def test_a_build_that_failed_is_tried_again_after_it_was_forgotten(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = compiler(source.parent, "exit 1")
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(RuntimeError, match=f"{script} ended with status 1: it said nothing"):
        extension.load(source)
    compiler(source.parent)
    with pytest.raises(RuntimeError, match="ended with status 1"):
        extension.load(source)
    extension.forget_failures()
    assert extension.load(source).twice(4) == 8
    assert [path.suffix for path in map(Path, cached(source))] == [".so"]


@pytest.mark.parametrize("name", ["false", "true"])
def test_what_is_no_compiler(source: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", name)
    with pytest.raises(RuntimeError, match=f"/{name} (ended with status 1|wrote no library): it said nothing"):
        extension.load(source)
    assert libraries(source) == []


def test_a_compiler_that_cannot_be_run(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = source.with_name("compiler")
    path.write_bytes(b"\x7fELF, but of another machine")
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    with pytest.raises(RuntimeError, match=f"{path} cannot be run: Exec format error"):
        extension.load(source)


def test_a_compiler_that_is_not_there_is_not_remembered(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("CXX", "no-such-compiler")
        with pytest.raises(RuntimeError, match="no C[+][+] compiler 'no-such-compiler': install g[+][+], or .* CXX"):
            extension.load(source)
    assert extension.load(source).twice(4) == 8


@pytest.mark.system
def test_a_compiler_with_arguments_or_with_a_space_in_its_path(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "c++ -DTWO=3")
    source.write_text(SOURCE.replace("2 * x", "TWO * x"))
    assert extension.load(source).twice(4) == 12
    folder = source.parent / "my compilers"
    folder.mkdir()
    monkeypatch.setenv("CXX", str(compiler(folder)))
    source.write_text(SOURCE.replace("2 * x", "x + x"))
    assert extension.load(source).twice(4) == 8
    assert calls(folder) == 1


@pytest.mark.system
@pytest.mark.parametrize("damage", ["emptied", "cut", "changed"])
def test_a_damaged_library_is_built_anew(source: Path, damage: str) -> None:
    extension.load(source)
    (library,) = libraries(source)
    content = library.read_bytes()
    changed = content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]
    library.unlink()  # this process has loaded it
    library.write_bytes({"emptied": b"", "cut": content[: len(content) // 2], "changed": changed}[damage])
    assert extension.load(source).twice(4) == 8
    (library,) = libraries(source)
    assert library.read_bytes() == content, "the damaged one is gone"


@pytest.mark.system
def test_without_ninja_and_in_paths_with_spaces_parentheses_and_umlauts(source: Path) -> None:
    """Of the checkout, of the environment, of the compiler, of the cache and for temporary files."""
    folder = source.parent / "Grüße (a b) 'c' $d"
    folder.mkdir()
    for package in CHECKOUT / "fairseq_plugins", Path(torch.__file__).parent:
        (folder / package.name).symlink_to(package, target_is_directory=True)
    path = folder / "twice" / "twice.cpp"
    path.parent.mkdir()
    path.write_text('#include "cpu/guards.h"\n' + SOURCE)
    temporary, cache = folder / "temporary files", folder / "cache (ü)"
    temporary.mkdir()
    links = path_without("ninja", folder / "links (ü)")
    assert shutil.which("ninja", path=links) is None and shutil.which("c++", path=links) is not None
    places = {"PYTHONPATH": str(folder), "PATH": links, "TMPDIR": str(temporary), extension.CACHE_VARIABLE: str(cache)}
    process = start(path, **places)
    output, errors = process.communicate(timeout=300)
    assert (process.returncode, output.strip()) == (0, "42"), errors
    assert list(cache.glob("*/*.so")) and list(temporary.iterdir()) == []


def test_compiling_changes_nothing_in_the_environment(source: Path) -> None:
    before = dict(os.environ)
    extension.load(source)
    assert dict(os.environ) == before


def test_a_cache_that_cannot_be_written(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said at once, and nothing is compiled for nothing."""
    monkeypatch.setenv("CXX", str(compiler(source.parent)))
    file = source.parent / "file"
    file.touch()
    monkeypatch.setenv(extension.CACHE_VARIABLE, str(file / "cache"))
    with pytest.raises(RuntimeError, match=rf"{file}/cache.*Not a directory.* {extension.CACHE_VARIABLE}="):
        extension.load(source)
    assert calls(source.parent) == 0


def test_a_user_without_a_home(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(extension.CACHE_VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(RuntimeError, match=f"no home folder .* {extension.CACHE_VARIABLE}="):
        extension.load(source)


@pytest.mark.system
def test_a_cache_where_nothing_may_be_executed(source: Path) -> None:
    folder = source.parent / "mount"
    folder.mkdir()
    mount = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o noexec none "$0" && exec "$@"', str(folder)]
    if subprocess.run([*mount, "true"], capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    variables = {extension.CACHE_VARIABLE: str(folder), "CXX": str(compiler(source.parent))}
    finished = subprocess.run(
        [*mount, sys.executable, "-c", LOAD, str(source)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **variables},
        text=True,
        capture_output=True,
    )
    assert re.search(f"noexec.* {extension.CACHE_VARIABLE}=", finished.stderr.splitlines()[-1])
    assert calls(source.parent) == 0, "it is said at once, and nothing is compiled for nothing"


def test_a_library_that_cannot_be_loaded(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not compiled again in every process either."""
    monkeypatch.setenv("CXX", str(compiler(source.parent)))
    source.write_text("int nobody_has_this();\n" + SOURCE.replace("2 * x", "nobody_has_this()"))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=rf"cannot be loaded.*nobody_has_this.* {extension.CACHE_VARIABLE}="):
            extension.load(source)
    assert calls(source.parent) == 1


def test_one_warning_for_one_reason(
    source: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler-either")
    other = source.with_name("other.cpp")
    other.write_text(SOURCE)
    for _ in range(2):
        assert extension.load_where_possible(source) is None and extension.load_where_possible(other) is None
    assert len(caplog.records) == 1
    assert "no C++ compiler 'no-such-compiler-either'" in caplog.text and "scripts/check.sh" in caplog.text
    assert extension.reason(source) == extension.reason(other)
    monkeypatch.delenv("CXX")
    assert extension.load_where_possible(source) is not None
    assert extension.reason(source) is None


def test_without_a_compiler_the_layer_warns_once_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    extension.warn_once.cache_clear()
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
    assert caplog.text.count("the C++ kernels are off") == 1
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "eager")
    assert first.equal(second) and first.equal(layer(x).output)
    torch.testing.assert_close(step, first[0])
