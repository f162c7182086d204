// Remembers on disk what a program says of itself, so that a warm start runs no program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/hash.hpp>
#include <deep_jit/utils/json.hpp>
#include <deep_jit/utils/uuid.hpp>

namespace deep_jit {

/// `ask()`, remembered under `<root>/toolchain/` for as long as the file `program` keeps its size,
/// modification time and inode. `question` tells apart what is asked of one program. Roots are
/// read in order; answers are written to the first. A memory that fails is no error: `ask` runs.
template <typename Ask>
std::string remember_identity(const std::vector<std::filesystem::path>& roots,
                              const std::filesystem::path& program, const std::string& question,
                              Ask&& ask) {
    const auto stamp = FileStamp::of(program);
    if (!stamp)
        return ask();
    const std::string name =
        hash::FNV1a().update(program.string()).update(question).get_hex_digest() + ".json";
    const auto record_of = [&](const std::string& answer) {
        json record = json::object();
        record["program"] = program.string();
        record["question"] = question;
        record["size"] = stamp->size;
        record["mtime_ns"] = stamp->mtime_ns;
        record["inode"] = stamp->inode;
        record["answer"] = answer;
        record["checksum"] = hash::checksum(answer);
        return record;
    };
    for (const auto& root : roots) {
        std::string text;
        if (try_read(root / "toolchain" / name, text) != 0)
            continue;
        try {
            const auto record = json::parse(text);
            const auto answer = record.get<std::string>("answer");
            if (answer && record == record_of(*answer))
                return *answer;
        } catch (const Error&) {  // NOLINT: a damaged record is one that says nothing
        }
    }
    const std::string answer = ask();
    if (!roots.empty()) {
        const auto directory = roots.front() / "toolchain";
        const auto draft = directory / (name + "." + get_uuid());
        if (try_make_dirs(directory) == 0) {
            std::error_code error;
            if (try_write_file_sync(draft, record_of(answer).dump(2) + "\n") == 0)
                std::filesystem::rename(draft, directory / name, error);
            safe_remove_all(draft);
        }
    }
    return answer;
}

}  // namespace deep_jit
