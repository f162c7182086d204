// `.committed`: what is not a whole marker is refused; what is one never leads out of the entry.
#include <deep_jit/cache/entry_marker.hpp>

#include "fuzz.hpp"

using deep_jit::EntryMarker;
using namespace deep_jit_fuzz;

namespace {

bool same(const EntryMarker& a, const EntryMarker& b) {
    if (a.files.size() != b.files.size())
        return false;
    for (std::size_t i = 0; i < a.files.size(); ++i)
        if (a.files[i].name != b.files[i].name || a.files[i].size != b.files[i].size ||
            a.files[i].checksum != b.files[i].checksum)
            return false;
    return true;
}

void check(std::string_view text) {
    const auto marker = EntryMarker::parse(text);
    if (!marker)
        return;
    for (const auto& file : marker->files) {
        const auto inside = std::filesystem::path(file.name).lexically_normal();
        require(!file.name.empty() && inside.is_relative() && *inside.begin() != "..",
                "a file lies inside the entry");
        require(!contains(file.name, "\n"), "a name is one line");
    }
    if (marker->files.empty())
        return;
    const auto written = marker->to_text();
    const auto again = EntryMarker::parse(written);
    require(again && same(*again, *marker), "parse(write(x)) == x");
    // A marker that was cut, grew or changed in one byte is none.
    require(!EntryMarker::parse(written.substr(0, written.size() - 1)), "a cut marker is refused");
    require(!EntryMarker::parse(written + "\n"), "a longer marker is refused");
    auto flipped = written;
    flipped[written.size() / 2] = static_cast<char>(flipped[written.size() / 2] ^ 1);
    require(!EntryMarker::parse(flipped), "a changed marker is refused");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(text_of(data, size));
    check(text);
    // The checksum keeps almost every input out: also with the right one.
    for (const std::string& body : {text, text + "\n", "deep_jit entry 1\n" + text + "\n"})
        check(body + "end " + deep_jit::hash::checksum(body) + "\n");

    // A marker with any names that a file can have, and any numbers.
    EntryMarker marker;
    for (const auto& name : deep_jit::str::split(text, '\n')) {
        const auto path = std::filesystem::path(name);
        bool good = !name.empty() && path.is_relative();
        for (const auto& part : path) good = good && part != "..";
        if (good)
            marker.files.push_back(
                {name, ~std::uint64_t(0) / (name.size() + 1), deep_jit::hash::checksum(name)});
    }
    const auto again = EntryMarker::parse(marker.to_text());
    require(again && same(*again, marker), "parse(write(x)) == x for any names");
    return 0;
}
