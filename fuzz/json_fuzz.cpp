// Any text is read as JSON or refused; what was read survives being written and read again.
#include <deep_jit/utils/json.hpp>

#include "fuzz.hpp"

using deep_jit::Error;
using deep_jit::json;
using namespace deep_jit_fuzz;

namespace {

/// Looks at every value, so that a damaged one would show.
std::size_t count_values(const json& value) {
    std::size_t count = 1;
    if (const auto* values = value.get_if<json::array_t>())
        for (const auto& element : *values) count += count_values(element);
    if (const auto* members = value.get_if<json::object_t>())
        for (const auto& member : *members) {
            count += count_values(member.second);
            require(value.find(member.first) != nullptr, "a member is found by its name");
        }
    return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = text_of(data, size);
    json value;
    if (!succeeds<Error>([&] { value = json::parse(text); }))
        return 0;
    const auto count = count_values(value);
    for (const int indent : {-1, 0, 2}) {
        const auto written = value.dump(indent);
        const json again = json::parse(written);
        require(again == value, "parse(dump(x)) == x");
        require(count_values(again) == count, "nothing is lost or added");
        require(again.dump(indent) == written, "the same value is the same text");
    }
    // A value ends where it ends.
    require(!succeeds<Error>([&] { json::parse(value.dump() + " x"); }), "junk is refused");
    require(json::parse(" \n" + value.dump() + "\t\r ") == value, "blanks do not count");
    // Any bytes are fine in a string.
    require(json::parse(json(text).dump()) == json(text), "a string of any bytes");
    return 0;
}
