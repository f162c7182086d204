// What ptxas prints: never a crash, and nothing that comes before hides a spill that is reported.
#include <algorithm>

#include <deep_jit/backend/cuda/ptxas_log.hpp>

#include "fuzz.hpp"

using deep_jit::cuda::FunctionUsage;
using deep_jit::cuda::parse_ptxas_log;
using namespace deep_jit_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string log(text_of(data, size));
    const auto usage = parse_ptxas_log(log);
    for (const auto& [function, known] : usage)
        require(function.empty() || contains(log, function), "a function's name is in the log");

    const auto verbose =
        parse_ptxas_log(log +
                        "\nptxas info    : Function properties for _Z1kPf\n"
                        "    24 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads\n");
    const auto found = verbose.find("_Z1kPf");
    require(found != verbose.end() && found->second.spill_stores >= 8 &&
                found->second.spill_loads >= 16 && found->second.stack >= 24,
            "the lines of --verbose are read behind anything");

    const auto warned = parse_ptxas_log(
        log +
        "\nptxas warning : Registers are spilled to local memory in function '_Z1wPf', 8 bytes "
        "spill stores, 12 bytes spill loads\n"
        "ptxas warning : Local memory used for function '_Z1wPf', size of stack frame: 40 bytes\n");
    const auto warning = warned.find("_Z1wPf");
    require(warning != warned.end() && warning->second.spill_stores >= 8 &&
                warning->second.spill_loads >= 12 && warning->second.stack >= 40,
            "warnings are read behind anything");
    return 0;
}
