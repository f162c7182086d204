// Kernel sources of any kind: a digest, or a refusal of the kinds that are documented; the same one
// each time; and no line is tracked that a plain reading of the rules does not track.
#include <unistd.h>

#include <fstream>

#include <deep_jit/source/parser.hpp>

#include "fuzz.hpp"

using deep_jit::ConfigError;
using deep_jit::Parser;
using namespace deep_jit_fuzz;
namespace fs = std::filesystem;

namespace {

/// A directory with some headers, which stays as it is: it is the same at every start.
fs::path headers() {
    static const fs::path directory = [] {
        auto path = fs::temp_directory_path() / ("deep_jit_fuzz." + std::to_string(::getuid()));
        fs::create_directories(path / "lib");
        std::ofstream(path / "lib" / "a.h") << "int a;\n";
        std::ofstream(path / "lib" / "b.h") << "#include <lib/a.h>\nint b;\n";
        std::ofstream(path / "lib" / "circle.h") << "#include <lib/b.h>\n#include <lib/circle.h>\n";
        std::ofstream(path / "lib" / "quoted.h") << "# include \"a.h\"\n";
        return path;
    }();
    return directory;
}

Parser fresh_parser() { return Parser({headers(), headers() / "none"}, {"lib/", "other"}); }

/// The digest, or why there is none.
std::string digest(Parser& parser, std::string_view source) {
    try {
        return parser.parse_into_hash(source);
    } catch (const ConfigError& error) {
        return std::string("refused: ") + error.what();
    }
}

/// Whether the line is an include by angle brackets or quotes, read in another way than the
/// parser does.
bool is_include(std::string_view line) {
    std::string tight;
    for (const char c : line)
        if (!deep_jit::str::is_blank(c))
            tight += c;
    return tight.starts_with("#include<") || tight.starts_with("#include\"");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto source = text_of(data, size);
    auto parser = fresh_parser();
    const auto first = digest(parser, source);
    require(digest(parser, source) == first, "the same, with the headers known");
    auto other = fresh_parser();
    require(digest(other, source) == first, "the same from a new parser");

    bool plain = true;
    for (const auto& line : deep_jit::str::split(source, '\n')) {
        try {
            const auto name = parser.parse_include(line);
            require(!name || is_include(line), "only an include is tracked");
            require(!name || name->starts_with("lib/") || name->starts_with("other"),
                    "only a name with one of the prefixes is tracked");
            plain = plain && !name;
        } catch (const ConfigError&) {
            require(is_include(line), "only an include is refused");
            plain = false;
        }
    }
    if (plain && !source.starts_with("\xef\xbb\xbf"))
        require(first == deep_jit::hash::get_hex_digest(source),
                "a source without tracked includes is digested as it is");
    if (!first.starts_with("refused: ")) {
        require(first.size() == 32, "a digest has 32 digits");
        // One more line is another source, a tracked header or not.
        for (const char* more :
             {"\n", "\nint x;", "\n#include <lib/a.h>", "\n#include <lib/b.h>"}) {
            const auto longer = digest(parser, std::string(source) + more);
            require(longer != first && longer.size() == 32, "every line counts");
        }
        require(digest(parser, std::string(source) + "\n#include <lib/circle.h>\n")
                    .starts_with("refused: "),
                "a circle is refused behind anything");
        require(digest(parser, std::string(source) + "\n#include \"lib/a.h\"\n")
                    .starts_with("refused: "),
                "a quoted include is refused behind anything");
    }
    return 0;
}
