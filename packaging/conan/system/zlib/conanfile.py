from conan import ConanFile


class System(ConanFile):
    """The system's headers and library of zlib, for machines that reach no Conan remote."""

    name = "zlib"
    version = "1.2.13"

    def package_info(self):
        self.cpp_info.includedirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.system_libs = ["z"]
        self.cpp_info.set_property("cmake_file_name", "ZLIB")
        self.cpp_info.set_property("cmake_target_name", "ZLIB::ZLIB")
