// What tells one NVRTC, with the headers that go with it, from another: part of every key.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <deep_jit/backend/cuda/nvrtc_api.hpp>
#include <deep_jit/backend/cuda/nvrtc_headers.hpp>
#include <deep_jit/backend/cuda/nvrtc_library.hpp>
#include <deep_jit/cache/identity.hpp>
#include <deep_jit/utils/elf.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/hash.hpp>

namespace deep_jit::cuda::nvrtc {

namespace detail {

/// The linker's build id of a library, else a digest of its bytes; empty when it cannot be read.
/// Of a hundred megabytes only a few pages are read.
inline std::string library_id(const std::filesystem::path& path) {
    const auto fd = fs_detail::open_retrying(path, O_RDONLY);
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0 || info.st_size <= 0)
        return {};
    const auto size = static_cast<std::size_t>(info.st_size);
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (address == MAP_FAILED)
        return {};
    const std::string_view bytes(static_cast<const char*>(address), size);
    std::string out;
    if (const auto elf = ElfView::parse(bytes))
        for (const auto& section : elf->sections())
            if (section.name == ".note.gnu.build-id")
                out = "build id " + hash::get_hex_digest(section.bytes);
    if (out.empty())
        out = "content " + hash::get_hex_digest(bytes);
    ::munmap(address, size);
    return out;
}

/// The number that `#define NAME` has in a header, or "unknown".
inline std::string macro_in(const std::filesystem::path& header, const std::string& name) {
    std::string text;
    if (try_read(header, text) != 0)
        return "unknown";
    const std::string before = "#define " + name + " ";
    auto at = text.find(before);
    if (at == std::string::npos)
        return "unknown";
    at += before.size();
    return std::string(str::trim(std::string_view(text).substr(at, text.find('\n', at) - at)));
}

/// Answers of files are remembered by the files; a file that is not there has no answer.
inline std::string header_version(const std::vector<std::filesystem::path>& roots,
                                  const std::vector<std::filesystem::path>& include_dirs,
                                  const std::string& file, const std::string& macro) {
    for (const auto& directory : include_dirs)
        if (is_file(directory / file))
            return remember_identity(roots, directory / file, macro,
                                     [&] { return macro_in(directory / file, macro); });
    return "none";
}

}  // namespace detail

/// The identity, as text to read. Opens the library only when the answer is not remembered. Where
/// things lie is not in it: the same installation elsewhere makes the same kernels. Throws
/// ToolchainError when the library does not work.
inline std::string identity(const NvrtcLibrary& library,
                            const std::vector<std::filesystem::path>& roots) {
    const auto builtins = Api::find_builtins(library.path);
    const auto stamp = FileStamp::of(builtins);
    // The library's own file is what it is remembered by; the question has the other file.
    const auto question = str::format("nvrtc {} {} {} {}", builtins, stamp ? stamp->size : 0,
                                      stamp ? stamp->mtime_ns : 0, stamp ? stamp->inode : 0);
    auto out = remember_identity(roots, library.path, question, [&] {
        const auto& api = Api::open(library.path);
        return str::format("NVRTC {}.{}\nlibnvrtc: {}\nlibnvrtc-builtins: {}\n", api.major,
                           api.minor, detail::library_id(library.path),
                           detail::library_id(builtins));
    });
    out +=
        str::format("CUDA headers: {}\nCCCL headers: {}\n",
                    detail::header_version(roots, library.include_dirs, "cuda.h", "CUDA_VERSION"),
                    detail::header_version(roots, library.include_dirs, "cuda/std/__cccl/version.h",
                                           "CCCL_VERSION"));
    return out + "headers of deep_jit: " + headers_digest() + "\n";
}

}  // namespace deep_jit::cuda::nvrtc
