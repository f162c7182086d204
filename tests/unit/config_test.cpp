#include <filesystem>
#include <string>

#include <deep_jit/runtime/config.hpp>

#include "support.hpp"

namespace {

using deep_jit::Config;
using deep_jit::ConfigError;
using deep_jit_test::kOddName;
using deep_jit_test::message_of;
using deep_jit_test::TempDir;
namespace fs = std::filesystem;

TEST(Config, KeepsWhatItIsGiven) {
    const Config config("/lib root", "MYLIB", "sig", {"/a", "/b c"}, {"x/", "y/"});
    EXPECT_EQ(config.python_library_root, "/lib root");
    EXPECT_EQ(config.env_prefix, "MYLIB");
    EXPECT_EQ(config.to_json().dump(),
              R"({"python_library_root": "/lib root", "extra_signature": "sig", )"
              R"("include_dirs": ["/a", "/b c"], "include_prefixes": ["x/", "y/"]})");
    EXPECT_EQ(Config("/r", "X").to_json().dump(),
              R"({"python_library_root": "/r", "extra_signature": "", "include_dirs": [], )"
              R"("include_prefixes": []})");
}

TEST(Config, TheRootMustBeAbsolute) {
    for (const char* root : {"", "rel", "./x", "../x", "~/x"})
        EXPECT_THROW(Config(root, "X"), ConfigError) << root;
    EXPECT_CONTAINS(message_of<ConfigError>([] { Config("rel", "X"); }), "must be absolute");
    EXPECT_CONTAINS(message_of<ConfigError>([] { Config("rel", "X"); }), "rel");
}

TEST(Config, ThePrefix) {
    EXPECT_CONTAINS(message_of<ConfigError>([] { Config("/r", "DJ"); }),
                    "reserved for global environment variables");
    EXPECT_CONTAINS(message_of<ConfigError>([] { Config("/r", ""); }), "must not be empty");
    for (const char* prefix : {"A-B", "A B", "A=", "\xc3\x84", "A\n"})
        EXPECT_THROW(Config("/r", prefix), ConfigError) << prefix;
    for (const char* prefix : {"DJX", "dj", "_", "A1_b"}) EXPECT_NO_THROW(Config("/r", prefix));
}

TEST(Config, IncludeDirectoriesAndPrefixes) {
    EXPECT_CONTAINS(message_of<ConfigError>([] {
                        Config("/r", "X", "", {"/a", "rel"});
                    }),
                    "must be absolute: 'rel'");
    EXPECT_THROW(Config("/r", "X", "", {""}), ConfigError);
    EXPECT_THROW(Config("/r", "X", "", {"/a"}, {"a/", ""}), ConfigError);
}

TEST(Config, PythonPathsStayInsideTheRoot) {
    const TempDir dir;
    const auto root = dir / "root";
    deep_jit_test::write(root / "hooks" / "h.py", "");
    deep_jit_test::write(root / kOddName, "");
    deep_jit_test::write(dir / "outside.py", "");
    deep_jit_test::write(dir / "root2" / "x.py", "");
    fs::create_symlink(dir / "outside.py", root / "link.py");
    fs::create_symlink(root / "hooks" / "h.py", root / "inner.py");
    const Config config(root, "X");
    EXPECT_EQ(config.get_python_path("hooks/h.py"), fs::canonical(root) / "hooks" / "h.py");
    EXPECT_EQ(config.get_python_path("hooks/../hooks/./h.py"),
              fs::canonical(root) / "hooks" / "h.py");
    EXPECT_EQ(config.get_python_path(kOddName), fs::canonical(root) / kOddName);
    EXPECT_EQ(config.get_python_path("inner.py"), fs::canonical(root) / "hooks" / "h.py");
    for (const char* bad : {"../outside.py", "hooks/../../outside.py", "../root2/x.py", "link.py",
                            "", ".", "hooks", "missing.py", "hooks/h.py/x"})
        EXPECT_THROW(config.get_python_path(bad), ConfigError) << bad;
    EXPECT_THROW(config.get_python_path(root / "hooks" / "h.py"), ConfigError) << "absolute";
    EXPECT_CONTAINS(message_of<ConfigError>([&] { config.get_python_path("link.py"); }),
                    "outside the library root");
}

}  // namespace
