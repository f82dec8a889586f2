from conan import ConanFile


class System(ConanFile):
    """The system's headers of protozero, for machines that reach no Conan remote."""

    name = "protozero"
    version = "1.7.1"
    package_type = "header-library"

    def package_info(self):
        self.cpp_info.includedirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "protozero")
        self.cpp_info.set_property("cmake_target_name", "protozero::protozero")
