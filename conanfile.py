import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class MemprofConan(ConanFile):
    name = "memprof"
    description = "Exact memory profiles of training loops in C++"
    license = "MIT"
    topics = ("memory", "profiler", "machine-learning", "header-only")
    settings = "os", "arch", "compiler", "build_type"
    # Each is a component of the CMake package, but for tools: the program memprof, which uses those of the others that are on.
    options = {name: [True, False] for name in ("json", "toolkit", "zstd", "toml", "protozero", "tools")}
    default_options = {"json": True, "toolkit": False, "zstd": False, "toml": False, "protozero": False, "tools": False}
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "toolkit/*", "tools/*", "examples/nano_gpt/*"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include", "memprof", "version.hpp"))
        numbers = re.findall(r"define MEMPROF_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
        self.version = ".".join(numbers)

    def configure(self):
        # protozero is for the toolkit, of which the program is made; that and sessions with TOML write JSON.
        if self.options.tools or self.options.protozero:
            self.options.toolkit.value = True
        if self.options.toolkit or self.options.toml:
            self.options.json.value = True
        self.package_type = "application" if self.options.tools else "header-library"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.json:
            self.requires("nlohmann_json/[>=3.10 <4]", transitive_headers=True)
        if self.options.zstd:
            self.requires("zstd/[>=1.5 <2]", transitive_headers=True, transitive_libs=True)
        if self.options.toml:
            self.requires("tomlplusplus/[>=3.2 <4]", transitive_headers=True)
        if self.options.protozero:
            self.requires("protozero/[>=1.7 <2]", transitive_headers=True)
        if self.options.tools:
            self.requires("cli11/[>=2.1]", visible=False)
            self.requires("zlib/[>=1.2.11 <2]", visible=False)

    def package_id(self):
        if not self.info.options.tools:
            self.info.settings.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["MEMPROF_DEVELOPMENT"] = False
        for name in ("json", "toolkit", "zstd", "toml", "protozero"):
            toolchain.cache_variables[f"MEMPROF_{name.upper()}"] = "ON" if self.options.get_safe(name) else "OFF"
        toolchain.cache_variables["MEMPROF_TOOLS"] = bool(self.options.tools)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        if self.options.tools:
            cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "share", "pkgconfig"))

    def package_info(self):
        # Its own CMake package, which has the component torch too.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("share", "memprof")]
        self.cpp_info.libdirs = []
        if not self.options.tools:
            self.cpp_info.bindirs = []
        if self.settings.os == "Linux":
            self.cpp_info.system_libs = ["pthread", "dl"]
