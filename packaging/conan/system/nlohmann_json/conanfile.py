from conan import ConanFile


class System(ConanFile):
    """The system's headers of nlohmann_json, for machines that reach no Conan remote."""

    name = "nlohmann_json"
    version = "3.11.2"
    package_type = "header-library"

    def package_info(self):
        self.cpp_info.includedirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "nlohmann_json")
        self.cpp_info.set_property("cmake_target_name", "nlohmann_json::nlohmann_json")
