from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import memprof
import pytest

pytest.importorskip("mypy")

CONFIGURATION = "[mypy]\nstrict = true\n[mypy-pandas.*,torch.*]\nignore_missing_imports = true\n"


def mypy(folder: pathlib.Path, *arguments: str) -> str:
    configuration = folder / "mypy.ini"
    configuration.write_text(CONFIGURATION)
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", configuration, *arguments], cwd=folder, capture_output=True, text=True)
    return done.stdout


def test_the_package_is_clean_under_strict_mypy(tmp_path: pathlib.Path) -> None:
    shutil.copytree(os.path.dirname(memprof.__file__), tmp_path / "memprof", ignore=shutil.ignore_patterns("bin", "*.so"))
    assert mypy(tmp_path, "memprof").startswith("Success")


def test_a_user_sees_types(tmp_path: pathlib.Path) -> None:
    (tmp_path / "user.py").write_text(
        "import memprof\n"
        "with memprof.capture(trace=True) as capture:\n"
        "    reveal_type(capture.profile.space('cpu').live_at_peak.largest_blocks[0].category)\n"
        "    reveal_type(capture.trace.fit(1).reserved)\n"
        "memprof.capture(device=3)\n"
        "with memprof.no_dispatch(device='gpu-24gb', raise_out_of_memory=True) as planned:\n"
        "    reveal_type(planned.profile.mode)\n"
        "memprof.no_dispatch(device=3)\n"
    )
    found = mypy(tmp_path, "user.py")
    assert "Literal['other'] | Literal['parameter']" in found or "Literal['other', 'parameter'" in found
    assert 'Revealed type is "int"' in found or 'Revealed type is "builtins.int"' in found
    assert 'incompatible type "int"' in found
    assert "Literal['normal'] | Literal['no_dispatch']" in found or "Literal['normal', 'no_dispatch']" in found
    assert "Found 2 errors" in found


def test_the_extension_has_the_stable_abi_where_python_has_one() -> None:
    suffix = ".abi3.so" if sys.version_info >= (3, 12) else sysconfig.get_config_var("EXT_SUFFIX")
    file = memprof._core.__file__
    assert file is not None and file.endswith("_core" + suffix)
