from conan import ConanFile


class System(ConanFile):
    """The system's headers of tomlplusplus, for machines that reach no Conan remote."""

    name = "tomlplusplus"
    version = "3.3.0"
    package_type = "header-library"

    def package_info(self):
        self.cpp_info.includedirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "tomlplusplus")
        self.cpp_info.set_property("cmake_target_name", "tomlplusplus::tomlplusplus")
