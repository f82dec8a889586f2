from conan import ConanFile


class System(ConanFile):
    """The system's headers of cli11, for machines that reach no Conan remote."""

    name = "cli11"
    version = "2.3.2"
    package_type = "header-library"

    def package_info(self):
        self.cpp_info.includedirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "CLI11")
        self.cpp_info.set_property("cmake_target_name", "CLI11::CLI11")
