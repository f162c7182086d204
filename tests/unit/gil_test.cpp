#include <dlfcn.h>

#include <deep_jit/utils/command.hpp>
#include <deep_jit/utils/dynamic_library.hpp>
#include <deep_jit/utils/gil.hpp>

#include "support.hpp"

namespace {

using deep_jit::GilRelease;
using deep_jit_test::run_child;
using deep_jit_test::TempDir;

// A Python with nothing but the functions that the release of its lock needs.
constexpr const char* kStandIn = R"(
int initialized = 0, held = 0, saves = 0, restores = 0, state;
int Py_IsInitialized(void) { return initialized; }
int PyGILState_Check(void) { return held; }
void* PyEval_SaveThread(void) { saves++; held = 0; return &state; }
void PyEval_RestoreThread(void* s) { restores += s == &state; held = 1; }
)";

TEST(Gil, WithoutPythonNothingHappens) {
    if (::dlsym(RTLD_DEFAULT, "PyEval_SaveThread") != nullptr)
        GTEST_SKIP() << "this process has a Python";
    const GilRelease outer;
    const GilRelease inner;
    EXPECT_EQ(deep_jit::detail::PythonApi::find().save_thread, nullptr);
}

TEST(Gil, ReleasedOnlyWhenThisThreadHoldsIt) {
    const TempDir dir;
    deep_jit_test::write(dir / "python.c", kStandIn);
    const auto library = (dir / "libpython.so").string();
    const auto built = deep_jit::call_external_command(
        {"cc", "-shared", "-fPIC", "-o", library, (dir / "python.c").string()});
    if (built.exit_code == 127)
        GTEST_SKIP() << "no C compiler called cc";
    ASSERT_EQ(built.exit_code, 0) << built.output;
    // In a child, so that the other tests do not find this Python.
    const auto result = run_child([&] {
        auto python = deep_jit::DynamicLibrary::try_open(library, RTLD_NOW | RTLD_GLOBAL);
        if (!python)
            return 1;
        int& initialized = *static_cast<int*>(python.find("initialized"));
        int& held = *static_cast<int*>(python.find("held"));
        int& saves = *static_cast<int*>(python.find("saves"));
        int& restores = *static_cast<int*>(python.find("restores"));
        { const GilRelease release; }
        if (saves != 0)
            return 2;  // not initialized
        initialized = 1;
        { const GilRelease release; }
        if (saves != 0)
            return 3;  // not held
        held = 1;
        {
            const GilRelease release;
            if (saves != 1 || held != 0)
                return 4;
            const GilRelease nested;
            if (saves != 1)
                return 5;  // no longer held
        }
        return saves == 1 && restores == 1 && held == 1 ? 0 : 6;
    });
    EXPECT_TRUE(result.ok()) << result;
}

TEST(DynamicLibrary, OpensFindsAndSaysWhyNot) {
    using deep_jit::DynamicLibrary;
    std::string error;
    const auto missing = DynamicLibrary::try_open("libdjtest-missing.so.9", RTLD_NOW, &error);
    EXPECT_FALSE(missing);
    EXPECT_CONTAINS(error, "libdjtest-missing.so.9");
    EXPECT_EQ(missing.find("x"), nullptr);
    auto libc = DynamicLibrary::try_open("libc.so.6");
    ASSERT_TRUE(libc);
    EXPECT_EQ(libc.find<int(int)>("abs")(-3), 3);
    EXPECT_EQ(libc.find("djtest_no_such_symbol"), nullptr);
    void* handle = libc.handle();
    DynamicLibrary other(std::move(libc));
    EXPECT_FALSE(libc);  // NOLINT: moved-from is empty
    EXPECT_EQ(other.release(), handle);
    EXPECT_FALSE(other);
}

}  // namespace
