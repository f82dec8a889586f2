import os

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class MemprofTestConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        options = self.dependencies["memprof"].options
        components = [name for name in ("json", "toolkit", "zstd", "toml", "protozero") if options.get_safe(name)]
        cmake.configure(variables={"COMPONENTS": ";".join(components)})
        cmake.build()

    def test(self):
        memprof = self.dependencies["memprof"]
        for folder in ("include/memprof/toolkit", "share/memprof/toolkit"):
            if os.path.isdir(os.path.join(memprof.package_folder, folder)) != bool(memprof.options.toolkit):
                raise ConanException(f"{folder} is in the package, or is not, against the option toolkit={memprof.options.toolkit}")
        if can_run(self):
            self.run(os.path.join(self.cpp.build.bindir, "consumer"), env="conanrun")
            if self.dependencies["memprof"].options.tools:
                self.run("memprof --version", env="conanrun")
