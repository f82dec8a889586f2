// Stands in for libcupti.so over the stand-in for the driver. With STAND_IN_CUPTI_HOLDER, a tool of that name has its callbacks;
// with STAND_IN_CUPTI_SHARES it shares them, as CUPTI 13.2 and later can. With STAND_IN_CUPTI_REFUSES, subscriptions fail with
// that number, and with STAND_IN_CUPTI_SILENT no call is reported.
#include "driver.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

namespace {

constexpr int success = 0;
constexpr int invalid_parameter = 1;
constexpr int another_subscriber = 39;

using callback = void (*)(void* user, int domain, std::uint32_t id, const void* data);

struct subscriber {
  callback receive = nullptr;
  void* user = nullptr;
  std::set<std::pair<int, std::uint32_t>> enabled;
};
subscriber only;

/// What CUPTI allocates when it is subscribed to, it may free in a call of the program.
std::atomic<void*> kept = nullptr;

void pass_on(void* user, int domain, std::uint32_t id, const void* data) {
  std::free(kept.exchange(nullptr));
  const subscriber& to = *static_cast<subscriber*>(user);
  if (to.receive != nullptr && to.enabled.count({domain, id}) != 0) to.receive(to.user, domain, id, data);
}

int subscribe(void** handle, callback receive, void* user) {
  only = {receive, user, {}};
  std::free(kept.exchange(std::malloc(12345)));
  stand_in_listen(pass_on, &only);
  *handle = &only;
  return success;
}

}  // namespace

extern "C" {

int cuptiSubscribe(void** handle, callback receive, void* user) {
  if (const char* const refusal = std::getenv("STAND_IN_CUPTI_REFUSES")) return std::atoi(refusal);
  if (std::getenv("STAND_IN_CUPTI_HOLDER") != nullptr || only.receive != nullptr) return another_subscriber;
  return subscribe(handle, receive, user);
}

#if STAND_IN_CUPTI >= 13
int cuptiSubscribe_v2(void** handle, callback receive, void* user, void* parameters) {
  struct subscriber_parameters {
    std::size_t size;
    const char* name;
    char* holder;
    std::size_t holder_size;
    std::uint8_t shares;
  };
  constexpr std::size_t size_without_sharing = 32;
  const bool knows_sharing = std::getenv("STAND_IN_CUPTI_SHARES") != nullptr;
  const auto* const asked = static_cast<const subscriber_parameters*>(parameters);
  if (asked == nullptr) return cuptiSubscribe(handle, receive, user);
  if (asked->size != size_without_sharing && !(knows_sharing && asked->size == sizeof *asked)) return invalid_parameter;
  if (asked->size == sizeof *asked && asked->shares == 1) return subscribe(handle, receive, user);
  const int result = cuptiSubscribe(handle, receive, user);
  if (result == another_subscriber && asked->holder != nullptr)
    std::snprintf(asked->holder, asked->holder_size, "%s", std::getenv("STAND_IN_CUPTI_HOLDER"));
  return result;
}
#endif

int cuptiUnsubscribe(void*) {
  stand_in_listen(nullptr, nullptr);
  only = {};
  return success;
}
int cuptiEnableCallback(std::uint32_t is_on, void*, int domain, std::uint32_t id) {
  constexpr std::uint32_t calls_of_driver = 807;
  if (std::getenv("STAND_IN_CUPTI_SILENT") != nullptr) return invalid_parameter;
  if (domain == 1 && id >= calls_of_driver) return invalid_parameter;
  if (is_on != 0)
    only.enabled.insert({domain, id});
  else
    only.enabled.erase({domain, id});
  return success;
}
int cuptiGetResultString(int result, const char** text) {
  *text = result == another_subscriber ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR_UNKNOWN";
  return success;
}
int cuptiGetDeviceId(void* context, std::uint32_t* device) { return stand_in_device_of(context, device); }
int cuptiGetContextId(void* context, std::uint32_t* number) { return stand_in_number_of(context, number); }
}
