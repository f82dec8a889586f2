#include <memprof/toolkit/format/function_name.hpp>

#include <catch2/catch_test_macros.hpp>

namespace memprof_tests::format_function_name {

using memprof::detail::frame_name;
using memprof::detail::is_library_function;
using memprof::detail::short_function_name;

TEST_CASE("function name: functions of C++ lose arguments, template arguments and result", "[format]") {
  CHECK(short_function_name("at::native::empty_cuda(c10::ArrayRef<long>, std::optional<bool>)") == "at::native::empty_cuda");
  CHECK(short_function_name("void torch::f<std::function<void (at::Tensor&&)> >(at::Tensor const&, at::Tensor&)") == "torch::f");
  CHECK(short_function_name("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)") ==
        "torch::autograd::Node::operator()");
  CHECK(short_function_name("at::(anonymous namespace)::add(at::Tensor const&)") == "at::(anonymous namespace)::add");
  CHECK(short_function_name("_object* torch::wrap_<&torch::add>(_object*, _object*)") == "torch::wrap_");
  CHECK(short_function_name("std::error_code::default_error_condition() const") == "std::error_code::default_error_condition");
  CHECK(short_function_name("c10::wrap_<c10::X<at::Tensor (int), &f>, int>::call(int)") == "c10::wrap_::call");
  CHECK(short_function_name("operator new(unsigned long)") == "operator new");
  CHECK(short_function_name("operator new[](unsigned long, std::align_val_t)") == "operator new[]");
  CHECK(short_function_name("a::any::operator bool() const") == "a::any::operator bool");
  CHECK(short_function_name("a::any::operator unsigned long<int>()") == "a::any::operator unsigned long");
  CHECK(short_function_name("main::{lambda(int)#1}::operator()(int) const") == "main::{lambda#1}::operator()");
  CHECK(short_function_name("a::f(int) [clone .part.0]") == "a::f");
  for (const char* const python : {"forward", "<module>", "<lambda>", "PyNumber_Add", ""})
    CHECK(short_function_name(python) == python);
  // Not a name of any language; the rest is all that matters.
  for (const char* const odd : {"(", ")))(((", "<<<::", "operator", "operator<", "a::operator", "::"})
    (void)short_function_name(odd);
}

TEST_CASE("function name: the standard library and allocators work for whoever calls them", "[format]") {
  for (const char* const library : {"std::vector<int, std::allocator<int> >::push_back(int&&)",
                                    "void std::__invoke_impl<void, f>(std::__invoke_other, f&&)",
                                    "__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
                                    "std::__1::vector<int>::reserve(unsigned long)",
                                    "operator new(unsigned long)",
                                    "operator new[](unsigned long, std::align_val_t)",
                                    "non-virtual thunk to std::stringbuf::str()",
                                    "malloc",
                                    "calloc",
                                    "realloc",
                                    "posix_memalign",
                                    "aligned_alloc",
                                    "__libc_memalign",
                                    "gomp_malloc",
                                    "mi_heap_malloc",
                                    "dnnl::impl::malloc(unsigned long, int)",
                                    "PyObject_Malloc",
                                    "c10::alloc_cpu(unsigned long)",
                                    "c10::DefaultCPUAllocator::allocate(unsigned long)",
                                    "rmm::mr::cuda_memory_resource::do_allocate(unsigned long)",
                                    "arrow::SystemAllocator::AllocateAligned(long)",
                                    "boost::allocator_traits<int>::allocate"})
    CHECK(is_library_function(short_function_name(library)));
  for (const char* const own :
       {"main", "std_sum(int)", "fasttext::Dictionary::Dictionary(std::shared_ptr<fasttext::Args>)", "my::stdlib::f()",
        "my::std::f()", "std", "allocate", "make_allocator()", "model::allocate_weights(int)", "allocator_test::allocate_all()",
        "malloc_stats", "std::vector<int> numbers()", "operator new_order", "??", ""})
    CHECK_FALSE(is_library_function(short_function_name(own)));
}

TEST_CASE("function name: a frame has the file's own name and the line, as far as they are known", "[format]") {
  CHECK(frame_name("f(int)", "/src/a.cpp", "12") == "f (a.cpp:12)");
  CHECK(frame_name("f", R"(D:\src\a.py)", "12") == "f (a.py:12)");
  CHECK(frame_name("f", "/lib/libm.so.6", "") == "f (libm.so.6)");
  CHECK(frame_name("f", "", "12") == "f");
  CHECK(frame_name("f", "??", "0") == "f");
}

}  // namespace memprof_tests::format_function_name
