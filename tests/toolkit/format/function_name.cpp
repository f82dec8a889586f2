#include <memprof/toolkit/format/function_name.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace memprof_tests::format_function_name {

using memprof::detail::bare_function_name;
using memprof::detail::frame_name;
using memprof::detail::is_library_function;
using memprof::detail::short_function_name;

struct spelling {
  const char* demangled;
  const char* written;
};

TEST_CASE("function name: functions of C++ are written as a person would", "[format]") {
  // Names of libtorch, LightGBM, fastText, faiss, libstdc++, libc++, and made ones.
  const spelling spellings[] = {
      // parameters and results
      {"at::native::empty_cuda(c10::ArrayRef<long>, std::optional<bool>)", "at::native::empty_cuda"},
      {"std::error_code::default_error_condition() const", "std::error_code::default_error_condition"},
      {"c10::SymInt c10::detail::maybe_wrap_dim_slow<c10::SymInt>(c10::SymInt, c10::SymInt, bool)",
       "c10::detail::maybe_wrap_dim_slow<c10::SymInt>"},
      {"c10::SmallVectorBase<unsigned int>::grow_pod(void const*, unsigned long, unsigned long)",
       "c10::SmallVectorBase<unsigned int>::grow_pod"},
      {"void torch::f<std::function<void (at::Tensor&&)> >(at::Tensor const&, at::Tensor&)", "torch::f"},
      {"_object* torch::wrap_<&torch::add>(_object*, _object*)", "torch::wrap_<&torch::add>"},
      {"void work::keep<int>(unsigned long)", "work::keep<int>"},
      {"a::f(int) [clone .part.0]", "a::f"},
      {"a::f(int) const [clone .isra.0]", "a::f"},
      {"a::f[abi:cxx11](int)", "a::f"},
      {"unsigned long long a::f(int) &&", "a::f"},
      // containers of the standard library
      {"double& std::vector<double, std::allocator<double> >::emplace_back<double>(double&&)",
       "std::vector<double>::emplace_back"},
      {"std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector<int>::push_back"},
      {"std::__1::vector<int, std::__1::allocator<int>>::reserve(unsigned long)", "std::vector<int>::reserve"},
      {"std::vector<std::vector<float, std::allocator<float> >, std::allocator<std::vector<float, std::allocator<float> > > "
       ">::resize(unsigned long)",
       "std::vector<std::vector<float>>::resize"},
      {"std::map<int, double, std::less<int>, std::allocator<std::pair<int const, double> > >::operator[](int&&)",
       "std::map<int, double>::operator[]"},
      {"std::map<int, std::less<int>, std::less<int>, std::allocator<std::pair<int const, std::less<int> > > >::clear()",
       "std::map<int, std::less<int>>::clear"},
      {"std::set<long, std::less<long>, std::allocator<long> >::insert(long const&)", "std::set<long>::insert"},
      {"std::set<long, std::greater<long>, std::allocator<long> >::insert(long const&)",
       "std::set<long, std::greater<long>>::insert"},
      {"std::unordered_map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, int, "
       "std::hash<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >, "
       "std::equal_to<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >, "
       "std::allocator<std::pair<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const, int> > "
       ">::operator[](std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)",
       "std::unordered_map<std::string, int>::operator[]"},
      {"std::stack<int, std::deque<int, std::allocator<int> > >::push(int const&)", "std::stack<int>::push"},
      {"std::priority_queue<int, std::vector<int, std::allocator<int> >, std::less<int> >::push(int&&)",
       "std::priority_queue<int>::push"},
      {"std::unique_ptr<Model, std::default_delete<Model> >::reset(Model*)", "std::unique_ptr<Model>::reset"},
      {"std::array<float, 3ul>::fill(float const&)", "std::array<float, 3>::fill"},
      {"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_mutate(unsigned long, unsigned long, "
       "char const*, unsigned long)",
       "std::string::_M_mutate"},
      {"std::__cxx11::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >::find_first_of(wchar_t const*, "
       "unsigned long) const",
       "std::wstring::find_first_of"},
      {"std::__cxx11::basic_stringstream<char, std::char_traits<char>, std::allocator<char> >::basic_stringstream()",
       "std::stringstream::basic_stringstream"},
      {"std::basic_ifstream<char, std::char_traits<char> >::close()", "std::ifstream::close"},
      {"std::filesystem::__cxx11::path::compare(std::filesystem::__cxx11::path const&) const", "std::filesystem::path::compare"},
      {"std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> "
       ">(std::basic_ostream<char, std::char_traits<char> >&, char const*)",
       "std::operator<<"},
      {"void std::vector<std::pair<int, std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >, "
       "std::allocator<std::pair<int, std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > > > "
       ">::_M_realloc_insert<int, char const*>(__gnu_cxx::__normal_iterator<int*, int>, int&&, char const*&&)",
       "std::vector<std::pair<int, std::string>>::_M_realloc_insert"},
      {"std::vector<float, LightGBM::Common::AlignmentAllocator<float, 32ul> >::resize(unsigned long)",
       "std::vector<float, \u2026>::resize"},
      {"__gnu_cxx::new_allocator<std::_Rb_tree_node<int> >::allocate(unsigned long, void const*)",
       "__gnu_cxx::new_allocator<std::_Rb_tree_node<int>>::allocate"},
      {"std::_Rb_tree<int, std::pair<int const, Tensor>, std::_Select1st<std::pair<int const, Tensor> >, std::less<int>, "
       "std::allocator<std::pair<int const, Tensor> > >::_M_copy<false, int>(int)",
       "std::_Rb_tree<int, std::pair<\u2026>, \u2026>::_M_copy"},
      // templates of the user's
      {"c10::wrap_<c10::X<at::Tensor (int), &f>, int>::call(int)", "c10::wrap_<c10::X<\u2026>, int>::call"},
      {"LightGBM::DenseBin<unsigned char, false>::Push(int, int, unsigned int)",
       "LightGBM::DenseBin<unsigned char, false>::Push"},
      {"LightGBM::FeatureHistogram::FindBestThresholdSequentially<true, false, true, false, true>(int)",
       "LightGBM::FeatureHistogram::FindBestThresholdSequentially"},
      {"faiss::HeapArray<faiss::CMax<float, long> >::heapify()", "faiss::HeapArray<faiss::CMax<float, long>>::heapify"},
      {"fasttext::Dictionary::Dictionary(std::shared_ptr<fasttext::Args>)", "fasttext::Dictionary::Dictionary"},
      {"ops::compare<(a::kind)3, (4 > 3)>::run()", "ops::compare<(a::kind)3, (4 > 3)>::run"},
      {"ops::call<&a::b::operator< >::run()", "ops::call<&a::b::operator< >::run"},
      {"ops::my_operator<int>::run()", "ops::my_operator<int>::run"},
      // operators
      {"torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "torch::autograd::Node::operator()"},
      {"bool a::operator< <int>(a::b<int> const&, a::b<int> const&)", "a::operator<"},
      {"a::b::operator->() const", "a::b::operator->"},
      {"a::b::operator<=>(a::b const&) const", "a::b::operator<=>"},
      {"operator new(unsigned long)", "operator new"},
      {"operator new[](unsigned long, std::align_val_t)", "operator new[]"},
      {"a::any::operator bool() const", "a::any::operator bool"},
      {"a::any::operator unsigned long<int>()", "a::any::operator unsigned long"},
      {"c10::SymInt::operator_div_slow_path(c10::SymInt const&) const", "c10::SymInt::operator_div_slow_path"},
      // names within functions, and without names
      {"at::(anonymous namespace)::add(at::Tensor const&)", "at::(anonymous namespace)::add"},
      {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda#1}::operator()"},
      {"a::f(int) const::{lambda(std::vector<int>)#2}::operator()(std::vector<int>) const", "a::f::{lambda#2}::operator()"},
      {"train(int)::{lambda(auto:1)#1}::operator()<float>(float) const", "train::{lambda#1}::operator()"},
      {"std::__detail::_AnyMatcher<std::__cxx11::regex_traits<char>, false, false, true>::operator()(char) const::__nul",
       "std::__detail::_AnyMatcher<std::regex_traits<\u2026>, false, \u2026>::operator()::__nul"},
      {"non-virtual thunk to std::stringbuf::str()", "std::stringbuf::str"},
  };
  for (const auto& [demangled, written] : spellings) {
    CHECK(short_function_name(demangled) == written);
    CHECK(short_function_name(written) == written);  // a trace may have it already
  }
  for (const char* const python : {"forward", "<module>", "<lambda>", "PyNumber_Add", ""})
    CHECK(short_function_name(python) == python);
  // Not a name of any language; the rest is all that matters.
  for (const char* const odd :
       {"(", ")))(((", "<<<::", "operator", "operator<", "a::operator", "::", "a::b<", "a::b<c<d>", "a::>(<"})
    (void)short_function_name(odd);
}

TEST_CASE("function name: however deep its templates are, a name stays short and is read in time", "[format]") {
  std::string deep = "int";
  for (int level = 0; level < 2000; ++level) deep = "a::b<" + deep + ">";
  // Lists of 9, 15, 21 and 27 characters, from the inside of the eighth; the next would have 33.
  CHECK(short_function_name("void " + deep + "::f()") == "a::b<a::b<a::b<a::b<a::b<\u2026>>>>>::f");
  std::string wide = "x";
  for (int part = 0; part < 20; ++part) wide += "::part<int, long, float>";
  CHECK(short_function_name(wide + "::f()").find("part<\u2026>::part") != std::string::npos);
}

TEST_CASE("function name: the bare name has no template arguments", "[format]") {
  CHECK(bare_function_name("double& std::vector<double, std::allocator<double> >::emplace_back<double>(double&&)") ==
        "std::vector::emplace_back");
  CHECK(bare_function_name("c10::wrap_<c10::X<at::Tensor (int), &f>, int>::call(int)") == "c10::wrap_::call");
  CHECK(bare_function_name("malloc") == "malloc");
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
    CHECK(is_library_function(bare_function_name(library)));
  for (const char* const own :
       {"main", "std_sum(int)", "fasttext::Dictionary::Dictionary(std::shared_ptr<fasttext::Args>)", "my::stdlib::f()",
        "my::std::f()", "std", "allocate", "make_allocator()", "model::allocate_weights(int)", "allocator_test::allocate_all()",
        "malloc_stats", "std::vector<int> numbers()", "operator new_order", "??", ""})
    CHECK_FALSE(is_library_function(bare_function_name(own)));
}

TEST_CASE("function name: a frame has the file's own name and the line, as far as they are known", "[format]") {
  CHECK(frame_name("f(int)", "/src/a.cpp", "12") == "f (a.cpp:12)");
  CHECK(frame_name("f", R"(D:\src\a.py)", "12") == "f (a.py:12)");
  CHECK(frame_name("f", "/lib/libm.so.6", "") == "f (libm.so.6)");
  CHECK(frame_name("f", "", "12") == "f");
  CHECK(frame_name("f", "??", "0") == "f");
}

}  // namespace memprof_tests::format_function_name
