#include <ATen/ATen.h>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include "judge.hpp"
using namespace operator_calls;
// usage: judge calls.txt knowledge layout [filter] [-v]
int main(int argc, char** argv) {
  at::set_num_threads(1);
  std::ifstream in{argv[1]};
  const auto known = static_cast<knowledge>(std::stoi(argv[2]));
  const auto wanted = static_cast<layout>(std::stoi(argv[3]));
  const std::string filter = argc > 4 ? argv[4] : "";
  const bool verbose = argc > 5;
  judge judging;
  struct row {
    std::string way;
    int total = 0, equal = 0, plain = 0, plain_equal = 0;
    std::map<std::string, int> classes;
    std::set<std::string> good;
  };
  std::map<std::string, row> summary;
  std::map<std::string, std::map<std::string, int>> labels;
  std::size_t all = 0, refused = 0, results = 0, net = 0, peak = 0, equal = 0, thrown = 0;
  std::map<std::string, std::map<std::string, int>> bad;
  for (std::string line; std::getline(in, line);) {
    if (!filter.empty() && line.substr(0, line.find(' ')).find(filter) == std::string::npos) continue;
    try {
      std::optional<operator_call> call{operator_call{line}};
      if (wanted != layout::as_written) call = call->with(wanted);
      if (!call) continue;
      if (verbose) {
        std::cout << line << std::endl;
      }
      const auto v = judging.compare(*call, known);
      if (!v) {
        ++refused;
        continue;
      }
      ++all;
      std::string why;
      if (!v->simulated.fault.empty()) {
        ++thrown;
        why = "throws";
      } else if (!v->has_equal_results()) {
        ++results;
        why = "results";
      } else if (!v->has_equal_net()) {
        ++net;
        why = "net";
      } else if (!v->has_equal_peak()) {
        ++peak;
        why = "peak";
      } else if (!v->has_equal_memory()) {
        why = "order";
      } else if (!v->has_equal_values) { why = "values"; } else ++equal;
      {
        std::set<std::string> dts;
        std::string t;
        for (std::size_t i = 0; i < line.size(); ++i)
          if (line[i] == '[') {
            std::size_t b = i;
            while (b > 0 && line[b - 1] != ' ') --b;
            dts.insert(line.substr(b, i - b));
          }
        bool ints = false;
        std::string cls;
        for (auto& d : dts) {
          if (d[0] == 'i' || d[0] == 'u' || d == "b8")
            ints = true;
          else
            cls += (cls.empty() ? "" : "+") + d;
        }
        if (ints) cls += "i";
        if (!why.empty() && why != "order" && why.rfind("throws", 0) != 0) {
          std::multiset<std::int64_t> a, b;
          for (auto x : v->real.changes)
            if (x > 0) a.insert(x);
          for (auto x : v->simulated.changes)
            if (x > 0) b.insert(x);
          std::multiset<std::int64_t> extra, missing;
          for (auto x : std::set<std::int64_t>(a.begin(), a.end())) {
            auto d = (std::int64_t)a.count(x) - (std::int64_t)b.count(x);
            for (; d > 0; --d) extra.insert(x);
          }
          for (auto x : std::set<std::int64_t>(b.begin(), b.end())) {
            auto d = (std::int64_t)b.count(x) - (std::int64_t)a.count(x);
            for (; d > 0; --d) missing.insert(x);
          }
          std::vector<std::int64_t> args;
          int n = 0;
          (void)call->arguments([&](const tensor_spec& ts) {
            at::Tensor m = at::empty({0}, at::TensorOptions().dtype(ts.dtype));
            std::int64_t e = 1;
            for (auto q : ts.sizes) e *= q;
            args.push_back(e * (std::int64_t)m.element_size());
            return m;
          });
          (void)n;
          auto lab = [&](const std::multiset<std::int64_t>& m) {
            std::string o;
            int c = 0;
            for (auto x : m) {
              if (++c > 4) {
                o += "..";
                break;
              }
              std::string l = std::to_string(x);
              for (std::size_t i = 0; i < args.size(); ++i)
                if (args[i] == x) {
                  l = "a" + std::to_string(i);
                  break;
                }
              if (l[0] != 'a')
                for (std::size_t i = 0; i < v->real.tensors.size(); ++i)
                  if (v->real.tensors[i].defined() && v->real.tensors[i].layout() == c10::kStrided &&
                      (std::int64_t)v->real.tensors[i].nbytes() == x) {
                    l = "r" + std::to_string(i);
                    break;
                  }
              o += l + " ";
            }
            return o;
          };
          std::string l = why + " +" + lab(extra) + (missing.empty() ? "" : " -" + lab(missing));
          labels[line.substr(0, line.find(' ')) + " [" + v->way + "]"][l]++;
        }
        bool plain = true;
        {
          std::set<c10::ScalarType> fl;
          (void)call->arguments([&](const tensor_spec& q) {
            std::vector<std::int64_t> c(q.sizes.size(), 1);
            for (std::size_t i = c.size(); i-- > 1;) c[i - 1] = c[i] * std::max<std::int64_t>(q.sizes[i], 1);
            bool dense = true;
            for (std::size_t i = 0; i < c.size(); ++i) dense &= q.sizes[i] == 1 || c[i] == q.strides[i];
            if (!dense) plain = false;
            if (c10::isIntegralType(q.dtype, true)) {
              if (q.dtype != c10::kLong && q.dtype != c10::kBool) plain = false;
            } else {
              fl.insert(q.dtype);
              if (q.dtype != c10::kFloat && q.dtype != c10::kDouble) plain = false;
            }
            return at::empty({0}, at::TensorOptions().dtype(q.dtype));
          });
          if (fl.size() != 1) plain = false;
        }
        auto& r = summary[line.substr(0, line.find(' '))];
        if (plain) {
          ++r.plain;
          if (why.empty() || why == "order") ++r.plain_equal;
        }
        r.way = v->way;
        ++r.total;
        if (why.empty() || why == "order")
          ++r.equal;
        else
          r.classes[cls + ":" + why]++;
        if (why.empty() || why == "order") r.good.insert(cls);
      }
      if (!why.empty()) {
        if (v->is_listed) why += "(listed)";
        auto& row = bad[line.substr(0, line.find(' ')) + " [" + v->way + "]"];
        if (++row[why] == 1 || verbose) {
          std::cout << why << " | " << v->way << " | " << call->text().substr(0, 300) << "\n";
          if (why[0] == 't')
            std::cout << "    " << v->simulated.fault << "\n";
          else if (why[0] == 'r')
            std::cout << "    " << v->real.results << "\n    " << v->simulated.results << "\n";
          else {
            std::cout << "    real";
            for (std::size_t i = 0; i < v->real.changes.size() && i < 24; ++i) std::cout << ' ' << v->real.changes[i];
            std::cout << "\n    sim ";
            for (std::size_t i = 0; i < v->simulated.changes.size() && i < 24; ++i) std::cout << ' ' << v->simulated.changes[i];
            std::cout << "\n";
          }
        }
      }
    } catch (const std::exception& e) {
      std::cout << "FAULT " << line.substr(0, 120) << ": " << std::string{e.what()}.substr(0, 160) << "\n";
    }
  }
  for (auto& [name, r] : summary)
    if (r.equal != r.total) {
      std::printf("SUM %-12s %s %d/%d ", r.way.c_str(), name.c_str(), r.equal, r.total);
      for (auto& [c, n] : r.classes) std::printf("%s*%d ", c.c_str(), n);
      std::printf("\n");
    }
  for (auto& [name, alln] : labels) {
    std::printf("LAB %s:", name.c_str());
    std::vector<std::pair<int, std::string>> o;
    for (auto& [l, n] : alln) o.push_back({-n, l});
    std::sort(o.begin(), o.end());
    int c = 0;
    for (auto& [n, l] : o)
      if (++c <= 5) std::printf(" {%d %s}", -n, l.c_str());
    std::printf("\n");
  }
  std::printf("calls %zu, equal %zu, refused for real %zu; throws %zu, results %zu, net %zu, peak %zu\n", all, equal, refused,
              thrown, results, net, peak);
  for (auto& [name, r] : summary)
    if (r.way == "shape function") std::printf("%s %s\n", r.equal == r.total ? "GOOD" : "BAD", name.c_str());
  for (auto& [name, r] : summary)
    if (r.way == "shape function" && r.plain)
      std::printf("%s %s\n", r.plain == r.plain_equal ? "PLAINGOOD" : "PLAINBAD", name.c_str());
  std::printf("operators with a difference: %zu\n", bad.size());
}
