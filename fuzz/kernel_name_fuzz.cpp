// The Host backend's guess of a kernel's name: from any text, and not misled by comments and
// literals.
#include <deep_jit/backend/host/kernel_name.hpp>

#include "fuzz.hpp"

using namespace deep_jit_fuzz;
namespace host = deep_jit::host;

namespace {

void require_k(const std::string& before) {
    require(host::guess_kernel_name(before + "\n__global__ void k(int n) {}\n") == "k",
            "the kernel behind a comment or literal is found");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(text_of(data, size));
    const auto guess = host::guess_kernel_name(text);
    require(host::guess_kernel_name(text) == guess, "the same text gives the same guess");
    if (guess) {
        require(!guess->empty(), "a guess is not empty");
        require(contains(text, "__global__") || contains(text, "__instantiate_kernel"),
                "a kernel is marked as one");
        host::base_name(*guess);
    }

    // Names of symbols come from an object file; demangled or not, they are taken apart.
    const auto name = host::demangle(text.substr(0, text.find('\0')));
    const auto expression = host::expression_of(name);
    require(expression.size() <= name.size(), "an expression is a part of the name");
    require(contains(host::overload_of(name), expression), "an overload names the function");
    require(contains(expression, host::base_name(expression)), "a base name is part of it");

    if (!contains(text, "*/"))
        require_k("/*" + text + "*/");
    if (!contains(text, ")zz\""))
        require_k("const char* s = R\"zz(" + text + ")zz\";");
    if (!contains(text, "\n") && !contains(text, "\\")) {
        require_k("//" + text);
        if (!contains(text, "\""))
            require_k("const char* s = \"" + text + "\";");
    }
    return 0;
}
