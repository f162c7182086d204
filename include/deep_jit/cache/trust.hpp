// Whether what lies in a directory can be loaded into this process.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <deep_jit/utils/exception.hpp>

namespace deep_jit {

namespace detail {

inline bool is_own_group(gid_t group) {
    if (group == ::getegid() || group == ::getgid())
        return true;
    const int count = ::getgroups(0, nullptr);
    std::vector<gid_t> groups(static_cast<std::size_t>(std::max(count, 0)));
    const int have = ::getgroups(static_cast<int>(groups.size()), groups.data());
    return std::find(groups.begin(), groups.begin() + std::max(have, 0), group) !=
           groups.begin() + std::max(have, 0);
}

}  // namespace detail

/// Why strangers could have put code into this cache root; empty when they could not, or when
/// there is nothing yet. A stranger is anybody but this user, the superuser and the members of
/// this user's groups. A directory that all may write to is fine only when it is sticky.
inline std::string distrust(const std::filesystem::path& root) {
    for (const auto& path : {root, root / "cache"}) {
        struct stat info {};
        if (::stat(path.c_str(), &info) != 0)
            continue;
        if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0)
            return str::format("{} can be written by everybody", path);
        if (info.st_uid != 0 && info.st_uid != ::geteuid() && !detail::is_own_group(info.st_gid))
            return str::format("{} belongs to user {} and group {}", path, info.st_uid,
                               info.st_gid);
    }
    return {};
}

}  // namespace deep_jit
