from conan import ConanFile


class System(ConanFile):
    """The system's headers and library of zstd, for machines that reach no Conan remote."""

    name = "zstd"
    version = "1.5.4"

    def package_info(self):
        self.cpp_info.includedirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.system_libs = ["zstd"]
        self.cpp_info.set_property("cmake_file_name", "zstd")
        self.cpp_info.set_property("cmake_target_name", "zstd::libzstd_static")
