// Whether there is a libc++ to compile and link with.
#include <string>

int main(int count, char**) { return static_cast<int>(std::string(static_cast<unsigned>(count - 1), 'x').size()); }
