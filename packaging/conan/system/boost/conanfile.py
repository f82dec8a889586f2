from conan import ConanFile


class System(ConanFile):
    """The system's headers of Boost, for machines that reach no Conan remote."""

    name = "boost"
    version = "1.81.0"
    options = {"header_only": [True, False]}
    default_options = {"header_only": True}

    def package_info(self):
        self.cpp_info.includedirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "Boost")
        headers = self.cpp_info.components["headers"]
        headers.includedirs = []
        headers.bindirs = []
        headers.libdirs = []
        headers.set_property("cmake_target_name", "Boost::headers")
